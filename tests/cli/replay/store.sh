# SPDX-License-Identifier: MIT
# A store is a recording, too: one of its subjects.
export KOPT_STORE=s.db
peaks_json A >a.json
peaks_json B >b.json
kopt store import a.json >/dev/null
kopt tune --replay s.db -s exhaustive -b 100% | grep '^best\|^optimum\|^ended'
kopt store import b.json >/dev/null
try kopt tune --replay s.db -s exhaustive -b 100%
kopt tune --replay 's.db#2' -s exhaustive -b 100% --json | json_lines format kernel device_name valid done | grep -v result
try kopt tune --replay 's.db#7'
# The same searches as of the file.
kopt tune --replay 's.db#1' -s random --seed 5 -b 60 --json | json_lines config median_ns >from_store
kopt tune --replay a.json -s random --seed 5 -b 60 --json | json_lines config median_ns >from_file
cmp from_store from_file && grep -c '^result' from_store
