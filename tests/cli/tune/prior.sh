# SPDX-License-Identifier: MIT
# A session begins with what was best for the nearest problem in the store, or in a file.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
common="-d fake:0 --no-flush --no-check --samples 2 -j 1 --race 1"
kopt tune "$DATA/tiles.cl" M=120 N=80 $common -q >/dev/null
kopt tune "$DATA/tiles.cl" M=128 N=80 $common -b 6 2>&1 | grep 'prior'
kopt tune "$DATA/tiles.cl" M=112 N=80 $common -b 6 --prior none 2>&1 | grep -c 'prior'
kopt tune "$DATA/tiles.cl" M=104 N=80 $common -b 6 --prior 's.db#1' --prior-first 2 --json -q |
    json_lines prior prior_results prior_first best_from ended | grep -v result$
try kopt tune "$DATA/tiles.cl" M=104 N=80 $common -b 6 --prior s.db
try kopt tune "$DATA/tiles.cl" M=104 N=80 $common -b 6 --prior "$DATA/cache.json"
try kopt tune "$DATA/tiles.cl" M=104 N=80 $common -b 6 --prior missing.json
