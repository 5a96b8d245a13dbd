# SPDX-License-Identifier: MIT
# Rules that come with kopt are found by their name, or by the kernel's.
tiles_csv 200 >data.csv
mkdir -p share/kernels
cp "$DATA/tiles.kopt" share/kernels
small='--model factored -o m.model --nets 1 --hidden 8 --embed 2 --epochs 1'
KOPT_SHARE=share try kopt train data.csv --rules tiles $small -q | grep -c BEST
KOPT_SHARE=share kopt train data.csv --kernel tiles $small 2>&1 >/dev/null | grep 'built in'
KOPT_SHARE=share try kopt train data.csv --kernel tiles --no-rules $small
try kopt train data.csv --no-rules --param BM --param BN --param SPLIT $small -q | grep -c BEST
kopt predict m.model M=64 N=64 kind=s UNROLL=1 --json | json_lines kernel
try kopt train data.csv --rules gone.kopt $small 2>&1 | sed 's/built in: .*ConvAsm1x1U,.*/built in: ../'
KOPT_SHARE=/nonexistent try kopt train data.csv --rules ConvAsm1x1U $small
# Numbers of a device that the rules need.
{
    cat "$DATA/tiles.kopt"
    echo 'require BM*BN <= device.max_threads && 4*BM <= device.shared_bytes'
} >bound.kopt
kopt train data.csv --rules bound.kopt $small -q 2>&1 >/dev/null
