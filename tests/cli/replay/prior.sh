# SPDX-License-Identifier: MIT
# What was best on another device is tried first.
peaks_json A >a.json
peaks_json B >b.json
kopt tune --replay b.json -s exhaustive -b 100% --json | tail -1 | json_lines best.config
kopt tune --replay a.json --prior b.json --json --budget 3 | json_lines n config prior prior_results
kopt tune --replay a.json --prior b.json --prior-first 1 -s random --budget 2 | grep '^prior\|^ended'
kopt tune --replay a.json --prior none -s random --budget 2 | grep '^prior\|^ended'
# Another kernel's results are no prior.
try kopt tune --replay a.json --prior "$DATA/cache.json"
