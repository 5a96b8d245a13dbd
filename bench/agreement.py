#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How far two winners of nearly the same search agree, in MIOpen's performance databases (SQLite, unpacked): a ceiling for
whoever predicts them.

    bench/agreement.py DATA.db [OTHER.db] [--dtype FP32] [--least 64]

Pairs are problems that differ in the batch size alone, N and 2N with N of --least or more; with OTHER.db also the same
problem in both databases. Shown for each solver: pairs, share whose vectors are equal, share of equal positions."""
import argparse
import sqlite3

SOLVERS = ("ConvAsm1x1U", "ConvAsmBwdWrW1x1", "ConvOclDirectFwd", "ConvAsmBwdWrW3x3", "ConvMlirIgemmWrW")


def read(path, solver, dtype):
    """{problem without its batch size: {batch size: vector}}"""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = [row[1] for row in db.execute("pragma table_info(config)") if row[1] not in ("id", "batchsize")]
    found = {}
    query = (f"select batchsize, params, {', '.join('config.' + n for n in names)} from perf_db join config on perf_db.config = config.id "
             "where solver = ? and data_type = ?")
    for n, params, *problem in db.execute(query, (solver, dtype)):
        found.setdefault(tuple(problem), {})[n] = params.split(",")
    return found


def show(what, pairs):
    pairs = [(a, b) for a, b in pairs if len(a) == len(b)]
    if not pairs:
        return
    exact = sum(a == b for a, b in pairs) / len(pairs)
    places = sum(sum(x == y for x, y in zip(a, b)) / len(a) for a, b in pairs) / len(pairs)
    print(f"  {what}: {len(pairs)} pairs, equal {100 * exact:.1f} %, positions {100 * places:.1f} %")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("other", nargs="?")
    p.add_argument("--dtype", default="FP32")
    p.add_argument("--least", type=int, default=64)
    a = p.parse_args()
    for solver in SOLVERS:
        own = read(a.data, solver, a.dtype)
        print(f"{solver} {a.dtype}")
        show(f"N and 2N, N >= {a.least}", [(v, by[2 * n]) for by in own.values() for n, v in by.items() if n >= a.least and 2 * n in by])
        if a.other:
            there = read(a.other, solver, a.dtype)
            show("both databases", [(v, there[k][n]) for k, by in own.items() for n, v in by.items() if n in there.get(k, {})])


if __name__ == "__main__":
    main()
