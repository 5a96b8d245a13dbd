# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
# The second Ctrl-C does not wait for anything.
: >out
kopt tune "$DATA/slow.cl" N=64 -d fake:0 --store s.db --json >out 2>err &
pid=$!
for i in $(seq 200); do
    [ "$(grep -c '"result"' out)" -ge 3 ] && break
    sleep 0.05
done
kill -INT $pid
kill -INT $pid
wait $pid
echo "exit $?"
[ "$(kopt store list --store s.db --json | json_lines results | tr -dc 0-9)" -ge 3 ] && echo kept
