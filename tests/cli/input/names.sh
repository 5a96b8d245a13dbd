# SPDX-License-Identifier: MIT
# The end of a rules file's name: what it says of itself under another one.
tiles_csv 200 >data.csv
small='-o m.model --model factored --nets 1 --hidden 8 --embed 2 --epochs 1 -q'
for f in rules.kopt rules.txt rules rules.py rules.json; do
    cp "$DATA/tiles.kopt" $f
    try kopt train data.csv --rules $f $small | sed '/NETWORK/,/^ *1 /d'
    try kopt space $f M=64 N=64 --count
done
# What is no rules says what it lacks.
printf 'def param(x):\n    return {x}\n' >else.py
printf 'kernel void k() { }\nparam = 3;\n' >else.cl
try kopt space else.py
try kopt space else.cl
