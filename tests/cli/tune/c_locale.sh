# SPDX-License-Identifier: MIT
# Names in UTF-8 in a C locale: path, source, message, store and JSON keep every byte.
export KOPT_FAKE_LIBRARY=$FAKE LC_ALL=C
mkdir -p "größe/漢字"
cd "größe/漢字" || exit
sed 's/"no such type"/"kein Typ größe"/; s/a tile must fit/eine Kachel muß passen/' "$DATA/copy.cl" >"kernel µ.cl"
echo '// µs, 漢字' >>"kernel µ.cl"
kopt tune "kernel µ.cl" N=1024 -d fake:0 --store "größe.db" --json -q >out || exit
python3 - <<'P'
import json
lines = [json.loads(x) for x in open("out", encoding="utf-8")]
assert lines[0]["store"] == "größe.db", lines[0]
assert [x["message"] for x in lines if x.get("outcome") == "compile_error"] == ["kein Typ größe"]
P
kopt store list --store "größe.db" --json | json_lines kernel_path results
kopt store failures copy --store "größe.db" | grep Typ
kopt -q store show copy --store "größe.db" | sed -n 's/  [0-9a-f]\{12\}$//; 2p'
kopt store runs --store "größe.db" --json | json_lines command
# The same file is the same kernel from another folder, and in another locale.
cd ..
LC_ALL=C.UTF-8 kopt tune "漢字/kernel µ.cl" N=1024 -d fake:0 --store "漢字/größe.db" --json -q | json_lines from_store race | grep -c from_store=false
kopt store export copy --store "漢字/größe.db" -o "µ.json" && python3 -c "
import json
print(len(json.load(open('µ.json', encoding='utf-8'))['results']))" 2>/dev/null || echo "no export"
# An error in it has its place and its line.
sed 's/BM \* BN/BM * BÖ/' "漢字/kernel µ.cl" >"µ falsch.cl"
try kopt tune "µ falsch.cl" N=64 -d fake:0 --no-store
