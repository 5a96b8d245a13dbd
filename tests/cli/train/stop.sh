# SPDX-License-Identifier: MIT
# Stopped by a signal and gone on, a training gives the same model as in one go.
tiles_csv 40 >data.csv
train=(kopt train data.csv --rules "$DATA/tiles.kopt" --model factored --nets 2 --hidden 16 --embed 4 --epochs 400
    --patience 400 --repeat 1 --batch 16 --json)
"${train[@]}" -o whole.model -q >whole || exit
# In its second network; it cannot end before it is stopped: nobody reads what it writes, and a pipe holds less.
mkfifo pipe
stop() {
    "${train[@]}" "$@" >pipe 2>notes &
    pid=$!
    exec 3<pipe
    for ((i = 0; i < ${lines:-405}; i++)); do read -r line <&3; done
    kill -INT $pid
    cat <&3 >lines
    wait $pid
    echo "exit $?"
}
stop -o m.model
cp m.model m.first
lines=50 stop -o m.model --resume
tail -1 notes
cmp -s m.first m.model || echo "of the same training, and newer"
rm m.first
tail -1 lines | json_lines interrupted file
grep -v '^$' notes | tail -2
ls
kopt predict m.model M=100 N=50 >/dev/null && echo "what was learned can be asked"
"${train[@]}" -o m.model --resume --seed 2 -q >lines
echo "exit $?"
"${train[@]}" -o m.model --resume --trees 5 -q >lines
echo "exit $?"
"${train[@]}" -o m.model --resume 2>&1 >lines | grep -c 'going on from m.model.partial, behind epoch'
cmp whole.model m.model && ls
# In the end all networks are listed, those of before and the best epochs of before, too.
networks() { tail -1 "$1" | sed 's/.*"networks"//'; }
networks whole | grep -o '"net":' | wc -l
cmp <(networks whole) <(networks lines) && echo "the same networks"
printf x >m.model.partial
"${train[@]}" -o m.model --resume -q >lines
echo "exit $?"
# What is not whole replaces nothing that was there.
echo "a good model" >good.model
stop -o good.model
tail -1 notes
cat good.model
stop -o good.model 2>&1
head -1 notes
lines=50 stop -o good.model --resume
tail -1 notes
tail -1 lines | grep -o '"net":[0-9]*'
rm good.model.partial
for file in good.model new.model; do
    "${train[@]}" -o $file -q --rate 30000 2>&1 >/dev/null | grep error
done
cat good.model
ls good.model*
kopt predict good.model.lastgood M=100 N=50 >/dev/null && rm good.model.lastgood
kopt predict new.model M=100 N=50 >/dev/null && echo "the last good values can be asked"
ls *.partial
rm m.model.partial
"${train[@]}" -o m.model --resume 2>&1 >lines | head -1
cmp whole.model m.model
grep -aq '"trees0.nodes"' m.model && echo "with trees"
