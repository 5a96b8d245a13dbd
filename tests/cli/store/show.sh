# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store show 1
echo --
kopt store show axpy --all
echo --
kopt store show axpy x=1000 -n 1
echo --
kopt store show 1 --outcome compile_error
echo --
kopt store show 1 --outcome wrong
echo --
kopt store show 1 --all --json | json_lines id outcome config median_ns message
