# SPDX-License-Identifier: MIT
# docs/json.md names every type and member that the commands print.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
{
    kopt devices --json
    kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=512 --json
    kopt space "$DATA/plain.cl" --list --json
    kopt space "$DATA/plain.cl" --count --json
    kopt space "$DATA/plain.cl" --check BM=1,BN=3 --json
    kopt tune "$DATA/copy.cl" N=64 -d fake:0 --json -q
    kopt store import "$DATA/cache.json" "$DATA/cache_other.json" --json
    kopt store list --json
    kopt store show axpy --all --json
    kopt store result 1 --json
    kopt store best copy --json
    kopt store best axpy x=7 --json
    kopt store failures copy --json
    kopt store runs --json
    kopt store compare 2 3 --json
    tiles_csv 200 >data.csv
    kopt train data.csv --rules "$DATA/tiles.kopt" -o m.model --nets 1 --hidden 8 --epochs 1 --json
    kopt eval m.model data.csv --json --problems
    kopt predict m.model M=64 N=64 --json
    peaks_json A >peaks.json
    kopt tune --replay peaks.json --budget 20 --until 1% --json
    kopt compare peaks.json --methods random --repeats 2 --until 1% --json
    kopt version --json
} >all 2>/dev/null
json_lines <all | sort -u >types
python3 - "$SOURCE/docs/json.md" <<'P'
import json, re, sys
named = set(re.findall(r"`([a-z0-9_]+)`", open(sys.argv[1]).read()))
types = set(re.findall(r"^\| `([a-z]+)` \|", open(sys.argv[1]).read(), re.M))
FREE = {"problem", "config", "summary"}  # their members are the user's, or the session's own

def walk(value, where):
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key not in named:
            print(f"docs/json.md does not name {where}.{key}")
        if key not in FREE:
            for part in inner if isinstance(inner, list) else [inner]:
                walk(part, f"{where}.{key}")

seen = set()
for line in open("all"):
    item = json.loads(line)
    seen.add(item["type"])
    walk({k: v for k, v in item.items() if k != "type"}, item["type"])
print(*(f"no {t} was seen" for t in sorted(types - seen)), *(f"{t} is not listed" for t in sorted(seen - types)), sep="\n", end="")
P
