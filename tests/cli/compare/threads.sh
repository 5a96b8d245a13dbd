# SPDX-License-Identifier: MIT
# The figures do not depend on the threads.
peaks_json A >a.json
peaks_json B >b.json
for n in 1 3; do
    kopt compare a.json b.json --methods genetic,random+prior,bayes --repeats 3 -j $n --json -q |
        sed -E 's/"(wall_s|search_s|worst_search_s)":[-+0-9.e]+/"\1":0/g' >$n
done
cmp 1 3 && grep -c '"score"' 1 | sed 's/^[1-9][0-9]*$/scores/'
