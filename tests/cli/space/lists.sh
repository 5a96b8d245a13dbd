# SPDX-License-Identifier: MIT
kopt space "$DATA/plain.cl" --count
kopt space "$DATA/plain.cl" --list
echo --
kopt space "$DATA/plain.cl" -l -n 2
kopt space "$DATA/plain.cl" BN=2,3 --list
echo --
kopt space "$DATA/plain.cl" --list --json -n 2 | json_lines rank config
kopt space "$DATA/plain.cl" --count --json | json_lines candidates valid
