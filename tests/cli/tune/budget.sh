# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
for b in 5 10% 5,50%; do
    kopt tune "$DATA/slow.cl" N=64 -d fake:0 --no-store -q --json --budget $b | json_lines race >out
    echo "$b: $(grep -c 'result race=false' out)"
done
kopt tune "$DATA/slow.cl" N=64 -d fake:0 --no-store -q --json --budget 1s | json_lines race >out
n=$(grep -c 'result race=false' out)
[ "$n" -gt 3 ] && [ "$n" -lt 400 ] && echo "1s: some"
tail -1 out
