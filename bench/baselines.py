#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Classical learning on MIOpen's performance database: the tuned vector of a convolution never seen.

    bench/baselines.py DATA.db --solver ConvAsm1x1U --dtype FP32 [--split random|ck] [--fold F | --folds 10]
                       [--methods majority,knn,..] [--rules FILE] [-o OUT.json]

The split is kopt's (src/model/dataset_split.c): FNV-1a of "s1|" and the key; the key is the problem (random), or
min(C,K),max(C,K) (ck: whole channel pairs held out). Part F is the test, the next one is left out (kopt's networks
stop by it), eight are learned from. Methods:

    majority   the commonest vectors
    knn        15 nearest neighbours over log2 features, votes weighted by distance
    rf         a random forest for each position
    rf_whole   a random forest whose classes are whole vectors
    xgb        boosted trees (XGBoost) for each position
    chain      extremely randomised trees for each position, given the positions before; beam of 50

Each gives a list of vectors, likeliest first (per position: by the product of the probabilities). Shown are the share
of right positions of the first (free), whole vectors right at 1, 5 and 20, raw and canonical (ConvOclDirectFwd alone
has parameters that its kernel does not see, kernels/miopen/ConvOclDirectFwd.kopt), and the share of first vectors that
the rules allow, asked of libkopt. `ruled`: the same of the first 50 without those that the rules forbid."""
from learning import TEST, TRAIN, enter_venv, part_of, role_of

enter_venv()
import argparse  # noqa: E402
import collections  # noqa: E402
import ctypes  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import sqlite3  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
import xgboost  # noqa: E402
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier  # noqa: E402

from common import BUILDS, ROOT  # noqa: E402

BEAM = 50
AT = (1, 5, 20)


# --- data ---


class Data:
    def __init__(self, path, solver, dtype):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.columns = [r[1] for r in db.execute("pragma table_info(config)")][1:]
        rows = db.execute(f"select params,{','.join('c.' + c for c in self.columns)} from perf_db p join config c on "
                          "c.id = p.config where solver = ? and data_type = ? and layout = 'NCHW' and spatial_dim = 2 "
                          "order by p.id", (solver, dtype)).fetchall()
        if not rows:
            sys.exit(f"there are no rows of {solver}, {dtype}")
        self.problems = [dict(zip(self.columns, r[1:])) for r in rows]
        self.keys = [",".join(str(v) for v in r[1:]) for r in rows]
        vectors = np.array([[int(v) for v in r[0].split(",")] for r in rows])
        self.values = [np.unique(column) for column in vectors.T]
        self.y = np.array([np.searchsorted(v, column) for v, column in zip(self.values, vectors.T)]).T
        self.log = self.numbers(lambda n: np.log2(1 + n))
        twos = self.numbers(lambda n: 8 if n == 0 else min(8, (n & -n).bit_length() - 1))
        p = self.problems
        products = np.log2([[1 + q["in_h"] * q["in_w"], q["in_channels"] * q["out_channels"],
                             (1 + q["in_h"] * q["in_w"]) * q["batchsize"], q["in_channels"] / q["out_channels"]] for q in p])
        self.x = np.hstack([self.log, twos, products]).astype(np.float32)

    def numbers(self, f):
        """f of the numbers that vary, and the direction."""
        out = []
        for c in self.columns:
            column = [q[c] for q in self.problems]
            if len(set(column)) > 1:
                out.append([float(v == column[0]) if isinstance(v, str) else f(v) for v in column])
        return np.array(out).T

    def parts(self, split):
        if split == "random":
            return np.array([part_of(k) for k in self.keys])
        pairs = [(p["in_channels"], p["out_channels"]) for p in self.problems]
        return np.array([part_of(f"{min(p)},{max(p)}") for p in pairs])


# --- rules, by libkopt ---


class Rules:
    """Which vectors the rules of kernels/miopen allow."""

    def __init__(self, path, library):
        self.lib = ctypes.CDLL(library)
        self.error = ctypes.create_string_buffer(16384)  # a kopt_error is smaller
        self.kernel = ctypes.c_void_p()
        for name in ("kopt_kernel_free", "kopt_space_free"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p]
        if self.lib.kopt_kernel_load(path.encode(), ctypes.byref(self.kernel), self.error):
            sys.exit(f"{path}: {self.error.raw.split(bytes(1))[0]}")
        self.lib.kopt_space_param_name.restype = ctypes.c_char_p
        self.lib.kopt_space_n_params.restype = ctypes.c_size_t

    def check(self, problem, vectors):
        """vectors: numbers in the database's order, that of the file."""
        texts = [f"{k}={v}".encode() for k, v in problem.items()]
        array, space = (ctypes.c_char_p * len(texts))(*texts), ctypes.c_void_p()
        if self.lib.kopt_space_new_limits(self.kernel, array, ctypes.c_size_t(len(texts)), None, ctypes.byref(space), self.error):
            sys.exit(f"no space for {problem}: {self.error.raw}")
        names = [self.lib.kopt_space_param_name(space, ctypes.c_size_t(i)).decode()
                 for i in range(self.lib.kopt_space_n_params(space))]
        config = (ctypes.c_uint32 * len(names))()
        out = []
        for v in vectors:
            text = ",".join(f"{n}={x}" for n, x in zip(names, v)).encode()
            unknown = self.lib.kopt_space_config(space, text, config, self.error)
            out.append(not unknown and self.lib.kopt_space_valid(space, config, None, ctypes.c_size_t(0)) == 1)
        self.lib.kopt_space_free(space)
        return out


