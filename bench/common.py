# SPDX-License-Identifier: MIT
"""What the benchmarks in Python share."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What `make` builds, and what `cmake --workflow --preset release` does.
BUILDS = ("build/kopt", "build/release")


def find_kopt():
    for build in BUILDS:
        path = ROOT / build / "bin/kopt"
        if path.exists():
            return str(path)
    sys.exit(f"there is no kopt in {' or '.join(BUILDS)}: run make, or name one with --kopt")


def kopt_json(kopt, *args):
    done = subprocess.run([kopt, *args, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kopt {' '.join(args)} ended with {done.returncode}:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def make_venv(name):
    """An interpreter in .cache/venv-NAME that has what bench/peers/requirements-NAME.txt names."""
    venv = ROOT / f".cache/venv-{name}"
    if not (venv / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", "-r", ROOT / f"bench/peers/requirements-{name}.txt"], check=True)
        (venv / "ready").touch()
    return str(venv / "bin/python")
