# SPDX-License-Identifier: MIT
# A recorded space is searched without a device; a seed gives one run.
peaks_json A >peaks.json
try kopt tune --replay peaks.json --strategy random --seed 3
kopt tune --replay peaks.json -s random --seed 3 -v >a 2>a.steps
kopt tune --replay peaks.json -s random --seed 3 -v >b 2>b.steps
cmp a b && cmp a.steps b.steps && head -3 a.steps
wc -l <a.steps
# Budgets: evaluations, a share, simulated time.
kopt tune --replay peaks.json -s random --budget 7 | grep '^within\|^ended\|^clock'
kopt tune --replay peaks.json -s exhaustive --budget 100% | grep '^best\|^optimum\|^ended'
kopt tune --replay peaks.json -s random --budget 2s | grep '^ended\|^clock'
# Four compilers overlap.
kopt tune --replay peaks.json -s random --budget 100 -j 4 | grep '^clock'
kopt tune --replay peaks.json -s random --budget 100 | grep '^clock'
# The default strategy finds the best of so few.
kopt tune --replay peaks.json --budget 200 | grep '^optimum'
