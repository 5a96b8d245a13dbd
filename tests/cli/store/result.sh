# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store result 2
echo --
kopt store result 4
echo --
# One whose outputs were compared.
KOPT_FAKE_LIBRARY=$FAKE kopt tune "$DATA/copy.cl" N=64 BM=16 BN=32 -d fake:0 -q >/dev/null
kopt store result 7 | grep '^outcome\|^max error'
echo --
kopt store result 2 --json | json_lines times_ns subject run log
