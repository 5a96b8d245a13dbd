#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Configurations a minute and what they lead to, kopt beside Kernel Tuner: the same kernel file, space, data and
seconds, in turn. After each round the two winners race: both are launched in turn by one kopt, which flushes the
cache before each launch, and the ratio of their times is reported with its 95 % interval.

    bench/throughput.py [--kernel FILE] [--problem M=512,..] [--seconds S] [--rounds R] [--python PY] [-o OUT.json]

Kernel Tuner comes from PyPI, into .cache/venv-peers (OpenCL C, bench/peers/requirements.txt) or
.cache/venv-peers-cuda (CUDA C, requirements-cuda.txt), unless --python names an interpreter that has it. Both tools
draw at random; both check every result. A tool's rate is over the wall time of its search: kopt's from the start of
the process to the end of the search, Kernel Tuner's of its tune_kernel()."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from common import ROOT, find_kopt, kopt_json


def peers_python(cuda):
    suffix = "-cuda" if cuda else ""
    venv = ROOT / f".cache/venv-peers{suffix}"
    python = venv / "bin/python"
    if not (venv / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", "-r", ROOT / f"bench/peers/requirements{suffix}.txt"], check=True)
        (venv / "ready").touch()
    return str(python)


def run_kopt(a, device, problem, seed):
    """The report, the number of configurations measured, and the seconds from the start to the end of the search:
    the final race, which Kernel Tuner has not, is left out."""
    command = [a.kopt, "tune", a.kernel, *problem, "--no-store", "--no-compile-cache", "--strategy", a.kopt_strategy,
               "--seed", str(seed), "--budget", f"{a.seconds:g}s", "--race", "2", "--device", device, "--json", "-q"]
    begun = time.monotonic()
    started = last = begun
    measured = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            now, item = time.monotonic(), json.loads(line)
            if item["type"] == "start":
                started = now
            elif item["type"] == "result":
                last, measured = now, measured + 1
            elif item["type"] == "report":
                report, ended = item, now
    if process.returncode != 0:
        sys.exit(f"kopt ended with {process.returncode}")
    return report, measured, min(ended, max(last, started + a.seconds)) - begun


def run_peer(python, a, space_path, seed):
    """With compilers' caches of its own, as kopt has: what an earlier run compiled is not there."""
    with tempfile.TemporaryDirectory() as tmp:
        caches = {v: tmp for v in ("POCL_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")}
        out = subprocess.run([python, ROOT / "bench/peers/kernel_tuner_run.py", a.kernel, space_path, str(a.seconds),
                              str(seed), a.peer_strategy], capture_output=True, text=True, env={**os.environ, **caches})
    if out.returncode != 0:
        sys.exit(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def literal(value):
    return json.dumps(value)  # 4, 0.5, true, "row" are written alike


def config_key(config):
    return json.dumps(config, sort_keys=True)


def is_config(config):
    return "(" + " && ".join(f"{name} == {literal(value)}" for name, value in config.items()) + ")"


def two_configurations(kernel, folder, default, other):
    """A copy of the kernel file, with what lies beside it, whose only valid configurations are these two."""
    shutil.copytree(pathlib.Path(kernel).parent, folder, dirs_exist_ok=True)
    path = folder / pathlib.Path(kernel).name
    text = re.sub(r"^[ \t]*#[ \t]*pragma kopt default(?:.*\\\n)*.*\n", "", path.read_text(), flags=re.M)
    words = " ".join(f"{name}={literal(value)}" for name, value in default.items())
    text += f"\n#pragma kopt default {words}\n#pragma kopt require {is_config(default)} || {is_config(other)}\n"
    path.write_text(text)
    return str(path)


def results_of(a, store):
    """What the store says of each configuration: what it took in the rounds of the race, and how it failed."""
    times, failures = {}, {}
    for row in kopt_json(a.kopt, "store", "show", "1", "--all", "--store", store):
        if row["type"] != "result":
            continue
        key = config_key(row["config"])
        if row["outcome"] != "ok":
            failures[key] = f"{row['outcome']}: {row['message']}" if row["message"] else row["outcome"]
        elif row["race"]:
            times[key] = kopt_json(a.kopt, "store", "result", str(row["id"]), "--store", store)[0]["times_ns"]
    return times, failures


def race(a, device, problem, ours, theirs):
    """The times of both, one of each round, and why there are none.

    kopt races the fastest, what comes close to it, and the default however slow. So both race where the slower one
    is the default. If that was not so at first, it is when they have changed places, since the second session finds
    what the first one measured in the store: the default is no part of a measurement's key."""
    keys = [config_key(c) for c in (ours, theirs)]
    with tempfile.TemporaryDirectory() as tmp:
        store = os.path.join(tmp, "race.db")
        for default, other in ((theirs, ours), (ours, theirs)):
            kernel = two_configurations(a.kernel, pathlib.Path(tmp) / "kernel", default, other)
            kopt_json(a.kopt, "tune", kernel, *problem, "--store", store, "--strategy", "exhaustive", "--device", device,
                      "-q")
            times, failures = results_of(a, store)
            if all(key in times for key in keys):
                return times[keys[0]], times[keys[1]], ""
    whose = dict(zip(keys, ("kopt's", "Kernel Tuner's")))
    return None, None, "; ".join(f"{whose[key]} winner ended with {why}" for key, why in failures.items()) or "unknown"


def ratio_of(above, below):
    """The ratio of the medians and its 95 % interval: bootstrap over rounds, since what disturbs a round disturbs
    both."""
    n, rng = min(len(above), len(below)), random.Random(1)
    above, below = above[:n], below[:n]
    draws = []
    for _ in range(2000):
        rounds = [rng.randrange(n) for _ in range(n)]
        draws.append(statistics.median(above[i] for i in rounds) / statistics.median(below[i] for i in rounds))
    draws.sort()
    return {"ratio": statistics.median(above) / statistics.median(below), "low": draws[49], "high": draws[1950], "rounds": n}


def race_winners(a, device, problem, ours, theirs):
    """How many times as long as kopt's winner Kernel Tuner's takes."""
    if not ours or not theirs:
        return {"failed": f"{'Kernel Tuner' if ours else 'kopt'} found none"}
    if ours == theirs:
        return {"ratio": 1.0, "low": 1.0, "high": 1.0, "rounds": 0}
    our_times, their_times, why = race(a, device, problem, ours, theirs)
    if why:
        return {"failed": why}
    return {**ratio_of(their_times, our_times), "kopt_ms": statistics.median(our_times) / 1e6,
            "peer_ms": statistics.median(their_times) / 1e6}


def spread(values, digits=1):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def find_device(a):
    devices = [d for d in kopt_json(a.kopt, "devices") if d["type"] == "device"]
    wanted = a.device or ("cuda" if a.kernel.endswith(".cu") else "opencl")
    found = next((d for d in devices if d["id"].startswith(wanted)), None)
    if not found:
        sys.exit(f"no device {wanted}")
    arch = re.fullmatch(r"sm_(\d+)a?", found["arch"] or "")
    block = found.get("max_threads", 1024)
    limits = {"max_threads": block, "max_block_x": block, "max_block_y": block, "max_block_z": 64,
              "shared_bytes": found["shared_bytes"], "cc": int(arch[1]) if arch else 0}
    return found, limits


def one_round(a, python, device, problem, space_path, i):
    report, measured, search_s = run_kopt(a, device, problem, i + 1)
    peer = run_peer(python, a, space_path, i + 1)
    ours, theirs = 60 * measured / search_s, 60 * peer["configurations"] / peer["wall_s"]
    winners = race_winners(a, device, problem, report["best"] and report["best"]["config"], peer["best"])
    print(f"round {i + 1}: kopt {ours:.1f}/min, {peer['tool']} {theirs:.1f}/min, ratio {ours / theirs:.2f}; "
          + winners_text(winners), file=sys.stderr)
    return {"kopt_per_min": ours, "kopt_search_s": search_s, "peer_per_min": theirs, "ratio": ours / theirs,
            "winners": winners, "kopt": report, "peer": peer}


def winners_text(w):
    if "failed" in w:
        return f"no race of the winners: {w['failed']}"
    if w["rounds"] == 0:
        return "the same winner"
    return (f"its winner takes {w['ratio']:.3f} times as long ({w['low']:.3f} to {w['high']:.3f}; "
            f"{w['peer_ms']:.3f} and {w['kopt_ms']:.3f} ms)")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kopt", default="", help="the program; else what was built")
    p.add_argument("--kernel", default=str(ROOT / "examples/gemm/gemm.cl"))
    p.add_argument("--problem", default="M=512 N=512 K=512")
    p.add_argument("--device", default="")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--python", default="")
    p.add_argument("--kopt-strategy", default="random")
    p.add_argument("--peer-strategy", default="random_sample")
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    a.kopt = a.kopt or find_kopt()
    problem = a.problem.split()
    python = a.python or peers_python(a.kernel.endswith(".cu"))
    device, limits = find_device(a)
    space = kopt_json(a.kopt, "space", a.kernel, *problem, "--device", device["id"], "--explain")[0]
    space["limits"] = limits
    with tempfile.TemporaryDirectory() as tmp:
        space_path = os.path.join(tmp, "space.json")
        pathlib.Path(space_path).write_text(json.dumps(space))
        rounds = [one_round(a, python, device["id"], problem, space_path, i) for i in range(a.rounds)]
    result = {"kernel": os.path.relpath(a.kernel, ROOT), "problem": problem, "device": device, "host": {"cores": os.cpu_count()},
              "seconds": a.seconds, "rounds": rounds}
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(result, indent=1) + "\n")
    print(f"kernel {result['kernel']} {a.problem}, {device['name']}, {a.rounds} x {a.seconds:.0f} s, in turn")
    print(f"kopt          {spread([r['kopt_per_min'] for r in rounds])} configurations a minute")
    print(f"{rounds[0]['peer']['tool']:13} {spread([r['peer_per_min'] for r in rounds])}")
    print(f"ratio         {spread([r['ratio'] for r in rounds], 2)}")
    raced = [r["winners"]["ratio"] for r in rounds if "ratio" in r["winners"]]
    if raced:
        print(f"winners       {rounds[0]['peer']['tool']}'s takes {spread(raced, 3)} times as long as kopt's, "
              f"{len(raced)} of {len(rounds)} raced")


if __name__ == "__main__":
    main()
