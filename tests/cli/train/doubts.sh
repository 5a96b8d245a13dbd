# SPDX-License-Identifier: MIT
# What a training would do in silence, and a judgement hide, is said.
tiles_csv 200 >data.csv
rules="--rules $DATA/tiles.kopt"
small='--model factored -o m.model --nets 1 --hidden 8 --embed 2 --epochs 1'
notes() { "$@" 2>&1 >/dev/null | grep -v 'numbers from\|is written\|parameters without\|values\? only\|configurations are'; }

echo "-- no column is a time"
sed 's/,time_us,/,time,/' data.csv >time.csv
notes kopt train time.csv $rules $small
kopt train time.csv $rules $small --json -q | json_lines untimed | head -1
kopt train data.csv $rules $small --json -q | json_lines untimed checked forbidden | head -1
sed '2s/time_us/US/; 2s/$/,a column whose name is long enough to be cut,another one that is long enough for it,a third column/
    3,$s/$/,1,2,3/' data.csv >US.csv
notes kopt train US.csv $rules $small --where kind=s
printf '2s/time_us/\033[31mtime/' | sed -f - data.csv >red.csv
notes kopt train red.csv $rules $small | tail -1
sed 's/,ok$/,crash/' data.csv >crash.csv
try kopt train crash.csv $rules $small -q

echo "-- the rules forbid what was best"
sed 's/^require BM <= M.*/require BM > M + N/' "$DATA/tiles.kopt" >none.kopt
sed 's/^require BM <= M.*/require BM < 32 : "small tiles"/' "$DATA/tiles.kopt" >some.kopt
sed 's/^param BN .*/param BN {64}/' "$DATA/tiles.kopt" >other.kopt
rm -f m.model
try kopt train data.csv --rules none.kopt $small
try kopt train data.csv --rules other.kopt $small -q
ls m.model 2>&1
notes kopt train data.csv --rules some.kopt $small
kopt train data.csv --rules some.kopt $small --json -q | json_lines checked forbidden | head -1
# Of a device that is not known they may allow it all the same.
sed 's/^require BM <= M.*/require device.cc >= 80/' "$DATA/tiles.kopt" >new.kopt
notes kopt train data.csv --rules new.kopt $small
notes kopt train data.csv --rules new.kopt $small --device-limits cc=90
try kopt train data.csv --rules new.kopt $small --device-limits cc=70

echo "-- rules of another kernel than the one that is asked for, where the data names none"
try kopt train data.csv $rules --kernel gemm $small
kopt train data.csv $rules --kernel tiles $small -q >/dev/null && echo "the same name"

echo "-- the line of the first row that cannot be used"
awk 'NR == 5 || NR == 9 { print $0 ",1"; next } { print }' data.csv >long.csv
notes kopt train long.csv $rules $small
notes kopt train data.csv long.csv $rules $small --where kind=s

echo "-- options that a kind of network does not have"
for o in "--model ranker --embed 16" "--model ranker --cell gru" "--model ranker --smoothing 0.1" "--model ranker --near-best 0" \
    "--model ranker --repeat 2" "--model factored --cell gru" "--model factored --score additive" "--model seq2seq --score additive" \
    "--model hybrid2 --layers 2" "--repeat 2"; do
    try kopt train data.csv $rules -o never.model --nets 1 --hidden 8 --epochs 1 -q $o
done
kopt train data.csv $rules -o m.model --nets 1 --hidden 8 --epochs 1 -q --model ranker --layers 2 --dropout 0 >/dev/null && echo fine
ls never.model 2>&1

echo "-- few problems"
tiles_csv 30 >few.csv
notes kopt train few.csv $rules $small
notes kopt eval m.model few.csv | head -1

echo "-- predictions that nobody measured"
awk -F, 'NR < 3 || $4 == 8 && $5 == 8' data.csv >sparse.csv
kopt train data.csv $rules $small -q >/dev/null
notes kopt eval m.model sparse.csv
kopt eval m.model sparse.csv --json -q | json_lines name timed unmeasured | grep '"model"\|name=model'
kopt eval m.model data.csv --json -q | json_lines name unmeasured | grep '"majority"\|name=majority'
