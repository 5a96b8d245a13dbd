# SPDX-License-Identifier: MIT
# From a table of times to a model, its judgement and its answers.
tiles_csv 200 >data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --model factored --nets 2 --hidden 16 --embed 4 --epochs 30 \
    --batch 16 --rate 0.01 -j 1 >table || exit
head -1 table
wc -l <table
ls
kopt eval m.model data.csv -q | sed 's/[0-9.,]* %/P/g; s/  *[0-9.,]*  *[0-9.,]*  *[0-9.,]*  *[0-9.,]*$/  TIMES/; s/  */ /g'
echo --
kopt predict m.model M=120 N=80 | sed 's/^ *[0-9.]* %/P/'
kopt predict m.model M=100 N=50 kind=s -n 50 --json | json_lines kernel | sort | uniq -c | sed 's/^ *//'
# Whatever the problem, what comes out is valid.
for n in 8 9 17 40 1000; do
    kopt predict m.model M=$n N=$n -n 20 --json -q
done | python3 -c '
import json, sys
n = 0
for line in sys.stdin:
    c = json.loads(line)["config"]
    n += c["BM"] * c["BN"] <= 1024 and c["UNROLL"] == 1
print("valid:", n)'
