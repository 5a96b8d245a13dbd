#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tune a matrix multiplication of examples/gemm with Kernel Tuner: the same source, parameters, rules,
data and tolerance as kopt reads from the file, for the same time. Prints one JSON line.

    kernel_tuner_run.py FILE SPACE.json SECONDS SEED [strategy]

SPACE.json is what `kopt space FILE .. --json` prints; device numbers in rules come from its
"limits" member, which throughput.py adds."""
import json
import pathlib
import re
import sys
import time

import numpy as np
import kernel_tuner


def pragmas(source, word):
    text = source.replace("\\\n", " ")
    return [m.strip() for m in re.findall(r"^#pragma kopt %s\s+(.*)$" % word, text, re.M)]


def to_python(expr):
    """kopt's spelling to Python's: / of integers truncates, && || ! and c ? a : b."""
    m = re.match(r"^(.*?)\?(.*)$", expr, re.S)
    if m:
        cond, rest = m[1], m[2]
        then, other = split_colon(rest)
        return f"(({to_python(then)}) if ({to_python(cond)}) else ({to_python(other)}))"
    expr = expr.replace("&&", " and ").replace("||", " or ")
    expr = re.sub(r"!(?!=)", " not ", expr)
    return re.sub(r"(?<!/)/(?!/)", "//", expr)


def rule_to_python(expr):
    """As to_python, but c ? a : b as a disjunction: Kernel Tuner takes rules apart at brackets."""
    m = re.match(r"^(.*?)\?(.*)$", expr, re.S)
    if not m:
        return to_python(expr)
    cond, (then, other) = to_python(m[1]), split_colon(m[2])
    return f"(({cond}) and ({rule_to_python(then)})) or ((not ({cond})) and ({rule_to_python(other)}))"


def constant(python):
    """The number where an expression has no parameters in it, else the text in brackets."""
    try:
        return str(int(eval(python, {"min": min, "max": max}, {})))
    except NameError:
        return f"({python})"


def split_colon(text):
    depth = 0
    for i, c in enumerate(text):
        if c == "?":
            depth += 1
        elif c == ":":
            if depth == 0:
                return text[:i], text[i + 1:]
            depth -= 1
    raise ValueError(text)


def substitute(expr, names):
    return re.sub(r"[A-Za-z_][A-Za-z_0-9.]*", lambda m: names.get(m[0], m[0]), expr)


def main():
    path, space_path, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    strategy = sys.argv[5] if len(sys.argv) > 5 else "random_sample"
    source = pathlib.Path(path).read_text()
    space = json.loads(pathlib.Path(space_path).read_text())
    problem = space["problem"]
    cuda = space["language"] == "cuda"

    names = {k: str(v) for k, v in problem.items()}
    names |= {f"device.{k}": str(v) for k, v in space["limits"].items()}
    lets = {}
    for line in pragmas(source, "let"):
        name, expr = (s.strip() for s in line.split("=", 1))
        lets[name] = constant(substitute(to_python(expr), {**names, **lets}))
    names |= lets
    rules = [substitute(rule_to_python(r["rule"]), names) for r in space["rules"]]
    # A rule without parameters holds for all or for none.
    rules = [r for r in rules if any(re.search(r"\b%s\b" % p["name"], r) for p in space["parameters"])]
    params = {p["name"]: list(p["values"]) for p in space["parameters"]}

    block = pragmas(source, "block")[0].split()
    divs = ["BN", "BM"]
    block_names = []
    for i, expr in enumerate(block):
        name = f"block_size_{'xyz'[i]}"
        python = substitute(to_python(expr), names)
        values = set()
        used = [p for p in params if re.search(r"\b%s\b" % p, python)]
        # every value the expression can take; the rule below picks the right one
        combos = [{}]
        for p in used:
            combos = [{**c, p: v} for c in combos for v in params[p]]
        for c in combos:
            values.add(int(eval(python, {}, c)))
        params[name] = sorted(v for v in values if v > 0)
        # Written as a difference: Kernel Tuner 1.5.0 finds no solution of name == (a // b) * (c // d).
        rules.append(f"{name} - ({python}) == 0")
        block_names.append(name)

    M, N, K = problem["M"], problem["N"], problem["K"]
    rng = np.random.default_rng(1)
    a = rng.standard_normal((M, K)).astype(np.float32)
    b = rng.standard_normal((K, N)).astype(np.float32)
    c = np.zeros((M, N), np.float32)
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    args = [a, b, c, np.int32(M), np.int32(N), np.int32(K)]

    # All parameters and lets become macros, as kopt passes them.
    def let_value(expr):
        return lambda p: int(eval(expr, {"min": min, "max": max}, dict(p)))

    defines = {p: p for p in params if not p.startswith("block_size")}
    defines |= {name: let_value(expr) for name, expr in lets.items()}

    options = dict(lang="CUPY" if cuda else "OpenCL", restrictions=rules, defines=defines,
                   block_size_names=block_names, grid_div_x=[divs[0]], grid_div_y=[divs[1]],
                   answer=[None, None, want, None, None, None], atol=1e-5 * float(np.abs(want).max()),
                   strategy=strategy, strategy_options=dict(time_limit=seconds, max_fevals=10**6),
                   quiet=True, verbose=False)
    if cuda:
        shared = pragmas(source, "shared")
        if shared:
            expr = substitute(to_python(shared[0]), names)
            options["smem_args"] = dict(size=lambda p: int(eval(expr, {"min": min, "max": max}, dict(p))))
        options["compiler_options"] = ["--std=c++17"]

    from kernel_tuner.searchspace import Searchspace
    size = Searchspace(params, rules, int(space["limits"]["max_threads"]), block_size_names=block_names).size
    if size != space["valid"]:
        sys.exit(f"Kernel Tuner sees {size} valid configurations, kopt {space['valid']}")
    if "--space" in sys.argv:  # needs no device
        return
    np.random.seed(seed)
    import random
    random.seed(seed)
    begun = time.time()
    results, env = kernel_tuner.tune_kernel("gemm", source, (N, M), args, params, **options)
    wall = time.time() - begun
    good = [r for r in results if isinstance(r.get("time"), (int, float)) and r["time"] > 0]
    best = min(good, key=lambda r: r["time"]) if good else None
    print(json.dumps({
        "tool": f"Kernel Tuner {kernel_tuner.__version__}" if hasattr(kernel_tuner, "__version__") else "Kernel Tuner",
        "strategy": strategy, "wall_s": wall, "configurations": len(results), "ok": len(good),
        "best_ms": best["time"] if best else None,
        "best": {p: best[p] for p in params if not p.startswith("block_size")} if best else None,
        "compile_s": sum(r.get("compile_time", 0) for r in results) / 1e3,
        "verify_s": sum(r.get("verification_time", 0) for r in results) / 1e3,
        "benchmark_s": sum(r.get("benchmark_time", 0) for r in results) / 1e3,
        "framework_s": sum(r.get("framework_time", 0) for r in results) / 1e3}))


if __name__ == "__main__":
    main()
