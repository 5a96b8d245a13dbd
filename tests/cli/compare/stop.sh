# SPDX-License-Identifier: MIT
# Ctrl-C ends with what was done.
peaks_json A >a.json
kopt compare a.json --methods random,bayes --repeats 100000 -j 1 >out 2>err &
pid=$!
sleep 2
kill -INT $pid
wait $pid
echo "exit $?"
grep -c '^random\|^bayes' out
sed -E 's/[0-9,]+ of 200,000/N of 200,000/; s/^kopt: [0-9,]+ runs in .*/kopt: N runs in TIME/; /^kopt: [0-9,]+\/200,000/d' err
