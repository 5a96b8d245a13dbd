# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
on_tty 100 kopt tune "$DATA/slow.cl" N=64 -d fake:0 --no-store --budget 2s -s random >out
# Drawn over itself, and wiped before the report.
grep -o '<R><E>\[K<E>\[1msearching<E>\[0m  [0-9]*/[0-9]*  <E>\[32mbest' out | head -1 | sed 's/[0-9]\+\//N\//'
grep -c '<R><E>\[K<E>\[1mslow<E>\[0m N=64 on Fake device 0' out
