# SPDX-License-Identifier: MIT
tiles_csv 200 >data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --model factored --nets 2 --hidden 16 --embed 4 --epochs 3 -q \
    --batch 16 --json >lines || exit
json_lines source kernel network rows left_out skipped unlisted train valid test all_failed examples constant \
    canonical fields parameters numbers resumed net nets epoch epochs best_epoch interrupted file networks.1.net \
    networks.1.epochs <lines | sed 's/best_epoch=[0-9]*/best_epoch=N/'
kopt eval m.model data.csv --json -q >lines || exit
json_lines name part source same_data known problems answered timed <lines
json_lines name valid <lines | grep '"model"'
json_lines name forced <lines | grep -c null
kopt eval m.model data.csv --part all --where M=16 --json -q | json_lines problems left_out same_data
# Each problem of each column: the shares can be counted from them.
kopt eval m.model data.csv --json --problems -q | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
for j in (r for r in rows if r["type"] == "judgement"):
    cases = [r for r in rows if r["type"] == "problem" and r["name"] == j["name"]]
    exact = [sum(0 < c["exact_at"] <= k for c in cases) / len(cases) for k in (1, 5, 20, 50)]
    kept = [sum(c["kept"][i] for c in cases) / len(cases) for i in range(4)]
    same = all(abs(a - b) < 1e-12 for a, b in zip(exact + kept, j["exact"] + j["kept_mean"]))
    print(j["name"], len(cases), len({c["problem"] for c in cases}), "same" if same else (exact, kept, j))
'
kopt eval m.model data.csv --problems
echo "exit $?"
