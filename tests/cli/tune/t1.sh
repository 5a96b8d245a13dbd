# SPDX-License-Identifier: MIT
# A T1 file in Kernel Tuner's dialect: its space, launch, fills and references are used, its own
# search and budget are not, which one line says.
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/scale.json" -d fake:0 --store s.db --json >out 2>err
echo "exit $?"
grep warning err
json_lines kernel problem candidates valid <out | grep ^start
json_lines outcomes.ok outcomes.wrong best.config.tile default.config checked done <out | grep ^report
kopt store failures scale --store s.db --json | json_lines outcome count
# The problem's size is the file's, or another one.
kopt tune "$DATA/scale.json" problem_size_x=2000 mode=0 -d fake:0 --no-store -b 3 -q --json 2>/dev/null | json_lines problem done outcomes.ok | grep '^start\|^report'
# One with neither of the two has nothing to warn of.
cp "$DATA/scale.cl" .
grep -v '"Search"\|"Budget"' "$DATA/scale.json" >plain.json
kopt tune plain.json -d fake:0 --store s.db -b 3 2>&1 >/dev/null | grep -c warning
# The store knows the results: what is measured has not changed.
kopt tune plain.json -d fake:0 --store s.db --json -q | json_lines from_store race | grep -c 'from_store=false race=false'
true
