# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
try kopt store show 9
try kopt store show gemm
try kopt store show axpy x=5
try kopt store show axpy y
try kopt store result 99
try kopt store best gemm
try kopt store best 9
try kopt store compare 1 9
try kopt store runs 9