def canonical(solver, q, v):
    """What the kernel makes of a vector."""
    if solver != "ConvOclDirectFwd":
        return tuple(v)
    _, _, in1, in0, pix1, pix0, n_out, n_in, _ = v
    backward = q["direction"] == "B"
    pix0 = q["conv_stride_w"] if backward and q["conv_stride_w"] > 1 else pix0
    pix1 = q["conv_stride_h"] if backward and q["conv_stride_h"] > 1 else pix1
    items1, items0 = max(8, in1 // pix1), max(8, in0 // pix0)
    return (items1, items0, items1 * pix1, items0 * pix0, pix1, pix0, min(n_out, q["out_channels"] // q["group_count"]),
            min(n_in, q["in_channels"] // q["group_count"]), 1)


# --- methods: (data, training rows, test rows) -> a list of vectors for each of the latter ---


def ranked(votes):
    return [v for v, _ in sorted(votes.items(), key=lambda item: -item[1])][:BEAM]


def majority(d, train, test):
    first = ranked(collections.Counter(map(tuple, d.y[train])))
    return [first] * len(test)


def knn(d, train, test):
    x = (d.log - d.log[train].mean(0)) / np.maximum(d.log[train].std(0), 1e-9)
    out = []
    for i in test:
        distance = ((x[train] - x[i]) ** 2).sum(1)
        votes = collections.defaultdict(float)
        for k in np.argsort(distance, kind="stable")[:15]:
            votes[tuple(d.y[train[k]])] += 1 / (0.1 + distance[k] ** 0.5)
        out.append(ranked(votes))
    return out


def all_classes(model, x, n):
    """Probabilities of the classes 0 .. n-1; some may not occur in the training rows."""
    p = np.zeros((len(x), n))
    p[:, model.classes_] = model.predict_proba(x)
    return p


def best_products(columns):
    """The BEAM likeliest vectors of independent positions; columns: for each position probabilities of a problem's
    values."""
    beam = [(0.0, ())]
    for p in columns:
        logs = np.log(p + 1e-9)
        beam = sorted(((s + logs[v], head + (v,)) for s, head in beam for v in range(len(p))), reverse=True)[:BEAM]
    return [head for _, head in beam]


def per_position(d, train, test, make):
    columns = []
    for p, values in enumerate(d.values):
        y = d.y[train, p]
        seen, y = np.unique(y, return_inverse=True)
        probabilities = np.zeros((len(test), len(values)))
        if len(seen) == 1:
            probabilities[:, seen] = 1
        else:
            probabilities[:, seen] = make().fit(d.x[train], y).predict_proba(d.x[test])
        columns.append(probabilities)
    return [best_products([c[i] for c in columns]) for i in range(len(test))]


def rf(d, train, test):
    return per_position(d, train, test, lambda: RandomForestClassifier(200, min_samples_leaf=2, random_state=1))


def xgb(d, train, test):
    return per_position(d, train, test, lambda: xgboost.XGBClassifier(
        n_estimators=150, max_depth=5, learning_rate=0.07, subsample=0.8, colsample_bytree=0.8, tree_method="hist", n_jobs=1,
        random_state=1))


def rf_whole(d, train, test):
    vectors, y = np.unique(d.y[train], axis=0, return_inverse=True)
    model = RandomForestClassifier(200, min_samples_leaf=1, max_features="sqrt", random_state=1)
    model.fit(d.x[train], y.ravel())
    out = []
    for p in np.array_split(model.predict_proba(d.x[test]), 10):
        out += [[tuple(vectors[k]) for k in np.argsort(-row, kind="stable")[:BEAM] if row[k] > 0] for row in p]
    return out


def chain(d, train, test):
    beams = [[(0.0, ())] for _ in test]
    for p, values in enumerate(d.values):
        model = ExtraTreesClassifier(200, min_samples_leaf=3, max_features=0.6, random_state=1)
        model.fit(np.hstack([d.x[train], d.y[train, :p]]), d.y[train, p])
        of = np.concatenate([np.full(len(b), i) for i, b in enumerate(beams)])
        heads = np.array([head for b in beams for _, head in b]).reshape(len(of), p)
        x = np.hstack([d.x[np.asarray(test)[of]], heads])
        logs = np.log(np.concatenate([all_classes(model, piece, len(values)) for piece in np.array_split(x, 16) if len(piece)]) + 1e-9)
        at, grown = 0, []
        for b in beams:
            grown.append(sorted(((s + logs[at + j, v], head + (v,)) for j, (s, head) in enumerate(b) for v in range(len(values))),
                                reverse=True)[:BEAM])
            at += len(b)
        beams = grown
    return [[head for _, head in b] for b in beams]


METHODS = {f.__name__: f for f in (majority, knn, rf, rf_whole, xgb, chain)}


# --- scores ---


def score(d, solver, rules, i, vectors):
    """Of one problem: a row of numbers, with the list as it is and as the rules leave it."""
    numbers = [tuple(int(values[k]) for values, k in zip(d.values, v)) for v in vectors]
    truth = tuple(int(values[k]) for values, k in zip(d.values, d.y[i]))
    real = canonical(solver, d.problems[i], truth)
    valid = rules.check(d.problems[i], numbers) if rules else [True] * len(numbers)
    out = {}
    for name, list_ in (("", numbers), ("ruled ", [v for v, ok in zip(numbers, valid) if ok])):
        same = [v == truth for v in list_]
        alike = [canonical(solver, d.problems[i], v) == real for v in list_]
        first = list_[0] if list_ else [None] * len(truth)
        out[name + "token"] = float(np.mean([a == b for a, b in zip(first, truth)]))
        for n in AT:
            out[f"{name}exact {n}"] = float(any(same[:n]))
            out[f"{name}canonical {n}"] = float(any(alike[:n]))
    out["valid"] = float(valid[0]) if rules else float("nan")
    return out


def find_library(a):
    for build in (a.build,) if a.build else BUILDS:
        path = ROOT / build / "lib/libkopt.so"
        if path.exists():
            return str(path)
    sys.exit("there is no libkopt.so: run make, or name a build folder with --build")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("--solver", required=True)
    p.add_argument("--dtype", default="FP32")
    p.add_argument("--split", choices=("random", "ck"), default="random")
    p.add_argument("--fold", type=int, default=0)
    p.add_argument("--folds", type=int, default=1, help="so many folds, from --fold on")
    p.add_argument("--methods", default=",".join(METHODS))
    p.add_argument("--rules", default="", help="else kernels/miopen/SOLVER.kopt, where there is one")
    p.add_argument("--build", default="")
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    d = Data(a.data, a.solver, a.dtype)
    path = pathlib.Path(a.rules or ROOT / f"kernels/miopen/{a.solver}.kopt")
    rules = Rules(str(path), find_library(a)) if path.exists() else None
    parts = d.parts(a.split)
    result = {"data": pathlib.Path(a.data).name, "solver": a.solver, "dtype": a.dtype, "split": a.split, "rows": len(d.y),
              "folds": [(a.fold + f) % 10 for f in range(a.folds)], "methods": {}}
    print(f"{a.solver} {a.dtype} {a.split}, {len(d.y)} rows; percent: free positions | whole at 1 / 5 / 20 | canonical | valid")
    for name in a.methods.split(","):
        rows, folds, begun = [], [], time.monotonic()
        for fold in result["folds"]:
            roles = [role_of(part, fold) for part in parts]
            train = np.array([i for i, r in enumerate(roles) if r == TRAIN])
            test = np.array([i for i, r in enumerate(roles) if r == TEST])
            if len(test):
                lists = METHODS[name](d, train, test)
                found = [score(d, a.solver, rules, i, v) for i, v in zip(test, lists)]
                rows += found
                folds.append({"train": len(train), "test": len(test), "exact 1": np.mean([r["exact 1"] for r in found])})
        mean = {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}
        result["methods"][name] = {**mean, "n": len(rows), "folds": folds, "seconds": round(time.monotonic() - begun, 1)}
        for kind in ("", "ruled "):
            share = [[100 * mean[f"{kind}{m} {n}"] for n in AT] for m in ("exact", "canonical")]
            print(f"{name if not kind else '  ruled':9} {100 * mean[kind + 'token']:.1f} | " + " | ".join(
                " / ".join(f"{v:.1f}" for v in s) for s in share) + f" | {100 * mean['valid'] if not kind else 100:.1f}"
                + (f"   n {len(rows)}, {result['methods'][name]['seconds']:.0f} s" if not kind else ""), flush=True)
    out = a.out or ROOT / f"bench/results/baselines_{a.solver}_{a.dtype}_{a.split}.json"
    pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
