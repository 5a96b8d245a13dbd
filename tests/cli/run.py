#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run one case of tests/cli: a shell script whose output and exit code are compared with files
beside it.

    run.py --kopt BUILD/bin/kopt --fake BUILD/.../libkopt_fakedriver.so [--bless] CASE.sh..

Beside CASE.sh stand, all optional:
    CASE.stdout.exact  CASE.stdout.glob    what it prints on standard output
    CASE.stderr.exact  CASE.stderr.glob    .. and on standard error
    CASE.exit                              its exit code; 0 without the file
A stream without a file must be empty; the progress lines of a training do not count. In a .glob
file each line is a pattern (* and ?), and a line '...' stands for any number of lines. A case runs
in an empty folder of its own, with `kopt` in the path, a fixed environment and no device but the
fake one ($FAKE names its library; give it to kopt with KOPT_FAKE_LIBRARY). Exit code 77 skips a case.

--bless writes the .exact files and the exit code anew; .glob files are written by hand.
"""
import argparse
import difflib
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 120
# Without a terminal a training says every ten seconds how far it is: how often depends on the machine.
PROGRESS = re.compile(rb"^kopt: (network \d+/\d+  )?epoch \d+/\d+  loss .*\n", re.MULTILINE)


def environment(kopt, fake, scratch):
    keep = {k: v for k, v in os.environ.items() if k.startswith(("ASAN_", "UBSAN_", "LSAN_", "TSAN_"))}
    return {
        **keep,
        "PATH": f"{pathlib.Path(kopt).resolve().parent}:{HERE / 'bin'}:{pathlib.Path(sys.executable).parent}"
                ":/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch),
        "TMPDIR": str(scratch / "tmp"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "xterm",
        "FAKE": str(pathlib.Path(fake).resolve()),
        "DATA": str(HERE / "data"),
        "SOURCE": str(HERE.parent.parent),
        "BUILD": str(pathlib.Path(kopt).resolve().parent.parent),
        "LIBKOPT": str(pathlib.Path(kopt).resolve().parent.parent / "lib" / "libkopt.so"),
        # No driver of this machine takes part.
        "KOPT_CUDA_LIBRARY": "/nonexistent/libcuda.so.1",
        "KOPT_NVRTC_LIBRARY": "/nonexistent/libnvrtc.so",
        "KOPT_OPENCL_LIBRARY": "/nonexistent/libOpenCL.so.1",
    }


def glob_matches(lines, patterns):
    """Do all lines match all patterns, '...' taking any number of lines?"""
    reach = {0}
    for pattern in patterns:
        if pattern == "...":
            reach = set(range(min(reach, default=len(lines) + 1), len(lines) + 1))
        else:
            p = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
            reach = {i + 1 for i in reach if i < len(lines) and p.match(lines[i])}
        if not reach:
            return False
    return len(lines) in reach


def first_mismatch(lines, patterns):
    """A help for the reader: the longest part of the patterns that matches a part of the lines."""
    for n in range(len(patterns), 0, -1):
        if any(glob_matches(lines[:k], patterns[:n]) for k in range(len(lines) + 1)):
            return n
    return 0


def compare(case, stream, text, bless):
    exact = case.with_suffix(f".{stream}.exact")
    glob = case.with_suffix(f".{stream}.glob")
    if glob.exists():
        patterns = glob.read_text().splitlines()
        if glob_matches(text.splitlines(), patterns):
            return []
        n = first_mismatch(text.splitlines(), patterns)
        where = patterns[n] if n < len(patterns) else "the end"
        return [f"{stream} does not match {glob.name} from line {n + 1}: {where}", text]
    want = exact.read_text() if exact.exists() else ""
    if text == want:
        return []
    if bless:
        if text:
            exact.write_text(text)
        elif exact.exists():
            exact.unlink()
        return []
    diff = difflib.unified_diff(want.splitlines(True), text.splitlines(True), str(exact.name), "got")
    return [f"{stream} differs", "".join(diff)]


def run_case(case, kopt, fake, bless):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="kopt-cli."))
    try:
        (scratch / "tmp").mkdir()
        work = scratch / "work"
        work.mkdir()
        done = subprocess.run(["bash", "-u", str(case)], cwd=work, env=environment(kopt, fake, scratch),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as late:
        return [f"did not end within {TIMEOUT_S} s", (late.stderr or b"").decode(errors="replace")]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode == 77:
        print(done.stdout.decode(errors="replace"), end="")
        sys.exit(77)
    exit_file = case.with_suffix(".exit")
    want = int(exit_file.read_text()) if exit_file.exists() else 0
    faults = []
    stderr = PROGRESS.sub(b"", done.stderr)
    for stream, data in (("stdout", done.stdout), ("stderr", stderr)):
        text = data.decode(errors="backslashreplace").replace(str(scratch / "work"), "WORK")
        text = text.replace(str(scratch), "HOME").replace(str(HERE / "data"), "DATA")
        faults += compare(case, stream, text, bless)
    if done.returncode != want and bless:
        exit_file.write_text(f"{done.returncode}\n")
    elif done.returncode != want:
        faults.append(f"exit code {done.returncode}, wanted {want}")
    if faults and done.stderr:
        faults += ["stderr was:", done.stderr.decode(errors="replace")]
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kopt", required=True)
    parser.add_argument("--fake", required=True)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    o = parser.parse_args()
    bad = 0
    for case in o.cases:
        if not case.is_file():
            parser.error(f"there is no case {case}")
        faults = run_case(case.resolve(), o.kopt, o.fake, o.bless)
        if faults:
            bad += 1
            print(f"FAILED {case}", *faults, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
