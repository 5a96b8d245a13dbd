#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seconds of an epoch of training the encoder-decoder network with attention (src/model/seq.c), kopt beside PyTorch:
the same sizes, batch, dropout, optimiser, rows and threads. An epoch of each in turn, round after round.

    bench/epoch.py [--threads N] [--rounds R] [--rows ROWS] [--no-compile] [-o OUT.json]

PyTorch comes from PyPI into .cache/venv-torch (bench/peers/requirements-torch.txt), unless --python names an
interpreter that has it; it runs twice, as written and through torch.compile.

Two threads that wait for each other suffer from whatever else wants a core, PyTorch's more than kopt's. So what others
took of the cores meanwhile is measured too (Linux, /proc), and with --quiet SHARE a round in which they took more than
that share is run again, up to --attempts rounds in all. Epochs of few rows (--rows 1280) find quiet moments sooner."""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

from common import BUILDS, ROOT, make_venv


def find_bench():
    for build in BUILDS:
        path = ROOT / build / "bench/bench_epoch"
        if path.exists():
            return str(path)
    sys.exit(f"there is no bench_epoch in {' or '.join(BUILDS)}: run make, or name one with --bench")


def ticks(pid):
    """What the processor has done, and of it for this process, in ticks."""
    all_of = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    own = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(all_of) - all_of[3] - all_of[4], int(own[11]) + int(own[12])  # but idle, iowait


class Runner:
    """A program that runs an epoch for each line and answers with its seconds."""

    def __init__(self, name, command):
        self.name, self.seconds, self.others = name, [], []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.about = self.line()

    def line(self):
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit(f"{self.name} ended:\n{self.process.stderr.read()}")
        return line

    def epoch(self):
        """Its seconds, and the share of the cores' time that others took."""
        before = ticks(self.process.pid)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seconds = float(self.line())
        busy, own = (b - a for a, b in zip(before, ticks(self.process.pid)))
        return seconds, max(0, busy - own) / os.sysconf("SC_CLK_TCK") / seconds / os.cpu_count()

    def end(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def ratio_of(above, below):
    """The ratio of the medians with its 95 % interval (bootstrap over rounds), and that of the smallest."""
    n, rng = len(above), random.Random(1)
    draws = []
    for _ in range(2000):
        rounds = [rng.randrange(n) for _ in range(n)]
        draws.append(statistics.median(above[i] for i in rounds) / statistics.median(below[i] for i in rounds))
    draws.sort()
    return {"ratio": statistics.median(above) / statistics.median(below), "low": draws[49], "high": draws[1950],
            "of_smallest": min(above) / min(below)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default="", help="bench_epoch; else what was built")
    p.add_argument("--python", default="")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--rows", type=int, default=6924)
    p.add_argument("--quiet", type=float, default=1.0, metavar="SHARE")
    p.add_argument("--attempts", type=int, default=200)
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    bench = a.bench or find_bench()
    python = a.python or make_venv("torch")
    script = ROOT / "bench/peers/torch_epoch.py"
    runners = [Runner("kopt", [bench, "attention", str(a.rows), str(a.threads), str(max(a.threads, 1))])]
    for mode in ("eager",) if a.no_compile else ("eager", "compile"):
        runners.append(Runner(f"torch {mode}", [python, str(script), mode, str(a.rows), str(a.threads)]))
    rounds = 0
    try:
        for r in runners:  # compiles, touches memory
            r.epoch()
        while rounds < a.attempts and len(runners[0].seconds) < a.rounds:
            rounds += 1
            epochs = [r.epoch() for r in runners]
            if all(others <= a.quiet for _, others in epochs):
                for r, (seconds, others) in zip(runners, epochs):
                    r.seconds.append(seconds)
                    r.others.append(others)
    finally:
        for r in runners:
            r.end()
    kopt = runners[0]
    if len(kopt.seconds) < 2:
        sys.exit(f"of {rounds} rounds {len(kopt.seconds)} were quiet: too few")
    result = {"rows": a.rows, "batch": 128, "threads": a.threads, "host": {"cores": os.cpu_count()}, "rounds_tried": rounds,
              "quiet": a.quiet}
    print(f"an epoch of {a.rows} rows, batch 128, {a.threads} threads, {len(kopt.seconds)} rounds in turn of {rounds} tried; "
          f"seconds: median (least to most)")
    for r in runners:
        s = r.seconds
        entry = {"about": r.about, "seconds": s, "others_share": r.others}
        text = f"{r.name:14} {statistics.median(s):.3f} ({min(s):.3f} to {max(s):.3f})   {r.about}; others {100 * statistics.mean(r.others):.0f} %"
        if r is not kopt:
            q = entry["over_kopt"] = ratio_of(s, kopt.seconds)
            text += f"\n{'':14} {q['ratio']:.2f} times kopt's ({q['low']:.2f} to {q['high']:.2f}); the smallest {q['of_smallest']:.2f}"
        result[r.name] = entry
        print(text)
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
