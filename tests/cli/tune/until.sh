# SPDX-License-Identifier: MIT
# --until stops before the budget, when little is expected to be left to gain.
export KOPT_FAKE_LIBRARY=$FAKE
common="-d fake:0 --no-flush --no-check --samples 2 -j 1 --race 1 -s random --no-store"
kopt tune "$DATA/tiles.cl" M=120 N=80 $common --until 90% -q | sed -n 's/save [0-9.]* %/save P %/; /^ended/p'
kopt tune "$DATA/tiles.cl" M=120 N=80 $common --until 90% --json -q >out
python3 - <<'P'
import json
report = json.loads(open("out").readlines()[-1])
print(report["ended"], report["done"] < 26, 0 <= report["remaining"] < 0.9)
P
# Nothing was asked for, nothing is said.
kopt tune "$DATA/tiles.cl" M=120 N=80 $common -b 5 --json -q | tail -1 | json_lines ended remaining
