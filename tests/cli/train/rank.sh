# SPDX-License-Identifier: MIT
# Where most problems have times of many configurations, a network ranks them: from the table to answers and files.
# All problems with the same configurations: what was never measured with a problem cannot be judged there.
tiles_csv 200 | awk -F, -v OFS=, 'NR > 2 { $6 = 1 } { print }' >data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --nets 2 --hidden 16 --epochs 20 -j 1 >table 2>notes || exit
grep "are ranked" notes
head -1 table
wc -l <table
kopt eval m.model data.csv -q --json >judged
python3 - <<'PY'
import json
rows = [json.loads(l) for l in open("judged")]
model = next(r for r in rows if r.get("name") == "model")
print("network", rows[0]["network"], "valid", model["valid"], "forced", model["forced"])
# Without noise in the times, more of the speed than what is best most often.
print("better", model["kept_mean"][0] > 0.9 and
      model["kept_mean"][0] > next(r for r in rows if r.get("name") == "majority")["kept_mean"][0])
PY
kopt predict m.model M=120 N=80 kind=s --top 3 | sed 's/^ *[0-9.]* x/T x/; s/=[0-9]*/=V/g'
kopt predict m.model M=120 N=80 kind=s --top 3 --json | python3 -c '
import json, sys
rows = [json.loads(l) for l in sys.stdin]
print("first", rows[0]["slowdown"], "later", all(r["slowdown"] >= 1 for r in rows))'
# The number of threads has no influence on the file.
cp m.model whole.model
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --nets 2 --hidden 16 --epochs 20 -j 2 -q >/dev/null
cmp m.model whole.model && echo same
try kopt export m.model --onnx m.onnx
grep -c kopt.ranking m.onnx
# What it is not for.
tiles_csv 4 >few.csv
try kopt train few.csv --rules "$DATA/tiles.kopt" -o few.model --model ranker -q
# More than there are: no more than what it knows, with rules and without.
for rules in '' --no-rules; do
    kopt predict m.model M=120 N=80 kind=s --top 4096 $rules 2>&1 >/dev/null
done
