# SPDX-License-Identifier: MIT
# A comparison says how far it is; Ctrl-C ends it with what was done.
peaks_json A >a.json
on_tty 100 timeout --foreground -s INT 4 kopt compare a.json --methods random --repeats 500000 -j 1 >out
grep -o '<R><E>\[K[0-9,]*/500,000 runs  [0-9:]* left' out | head -1 | sed 's/[0-9,:]\+\/500,/N\/500,/; s/[0-9:]\+ left/N left/'
grep -c 'interrupted: [0-9,]* of 500,000 runs were made' out
grep -c '^<E>\[2mMETHOD\|^random' out
