#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail where a file includes what src/LAYERS does not allow it; cli/ may include <kopt/*.h> and cli/ only."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
# Third-party headers live in one layer each.
OWNERS = {"jansson.h": "json", "sqlite3.h": "store", "xxhash.h": "base", "openssl/": "base", "CL/": "device"}


def read_layers():
    allowed = {}
    for line in (ROOT / "src/LAYERS").read_text().splitlines():
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
            yield n, m[1], m[2]


def main():
    allowed, bad = read_layers(), 0
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        layer = path.relative_to(ROOT / "src").parts[0]
        for n, kind, name in includes(path):
            where = f"{path.relative_to(ROOT)}:{n}"
            top = name.split("/")[0]
            if kind == '"' and "/" in name and top not in allowed.get(layer, set()):
                print(f"{where}: layer '{layer}' may not include '{name}'")
                bad += 1
            for prefix, owner in OWNERS.items():
                if name.startswith(prefix) and layer != owner:
                    print(f"{where}: only layer '{owner}' may include '{name}'")
                    bad += 1
    for path in sorted((ROOT / "cli").rglob("*.[ch]")):
        for n, kind, name in includes(path):
            if kind == '"' and not name.startswith(("kopt/", "cli/")):
                print(f"{path.relative_to(ROOT)}:{n}: cli may not include '{name}'")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
