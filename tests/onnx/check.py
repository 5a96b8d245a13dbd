#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do exported models answer in onnxruntime as they do here?

check.py PROGRAM     runs onnx_cases in the current folder and each of its models in onnxruntime
check.py --make-venv makes .cache/venv-onnx, where onnx and onnxruntime are looked for
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".cache/venv-onnx"
# Both sum tens of products in float, in orders of their own; of large sums the last digits count
# for more.
TOLERANCE = 1e-5


def make_venv():
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    requirements = ROOT / "tests/onnx/requirements.txt"
    subprocess.run([VENV / "bin/pip", "install", "-q", "-r", requirements], check=True)


def read_case(path):
    """Named arrays: lines "name type rows columns", then the numbers of a row on each line."""
    import numpy as np
    arrays = {}
    lines = iter(path.read_text().splitlines())
    for line in lines:
        name, kind, rows, cols = line.rsplit(" ", 3)
        data = [next(lines).split() for _ in range(int(rows))]
        arrays[name] = np.array(data, dtype=kind).reshape(int(rows), int(cols))
    return arrays


def encode(encoder, problem):
    """The features of one problem, by the metadata alone."""
    import math
    out = []
    for kind, field, parameter, mean, scale in encoder["features"]:
        x = problem[field]
        raw = {"log2": lambda: math.log2(1 + abs(x)),
               "sign": lambda: (x > 0) - (x < 0),
               "divides": lambda: x % parameter == 0,
               "part": lambda: x % parameter / parameter,
               "is": lambda: x == parameter}[kind]()
        out.append(min(max((raw - mean) * scale, -8), 8))
    return out


def column(c, metadata, problem, features, config):
    """One number of x by the metadata alone; None: a rule is needed for it."""
    import math
    names = [f["name"] for f in metadata["kopt.encoder"]["fields"]]
    targets = {t["name"]: t["values"][v] for t, v in zip(metadata["kopt.targets"], config)}
    value = targets.get(c.get("target"))
    x = problem[names.index(c["field"])] if "field" in c else None
    if c["kind"] == "coordinate":
        return features[c["feature"]]
    if c["kind"] == "param":
        raw = math.log2(1 + abs(value))
    elif c["kind"] == "is":
        raw = value == c["value"]
    elif c["kind"] == "ratio":
        raw = math.log2((1 + abs(x)) / (1 + abs(value)))
    elif c["kind"] == "rest":
        raw = x / value - math.floor(x / value) if value > 0 else 0
    else:
        return None
    clip = metadata["kopt.ranking"]["clip"]
    return min(max((raw - c["mean"]) * c["scale"], -clip), clip)


def check_columns(metadata, arrays):
    """Can x be computed from what the file says?"""
    ranking = metadata["kopt.ranking"]
    configs = ranking["configs"]
    known = 0
    for row, x in enumerate(arrays["x"]):
        problem = arrays["problem"][row // len(configs)].tolist()
        features = encode(metadata["kopt.encoder"], problem)
        assert len(ranking["columns"]) == len(x)
        for i, c in enumerate(ranking["columns"]):
            assert c["kind"] in ranking["formulas"]
            want = column(c, metadata, problem, features, configs[row % len(configs)])
            known += want is not None
            if want is not None:  # a float of what was computed in double
                assert abs(want - x[i]) <= 1e-6 * (1 + abs(want)), (c, want, x[i])
    assert known > len(arrays["x"]) * 10, known
    assert "kopt.rules" in metadata or known == arrays["x"].size


def check(path):
    import json
    import numpy as np
    import onnx
    import onnxruntime
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    trees = sum(n.op_type == "TreeEnsembleRegressor" for n in model.graph.node)
    opsets = {o.domain: o.version for o in model.opset_import}
    assert opsets == ({"": 17, "ai.onnx.ml": 3} if trees else {"": 17}), opsets
    assert bool(trees) == path.stem.endswith("_trees")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    arrays = read_case(path.with_suffix(".txt"))
    metadata = {e.key: e.value if e.key in ("kopt.kernel", "kopt.rules") else json.loads(e.value)
                for e in model.metadata_props}
    if "score" in arrays:
        check_columns(metadata, arrays)
        arrays["numbers"] = arrays["numbers"][:, 0]
        arrays["score"] = arrays["score"][:, 0]
    inputs = {i.name: arrays[i.name] for i in session.get_inputs()}
    assert set(inputs) in ({"tokens", "features", "values"}, {"numbers", "x"})
    names = [o.name for o in session.get_outputs()]
    got = dict(zip(names, session.run(None, inputs)))
    expected = {n for n in arrays if n.startswith("logp.") or n == "score"}
    assert set(names) == expected, (names, expected)
    assert all(got[n].shape == arrays[n].shape for n in names)
    worst = max(float((np.abs(got[n] - arrays[n]) / (1 + np.abs(arrays[n]))).max()) for n in names)
    largest = max(float(np.abs(arrays[n]).max()) for n in names)
    print(f"{path.stem:26} {len(model.graph.node):4} nodes, {trees} with trees, numbers up "
          f"to {largest:4.1f}, largest difference {worst:.1e}")
    return worst <= TOLERANCE  # false for NaN


def main():
    if sys.argv[1:] == ["--make-venv"]:
        make_venv()
        return 0
    python = VENV / "bin/python"
    if pathlib.Path(sys.prefix) != VENV:
        if not python.exists():
            print("skipped: no onnxruntime; tests/onnx/check.py --make-venv gets it")
            return 77
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    folder = pathlib.Path("cases")
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    subprocess.run([sys.argv[1], folder], check=True)
    models = sorted(folder.glob("*.onnx"))
    good = [check(m) for m in models]
    assert models, "no model was written"
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
