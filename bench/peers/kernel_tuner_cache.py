#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Results in the T4 format (kopt store export) as a cache file of Kernel Tuner.

    kopt store export 1 -o results.json
    kernel_tuner_cache.py results.json -o NAME.json[.gz]

The parameters' values are those that occur, in ascending order. Times are in milliseconds in both formats. A compile
time of 0 - the image was there already - becomes the median of the others: a search would have had to make it."""
import argparse
import gzip
import json
import math
import pathlib
import statistics
import sys

# What T4 calls invalid, as Kernel Tuner's caches spell it in place of the time.
FAILURES = {"compile": "CompilationFailedConfig", "constraints": "InvalidConfig", "runtime": "RuntimeFailedConfig",
            "correctness": "RuntimeFailedConfig", "timeout": "RuntimeFailedConfig"}
COSTS = {"compile_time": ("compilation_time", "compilation"), "verification_time": ("validation",),
         "benchmark_time": ("benchmark",), "strategy_time": ("search_algorithm",), "framework_time": ("framework",)}


def first(values, names):
    return next((values[n] for n in names if isinstance(values.get(n), (int, float))), 0)


def entry_of(result):
    entry = dict(result["configuration"])
    times = result.get("times", {})
    if result["invalidity"] == "correct":
        measured = {m["name"]: m["value"] for m in result["measurements"]}
        entry["time"] = measured[result["objectives"][0] if result.get("objectives") else "time"]
        if not isinstance(entry["time"], (int, float)) or not math.isfinite(entry["time"]):
            raise ValueError(f"{result['configuration']} is correct and has no time")
        entry["times"] = times.get("runtimes", [])
    else:
        entry["time"] = FAILURES[result["invalidity"]]
    entry |= {name: first(times, names) for name, names in COSTS.items()}
    entry["timestamp"] = result.get("timestamp", "")
    return entry


def ascending(values):
    """Numbers by size; others as they came."""
    unique = list(dict.fromkeys(values))
    return sorted(unique) if all(isinstance(v, (int, float)) for v in unique) else unique


def cache_of(t4):
    results, about = t4["results"], t4.get("metadata", {})
    if not results:
        sys.exit("there are no results")
    names = list(results[0]["configuration"])
    cache = {}
    for result in results:
        if set(result["configuration"]) != set(names):
            sys.exit(f"{result['configuration']} has other parameters than the first")
        cache[",".join(str(result["configuration"][n]) for n in names)] = entry_of(result)
    compiled = [e["compile_time"] for e in cache.values() if e["compile_time"] > 0]
    for entry in cache.values():
        entry["compile_time"] = entry["compile_time"] or (statistics.median(compiled) if compiled else 0)
    problem = about.get("problem", {})
    return {"device_name": about.get("device", ""), "kernel_name": about.get("kernel", ""),
            "problem_size": list(problem.values()) if isinstance(problem, dict) else problem, "tune_params_keys": names,
            "tune_params": {n: ascending(r["configuration"][n] for r in results) for n in names}, "objective": "time",
            "cache": cache}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results")
    p.add_argument("-o", "--out", required=True)
    a = p.parse_args()
    cache = cache_of(json.loads(pathlib.Path(a.results).read_text()))
    text = json.dumps(cache, indent="")
    if a.out.endswith(".gz"):
        pathlib.Path(a.out).write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        pathlib.Path(a.out).write_text(text)
    ok = sum(not isinstance(e["time"], str) for e in cache["cache"].values())
    print(f"{a.out}: {len(cache['cache'])} configurations, {ok} ok")


if __name__ == "__main__":
    main()
