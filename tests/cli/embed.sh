# SPDX-License-Identifier: MIT
# examples/embed.c, a program that knows the public headers alone: tunes, then selects.
export KOPT_FAKE_LIBRARY=$FAKE
embed=$(dirname "$LIBKOPT")/../examples/embed
$embed "$DATA/copy.cl" fake:0 N=1024 >one || exit
head -1 one
grep -c 'no such type' one
tail -3 one | sed 's/best BM=16,BN=\(32\|64\): [0-9.]* us, [0-9.]* times/best BM=16: T us, R times/; s/"BN":\(32\|64\)/"BN":N/'
# The second run is served by the store: not one result more.
count() { kopt store list --store embed.kopt.db --json | json_lines results; }
before=$(count)
$embed "$DATA/copy.cl" fake:0 N=1024 >two || exit
[ "$(count)" = "$before" ] && echo "$before" | sed 's/results=[1-9][0-9]*/nothing measured again/'
kopt store runs --store embed.kopt.db --json | json_lines state
$embed "$DATA/copy.cl" fake:0 && exit 9
$embed missing.cl fake:0 && exit 9
true
