# SPDX-License-Identifier: MIT
# Trees beside the networks: how many is an option, the file says it, and nothing else depends on how it was trained.
tiles_csv 200 >data.csv
# What the file says of the trees that it was trained with, and the trees that it has.
trees() { python3 - "$1" <<'PY'
import json, struct, sys
with open(sys.argv[1], "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
meta = header["__metadata__"]
plan = json.loads(meta["info"])["plan"]
forest = json.loads(meta.get("forest", "{}"))
tensors = [name for name in header if name.startswith("trees")]
print(*(f"{k}={plan[k]}" for k in ("trees", "leaf", "share", "trees_weight")), "weight", forest.get("weight"),
      "trees", [grove[2] for grove in forest.get("groves", [])], "tensors", len(tensors))
PY
}
train() { kopt train data.csv --rules "$DATA/tiles.kopt" --nets 1 --hidden 16 $size --epochs 3 --batch 16 -q "$@"; }
size="--embed 4"
train --model factored -o usual.model >/dev/null && trees usual.model
train --model factored -o none.model --trees 0 >/dev/null && trees none.model
train --model factored -o five.model --trees 5 -j 1 >/dev/null && trees five.model
train --model seq2seq -o other.model >/dev/null && trees other.model
train --model seq2seq -o other.model --trees 2 >/dev/null && trees other.model
# Networks are the same with and without; the number of threads has no influence on the trees.
train --model factored -o again.model --trees 5 -j 3 >/dev/null && cmp five.model again.model && echo same
train --model factored -o again.model --trees 5 --seed 2 >/dev/null
cmp -s five.model again.model || echo other
python3 - <<'PY'
import json, struct
def tensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return {n: data[t["data_offsets"][0]:t["data_offsets"][1]] for n, t in header.items()
            if n != "__metadata__" and n.startswith("net")}
print("networks alike", tensors("none.model") == tensors("five.model") == tensors("usual.model"))
PY
# Judged as any other; the trees see what three epochs do not.
for m in none five usual; do kopt eval $m.model data.csv -q --json >$m.lines || exit; done
python3 - <<'PY'
import json
forced = {}
for m in ("none", "five", "usual"):
    rows = [json.loads(line) for line in open(m + ".lines")]
    model = next(r for r in rows if r.get("name") == "model")
    forced[m] = model["forced"]
    print(m, "problems", model["problems"], "answered", model["answered"], "valid", model["valid"])
print("better with trees", forced["none"] < forced["five"], forced["none"] < forced["usual"])
PY
# A ranker: the same options.
tiles_csv 200 | awk -F, -v OFS=, 'NR > 2 { $6 = 1 } { print }' >data.csv
size=
for n in 0 5; do
    train --model ranker -o r$n.model --trees $n >/dev/null && trees r$n.model
    kopt eval r$n.model data.csv -q --json | json_lines name answered valid | head -2 | tail -1
done
cmp -s <(kopt predict r0.model M=120 N=80 kind=s --top 9) <(kopt predict r5.model M=120 N=80 kind=s --top 9) || echo "they have a say"
for trees in 1025 -1 many; do try kopt train data.csv -o never.model --trees $trees; done
[ -e never.model ] || echo "nothing is written"
