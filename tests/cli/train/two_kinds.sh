# SPDX-License-Identifier: MIT
# Networks of two kinds in one model: trained, stopped in the second kind and gone on, asked, exported.
tiles_csv 40 >data.csv
train=(kopt train data.csv --rules "$DATA/tiles.kopt" --model factored+seq2seq --nets 3 --epochs 60 --patience 60 --repeat 1
    --batch 16 --json)
"${train[@]}" -o whole.model -q >whole || exit
head -1 whole | json_lines network
mkfifo pipe
"${train[@]}" -o m.model >pipe 2>/dev/null &
pid=$!
exec 3<pipe
for ((i = 0; i < 130; i++)); do read -r line <&3; done
kill -INT $pid
cat <&3 >lines
wait $pid
echo "exit $?"
"${train[@]}" -o m.model --resume -q >lines
cmp whole.model m.model && echo "the same in one go"
kopt predict m.model M=100 N=50 --json | json_lines place | head -1
kopt eval m.model data.csv --part all --json | head -1 | json_lines network
kopt export m.model --onnx m.onnx && test -s m.onnx
echo "-- what does not go together"
for model in factored+ +factored factored+oracle factored+ranker factored+factored; do
    try kopt train data.csv --rules "$DATA/tiles.kopt" --model $model -o x.model
done
try kopt train data.csv --rules "$DATA/tiles.kopt" --model factored+seq2seq --nets 1 -o x.model
try kopt train data.csv --rules "$DATA/tiles.kopt" --model factored+seq2seq --hidden 8 -o x.model
test -e x.model || echo "nothing is written"
