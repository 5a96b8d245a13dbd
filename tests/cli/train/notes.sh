# SPDX-License-Identifier: MIT
# What is odd about the data is said, not hidden.
tiles_csv 200 >data.csv
echo '96,96,s,8,8,one,1,30,ok' >>data.csv
echo '200,200,s,64,8,1,1,,crash' >>data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" --where kind=s -o m.model --model factored --nets 1 --hidden 8 --embed 2 \
    --epochs 2 >/dev/null
