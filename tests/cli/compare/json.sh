# SPDX-License-Identifier: MIT
peaks_json A >a.json
peaks_json B >b.json
kopt compare a.json b.json --methods random,exhaustive,random+prior --repeats 6 --until 5% --json >out
json_lines name budget method foreign space runs prior_results spaces_below_random repeats interrupted <out
python3 - <<'P'
import json
items = [json.loads(line) for line in open("out")]
scores = [i for i in items if i["type"] == "score"]
for i in scores:
    for axis in ("by_evaluations", "by_time"):
        curve = i[axis]
        assert all(len(curve[k]) == 100 for k in ("mean", "low", "median", "high"))
        # It may grow when the first success is worse than the median, which is taken until then.
        assert all(a >= b - 1e-12 for a, b in zip(curve["median"][20:], curve["median"][21:])), "a best so far never grows"
        assert all(lo <= m <= hi for lo, m, hi in zip(curve["low"], curve["median"], curve["high"]))
    assert abs(i["by_evaluations"]["mean"][-1] - i["gap"]) < 1e-5, (i["by_evaluations"]["mean"][-1], i["gap"])
    assert i["stop"]["evaluations"] <= i["evaluations"]
for t in (i for i in items if i["type"] == "total"):
    mine = [s["score"] for s in scores if s["method"] == t["method"]]
    assert abs(sum(mine) / len(mine) - t["score"]) < 1e-9
    assert all(c["count"] > 0 for c in t["calibration"])
random = {i["space"]: i["score"] for i in scores if i["method"] == "random"}
assert all(i["below_random"] == (i["score"] < random[i["space"]]) for i in scores)
print(len(scores), "scores are consistent")
P
