# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
# Ctrl-C: exit 130, everything kept, the same command goes on.
: >out
kopt tune "$DATA/slow.cl" N=64 -d fake:0 -s exhaustive --store s.db --json -b 200 >out 2>err &
pid=$!
for i in $(seq 200); do
    [ "$(grep -c '"result"' out)" -ge 10 ] && break
    sleep 0.05
done
kill -INT $pid
wait $pid
echo "exit $?"
tail -1 out | json_lines interrupted
grep -v valid err
n=$(grep -c '"result"' out)
kopt tune "$DATA/slow.cl" N=64 -d fake:0 --store s.db --json -q -s exhaustive -b 200 | json_lines from_store race >again
known=$(grep -c 'from_store=true race=false' again)
[ "$known" -ge 10 ] && [ "$known" -le "$n" ] && echo "went on"
grep -c 'race=false' again
# As text: no race was run, and no speed-up is known.
: >err
kopt tune "$DATA/slow.cl" N=64 -d fake:0 -s exhaustive --no-store -v >out 2>err &
pid=$!
for i in $(seq 200); do
    [ "$(grep -c '^ok' err)" -ge 10 ] && break
    sleep 0.05
done
kill -INT $pid
wait $pid
grep speed-up out
kopt store runs --store s.db --json | json_lines state | sort
ls "$TMPDIR"
