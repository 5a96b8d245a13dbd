#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure whole surfaces: every configuration of a kernel's (narrowed) space for many problems, with `kopt tune`.

surfaces.py KERNEL PROBLEMS OUT.csv [NAME=V,V ..] [--kopt K] [--device D] [--seconds S]

PROBLEMS has one problem a line (problems.py). OUT.csv gets one row for each configuration: the problem's sizes, the
parameters, the median time in microseconds, and the outcome. Problems that OUT.csv has already are skipped, so a run
that was cut short is continued by the same command; a problem is written only when it is complete. Results are
not compared with references: this is about speed, and the kernels' tests look after the rest."""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time


def measure(a, problem, store):
    command = [a.kopt, "tune", a.kernel, *problem.split(), *a.narrow, "--device", a.device, "--store", store,
               "--strategy", "exhaustive", "--budget", "1000000", "--race", "1", "--no-check", "--samples", a.samples,
               "--json", "-q"]
    with tempfile.TemporaryDirectory() as tmp:
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": tmp}, check=False)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode or not rows or rows[-1]["type"] != "report" or rows[-1]["interrupted"]:
        return None, None
    return [r for r in rows if r["type"] == "result" and not r.get("race")], rows[-1]["time"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kernel")
    p.add_argument("problems")
    p.add_argument("out")
    p.add_argument("narrow", nargs="*")
    p.add_argument("--kopt", default="build/kopt/bin/kopt")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--samples", default="3..9")
    p.add_argument("--seconds", type=float, default=float("inf"), help="begin no problem after this time")
    a = p.parse_intermixed_args()
    begun = time.monotonic()
    done = set()
    if os.path.exists(a.out):
        with open(a.out, newline="", encoding="utf-8") as f:
            done = {r["problem"] for r in csv.DictReader(f)}
    with open(a.problems, encoding="utf-8") as f:
        problems = [line.strip() for line in f if line.strip()]
    writer = None
    n = 0
    with open(a.out, "a", newline="", encoding="utf-8") as f, tempfile.TemporaryDirectory() as tmp:
        for problem in problems:
            if problem in done or time.monotonic() - begun > a.seconds:
                continue
            at = time.monotonic()
            rows, split = measure(a, problem, os.path.join(tmp, "store.db"))
            if rows is None:
                print(f"{problem}: failed", file=sys.stderr)
                continue
            names = list(rows[0]["config"])
            if writer is None:
                writer = csv.writer(f, lineterminator="\n")
                if not done:
                    writer.writerow(["problem", *names, "us", "outcome"])
            for r in rows:
                us = f"{r['median_ns'] / 1e3:.4g}" if r["outcome"] == "ok" else ""
                writer.writerow([problem, *r["config"].values(), us, r["outcome"]])
            f.flush()
            n += 1
            ok = [r["median_ns"] for r in rows if r["outcome"] == "ok"]
            print(f"{problem}: {len(rows)} configurations, {len(ok)} ok, best {min(ok) / 1e3:.1f} us, "
                  f"{time.monotonic() - at:.1f} s, device {split['device_s']:.1f} s", file=sys.stderr)
    print(f"{n} problems in {time.monotonic() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
