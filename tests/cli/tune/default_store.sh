# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
# Without --store the results are under the user's data folder, which is made.
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 -q >/dev/null
ls "$HOME/.local/share/kopt/kopt.db" | sed "s:$HOME:HOME:"
kopt store list --json | json_lines kernel results
XDG_DATA_HOME=$PWD/x kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 -q >/dev/null
ls x/kopt/kopt.db
KOPT_STORE=mine.db kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 -q >/dev/null
ls mine.db
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 -q --no-store >/dev/null
ls
