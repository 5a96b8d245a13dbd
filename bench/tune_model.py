#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a model is worth to `kopt tune`: the best time found after so many evaluations, with --model and without, on
problems that the model never saw.

    bench/tune_model.py [--kernels gemm,convolution,softmax] [--rounds R] [--budget N] [--device ID] [-o OUT.json]

For each problem and round (its number is the seed) both searches run in turn, on the whole space of the kernel file.
Their best after 1, 5, 10, 20, .. evaluations (failed ones count) is put over the best that any run of the problem
found; the table has the mean of that share, and the least, over problems and rounds."""
import argparse
import csv
import gzip
import json
import pathlib
import sys

from common import ROOT, find_kopt, kopt_json

AT = (1, 5, 10, 20, 50, 100, 200)
PROBLEMS = {
    "gemm": ["M=3072 N=3072 K=3072", "M=1536 N=9216 K=1536", "M=64 N=5000 K=5000", "M=8192 N=640 K=2560"],
    "convolution": ["W=1800 H=1200 FW=9 FH=9", "W=5000 H=3000 FW=5 FH=5", "W=700 H=700 FW=21 FH=21", "W=2300 H=2300 FW=3 FH=3"],
    "softmax": ["R=3000 C=3000", "R=100 C=50000", "R=20000 C=700", "R=600 C=12000"],
}


def known(kernel):
    with gzip.open(ROOT / f"data/h200/{kernel}.csv.gz", "rt", encoding="utf-8") as f:
        return {row["problem"] for row in csv.DictReader(f)}


def search(a, kernel, problem, seed, model):
    """The best time so far behind each evaluation, microseconds."""
    options = ["--model", kernel] if model else []
    lines = kopt_json(a.kopt, "tune", str(ROOT / f"examples/{kernel}/{kernel}.cu"), *problem.split(), *options, "--device", a.device,
                      "--no-store", "--seed", str(seed), "--budget", str(a.budget), "--race", "1", "-q")
    best, curve = float("inf"), []
    for x in lines:
        if x["type"] == "result" and not x["race"]:
            if x["outcome"] == "ok":
                best = min(best, x["median_ns"] / 1e3)
            curve.append(best)
    return curve


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kernels", default=",".join(PROBLEMS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--budget", type=int, default=100)
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--kopt", default=None)
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    a.kopt = a.kopt or find_kopt()
    at = [n for n in AT if n <= a.budget]
    results = []
    print("| kernel | search | " + " | ".join(f"after {n}" for n in at) + " |")
    print("| --- " * (len(at) + 2) + "|")
    for kernel in a.kernels.split(","):
        seen = known(kernel)
        runs = []
        for problem in PROBLEMS[kernel]:
            if problem in seen:
                sys.exit(f"{kernel} {problem} is in data/h200: no test")
            for seed in range(1, a.rounds + 1):
                for model in (False, True):
                    runs.append({"problem": problem, "seed": seed, "model": model, "best_us": search(a, kernel, problem, seed, model)})
        for r in runs:
            least = min(x["best_us"][-1] for x in runs if x["problem"] == r["problem"])
            if least == float("inf"):
                sys.exit(f"{kernel} {r['problem']}: nothing ran")
            r["share"] = [least / r["best_us"][min(n, len(r["best_us"])) - 1] for n in at]
        for model in (False, True):
            shares = list(zip(*(r["share"] for r in runs if r["model"] == model)))
            print(f"| {kernel} | {'model first' if model else 'default'} | "
                  + " | ".join(f"{sum(s) / len(s):.3f} / {min(s):.3f}" for s in shares) + " |", flush=True)
        results.append({"kernel": kernel, "at": at, "runs": runs})
        if a.out:
            pathlib.Path(a.out).write_text(json.dumps({"budget": a.budget, "rounds": a.rounds, "kernels": results}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
