# SPDX-License-Identifier: MIT
"""What the comparisons with classical learning share: the split of src/model/dataset_split.c, the interpreter that has
scikit-learn and XGBoost, features from a kernel file."""
import os
import re
import sys

from common import make_venv

PARTS = 10
TEST, VALID, TRAIN = "test", "valid", "train"


def enter_venv():
    """Goes on in .cache/venv-learning (bench/peers/requirements-learning.txt), unless it is there already."""
    if "KOPT_BENCH_VENV" not in os.environ:
        os.environ["KOPT_BENCH_VENV"] = "1"
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        python = make_venv("learning")
        os.execv(python, [python, *sys.argv])


def part_of(key, salt=1):
    h = 0xCBF29CE484222325
    for byte in f"s{salt}|{key}".encode():
        h = (h ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return (h >> 33) % PARTS


def role_of(part, fold):
    return TEST if part == fold else VALID if part == (fold + 1) % PARTS else TRAIN


# --- a kernel file's expressions ---


def split_outside(text, mark):
    """At each `mark` that no bracket encloses."""
    depth, parts, start = 0, [], 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def conditional(text):
    """`a ? b : c`, outside brackets."""
    test, *rest = split_outside(text, "?")
    if not rest:
        return text
    rest, depth, open_marks = "?".join(rest), 0, 1
    for i, c in enumerate(rest):
        depth += (c == "(") - (c == ")")
        open_marks += (depth == 0) * ((c == "?") - (c == ":"))
        if open_marks == 0:  # the colon that belongs to the first question mark
            return f"(({conditional(rest[:i])}) if ({test}) else ({conditional(rest[i + 1:])}))"
    raise ValueError(f"no ':' in {text}")


def brackets(text, change):
    """What stands in each outermost pair of brackets, changed."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c == "(" and depth == 0:
            out.append(text[start:i + 1])
            start = i + 1
        depth += (c == "(") - (c == ")")
        if c == ")" and depth == 0:
            out.append(change(text[start:i]))
            start = i
    return "".join(out) + text[start:]


def conditionals(text):
    return ",".join(conditional(brackets(part, conditionals)) for part in split_outside(text, ","))


def to_python(text):
    """An expression of the language (docs/language.md) as one of Python's; `/` between integers rounds down there, so
    it is for numbers that are not negative."""
    text = conditionals(text).replace("&&", " and ").replace("||", " or ")
    return re.sub(r"(?<!/)/(?!/)", "//", re.sub(r"!(?!=)", " not ", text)).strip()


FUNCTIONS = {"min": min, "max": max, "abs": abs, "ceildiv": lambda a, b: -(-a // b), "align": lambda a, m: -(-a // m) * m,
             "is_pow2": lambda a: a > 0 and a & (a - 1) == 0, "true": True, "false": False, "__builtins__": {}}


class KernelFile:
    """Of a kernel file: the lets, and the sizes of a grid, a block and shared memory, as numbers of one configuration."""

    def __init__(self, path):
        text = open(path, encoding="utf-8").read().replace("\\\n", " ")
        self.lets, self.grid, self.block, self.shared = [], [], [], []
        for line in re.findall(r"^\s*#\s*pragma\s+kopt\s+(.*)$", text, re.M):
            word, _, rest = line.strip().partition(" ")
            rest = re.sub(r"/\*.*?\*/", "", rest).strip()
            if word == "let":
                name, _, expression = rest.partition("=")
                self.lets.append((name.strip(), compile(to_python(expression.strip()), name, "eval")))
            elif word in ("grid", "block", "shared"):
                setattr(self, word, [compile(to_python(e), word, "eval") for e in split_sizes(rest)])

    def numbers(self, values):
        names = dict(FUNCTIONS, **values)
        found = {}
        for name, code in self.lets:
            names[name] = found[name] = int(eval(code, names))
        for what in ("grid", "block", "shared"):
            product = 1
            for code in getattr(self, what):
                product *= int(eval(code, names))
            found[what] = product
        return found


def split_sizes(text):
    """`ceildiv(N, BN) ceildiv(M, BM)`: at blanks outside brackets that no operator touches."""
    words = [w for w in split_outside(text, " ") if w]
    out = []
    for w in words:
        if out and (re.match(r"[-+*/%]", w) or re.search(r"[-+*/%]$", out[-1])):
            out[-1] += w
        else:
            out.append(w)
    return out
