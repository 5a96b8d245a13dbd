# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
mkdir folder.db
echo text >text.db
: >file
try kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store folder.db
try kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store text.db
try kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store /proc/nowhere/s.db
XDG_DATA_HOME=$PWD/file try kopt tune "$DATA/copy.cl" N=1024 -d fake:0
