# SPDX-License-Identifier: MIT
# Times inside the strategies, and of all, depend on the machine.
unsteady() { sed -E 's/^(([^ ]+ +)([-0-9.]+ ± [0-9.]+ [ *!]+){2}([0-9.]+ % [ *!]*){4}[0-9.]+ [ *]?) +[0-9.,]+/\1  TIME/; s/in [0-9.]+ m?s$/in TIME/'; }
peaks_json A >a.json
peaks_json B >b.json
kopt compare a.json b.json --methods exhaustive,random --repeats 20 2>&1 | unsteady
