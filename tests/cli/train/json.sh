# SPDX-License-Identifier: MIT
tiles_csv 200 >data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --nets 2 --hidden 16 --embed 4 --epochs 3 -q \
    --batch 16 --json >lines || exit
json_lines source kernel network rows left_out skipped unlisted train valid test all_failed examples constant \
    canonical fields parameters numbers resumed net nets epoch epochs best_epoch interrupted file networks.1.net \
    networks.1.epochs <lines | sed 's/best_epoch=[0-9]*/best_epoch=N/'
kopt eval m.model data.csv --json -q >lines || exit
json_lines name part source same_data known problems answered timed <lines
json_lines name valid <lines | grep '"model"'
json_lines name forced <lines | grep -c null
kopt eval m.model data.csv --part all --where M=16 --json -q | json_lines problems left_out same_data
