# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" "$DATA/cache_other.json"
kopt store import "$DATA/cache.json"
kopt store list
echo --
kopt store list axpy x=1000 --json | json_lines id kernel device problem results ok best_ns last
kopt store list nothing
