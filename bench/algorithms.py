#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which of MIOpen's algorithms is fastest for a convolution never seen: classical learning on a find database, whose
rows hold the times of all algorithms that can do it, each with its best parameters.

    bench/algorithms.py FIND.txt [--split random|layer] [--fold F] [--methods majority,forest,..] [-o OUT.json] [-- ..]

A row is `key=algorithm:solver,ms,..;algorithm:..`. Rows with two algorithms or more count. The split is kopt's: FNV-1a
of "s1|" and the key (layer: the key without batch size, type and direction, and with the smaller channel count first);
part F is the test, the next one is left out, eight are learned from. Only algorithms that the row has are chosen from.
Shown: the share that is right, and what is kept of the best speed: best time / chosen one's, in the mean, the geometric
mean, the 5th percentile, and of all times added up.

    random     the mean over the row's algorithms
    majority   the algorithm that is best most often among those of the row, by direction
    forest     a random forest, 100 trees, over log2 features
    xgb        boosted trees (XGBoost), classes
    xgb_times  boosted trees for each algorithm's log time, the least is chosen
    kopt       `kopt train`, whose model is asked for all algorithms in order (random split only); arguments behind --
               go to it"""
from learning import TEST, TRAIN, enter_venv, part_of, role_of

enter_venv()
import argparse  # noqa: E402
import collections  # noqa: E402
import ctypes  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
import xgboost  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402

from common import ROOT, find_kopt  # noqa: E402

FIELDS = ["in_channels", "in_h", "in_w", "fil_h", "fil_w", "out_channels", "out_h", "out_w", "batchsize", "pad_h", "pad_w",
          "conv_stride_h", "conv_stride_w", "dilation_h", "dilation_w", "bias"]


def numbers_of(key):
    """C, H, W, fil_h, fil_w, K, OH, OW, N, pads, strides, dilations, bias; then words."""
    words = key.split("-")
    return [int(n) for w in words[:12] for n in w.split("x")], words[12:]


class Find:
    def __init__(self, path, split):
        self.path = path
        problems, times, self.keys = [], [], []
        for line in open(path, encoding="utf-8"):
            key, _, found = line.strip().partition("=")
            row = {}
            for item in found.split(";"):
                algorithm, _, rest = item.partition(":")
                row[algorithm.removeprefix("miopenConvolution")] = float(rest.split(",")[1])
            numbers, words = numbers_of(key)
            if len(row) > 1 and words[0] == "NCHW" and len(numbers) == 16:
                self.keys.append(key)
                problems.append((numbers, words[1:]))
                times.append(row)
        # "BwdDataAlgoGEMM": the algorithm's class is what follows the direction
        self.algorithms = sorted({name.split("Algo")[1] for row in times for name in row})
        self.ms = np.full((len(times), len(self.algorithms)), np.nan)
        for i, row in enumerate(times):
            for name, ms in row.items():
                self.ms[i, self.algorithms.index(name.split("Algo")[1])] = ms
        self.problems = problems
        self.best = np.nanargmin(self.ms, axis=1)
        self.direction = np.array([w[1] for _, w in problems])
        words = [sorted({w[k] for _, w in problems}) for k in range(2)]
        n = np.array([p for p, _ in problems], float)
        c, h, w, _, _, k, oh, ow, batch = n[:, :9].T
        logs = np.log2(1 + n)
        more = np.log2(np.array([c * k, h * w, oh * ow, oh * ow * batch, c * n[:, 3] * n[:, 4], c * k * oh * ow * batch])).T
        is_word = np.array([[w[j] == word for j in range(2) for word in words[j]] for _, w in problems], float)
        self.x = np.hstack([logs, more, is_word]).astype(np.float32)
        self.parts = [part_of(key if split == "random" else self.layer(p)) for key, (p, _) in zip(self.keys, problems)]

    @staticmethod
    def layer(p):
        c, h, w, fh, fw, k, oh, ow, _, *rest = p
        return ",".join(map(str, (min(c, k), max(c, k), max(h, oh), max(w, ow), fh, fw, *rest)))


# --- methods: (data, training rows, test rows) -> scores [test][algorithm] ---


def majority(f, train, test):
    counts = {d: collections.Counter(f.best[train][f.direction[train] == d]) for d in set(f.direction)}
    return np.array([[counts[f.direction[i]][a] for a in range(len(f.algorithms))] for i in test], float)


def classes(model, f, train, test):
    seen, y = np.unique(f.best[train], return_inverse=True)
    out = np.full((len(test), len(f.algorithms)), -1.0)
    out[:, seen] = model.fit(f.x[train], y).predict_proba(f.x[test])
    return out


def forest(f, train, test):
    return classes(RandomForestClassifier(100, n_jobs=1, random_state=1), f, train, test)


def boosted(kind, **more):
    return kind(n_estimators=400, max_depth=9, learning_rate=0.1, subsample=0.8, colsample_bytree=0.8, tree_method="hist",
                n_jobs=1, random_state=1, **more)


def xgb(f, train, test):
    return classes(boosted(xgboost.XGBClassifier), f, train, test)


def xgb_times(f, train, test):
    out = np.full((len(test), len(f.algorithms)), -np.inf)
    for a in range(len(f.algorithms)):
        rows = train[~np.isnan(f.ms[train, a])]
        if len(rows):
            out[:, a] = -boosted(xgboost.XGBRegressor).fit(f.x[rows], np.log(f.ms[rows, a])).predict(f.x[test])
    return out


class Prediction(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("config", ctypes.c_char_p), ("probability", ctypes.c_double), ("slowdown", ctypes.c_double)]


def asked(library, model, problems, algorithms):
    """The model's probabilities of algorithms, [problem][algorithm]."""
    lib = ctypes.CDLL(library)
    err, options = ctypes.create_string_buffer(1 << 16), ctypes.create_string_buffer(1 << 10)
    handle, found, n = ctypes.c_void_p(), ctypes.POINTER(Prediction)(), ctypes.c_size_t()
    if lib.kopt_model_open(model.encode(), ctypes.byref(handle), err) != 0:
        sys.exit(f"{model} cannot be opened")
    lib.kopt_predict_options_init(options)
    ctypes.cast(options, ctypes.POINTER(ctypes.c_size_t))[1] = 50  # top
    out = np.full((len(problems), len(algorithms)), -1.0)
    for i, (numbers, words) in enumerate(problems):
        direction, _, groups = words[1].partition("_g")
        texts = [f"{name}={n}" for name, n in zip(FIELDS, numbers)]
        texts += ["layout=NCHW", f"data_type={words[0]}", f"direction={direction}", "spatial_dim=2", "in_d=1", "fil_d=1", "pad_d=0",
                  "conv_stride_d=0", "dilation_d=0", f"group_count={groups or 1}"]
        given = (ctypes.c_char_p * len(texts))(*[t.encode() for t in texts])
        if lib.kopt_predict(handle, given, ctypes.c_size_t(len(texts)), options, ctypes.byref(found), ctypes.byref(n), err) != 0:
            sys.exit(f"no answer for {texts}")
        for k in range(n.value):
            name = json.loads(found[k].config)["algorithm"].split("Algo")[1]
            if name in algorithms:
                out[i][algorithms.index(name)] = max(out[i][algorithms.index(name)], found[k].probability)
        lib.kopt_text_free(found)
    lib.kopt_model_close(handle)
    return out


