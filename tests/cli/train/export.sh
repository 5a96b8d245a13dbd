# SPDX-License-Identifier: MIT
# Models and predictions for other programs: what is written can be read, all of it is valid, and
# after an error nothing has changed.
export KOPT_SHARE=$SOURCE
python3 - >train.txt <<'END'
for i in range(120):
    c, k, s, n = 16 << i % 5, 32 << i % 4, (7, 14, 28, 56)[i // 3 % 4], 1 << i // 7 % 6
    p = f"{c}-{s}-{s}-1x1-{k}-{s}-{s}-{n}-0x0-1x1-1x1-0-NCHW-FP32-{'FB'[i % 2]}"
    v = f"{1 + i % 2},{8 << i // 5 % 3},{2 + i % 3},{16 << i // 11 % 3},1,{1 << i % 2},{1 << i % 3},1"
    print(f"{p}=ConvAsm1x1U:{v}")
END
small='--model factored --nets 1 --hidden 16 --embed 4 --epochs 3 -q'
kopt train train.txt --kernel ConvAsm1x1U -o m.model $small >/dev/null || exit
tiles_csv 60 >data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o tiles.model $small >/dev/null || exit
cp "$SOURCE/tests/data/miopen/perf.db" "$SOURCE/tests/data/miopen/find.fdb.txt" .

echo "-- ONNX"
try kopt export m.model --onnx m.onnx
head -c 2000 m.onnx | grep -c kopt

echo "-- the round trip: each problem's first prediction is the database's, and valid"
try kopt export m.model train.txt --miopen all.txt
sed 's/=.*//' train.txt | LC_ALL=C sort -u >want
sed 's/=.*//' all.txt | diff - want && echo "the same problems"
kopt eval m.model all.txt --part all -q |
    awk '/exact, first 1 / { print "exact", $4, $5 } /valid/ { print "valid", $2, $3 }'
try kopt export m.model all.txt --miopen again.txt && cmp all.txt again.txt

echo "-- problems of SQLite, of a find database, of a table"
try kopt export m.model perf.db --miopen db.txt --where fil_h=1 --where data_type=FP32
sed 's/:.*/:V/' db.txt
try kopt export m.model find.fdb.txt --miopen find.txt --where fil_h=1
{
    echo "# layers"
    echo "in_channels,in_h,in_w,out_channels,batchsize,direction,note"
    echo "64,56,56,256,32,F,first"
    echo "64,56,56,256,32,F,again"
    echo "64,0,56,256,32,F,no size"
    echo "64,56,56,x,32,F,no number"
    echo "64,56,56"
    echo "512,7,7,2048,16,B,last"
} >layers.csv
try kopt export m.model layers.csv --miopen layers.txt --solver Mine
sed 's/:.*/:V/' layers.txt

echo "-- what the model never learned from is left out and counted"
python3 - train.txt >wide.txt <<'END'
import sys
for i, line in enumerate(open(sys.argv[1])):
    if "-F=" in line:  # forward and 3x3 filters alone, of two types
        half = i // 24 % 2
        p, v = line.strip().replace("-1x1-", "-3x3-", 1).split(":")
        print(p.replace("FP32", "FP16") + f":1,{8 << i // 5 % 3},2,16,1,2,1,1" if half else f"{p}:{v}")
END
kopt train wide.txt --kernel ConvAsm1x1U --no-rules --where data_type=FP32 -o f.model $small >/dev/null || exit
try kopt export f.model train.txt --miopen f.txt
sed 's/-1x1-/-3x3-/' train.txt >both.txt
try kopt export f.model both.txt --miopen f.txt
grep -c -- -F= f.txt
grep -c -- -B= f.txt
try kopt export f.model wide.txt --miopen f.txt --where data_type=FP16
cp f.txt before
try kopt export f.model train.txt --miopen f.txt fil_h=3
cmp f.txt before
kopt predict f.model $(echo layout=NCHW data_type=FP16 direction=F spatial_dim=2 in_channels=64 in_h=28 in_w=28 in_d=1 \
    fil_h=3 fil_w=1 fil_d=1 out_channels=256 batchsize=32 pad_h=0 pad_w=0 pad_d=0 conv_stride_h=1 conv_stride_w=1 \
    conv_stride_d=0 dilation_h=1 dilation_w=1 dilation_d=0 bias=0 group_count=1 out_h=28 out_w=28) 2>&1 >/dev/null

echo "-- a column that a table does not have is as in training"
kopt train wide.txt --kernel ConvAsm1x1U --where data_type=FP16 -o half.model $small >/dev/null || exit
echo "in_channels,in_h,in_w,out_channels,batchsize,fil_h,fil_w
64,56,56,256,32,3,3" >table.csv
for how in "" data_type=FP16 "--where data_type=FP16" "--where data_type=FP16 data_type=FP16" "--where data_type=FP32" \
    data_type=FP32 "data_type=FP16 data_type=FP16"; do
    rm -f table.txt
    try kopt export half.model table.csv --miopen table.txt $how
    [ ! -e table.txt ] || sed 's/:.*/:V/' table.txt
done

echo "-- errors"
cp layers.txt before
try kopt export m.model
try kopt export --onnx m.onnx
try kopt export m.model --onnx a --miopen b
try kopt export m.model --miopen layers.txt
try kopt export m.model layers.csv --onnx a
try kopt export m.model --onnx a --width 3
try kopt export m.model layers.csv x --miopen layers.txt
try kopt export m.model gone.csv --miopen layers.txt
try kopt export gone.model layers.csv --miopen layers.txt
try kopt export m.model data.csv --miopen layers.txt
try kopt export m.model layers.csv --miopen layers.txt --where X=1
try kopt export m.model layers.csv --miopen layers.txt --where note=none
try kopt export m.model layers.csv X=1 --miopen layers.txt
try kopt export m.model layers.csv --miopen layers.txt --solver a:b
try kopt export m.model layers.csv --miopen layers.txt --device-limits hats=3
try kopt export tiles.model layers.csv --miopen layers.txt
try kopt export m.model layers.csv --miopen gone/layers.txt 2>&1 | sed 's/[0-9-]*\.tmp/N.tmp/'
try kopt export m.model layers.csv --miopen .
cmp layers.txt before
(
    ulimit -f 1
    try kopt export m.model train.txt --miopen layers.txt
    try kopt export m.model --onnx m.onnx
) 2>&1 | sed 's/[0-9-]*\.tmp/N.tmp/'
cmp layers.txt before
ls
