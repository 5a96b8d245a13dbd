# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" "$DATA/cache_other.json" >/dev/null
kopt store best axpy x=1000
echo --
kopt store best 1
echo --
kopt store best axpy x=1000 --json | json_lines device config median_ns
kopt store best axpy x=4000 --json | json_lines config distance median_ns
