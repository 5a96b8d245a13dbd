# SPDX-License-Identifier: MIT
# What held the clocks down while the final race was measured, and that somebody had set them.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
cp "$DATA/copy.cl" .
KOPT_FAKE_THROTTLE=1094 kopt tune copy.cl N=1024 -d fake:0 -q >/dev/null
kopt store show copy -n 1 | tail -1 | sed 's/.*final/final/'
id=$(kopt store show copy -n 1 --json | json_lines id | sed 's/[^0-9]//g')
kopt store result "$id" | grep -A1 temperature
kopt store result "$id" --json | json_lines throttle
KOPT_FAKE_THROTTLE=2 kopt tune copy.cl N=2048 -d fake:0 -q >/dev/null
kopt store show copy N=2048 -n 1 | tail -1 | sed 's/.*final/final/'
KOPT_FAKE_FAIL=sensors kopt tune copy.cl N=4096 -d fake:0 -q >/dev/null
kopt store show copy N=4096 -n 1 --json | json_lines throttle
