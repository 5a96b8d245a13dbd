# SPDX-License-Identifier: MIT
# A session that is going on, and the same after kill -9.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
: >out
kopt tune "$DATA/slow.cl" N=64 -d fake:0 --json >out 2>err &
pid=$!
for i in $(seq 200); do
    [ "$(grep -c '"result"' out)" -ge 1 ] && break
    sleep 0.05
done
kopt store runs --json | json_lines state
{
    kill -KILL $pid
    wait $pid
} 2>/dev/null
echo "exit $?"
kopt store runs --json | json_lines state
kopt store runs | grep -o killed
