# SPDX-License-Identifier: MIT
# Exports keep to the schema: what was measured with checks and without, every failure, an import.
# Where Kernel Tuner is installed, its own copy of the schema has a say, too.
python3 -c 'import jsonschema' 2>/dev/null || { echo "no python3-jsonschema"; exit 77; }
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
kopt tune "$DATA/copy.cl" N=1024 -d fake:0 -q >/dev/null
kopt tune "$DATA/copy.cl" N=2048 -d fake:0 -q --no-check >/dev/null
kopt tune "$DATA/fail.cl" N=1024 -d fake:0 -q >/dev/null 2>&1
kopt store import "$DATA/cache.json" >/dev/null
kopt store export copy N=1024 -o 1.json
kopt store export copy N=2048 -o 2.json
kopt store export fail -o 3.json
kopt store export axpy -o 4.json
python3 - "$DATA/t4_results.schema.json" <<'P'
import collections, importlib.util, json, jsonschema, pathlib, sys
schemas = [json.load(open(sys.argv[1]))]
peer = importlib.util.find_spec("kernel_tuner")
if peer:
    path = pathlib.Path(peer.origin).parent / "schema/T4/1.0.0/results-schema.json"
    schemas.append(json.loads(path.read_text()))
for i in range(1, 5):
    t4 = json.load(open(f"{i}.json"))
    for schema in schemas:
        jsonschema.validate(t4, schema)
    # invalidity, correctness, and of those that are ok whether their outputs were compared
    counts = collections.Counter((r["invalidity"], r["correctness"], r.get("checked")) for r in t4["results"])
    print(i, *(f"{n} {key}" for key, n in sorted(counts.items(), key=str)))
# The schema refuses what is wrong: the validation above can fail.
for broken in ({"results": []}, {**t4, "results": [{"configuration": {}}]}, {**t4, "schema_version": 1}):
    try:
        jsonschema.validate(broken, schemas[0])
        print("accepted:", broken)
    except jsonschema.ValidationError:
        pass
P
