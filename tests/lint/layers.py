#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/check_layers.py must complain of each bad line of a small tree, and of nothing else.

A line that it must complain of ends in `// BAD`."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/check_layers.py"
TREE = {
    "src/LAYERS": "# layer may include\nbase\njson base\nspace base json\n",
    "src/base/alloc.h": "",
    "src/base/own.h": "",
    "src/base/alloc.c": '#include "base/alloc.h"\n'
                        '#include "own.h"\n'
                        "#include <kopt/status.h>\n"
                        "#include <sys/stat.h>\n"
                        "#include <string.h>\n"
                        "#include <openssl/evp.h>\n"
                        '#include "space/kernel.h" // BAD\n'
                        "#include <space/kernel.h> // BAD\n"
                        "  #  include  <json/json.h> // BAD\n"
                        "#include <../space/kernel.h> // BAD\n"
                        '#include "../space/kernel.h" // BAD\n'
                        '#include "kernel.h" // BAD\n'
                        "#include <cli/opt.h> // BAD\n"
                        "#include <jansson.h> // BAD\n"
                        "#include HEADER // BAD\n"
                        '/* #include "space/kernel.h" */\n',
    "src/space/kernel.c": '#include "space/kernel.h"\n'
                          "#include <base/alloc.h>\n"
                          '#include "kopt/status.h"\n'
                          "#include <sqlite3.h> // BAD\n"
                          '#include "unknown/file.h" // BAD\n'
                          "#include_next <tests/session/session.h> // BAD\n",
    "src/space/sub/part.c": "#include <json/json.h>\n"
                            "#include <space/kernel.h>\n"
                            "#include <CL/cl.h> // BAD\n",
    "cli/run.c": '#include "cli/run.h"\n'
                 "#include <kopt/kopt.h>\n"
                 "#include <sys/ioctl.h>\n"
                 '#include "base/alloc.h" // BAD\n'
                 "#include <base/alloc.h> // BAD\n"
                 "#include <sqlite3.h> // BAD\n",
}


def run(root):
    done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def write(root, tree):
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def bad_lines(tree):
    return {f"{name}:{n}" for name, text in tree.items() for n, line in enumerate(text.splitlines(), 1)
            if line.endswith("// BAD")}


def main():
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        write(root, TREE)
        code, lines, errors = run(root)
        got, want = {":".join(line.split(":")[:2]) for line in lines}, bad_lines(TREE)
        assert code == 1 and not errors, (code, errors)
        assert len(lines) == len(got) and got == want, f"missed {want - got}, too much {got - want}"

        write(root, {name: "".join(line + "\n" for line in text.splitlines() if not line.endswith("// BAD"))
                     for name, text in TREE.items()})
        assert run(root) == (0, [], ""), run(root)

        write(root, {"src/stray/a.c": ""})
        code, lines, _ = run(root)
        assert code == 1 and lines == ["src/stray/a.c: src/LAYERS does not name 'stray'"], lines

        write(root, {"src/LAYERS": "base json\njson\n"})
        code, _, errors = run(root)
        assert code == 1 and "cycle" in errors, errors


if __name__ == "__main__":
    main()
