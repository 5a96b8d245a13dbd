# SPDX-License-Identifier: MIT
# The same for a seed, another for another; only valid ones.
kopt space "$DATA/plain.cl" --sample 200 --seed 7 >a
kopt space "$DATA/plain.cl" --sample 200 --seed 7 >b
kopt space "$DATA/plain.cl" --sample 200 --seed 8 >c
cmp a b && ! cmp -s a c && echo deterministic
kopt space "$DATA/plain.cl" --list | sort >valid
sort -u a | comm -23 - valid
sort -u a | wc -l
kopt space "$DATA/plain.cl" --sample 2 --json | json_lines | sort -u
