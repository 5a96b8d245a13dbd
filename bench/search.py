#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Strategies of kopt beside Kernel Tuner's on recorded spaces: same spaces, same budgets, as many runs.

    bench/search.py DATA -r 100 [--peers firefly_algorithm,pso,hybrid_vndx:20,..] [--methods bayes,random,..]
                    [--prior FILE]* [-o OUT.json] [-- OPTIONS of kopt compare]

DATA: cache files of Kernel Tuner (.json, .json.gz), or folders that have some, themselves or in spaces/. Kernel Tuner
comes from PyPI, into .cache/venv-peers (bench/peers/requirements.txt), unless --python names an interpreter that has
it; its strategies run with their default options, and what they evaluated is kept in .cache/peers, so that nothing is
run twice (the first time takes half an hour, two hours with hybrid_vndx and basinhopping; NAME:N makes N runs only).
kopt compare judges both. Prints tables in Markdown."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from common import ROOT, find_kopt, kopt_json
from throughput import peers_python

TRACES = ROOT / ".cache/peers"
PEERS = ("firefly_algorithm,pso,adaptive_tabu_greywolf,genetic_algorithm,diff_evo,dual_annealing,simulated_annealing,"
         "mls,greedy_ils,greedy_mls,random_sample")


def files_of(data):
    files = []
    for path in map(pathlib.Path, data):
        folder = path / "spaces" if (path / "spaces").is_dir() else path
        found = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")]) if path.is_dir() else [path]
        if not found or not all(f.is_file() for f in found):
            sys.exit(f"there are no recorded spaces in {path}")
        files += map(str, found)
    return files


def peers_of(text, repeats):
    """{name: runs} of "pso,hybrid_vndx:20"."""
    peers = {}
    for word in filter(None, text.split(",")):
        name, _, runs = word.partition(":")
        peers[name] = min(int(runs), repeats) if runs else repeats
    return peers


def replay_peers(python, files, peers):
    """Runs what is missing; returns the traces' lines, the first `runs` seeds of each."""
    for runs in dict.fromkeys(peers.values()):
        names = [name for name, n in peers.items() if n == runs]
        command = [python, ROOT / "bench/peers/kernel_tuner_replay.py", *files, "--strategies", ",".join(names),
                   "--repeats", str(runs), "--out", TRACES]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"Kernel Tuner's runs ended with {done.returncode}")
    lines = []
    for folder in done.stdout.splitlines():
        for name, runs in peers.items():
            text = (pathlib.Path(folder) / f"{name}.jsonl").read_text()
            whole = text[:text.rfind("\n")]  # another process may be at the next
            lines += [t for t in map(json.loads, whole.splitlines()) if t["seed"] <= runs]
    return lines


def search_s_of(lines):
    """Of each peer, by space: its own time for an evaluation, of the runs in which it was measured."""
    sums = {}
    for t in lines:
        if "search_s" in t and t["times_ns"]:
            s = sums.setdefault((t["method"], t["space"]), [0, 0])
            s[0] += t["search_s"]
            s[1] += len(t["times_ns"])
    return {key: seconds / n for key, (seconds, n) in sums.items()}


def compare(a, files, lines):
    command = ["compare", *files, "--repeats", str(a.repeats), *a.rest]
    if a.methods:
        command += ["--methods", a.methods]
    for prior in a.prior:
        command += ["--prior", prior]
    with tempfile.TemporaryDirectory() as tmp:
        if lines:
            traces = pathlib.Path(tmp) / "traces.jsonl"
            traces.write_text("".join(json.dumps(t) + "\n" for t in lines))
            command += ["--traces", str(traces)]
        return kopt_json(a.kopt, *command)


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value):
    return "-" if value is None else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def seconds(low, high):
    """Microseconds or milliseconds, from the space where it takes least to that where it takes most."""
    if low is None:
        return "-"
    unit, scale = ("ms", 1e3) if high >= 1e-3 else ("µs", 1e6)
    ends = [f"{scale * v:.3g}" if scale * v < 100 else f"{scale * v:.0f}" for v in (low, high)]
    return f"{ends[0]} {unit}" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} {unit}"


def row(words):
    return "| " + " | ".join(words) + " |"


def table(head, rows):
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)])


def best_of(rows, key):
    values = [round(r[key], 2) for r in rows if r is not None and r[key] is not None]
    return max(values) if values else None


def bold(value, best):
    return f"**{number(value)}**" if value is not None and round(value, 2) == best else number(value)


def runs_text(cells, repeats):
    """Nothing, where all were made."""
    runs = min((c["runs"] for c in cells), default=0)
    return "" if runs >= repeats else f" ({runs} runs)"


