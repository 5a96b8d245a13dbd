# SPDX-License-Identifier: MIT
peaks_json A >peaks.json
kopt tune --replay peaks.json -s random --seed 3 --budget 5 --json >out
json_lines path format name kernel problem device_name valid outcomes.compile_error optimum \
    random_evaluations budget strategy seed prior left_out cut n config.bx outcome clock_s remaining done best.config \
    best_at near_at ended <out
# Consistent: the report's best is the least of the results.
python3 - <<'P'
import json
items = [json.loads(line) for line in open("out")]
times = [i["median_ns"] for i in items if i["type"] == "result" and i["outcome"] == "ok"]
report = items[-1]
print(report["best"]["median_ns"] == min(times), abs(report["gap"] - (min(times) / report["optimum_ns"] - 1)) < 1e-9,
      sum(report["outcomes"].values()) == report["done"] == 5)
P
# The estimate is made where it is asked for.
kopt tune --replay peaks.json -s random --budget 100 --until 30% --json >out
tail -1 out | json_lines ended
grep -c '"remaining":0' out | sed 's/^[1-9][0-9]*$/estimates were made/'