def kopt(f, train, test):
    del train  # the split is kopt's own
    program = f.kopt or find_kopt()
    library = str(pathlib.Path(program).resolve().parent.parent / "lib/libkopt.so")
    with tempfile.TemporaryDirectory() as tmp:
        model = f"{tmp}/model"
        subprocess.run([program, "train", f.path, "--model", "factored", "-o", model, "--fold", str(f.fold), "-q", *f.rest], check=True,
                       stdout=subprocess.DEVNULL)
        return asked(library, model, [f.problems[i] for i in test], f.algorithms)


METHODS = {m.__name__: m for m in (majority, forest, xgb, xgb_times, kopt)}


def summary(share, right, best, chosen):
    return {"right": float(np.mean(right)), "mean": float(np.mean(share)), "geometric": float(np.exp(np.mean(np.log(share)))),
            "p5": float(np.percentile(share, 5)), "total": float(np.sum(best) / np.sum(chosen))}


def evaluate(f, test, scores):
    chosen = np.where(np.isnan(f.ms[test]), -np.inf, scores).argmax(1)
    ms, best = f.ms[test, chosen], np.nanmin(f.ms[test], axis=1)
    return summary(best / ms, ms == best, best, ms)


def at_random(f, test):
    best = np.nanmin(f.ms[test], axis=1, keepdims=True)
    share, known = best / f.ms[test], ~np.isnan(f.ms[test])
    rows = np.repeat(np.arange(len(test)), known.sum(1))
    weights = 1 / known.sum(1)[rows]
    values = share[known]
    return {"right": float(np.sum(weights * (values == 1)) / len(test)), "mean": float(np.sum(weights * values) / len(test)),
            "geometric": float(np.exp(np.sum(weights * np.log(values)) / len(test))),
            "total": float(best.sum() / np.nanmean(f.ms[test], axis=1).sum())}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("--split", choices=("random", "layer"), default="random")
    p.add_argument("--fold", type=int, default=0)
    p.add_argument("--methods", default=",".join(METHODS))
    p.add_argument("--kopt", default=None)
    p.add_argument("-o", "--out", default="")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    a = p.parse_args(words[:at])
    f = Find(a.data, a.split)
    f.fold, f.kopt, f.rest = a.fold, a.kopt, words[at + 1:]
    roles = np.array([role_of(part, a.fold) for part in f.parts])
    train, test = np.flatnonzero(roles == TRAIN), np.flatnonzero(roles == TEST)
    result = {"data": pathlib.Path(a.data).name, "split": a.split, "fold": a.fold, "problems": len(f.keys), "train": len(train),
              "test": len(test), "algorithms": f.algorithms, "methods": {"random": at_random(f, test)}}
    print(f"{len(f.keys)} problems, {len(train)} to learn from, {len(test)} tests; percent: right | kept: mean, geometric mean, "
          "5th percentile, total")
    for name in ("random", *a.methods.split(",")):
        begun = time.monotonic()
        if name != "random":
            result["methods"][name] = evaluate(f, test, METHODS[name](f, train, test))
            result["methods"][name]["seconds"] = round(time.monotonic() - begun, 1)
        m = result["methods"][name]
        print(f"{name:10} {100 * m['right']:.1f} | " + ", ".join(
            f"{100 * m[k]:.1f}" if k in m else "-" for k in ("mean", "geometric", "p5", "total"))
            + f"   {m.get('seconds', 0):.0f} s", flush=True)
    out = a.out or ROOT / f"bench/results/algorithms_{a.split}.json"
    pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
