#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small databases in MIOpen's formats, with invented problems and vectors: perf.db, perf.txt,
find.fdb.txt beside this script."""
import os
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("layout data_type direction spatial_dim in_channels in_h in_w in_d fil_h fil_w fil_d out_channels "
           "batchsize pad_h pad_w pad_d conv_stride_h conv_stride_w conv_stride_d dilation_h dilation_w dilation_d "
           "bias group_count").split()
WORDS = ("layout", "data_type", "direction")


def problem(direction, c, size, k, n, fil=1, stride=1, dtype="FP32", groups=1):
    pad = fil // 2
    return dict(layout="NCHW", data_type=dtype, direction=direction, spatial_dim=2, in_channels=c, in_h=size,
                in_w=size, in_d=1, fil_h=fil, fil_w=fil, fil_d=1, out_channels=k, batchsize=n, pad_h=pad, pad_w=pad,
                pad_d=0, conv_stride_h=stride, conv_stride_w=stride, conv_stride_d=0, dilation_h=1, dilation_w=1,
                dilation_d=0, bias=0, group_count=groups)


def key(p):
    out = (p["in_h"] + 2 * p["pad_h"] - p["fil_h"]) // p["conv_stride_h"] + 1
    square = lambda name: f"{p[name + '_h']}x{p[name + '_w']}"
    parts = [p["in_channels"], p["in_h"], p["in_w"], square("fil"), p["out_channels"], out, out, p["batchsize"],
             square("pad"), square("conv_stride"), square("dilation"), p["bias"], p["layout"], p["data_type"],
             p["direction"] + (f"_g{p['group_count']}" if p["group_count"] != 1 else "")]
    return "-".join(map(str, parts))


ROWS = [
    (problem("F", 48, 20, 96, 6), {"ConvAsm1x1U": "1,16,2,32,1,2,4,1", "Other": "7"}),
    (problem("B", 96, 20, 48, 6), {"ConvAsm1x1U": "2,8,4,16,1,2,1,2"}),
    (problem("F", 40, 36, 56, 3, stride=2), {"ConvAsm1x1U": "1,8,1,64,2,1,2,4"}),
    (problem("F", 24, 18, 24, 5, fil=3, dtype="FP16", groups=4), {"ConvOclDirectFwd": "8,16,16,16,2,1,4,2,1"}),
    (problem("W", 80, 12, 160, 9), {"ConvAsmBwdWrW1x1": "2,8,4,4,2,1,2,4,0,1"}),
]


def write_sqlite(path):
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 1024")
    db.execute("VACUUM")
    fields = ", ".join(f"{c} {'TEXT' if c in WORDS else 'INT'} NOT NULL" for c in COLUMNS)
    db.execute(f"CREATE TABLE config (id INTEGER PRIMARY KEY ASC, {fields})")
    db.execute("CREATE TABLE perf_db (id INTEGER PRIMARY KEY ASC, solver TEXT NOT NULL, config INTEGER NOT NULL, "
               "params TEXT NOT NULL)")
    db.execute("CREATE UNIQUE INDEX idx_perf_db ON perf_db(solver, config)")
    for i, (p, solvers) in enumerate(ROWS):
        db.execute(f"INSERT INTO config VALUES ({','.join('?' * 25)})", [i + 1] + [p[c] for c in COLUMNS])
        for solver, vector in solvers.items():
            db.execute("INSERT INTO perf_db (solver, config, params) VALUES (?, ?, ?)", (solver, i + 1, vector))
    db.commit()
    db.close()


def write_text(path):
    with open(path, "w") as f:
        for p, solvers in ROWS:
            f.write(key(p) + "=" + ";".join(f"{s}:{v}" for s, v in solvers.items()) + "\n")


def write_find(path):
    names = {"F": "Fwd", "B": "BwdData", "W": "BwdWeights"}
    with open(path, "w") as f:
        for i, (p, _) in enumerate(ROWS):
            algorithm = f"miopenConvolution{names[p['direction']]}Algo"
            entries = [f"{algorithm}Direct:Direct{i},{0.25 * (i + 1)},0,{algorithm}Direct,<unused>",
                       f"{algorithm}GEMM:Gemm,{0.5 + i},{4096 * i},rocBlas,<unused>"]
            f.write(key(p) + "=" + ";".join(entries) + "\n")


write_sqlite(os.path.join(HERE, "perf.db"))
write_text(os.path.join(HERE, "perf.txt"))
write_find(os.path.join(HERE, "find.fdb.txt"))
