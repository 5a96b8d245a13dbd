# SPDX-License-Identifier: MIT
peaks_json A >a.json
try kopt compare
try kopt compare a.json --methods random,,bayes
try kopt compare a.json --methods magic
try kopt compare a.json --repeats 0
try kopt compare a.json --until 2
try kopt compare a.json --budget 0
try kopt compare missing.json
try kopt compare a.json --prior missing.json
try kopt compare a.json --traces missing.jsonl
# A prior that there is not.
kopt compare a.json --methods random+prior --repeats 2 2>&1 >/dev/null | grep prior