def short_of(method, methods, cells, spaces):
    """Where others are ahead of it: a line for each space."""
    for space in spaces:
        mine = cells[method, space]["score"]
        ahead = [(cells[m, space]["score"], m) for m in methods if (m, space) in cells]
        ahead = [f"{m} {number(score, 3)}" for score, m in sorted(ahead, reverse=True) if score > mine]
        if ahead:
            yield f"- {space}: {number(mine, 3)}; {', '.join(ahead)}"


class Report:
    """What kopt compare printed."""

    def __init__(self, lines, search_s):
        self.search_s = search_s
        self.spaces = {x["name"]: x for x in lines if x["type"] == "recording"}
        self.totals = {x["method"]: x for x in lines if x["type"] == "total" and x["runs"]}
        self.cells = {(x["method"], x["space"]): x for x in lines if x["type"] == "score" and x["runs"]}
        self.repeats = next(x["repeats"] for x in lines if x["type"] == "compared")
        self.methods = sorted(self.totals, key=lambda m: -self.totals[m]["score"])

    def of(self, method):
        return [self.cells.get((method, s)) for s in self.spaces]

    def scores(self):
        best = {s: best_of([self.cells.get((m, s)) for m in self.methods], "score") for s in self.spaces}
        complete = [self.totals[m] for m in self.methods if all(self.of(m))]
        mean, over_time = best_of(complete, "score"), best_of(complete, "time_score")
        rows = []
        for m in self.methods:
            of, total = self.of(m), self.totals[m]
            rows.append([m + runs_text([c for c in of if c], self.repeats),
                         *(bold(c and c["score"], best[s]) for c, s in zip(of, self.spaces)),
                         bold(total["score"], mean), bold(total["time_score"], over_time)])
        return table(["score over evaluations", *self.spaces, "mean", "over time"], rows)

    def near(self):
        rows = [[m, *(f"{number(c['near'], 0)} ({percent(c['hits'])})" if c else "-" for c in self.of(m))]
                for m in self.methods]
        return table(["evaluations to within 1 % (runs that get there)", *self.spaces], rows)

    def own_time(self, method):
        own = [self.search_s.get((method, s), c["search_s"]) for s, c in zip(self.spaces, self.of(method)) if c]
        own = [v for v in own if v is not None]
        return seconds(min(own, default=None), max(own, default=None))

    def overall(self):
        rows = []
        for m in self.methods:
            t = self.totals[m]
            rows.append([m, f"{t['score']:.3f} ± {t['score_error']:.3f}", number(t["time_score"], 3),
                         number(t["hits"], 3), number(t["cutoff_hits"], 3), percent(t["gap"]), percent(t["worst_gap"]),
                         str(t["spaces_below_random"]), self.own_time(m)])
        return table(["over all spaces", "score", "over time", "within 1 %", "at the cutoff", "final gap", "worst run",
                      "spaces below random", "own time an evaluation"], rows)

    def behind(self, method):
        return list(short_of(method, self.methods, self.cells, self.spaces))


def print_tables(report, method):
    print(report.scores(), report.near(), report.overall(), sep="\n\n")
    budgets = ", ".join(f"{name} {x['budget']}" for name, x in report.spaces.items())
    print(f"\n{report.repeats} runs of each; budgets, in evaluations: {budgets}.")
    behind = report.behind(method)
    if behind:
        print(f"\nWhere {method} is not the first:", *behind, sep="\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("-r", "--repeats", type=int, default=100)
    p.add_argument("--peers", default=PEERS, help="'' for none")
    p.add_argument("--methods", default="", help="of kopt; else its default and random")
    p.add_argument("--prior", action="append", default=[], help="results for methods named NAME+prior")
    p.add_argument("--kopt", default="", help="the program; else what was built")
    p.add_argument("--python", default="", help="an interpreter that has Kernel Tuner")
    p.add_argument("-o", "--out", default="")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    a = p.parse_args(words[:cut])
    a.rest = words[cut + 1:]
    a.kopt = a.kopt or find_kopt()
    files, peers = files_of(a.data), peers_of(a.peers, a.repeats)
    traces = replay_peers(a.python or peers_python(False), files, peers) if peers else []
    lines = compare(a, files, traces)
    search_s = search_s_of(traces)
    if a.out:
        for x in lines:  # curves are for pictures
            x.pop("by_evaluations", None)
            x.pop("by_time", None)
            if x["type"] == "score" and (x["method"], x["space"]) in search_s:
                x["search_s"] = search_s[x["method"], x["space"]]
        pathlib.Path(a.out).write_text("[\n" + ",\n".join(json.dumps(x) for x in lines) + "\n]\n")
    report = Report(lines, search_s)
    named = [m for m in a.methods.split(",") if m in report.totals]
    ours = [m for m in report.methods if not report.totals[m]["foreign"] and m != "random"]
    print_tables(report, [*named, *ours][0])


if __name__ == "__main__":
    main()
