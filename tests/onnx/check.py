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
# Both sum tens of products in float, in orders of their own.
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


def check(path):
    import numpy as np
    import onnx
    import onnxruntime
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [o.version for o in model.opset_import] == [17]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    arrays = read_case(path.with_suffix(".txt"))
    inputs = {n: arrays[n] for n in ("tokens", "features", "values")}
    names = [o.name for o in session.get_outputs()]
    got = dict(zip(names, session.run(None, inputs)))
    expected = {n for n in arrays if n.startswith("logp.")}
    assert set(names) == expected, (names, expected)
    worst = max(float(np.abs(got[n] - arrays[n]).max()) for n in names)
    assert all(got[n].shape == arrays[n].shape for n in names)
    print(f"{path.stem:24} {len(model.graph.node):4} nodes, largest difference {worst:.1e}")
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
