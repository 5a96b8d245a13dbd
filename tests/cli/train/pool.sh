# SPDX-License-Identifier: MIT
# Rows of another kind and of another file help in training; tests and answers are about the data's.
tiles_csv 200 >data.csv
sed -n '3,$s/,s,/,w,/p' data.csv >more && cat more >>data.csv
tiles_csv 221 | sed 's/,s,/,w,/' >other.csv
rules="--rules $DATA/tiles.kopt"
small='--model factored -o m.model --nets 1 --hidden 8 --embed 2 --epochs 2 -j 1'
kopt train data.csv $rules --where kind=s $small 2>&1 >/dev/null | grep -v 'is written'
kopt train data.csv old=other.csv $rules --where kind=s --also kind=w $small 2>&1 >/dev/null | grep -v 'is written'
kopt eval m.model data.csv 2>&1 >/dev/null
kopt eval m.model data.csv --part train 2>&1 >/dev/null | grep -c 'are few'
kopt predict m.model M=96 N=64 >answer
kopt predict m.model M=96 N=64 kind=s source=data | cmp - answer && echo same
kopt predict m.model M=96 N=64 kind=w source=old | cmp -s - answer || echo different
# The other kind is judged by the problems of no training, too.
kopt eval m.model data.csv --where kind=w 2>&1 >/dev/null
kopt eval m.model old=other.csv --where kind=w -q --json | json_lines problems | sort -u
cp m.model before.model
kopt train data.csv old=other.csv $rules --where kind=s --also kind=w $small -q --extra-weight 0.5 >/dev/null
cmp -s m.model before.model || echo 'weights count'
try kopt train data.csv other.csv $rules --also kind=w $small -q
try kopt train data.csv ./data.csv $rules --where kind=s $small -q
try kopt train data.csv x=other.csv x=data.csv $rules --where kind=w $small -q
try kopt train data.csv gone.csv $rules --where kind=s $small -q
try kopt train data.csv other.csv $rules --where kind=s $small -q
try kopt train data.csv other.csv $rules --where kind=w $small -q -o other.csv
try kopt train data.csv other.csv $rules --where kind=w $small -q --extra-weight 2
