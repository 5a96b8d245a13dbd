#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What classical learning makes of measured surfaces: the share of the best speed that is kept for a problem never
seen, by the first prediction, and by the best of the first 5 and 20.

    bench/surfaces_baselines.py SURFACE.csv --kernel examples/gemm/gemm.cu [--cores 132] [-o OUT.json]

SURFACE.csv has the columns `problem` ("M=128 N=256 K=64"), the parameters, `us` and `outcome`. Every problem is
predicted once, by what learned from the nine parts that it is not in (FNV-1a of "s1|" and the sizes joined by
commas: the parts of `kopt train`). Candidates are the configurations that were measured for the problem; the best is
the fastest of them. Methods:

    fixed    the configuration with the best mean share over the training problems, then those that add most to the
             mean of the best so far
    knn      the mean of the neighbours' log relative times, over log2 of the sizes; of 1, 2, 3, 5, 8, 12 or 20
             neighbours the number that is best on the training problems, each left out in turn
    xgboost  boosted trees, and
    forest   a random forest: (problem, configuration) to the log of time over the problem's best. Features: log2 of
             sizes, parameters, the kernel file's lets, grid, block and shared memory, of the size over parameter
             ratios, of blocks per core; remainders."""
from learning import KernelFile, PARTS, enter_venv, part_of

enter_venv()
import argparse  # noqa: E402
import csv  # noqa: E402
import gzip  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
import xgboost  # noqa: E402
from sklearn.ensemble import RandomForestRegressor  # noqa: E402

from common import ROOT  # noqa: E402

FIRST = (1, 5, 20)


class Surface:
    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.params = [c for c in rows[0] if c not in ("problem", "us", "outcome")]
        self.problems = list(dict.fromkeys(r["problem"] for r in rows))
        self.sizes = [dict((k, int(v)) for k, v in (word.split("=") for word in p.split())) for p in self.problems]
        configs = [tuple(r[c] for c in self.params) for r in rows]
        self.configs = sorted(set(configs))
        self.us = np.full((len(self.problems), len(self.configs)), np.nan)  # nan: not measured, or failed
        row_of = {p: i for i, p in enumerate(self.problems)}
        column_of = {c: i for i, c in enumerate(self.configs)}
        for r, config in zip(rows, configs):
            if r["outcome"] == "ok":
                self.us[row_of[r["problem"]], column_of[config]] = float(r["us"])
        self.share = np.nanmin(self.us, axis=1, keepdims=True) / self.us
        self.parts = np.array([part_of(",".join(str(v) for v in p.values())) for p in self.sizes])


# --- methods: (surface, training problems, a problem) -> a score of each configuration, the largest first ---


class Fixed:
    def __init__(self, s, train, _):
        share = np.nan_to_num(s.share[train])
        best = np.zeros(len(train))
        self.score = np.full(share.shape[1], -np.inf)
        for rank in range(share.shape[1]):
            gain = np.where(np.isinf(self.score), np.maximum(share, best[:, None]).mean(0) + 1e-9 * share.mean(0), -1)
            pick = int(gain.argmax())
            self.score[pick] = -rank
            best = np.maximum(best, share[:, pick])

    def scores(self, _):
        return self.score


class Knn:
    def __init__(self, s, train, _):
        names = list(s.sizes[0])
        x = np.log2([[p[n] for n in names] for p in s.sizes])
        self.x = (x - x[train].mean(0)) / np.maximum(x[train].std(0), 1e-9)
        self.train, self.log = np.array(train), -np.log(s.share)
        inner = []
        for self.k in (1, 2, 3, 5, 8, 12, 20):
            inner.append((np.mean([kept(s.share[p], self.scores(p, leave=p))[0] for p in train]), self.k))
        self.k = max(inner)[1]

    def scores(self, problem, leave=-1):
        others = self.train[self.train != leave]
        near = others[np.argsort(((self.x[others] - self.x[problem]) ** 2).sum(1), kind="stable")[:self.k]]
        known = ~np.isnan(self.log[near])
        n = known.sum(0)
        mean = np.where(known, self.log[near], 0).sum(0) / np.maximum(n, 1)
        return np.where(n > 0, -mean, -1e9 - self.log.shape[1])


def features(s, kernel, cores):
    """[problem][configuration][feature], and the features' names."""
    values = [dict(zip(s.params, map(int, c))) for c in s.configs]
    rows, names = [], []
    for problem, us in zip(s.sizes, s.us):
        for config, t in zip(values, us):
            if np.isnan(t):
                rows.append(None)
                continue
            found = kernel.numbers({**problem, **config})
            blocks = found["grid"] / cores
            item = {**{k: np.log2(1 + v) for k, v in {**problem, **config, **found}.items()},
                    **{f"{p}/{c}": np.log2(problem[p] / max(config[c], 1)) for p in problem for c in config},
                    **{f"{p}%{c}": problem[p] % config[c] / config[c] for p in problem for c in config if config[c] > 0},
                    "sizes": sum(np.log2(v) for v in problem.values()),
                    "blocks per core": np.log2(blocks), "last wave": (np.ceil(blocks) - blocks),
                    "wave share": blocks / np.ceil(blocks),
                    "threads": np.log2(found["grid"] * found["block"] + 1.0)}
            names = names if len(names) > len(item) else list(item)
            rows.append(item)
    x = np.full((len(rows), len(names)), np.nan, np.float32)
    for i, item in enumerate(rows):
        if item is not None:
            x[i] = [item.get(n, np.nan) for n in names]
    return x.reshape(len(s.sizes), len(s.configs), -1), names


