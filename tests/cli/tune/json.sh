# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store s.db --json 2>/dev/null >out
json_lines <out | sort | uniq -c | sed 's/^ *//' | grep -v result
json_lines kernel problem device valid candidates <out | grep start
json_lines best.outcome default.config outcomes.wrong outcomes.crash interrupted subject run <out | grep report
python3 - <<'P'
import json
lines = [json.loads(line) for line in open("out")]
report = lines[-1]
assert report["best"]["config"]["BM"] == 16, report
assert 1.5 < report["speedup"] < 2.2 or report["speedup"] > 1, report
assert report["speedup_low"] <= report["speedup"] <= report["speedup_high"], report
assert report["time"]["wall_s"] > 0
results = [x for x in lines if x["type"] == "result"]
assert {x["outcome"] for x in results} == {"ok", "wrong", "crash", "compile_error"}
print("checked")
P
