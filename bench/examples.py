#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tunes the six examples on one device and prints what came out.

    bench/examples.py cuda:0 [--seconds S] [--bandwidth GBps] [--gflops N] [-o OUT.json]
    bench/examples.py opencl:0 --small

The share of the roofline is the best configuration's metric over the ceiling that is given: measured copy bandwidth
for the memory-bound ones, arithmetic peak for the others."""
import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name, large problem, small problem, metric, what bounds it
EXAMPLES = [
    ("gemm", "M=4096 N=4096 K=4096", "M=512 N=512 K=512", "gflops", "gflops"),
    ("convolution", "W=8192 H=8192", "W=1024 H=1024", "gflops", "gflops"),
    ("hotspot", "W=8192 H=8192", "W=1024 H=1024", "GBps", "bandwidth"),
    ("transpose", "W=16384 H=8192", "W=2048 H=2048", "GBps", "bandwidth"),
    ("reduction", "N=134217728", "N=16777216", "GBps", "bandwidth"),
    ("softmax", "R=16384 C=8192", "R=2048 C=2048", "GBps", "bandwidth"),
]


def tune(kopt, device, name, problem, seconds):
    suffix = "cu" if device.startswith("cuda") else "cl"
    command = [kopt, "tune", str(ROOT / f"examples/{name}/{name}.{suffix}"), *problem.split(), "--device", device,
               "--budget", f"{seconds:g}s", "--no-store", "--json", "-q"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    return lines[0], lines[-1]


def row(name, problem, report, ceilings, metric, bound):
    best, default = report["best"], report["default"]
    value = next((m for m in report["metrics"] if m["name"] == metric), {"best": None, "default": None})
    half = 50 * (best["high_ns"] - best["low_ns"]) / best["median_ns"]
    share = f"{100 * value['best'] / ceilings[bound]:.0f} %" if ceilings[bound] else ""
    outcomes = ", ".join(f"{n} {k}" for k, n in report["outcomes"].items() if n)
    first = f"{default['median_ns'] / 1e6:.3f}" if default and default["median_ns"] else "failed"
    speedup = (f"{report['speedup']:.2f} ({report['speedup_low']:.2f} to {report['speedup_high']:.2f})"
               if report["speedup"] else "")
    return [name, problem, first, f"{best['median_ns'] / 1e6:.3f} ± {half:.1f} %", speedup,
            f"{value['best']:.0f} {metric}", share, str(report["done"]), outcomes]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("device")
    p.add_argument("--kopt", default=str(ROOT / "build/kopt/bin/kopt"))
    p.add_argument("--seconds", type=float, default=40)
    p.add_argument("--small", action="store_true", help="problems for a CPU")
    p.add_argument("--bandwidth", type=float, default=0, help="GB/s")
    p.add_argument("--gflops", type=float, default=0)
    p.add_argument("--only", default="")
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    ceilings = {"bandwidth": a.bandwidth, "gflops": a.gflops}
    head = ["example", "problem", "default, ms", "best, ms", "speed-up", "best", "of the ceiling", "evaluated", "outcomes"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    kept = []
    for name, large, small, metric, bound in EXAMPLES:
        if a.only and name not in a.only.split(","):
            continue
        problem = small if a.small else large
        start, report = tune(a.kopt, a.device, name, problem, a.seconds)
        kept.append({"start": start, "report": report})
        print("| " + " | ".join(row(name, problem, report, ceilings, metric, bound)) + " |", flush=True)
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