class Trees:
    """Of scikit-learn's or XGBoost's regressor."""

    def __init__(self, s, train, x):
        self.x = x
        known = ~np.isnan(s.us[train])
        self.model = self.regressor()
        self.model.fit(self.x[train][known], -np.log(s.share[train][known]))

    def scores(self, problem):
        return -self.model.predict(self.x[problem])


class Xgboost(Trees):
    @staticmethod
    def regressor():
        return xgboost.XGBRegressor(n_estimators=500, max_depth=8, learning_rate=0.06, subsample=0.7, colsample_bynode=0.4,
                                    min_child_weight=4, tree_method="hist", n_jobs=1, random_state=1)


class Forest(Trees):
    @staticmethod
    def regressor():
        return RandomForestRegressor(n_estimators=60, max_features=0.3, min_samples_leaf=2, max_samples=0.5, n_jobs=1,
                                     random_state=1)


METHODS = {"fixed": Fixed, "knn": Knn, "xgboost": Xgboost, "forest": Forest}


def kept(share, scores):
    """The share of the best speed after each of FIRST measurements."""
    order = np.argsort(-np.where(np.isnan(share), -np.inf, scores), kind="stable")
    return [float(np.nanmax(share[order[:n]])) for n in FIRST]


def run(s, x, method):
    """[problem][first]"""
    out, begun = np.zeros((len(s.problems), len(FIRST))), time.monotonic()
    for part in range(PARTS):
        train = np.flatnonzero(s.parts != part)
        model = METHODS[method](s, train, x)
        for p in np.flatnonzero(s.parts == part):
            out[p] = kept(s.share[p], model.scores(p))
    return out, time.monotonic() - begun


def summary(share):
    return {"mean": float(share.mean()), "p5": float(np.percentile(share, 5)), "least": float(share.min()),
            "mean_error": float(share.std(ddof=1) / len(share) ** 0.5)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("surface")
    p.add_argument("--kernel", required=True)
    p.add_argument("--cores", type=int, default=132, help="multiprocessors of the device (132: H200)")
    p.add_argument("--methods", default=",".join(METHODS))
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    s = Surface(a.surface)
    x, names = features(s, KernelFile(a.kernel), a.cores)
    result = {"kernel": pathlib.Path(a.kernel).stem, "problems": len(s.problems), "configurations": len(s.configs),
              "measured": int((~np.isnan(s.us)).sum()), "folds": PARTS, "features": names, "names": s.problems, "methods": {}}
    print(f"{result['kernel']}: {len(s.problems)} problems, {result['measured']} measured; share of the best speed, mean / 5th percentile")
    for name in a.methods.split(","):
        out, seconds = run(s, x, name)
        entry = {str(n): summary(out[:, i]) for i, n in enumerate(FIRST)}
        result["methods"][name] = {**entry, "seconds": round(seconds, 1), "shares_at_1": [round(v, 4) for v in out[:, 0]],
                                   "shares_at_5": [round(v, 4) for v in out[:, 1]]}
        print(f"{name:8} " + "   ".join(f"first {n}: {e['mean']:.4f} / {e['p5']:.4f}" for n, e in entry.items())
              + f"   {seconds:.0f} s", flush=True)
        pathlib.Path(a.out or ROOT / f"bench/results/surfaces_{result['kernel']}.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
