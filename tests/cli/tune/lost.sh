# SPDX-License-Identifier: MIT
# The device is unplugged half-way: one line, exit 3, everything measured before it is kept, and
# the same command goes on when it is back.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_FAKE_STATE=$PWD/gone
kopt tune "$DATA/lost.cl" N=64 -d fake:0 -s exhaustive --store s.db --json -q >out 2>err
echo "exit $?"
cat err
known=$(grep -c '"type":"result".*"outcome":"ok"' out)
[ "$known" -ge 1 ] && [ "$known" -lt 12 ] && echo "some were measured"
kopt store list --store s.db --json | json_lines ok | sed "s/ok=$known\$/ok=all of them/"
kopt store runs --store s.db --json | json_lines state
try kopt tune "$DATA/lost.cl" N=64 -d fake:0 --store s.db -q
rm gone
kopt tune "$DATA/lost.cl" N=64 A=1,2,3,4,5,6,7,8,10,11,12 -d fake:0 -s exhaustive --store s.db --json -q | json_lines from_store race >again
echo "$(grep -c 'race=false' again) of 11, taken from the store: $(grep -c 'from_store=true race=false' again)" | sed "s/: $known\$/: all of them/"
