# SPDX-License-Identifier: MIT
# Bad data, bad options, bad models, bad questions: a clear line, and nothing is written.
tiles_csv 200 >data.csv
tiles_csv 10 | head -12 >ten.csv
cp "$SOURCE/tests/data/miopen/perf.db" .
head -c 2000 perf.db >cut.db
head -c 3000 /dev/zero >zero.bin
: >empty.csv
printf 'X,BM,BN,SPLIT,UNROLL\n1,8,8,1,1\n' >foreign.csv
printf 'M,N,kind,BM,BN,SPLIT,UNROLL\n64,64,s,8,8,1,1\n' >one.csv
awk -F, 'NR < 3 { print } NR > 2 { $1 = 64; $2 = 64; OFS = ","; print }' data.csv >alike.csv
sed 's/^require BM <= M.*/require BM > M + N/' "$DATA/tiles.kopt" >none.kopt
rules="--rules $DATA/tiles.kopt"
small='-o m.model --nets 1 --hidden 8 --epochs 2 -q'
for data in ten.csv cut.db zero.bin empty.csv foreign.csv one.csv alike.csv gone.csv; do
    try kopt train $data $rules $small
done
try kopt train perf.db --kernel gone $small
try kopt train perf.db --kernel ConvAsm1x1U $small
try kopt train data.csv $small
try kopt train data.csv $rules $small --where kind=x
try kopt train data.csv $rules $small --where kind
try kopt train data.csv $rules $small --rate 1e30
try kopt train data.csv $rules $small --hidden 7
try kopt train data.csv $rules $small --model oracle
try kopt train data.csv $rules $small --fold 10
try kopt train data.csv $rules $small --group 'min('
try kopt train data.csv $rules $small --group 'X+1'
try kopt train data.csv $rules $small -o gone/m.model
try kopt train data.csv $rules $small --device-limits max_threads=0
try kopt train data.csv $rules $small -o ./data.csv
try kopt train data.csv $rules
try kopt train $rules $small
ls m.model* 2>&1
try kopt train data.csv --rules none.kopt -o none.model --nets 1 --hidden 8 --epochs 2 -q
try kopt train one.csv $rules $small --kernel gemm
kopt train data.csv $rules $small >/dev/null
head -c 300 m.model >cut.model
for model in cut.model data.csv empty.csv gone.model; do
    try kopt predict $model M=64 N=64 | sed 's/has [0-9]* bytes/has N bytes/' # the log of training is in it
done
try kopt predict m.model M=64
try kopt predict m.model M=64 N=-64
try kopt predict m.model M=64 N=64 N=32
try kopt predict m.model M=64 N=64 Q=1
try kopt predict m.model M=x N=64
try kopt predict m.model M=4 N=64
try kopt predict m.model M=64 N=64 --top 9 --width 4
try kopt predict m.model M=64 N=64 --device-limits max_threads=many
try kopt predict
try kopt eval m.model foreign.csv
try kopt eval m.model data.csv --where kind=x
try kopt eval m.model one.csv
try kopt eval cut.model data.csv | sed 's/has [0-9]* bytes/has N bytes/'
try kopt eval m.model
