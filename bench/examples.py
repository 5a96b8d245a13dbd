#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tunes the six examples on one device and prints what came out, and where the time of a measurement went.

    bench/examples.py cuda:0 --ceiling [--seconds S] [-o OUT.json]
    bench/examples.py opencl:0 --ceiling [--seconds S] [-o OUT.json]

A CPU gets smaller problems. --ceiling first tunes the kernels of bench/roofline on the device: what a copy reaches in
GB/s and fused multiply-adds in GFLOP/s. An example's share is its best configuration's metric over that ceiling:
bandwidth for the memory-bound ones, arithmetic for the others. --bandwidth and --gflops give a ceiling by hand."""
import argparse
import datetime
import json
import os
import pathlib
import sys

from common import ROOT, find_kopt, kopt_json

# name, problem of a GPU, problem of a CPU, metric, what bounds it
EXAMPLES = [
    ("gemm", "M=4096 N=4096 K=4096", "M=512 N=512 K=512", "gflops", "gflops"),
    ("convolution", "W=8192 H=8192", "W=1024 H=1024", "gflops", "gflops"),
    ("hotspot", "W=8192 H=8192", "W=1024 H=1024", "GBps", "bandwidth"),
    ("transpose", "W=16384 H=8192", "W=2048 H=2048", "GBps", "bandwidth"),
    ("reduction", "N=134217728", "N=16777216", "GBps", "bandwidth"),
    ("softmax", "R=16384 C=8192", "R=2048 C=2048", "GBps", "bandwidth"),
]
# the ceiling, kernel, problem of a GPU, problem of a CPU, metric
CEILINGS = [
    ("bandwidth", "copy", "N=134217728", "N=16777216", "GBps"),
    ("gflops", "fma", "ITEMS=4194304", "ITEMS=16384", "gflops"),
]


def find_device(kopt, wanted):
    for d in kopt_json(kopt, "devices"):
        if d["type"] == "device" and d["id"] == wanted:
            return d
    sys.exit(f"there is no device {wanted}")


def tune(a, path, problem, seconds):
    lines = kopt_json(a.kopt, "tune", str(path), *problem.split(), "--device", a.device, "--budget", f"{seconds:g}s",
                      "--no-store", "--no-compile-cache", "-q")
    return lines[0], lines[-1]


def metric_of(report, name):
    return next(m["best"] for m in report["metrics"] if m["name"] == name)


def measure_ceilings(a, suffix, small):
    ceilings = {"bandwidth": {"value": a.bandwidth}, "gflops": {"value": a.gflops}}
    for kind, kernel, large_problem, small_problem, metric in CEILINGS:
        if a.ceiling and not ceilings[kind]["value"]:
            start, report = tune(a, ROOT / f"bench/roofline/{kernel}.{suffix}", small_problem if small else large_problem,
                                 a.seconds)
            ceilings[kind] = {"value": metric_of(report, metric), "start": start, "report": report}
        if ceilings[kind]["value"]:
            print(f"{kind}: {ceilings[kind]['value']:.4g} {metric}", flush=True)
    return ceilings


def row(e):
    report = e["report"]
    best, default = report["best"], report["default"]
    half = 50 * (best["high_ns"] - best["low_ns"]) / best["median_ns"]
    share = f"{100 * e['share']:.0f} %" if e["share"] else ""
    outcomes = ", ".join(f"{n} {k}" for k, n in report["outcomes"].items() if n)
    first = f"{default['median_ns'] / 1e6:.3f}" if default and default["median_ns"] else "failed"
    speedup = (f"{report['speedup']:.2f} ({report['speedup_low']:.2f} to {report['speedup_high']:.2f})"
               if report["speedup"] else "")
    return [e["name"], e["problem"], first, f"{best['median_ns'] / 1e6:.3f} ± {half:.1f} %", speedup,
            f"{e['value']:.4g} {e['metric']}", share, str(len(report["tied"])),
            f"{report['done']:,} of {e['start']['valid']:,}", outcomes]


def milliseconds(report):
    """Of one configuration, over the whole run with its final race."""
    t, n = report["time"], max(1, report["done"] - report["from_store"])
    return {"overhead": t["overhead_ms"], "loading": 1e3 * t["load_s"] / n, "checking": 1e3 * t["check_s"] / n,
            "restoring and flushing": 1e3 * (t["launch_s"] - t["kernel_s"]) / n, "kernel": 1e3 * t["kernel_s"] / n,
            "compiling": 1e3 * t["compile_s"] / n}


def time_row(e):
    t = e["report"]["time"]
    numbers = ["" if v is None else f"{v:.2f}" for v in e["ms"].values()]
    return [e["name"], *numbers, f"{100 * t['idle_s'] / t['wall_s']:.0f} %"]


def command(a):
    given = [("--only", a.only), ("--bandwidth", a.bandwidth), ("--gflops", a.gflops)]
    words = [a.device, f"--seconds {a.seconds:g}", *["--ceiling"] * a.ceiling, *[f"{k} {v}" for k, v in given if v]]
    return "bench/examples.py " + " ".join(words)


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for r in rows:
        print("| " + " | ".join(r) + " |")
    print(flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("device")
    p.add_argument("--kopt", default="", help="the program; else what was built")
    p.add_argument("--seconds", type=float, default=40, help="for each kernel")
    p.add_argument("--ceiling", action="store_true", help="measure what the device can do first")
    p.add_argument("--bandwidth", type=float, default=0, help="GB/s")
    p.add_argument("--gflops", type=float, default=0)
    p.add_argument("--only", default="", help="gemm,softmax,..")
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    a.kopt = a.kopt or find_kopt()
    device = find_device(a.kopt, a.device)
    small, suffix = device["is_cpu"], "cu" if device["backend"] == "cuda" else "cl"
    print(f"{device['name']}, {a.seconds:g} s for each kernel", flush=True)
    ceilings = measure_ceilings(a, suffix, small)
    kept = []
    for name, large_problem, small_problem, metric, bound in EXAMPLES:
        if a.only and name not in a.only.split(","):
            continue
        problem = small_problem if small else large_problem
        start, report = tune(a, ROOT / f"examples/{name}/{name}.{suffix}", problem, a.seconds)
        value, ceiling = metric_of(report, metric), ceilings[bound]["value"]
        kept.append({"name": name, "problem": problem, "metric": metric, "value": value, "bound": bound,
                     "share": value / ceiling if ceiling else None, "ms": milliseconds(report), "start": start,
                     "report": report})
        print(f"{name}: {value:.4g} {metric}", flush=True)
    print()
    table(["example", "problem", "default, ms", "best, ms", "speed-up", "best", "of the ceiling", "tied",
           "evaluated of valid", "outcomes"], [row(e) for e in kept])
    table(["a configuration, ms", *(kept[0]["ms"] if kept else []), "device idle"], [time_row(e) for e in kept])
    if a.out:
        result = {"command": command(a), "date": str(datetime.date.today()), "device": device,
                  "host": {"cores": os.cpu_count()}, "ceilings": ceilings, "examples": kept}
        pathlib.Path(a.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
