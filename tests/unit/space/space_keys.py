#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print a stored tuning space as lines: its parameters, the rules of a T1 file, its keys.

usage: space_keys.py CACHE.json.gz T1.json N_RULES

CACHE is a Kernel Tuner cache file; one that was cut off behind a record is read as far as it goes.
"""
import gzip
import json
import sys


def load_cache(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        text = f.read().rstrip()
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text.rstrip(",") + "}}")


def main():
    cache = load_cache(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as f:
        conditions = json.load(f)["ConfigurationSpace"].get("Conditions", [])
    for name in cache["tune_params_keys"]:
        print("P", name, "[" + ",".join(json.dumps(v) for v in cache["tune_params"][name]) + "]")
    for condition in conditions[: int(sys.argv[3])]:
        print("R", condition["Expression"])
    for key in cache["cache"]:
        print("K", key)


main()
