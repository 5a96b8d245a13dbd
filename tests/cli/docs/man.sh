# SPDX-License-Identifier: MIT
# docs/kopt.1 is what the program's tables give; and it is sound troff where groff is at hand.
kopt __man >kopt.1
cmp kopt.1 "$SOURCE/docs/kopt.1"
if command -v groff >/dev/null; then
    groff -man -Tutf8 -wall kopt.1 2>&1 >/dev/null
fi
