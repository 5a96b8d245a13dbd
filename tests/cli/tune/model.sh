# SPDX-License-Identifier: MIT
# A model is trained, and what it predicts is measured behind the default; then the search goes on.
export KOPT_FAKE_LIBRARY=$FAKE
tiles_csv 200 >data.csv
kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --model factored --nets 1 --hidden 16 --embed 4 --epochs 30 \
    --batch 16 --rate 0.01 -j 1 -q >/dev/null || exit
common="-d fake:0 --no-flush --no-check --samples 2 -j 1"
tiles="$DATA/tiles.cl M=120 N=80"

echo "-- the screen"
kopt tune $tiles $common --no-store --model m.model --model-top 20 2>&1 |
    sed -n 's/prediction [0-9]* of/prediction N of/; /predict/p'
kopt tune $tiles $common --no-store --model m.model --model-top 2 BM=8,16 2>&1 |
    sed -n 's/([0-9]* more/(N more/; /predictions of/p'
kopt tune $tiles $common --no-store --model m.model --budget 12 2>&1 | sed -n 's/.*, \([0-9]* predictions\) of.*/\1/p'
kopt tune $tiles $common --no-store --model m.model --budget 12 --json -q | json_lines predictions | grep start
sed 's/problem M N/problem N M/' "$DATA/tiles.cl" >turned.cl # sizes as they are declared
kopt tune turned.cl M=120 N=80 $common --no-store --budget 2 2>&1 | grep ' on Fake'
echo "-- the order: the default, then as kopt predict says, then the rest, each once"
kopt predict m.model M=120 N=80 --top 5 --json >predicted
kopt tune $tiles $common --store s.db --model m.model --model-top 5 --json -q >tuned
python3 - <<'P'
import json
predicted = [json.loads(l)["config"] for l in open("predicted")]
lines = [json.loads(l) for l in open("tuned")]
start, report = lines[0], lines[-1]
results = [l["config"] for l in lines if l["type"] == "result"]
default = report["default"]["config"]
assert results[0] == default == {"BM": 8, "BN": 8, "SPLIT": 1, "UNROLL": 1}, results[0]
assert results[1:6] == predicted, (results[:6], predicted)
assert len(results) == start["valid"] == len({json.dumps(r) for r in results}) == 26
assert (start["model"], start["predictions"], start["predictions_dropped"]) == ("m.model", 5, 0), start
# The fake kernel's best is 40000 - 400*32 + 100*8 ns, the data's 40000 - 400*32 + 100*16.
assert report["best"]["median_ns"] == 28000, report["best"]
assert predicted[0]["BM"] == 32 and predicted[0]["BN"] == 16, predicted[0]
assert report["predicted"]["config"] == predicted[0]
assert abs(report["predicted_share"] - 28000 / 28800) < 1e-9, report["predicted_share"]
best = report["best"]["config"]
rank = predicted.index(best) + 1 if best in predicted else 0
assert (report["best_from"], report["best_rank"]) == ("model" if rank else "search", rank), report
P
kopt store runs --store s.db --json | python3 -c '
import json, sys
run = json.loads(sys.stdin.readline())
print("--model m.model" in run["command"], run["summary"]["model"]["predictions"])'
echo "-- again: nothing is measured"
kopt tune $tiles $common --store s.db --model m.model --model-top 5 --json -q | json_lines done from_store | grep report
echo "-- each name once"
try kopt train s.db --rules "$DATA/tiles.cl" --where gone=1 -o gone.model
echo "-- no model"
kopt tune $tiles $common --store s.db --json -q | json_lines predicted best_rank predicted_share best_from | grep report
echo "-- what it never saw"
kopt tune "$DATA/tiles.cl" M=400 N=80 $common --no-store --model m.model --model-top 2 2>&1 | grep outside
echo "-- what does not fit"
head -c 500 m.model >cut.model
sed 's/kernel  tiles/kernel  stones/; s/void tiles/void stones/' "$DATA/tiles.cl" >stones.cl
sed 's/UNROLL {1}/UNROLL {2,4}/; s/UNROLL=1/UNROLL=2/' "$DATA/tiles.cl" >unrolled.cl
try kopt tune $tiles $common --no-store --model gone.model
try kopt tune $tiles $common --no-store --model cut.model | sed 's/[0-9]\+ bytes, [0-9]\+ are/N bytes, M are/'
try kopt tune $tiles $common --no-store --model data.csv
try kopt tune stones.cl M=120 N=80 $common --no-store --model m.model
try kopt tune unrolled.cl M=120 N=80 $common --no-store --model m.model
try kopt tune $tiles $common --no-store --model-top 3
try kopt tune $tiles $common --no-store --model m.model --model-top 0
