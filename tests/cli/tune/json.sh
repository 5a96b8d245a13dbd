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
# 5000 ns and 300 for each of BM: the default has 32, the best 16, and the clock is exact.
assert abs(report["speedup"] - 14600 / 9800) < 1e-9, report
assert report["speedup_low"] <= report["speedup"] <= report["speedup_high"], report
assert sorted(report["tied"]) in (["BM=16,BN=32"], ["BM=16,BN=64"]), report["tied"]
assert report["best"]["race"] and report["best"]["samples"] > 3, report["best"]
assert report["time"]["wall_s"] > 0
results = [x for x in lines if x["type"] == "result"]
assert {x["outcome"] for x in results} == {"ok", "wrong", "crash", "compile_error"}
print("checked")
P
