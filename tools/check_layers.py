#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail where a file includes what src/LAYERS does not allow it; cli/ may include <kopt/*.h> and cli/ only. Quotes and
angle brackets are the same here, since src/ is searched for both.

    check_layers.py [ROOT]"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include(?:_next)?\b\s*(?:([<"])([^">]+)[">]|(.*))')
# Third-party headers live in one layer each.
OWNERS = {"jansson.h": "json", "sqlite3.h": "store", "xxhash.h": "base", "openssl/": "base", "CL/": "device",
          "zlib.h": "os"}
# Folders whose headers are ours but of no layer.
OURS = {"..", ".", "src", "cli", "tests", "bench", "include", "examples"}


def read_layers(root):
    allowed = {}
    for line in (root / "src/LAYERS").read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        layer, below = words[0], words[1:]
        late = [b for b in below if b not in allowed]
        if late:
            sys.exit(f"src/LAYERS: {layer} names {late} before they are defined: that is a cycle")
        allowed[layer] = {layer, "kopt", *below}
    return allowed


def includes(path):
    for n, line in enumerate(path.read_text().splitlines(), 1):
        m = INCLUDE.match(line)
        if m:
            yield n, m[1], m[2] or m[3].strip()


def fault_of(path, kind, name, who, may, ours):
    """Why `who` (a layer, or cli) may not include this; None when it may."""
    top = name.split("/")[0]
    if kind is None:
        return f"'{name}' hides what is included"
    if "/" not in name and kind == '"':
        return None if (path.parent / name).is_file() else f"there is no '{name}' beside it"
    if (top in ours or kind == '"') and "/" in name and top not in may:
        return f"{who} may not include '{name}'"
    for prefix, owner in OWNERS.items():
        if name.startswith(prefix) and who != f"layer '{owner}'":
            return f"only layer '{owner}' may include '{name}'"
    return None


def faults(root):
    allowed = read_layers(root)
    ours = OURS | set(allowed) | {p.name for p in (root / "src").iterdir() if p.is_dir()}
    for path in sorted([*(root / "src").rglob("*.[ch]"), *(root / "cli").rglob("*.[ch]")]):
        where = path.relative_to(root)
        if where.parts[0] == "cli":
            who, may = "cli", {"kopt", "cli"}
        elif where.parts[1] in allowed:
            who, may = f"layer '{where.parts[1]}'", allowed[where.parts[1]]
        else:
            yield f"{where}: src/LAYERS does not name '{where.parts[1]}'"
            continue
        for n, kind, name in includes(path):
            fault = fault_of(path, kind, name, who, may, ours)
            if fault:
                yield f"{where}:{n}: {fault}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    found = list(faults(root))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
