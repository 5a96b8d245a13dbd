# SPDX-License-Identifier: MIT
# Runs of another tuner are judged beside; the best configuration at once is a score of 1.
peaks_json A >a.json
best=$(kopt tune --replay a.json -s exhaustive -b 100% --json | tail -1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["best"]["median_ns"])')
{
    echo '{"space":"a","method":"lucky","seed":1,"times_ns":['$best'],"costs_s":[0.2]}'
    echo '{"space":"a","method":"lucky","seed":2,"times_ns":[null,'$best'],"costs_s":[0.2,0.2]}'
} >t.jsonl
kopt compare a.json --methods random --repeats 5 --traces t.jsonl --json -q | json_lines method foreign runs hits gap | grep -v random
echo '{"space":"nowhere","method":"lucky","seed":1,"times_ns":[5]}' >other.jsonl
try kopt compare a.json --traces other.jsonl
echo '{"space":"a","method":"lucky","seed":1,"times_ns":[5' >cut.jsonl
try kopt compare a.json --traces cut.jsonl
