# SPDX-License-Identifier: MIT
# Everything that was tried failed: exit 1.
peaks_json A | sed 's/"time": [0-9.]*, "times": \[[0-9., ]*\]/"time": "RuntimeFailedConfig"/g' >bad.json
try kopt tune --replay bad.json -s exhaustive --budget 12
try kopt compare bad.json
