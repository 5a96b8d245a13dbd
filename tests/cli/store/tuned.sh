# SPDX-License-Identifier: MIT
# What a session stored: the key of the subject, each configuration once although some raced.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
cp "$DATA/copy.cl" .
kopt tune copy.cl N=1024 -d fake:0 -q >/dev/null
kopt tune copy.cl N=1024 -d fake:0 -q --fresh >/dev/null
kopt store show copy 2>note | sed 's/20..-..-.. ..:../DATE/; s/  [0-9a-f]\{12\}$/  HASH/' >text
head -4 text
# The rows, without numbers: which of two that took the same time is the first may vary.
tail -n +7 text | cut -c 7-41 | sed 's/ *$//' | sort
cat note
kopt store show copy --json | json_lines config race | sort
echo "--all: $(kopt store show copy --all --json | json_lines config | wc -l), $(kopt store show copy --all --json | json_lines config | sort -u | wc -l) of them different"
kopt store show copy -n 2 --json | json_lines config.BM
# The samples are as many as the result has.
python3 - <<'P'
import json, subprocess
show = [json.loads(x) for x in subprocess.check_output(["kopt", "store", "show", "copy", "--json"]).splitlines()]
for r in show:
    one = json.loads(subprocess.check_output(["kopt", "store", "result", str(r["id"]), "--json"]))
    assert r["samples"] == len(one["times_ns"]) > 0, (r, one)
print("samples")
P
