#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Configurations a minute, kopt beside Kernel Tuner: the same kernel file, space, data and seconds, in turn.

    bench/throughput.py [--kernel FILE] [--problem M=512,..] [--seconds S] [--rounds R] [--python PY] [-o OUT.json]

Kernel Tuner comes from PyPI at the version in bench/peers/requirements.txt, into .cache/venv-peers, unless
--python names an interpreter that has it. Both tools draw at random; both check every result."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def peers_python():
    venv = ROOT / ".cache/venv-peers"
    python = venv / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", "-r", ROOT / "bench/peers/requirements.txt"], check=True)
    return str(python)


def kopt_json(kopt, *args):
    out = subprocess.run([kopt, *args, "--json"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def run_kopt(kopt, a, problem, seed, strategy):
    lines = kopt_json(kopt, "tune", a.kernel, *problem, "--no-store", "--strategy", strategy, "--seed", str(seed),
                      "--budget", f"{a.seconds}s", "--race", "2", *(["--device", a.device] if a.device else []))
    report = lines[-1]
    measured = [x for x in lines if x["type"] == "result"]
    return report, measured


def run_peer(python, a, space_path, seed, strategy):
    out = subprocess.run([python, ROOT / "bench/peers/kernel_tuner_run.py", a.kernel, space_path, str(a.seconds),
                          str(seed), strategy], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kopt", default=str(ROOT / "build/kopt/bin/kopt"))
    p.add_argument("--kernel", default=str(ROOT / "examples/gemm/gemm.cl"))
    p.add_argument("--problem", default="M=512 N=512 K=512")
    p.add_argument("--device", default="")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--python", default="")
    p.add_argument("--kopt-strategy", default="random")
    p.add_argument("--peer-strategy", default="random_sample")
    p.add_argument("-o", "--out", default="")
    a = p.parse_args()
    problem = a.problem.split()
    python = a.python or peers_python()
    device = [d for d in kopt_json(a.kopt, "devices") if d["type"] == "device"]
    wanted = a.device or ("cuda" if a.kernel.endswith(".cu") else "opencl")
    device = next(d for d in device if d["id"].startswith(wanted))
    space = kopt_json(a.kopt, "space", a.kernel, *problem, "--explain")[0]
    block = device.get("max_threads", 1024)
    space["limits"] = {"max_threads": block, "max_block_x": block, "max_block_y": block, "max_block_z": 64,
                       "shared_bytes": device["shared_bytes"], "cc": device.get("cc", 90)}
    rounds = []
    with tempfile.TemporaryDirectory() as tmp:
        space_path = os.path.join(tmp, "space.json")
        pathlib.Path(space_path).write_text(json.dumps(space))
        for i in range(a.rounds):
            report, measured = run_kopt(a.kopt, a, problem, i + 1, a.kopt_strategy)
            peer = run_peer(python, a, space_path, i + 1, a.peer_strategy)
            search_s = a.seconds
            ours = 60 * len(measured) / search_s
            theirs = 60 * peer["configurations"] / peer["wall_s"]
            rounds.append({"kopt_per_min": ours, "peer_per_min": theirs, "ratio": ours / theirs, "kopt": report,
                           "peer": peer})
            print(f"round {i + 1}: kopt {ours:.1f}/min, {peer['tool']} {theirs:.1f}/min, ratio {ours / theirs:.2f}",
                  file=sys.stderr)
    result = {"kernel": a.kernel, "problem": problem, "device": device, "seconds": a.seconds, "rounds": rounds}
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(result, indent=1))
    print(f"kernel {os.path.relpath(a.kernel, ROOT)} {a.problem}, {device['name']}, {a.rounds} x {a.seconds:.0f} s, in turn")
    print(f"kopt          {spread([r['kopt_per_min'] for r in rounds])} configurations a minute")
    print(f"{rounds[0]['peer']['tool']:13} {spread([r['peer_per_min'] for r in rounds])}")
    print(f"ratio         {spread([r['ratio'] for r in rounds])}")


if __name__ == "__main__":
    main()
