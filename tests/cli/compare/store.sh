# SPDX-License-Identifier: MIT
# A store stands for all of its subjects that have results, #2 for one of them.
export KOPT_STORE=s.db
peaks_json A >a.json
peaks_json B >b.json
kopt store import a.json b.json >/dev/null
kopt compare s.db --methods random --repeats 2 --json -q | json_lines path name method runs
kopt compare 's.db#2' --methods random --repeats 2 --json -q | json_lines path name method runs
