# SPDX-License-Identifier: MIT
# Values that are unlike what a model learned from are named; the answers come all the same.
tiles_csv 200 >data.csv
sed -n '3,$s/,s,/,w,/p' data.csv >more && cat more >>data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --model factored --nets 1 --hidden 8 --embed 2 --epochs 2 -q >/dev/null
ask() { echo "$*"; kopt predict m.model "$@" 2>&1 >/dev/null; }
ask M=64 N=64
ask M=64 N=65 kind=w -n 2
ask M=1000000 N=64
ask M=1000000 N=8.5 kind=FP8
ask M=1000000 N=64 -q
kopt predict m.model M=1000000 N=64 kind=FP8 -n 2 --json -q | json_lines place outside
kopt predict m.model M=64 N=64 --json | json_lines place outside
# The models that come with kopt know their ranges.
KOPT_SHARE=$SOURCE kopt predict gemm M=1000000 N=4096 K=4096 2>&1 >/dev/null
