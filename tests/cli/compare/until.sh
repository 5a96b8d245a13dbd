# SPDX-License-Identifier: MIT
# What --until would have come to, and how good its estimates are.
peaks_json A >a.json
kopt compare a.json --methods random --repeats 10 --until 5% -q >out
grep -c '^stopping at 5.0 %\|^estimates\|^METHOD' out
kopt compare a.json --methods random --repeats 10 -q | grep -c stopping
true
