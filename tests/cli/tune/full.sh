# SPDX-License-Identifier: MIT
# No space left for the store: one line, exit 3, nothing lost, and with room it goes on.
export KOPT_FAKE_LIBRARY=$FAKE
(
    ulimit -f 160 # KiB
    kopt tune "$DATA/slow.cl" N=64 A=1,2,3,4,5,6,7,8 -d fake:0 -s exhaustive --store s.db --json -q >out 2>err
    echo "exit $?"
)
cat err
known=$(grep -c '"type":"result".*"outcome":"ok"' out)
[ "$known" -ge 3 ] && [ "$known" -lt 160 ] && echo "some were measured"
kopt store list --store s.db --json | json_lines ok | sed "s/ok=$known\$/ok=all of them/"
kopt tune "$DATA/slow.cl" N=64 A=1,2,3,4,5,6,7,8 -d fake:0 -s exhaustive --store s.db --json -q | json_lines from_store race >again
echo "$(grep -c 'race=false' again) of 160, taken from the store: $(grep -c 'from_store=true race=false' again)" | sed "s/: $known\$/: all of them/"
# ThreadSanitizer, for which there is no room, leaves a file of its own.
ls "$TMPDIR" | grep -v "^tsan\.rodata\." || true
