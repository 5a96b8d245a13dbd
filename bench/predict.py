#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains predictors and judges them on problems that they never saw.

    bench/predict.py miopen DATA.db [--solver ConvAsm1x1U] [--dtype FP32] [--models factored,hybrid2] [--split ck]
                            [--pool OTHER.db] [--also FP16]
    bench/predict.py surfaces [--kernels gemm,softmax] [--models factored]

`miopen`: MIOpen's performance database (SQLite, unpacked), by the rules in kernels/miopen. --split ck keeps problems with
the same pair of channels together; rows of --pool's databases and of --also's data types help in training. `surfaces`: the times in data/h200. --folds 10 trains ten times, each time with
another tenth for tests, and gives means weighted by problems. Arguments behind -- go to `kopt train`. Prints a table
and writes bench/results/predict_*.json with -o."""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from common import ROOT, find_kopt, kopt_json

H200 = "max_threads=1024,shared_bytes=232448,compute_units=132,cc=90"
PAIRS = ["min(in_channels,out_channels)", "max(in_channels,out_channels)"]


def job(a, data, what, network, fold):
    """One training and its judgement: {name: judgement} and the seconds of training."""
    with tempfile.TemporaryDirectory() as tmp:
        model = str(pathlib.Path(tmp) / "model")
        begun = time.monotonic()
        subprocess.run([a.kopt, "train", data, *a.pool, "-o", model, "--model", network, "--fold", str(fold), "-q", *what, *a.rest],
                       check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begun
        lines = kopt_json(a.kopt, "eval", model, data, "--problems", "--threads", "1")
    judged = {x["name"]: {**x, "kept": []} for x in lines if x["type"] == "judgement"}
    for x in lines:
        if x["type"] == "problem" and x["kept"]:
            judged[x["name"]]["kept"].append(x["kept"])
    return judged, seconds


def merge(judged):
    """Means over folds, weighted by problems; what one fold does not know nobody does."""
    def mean(key, at=None):
        pick = [(x[key] if at is None else x[key][at], x["timed" if key.startswith("kept") else "problems"]) for x in judged]
        total = sum(n for _, n in pick)
        return None if any(v is None for v, _ in pick) or not total else sum(v * n for v, n in pick) / total
    out = {k: mean(k) for k in ("forced", "free_running", "valid", "seconds")}
    for k in ("exact", "canonical", "kept_mean", "kept_geometric"):
        out[k] = [mean(k, i) for i in range(4)]
    kept = [k for x in judged for k in x["kept"]]
    # Of all folds' problems together, by the nearest rank.
    out["kept_p5"] = [sorted(k[i] for k in kept)[(len(kept) - 1) // 20] if kept else None for i in range(4)]
    return {"problems": sum(x["problems"] for x in judged), **out}


def cell(values, scale=100, digits=1):
    values = values if isinstance(values, list) else [values]
    return " / ".join("-" if v is None else f"{scale * v:.{digits}f}" for v in values)


def table(rows):
    print("| network | problems | positions forced / free | exact 1 / 5 / 20 / 50 | canonical | valid | speed kept 0 / 1 / 5 / 20 | 5th percentile |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, r in rows:
        print(f"| {name} | {r['problems']} | {cell([r['forced'], r['free_running']])} | {cell(r['exact'])} | {cell(r['canonical'])} | "
              f"{cell(r['valid'])} | {cell(r['kept_mean'])} | {cell(r['kept_p5'])} |")


def compare(a, title, data, what, results):
    rows = []
    for network in a.models.split(","):
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            folds = range(a.first, a.first + a.folds)
            judged, seconds = zip(*pool.map(lambda f, n=network: job(a, data, what, n, f), folds))
        for name in judged[0]:
            if name.startswith("model") or network == a.models.split(",")[0]:
                label = name.replace("model", network, 1) if name.startswith("model") else name
                rows.append((label, {**merge([j[name] for j in judged]), "train_s": sum(seconds)}))
    print(f"\n{title}, {a.folds} of 10 folds\n")
    table(rows)
    results.append({"title": title, "data": pathlib.Path(data).name, "pool": [pathlib.Path(p).name for p in a.pool], "also": a.also,
                    "train": a.rest, "first": a.first, "folds": a.folds, "rows": dict(rows)})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["miopen", "surfaces"])
    p.add_argument("data", nargs="?")
    p.add_argument("--solver", default="ConvAsm1x1U,ConvAsmBwdWrW1x1,ConvOclDirectFwd,ConvAsmBwdWrW3x3")
    p.add_argument("--dtype", default="FP32")
    p.add_argument("--pool", action="append", default=[], help="another database")
    p.add_argument("--also", action="append", default=[], help="another data type")
    p.add_argument("--kernels", default="gemm,convolution,softmax")
    p.add_argument("--models", default="factored")
    p.add_argument("--split", choices=["random", "ck"], default="random")
    p.add_argument("--folds", type=int, default=1)
    p.add_argument("--first", type=int, default=0, help="the first fold")
    p.add_argument("--jobs", type=int, default=1, help="folds at a time")
    p.add_argument("--kopt", default=None)
    p.add_argument("-o", "--out")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    a = p.parse_intermixed_args(words[:at])
    a.rest = words[at + 1:]
    a.kopt = a.kopt or find_kopt()
    results = []
    if a.what == "miopen":
        if not a.data:
            p.error("which database?")
        group = [x for e in PAIRS for x in ("--group", e)] if a.split == "ck" else []
        for solver in a.solver.split(","):
            also = [x for t in a.also for x in ("--also", f"data_type={t}")]
            compare(a, f"{solver} {a.dtype} {a.split}", a.data,
                    ["--kernel", solver, "--where", f"data_type={a.dtype}", *also, *group], results)
    else:
        for kernel in a.kernels.split(","):
            compare(a, kernel, str(ROOT / f"data/h200/{kernel}.csv.gz"),
                    ["--rules", str(ROOT / f"examples/{kernel}/{kernel}.cu"), "--device-limits", H200], results)
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
