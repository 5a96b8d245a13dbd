# SPDX-License-Identifier: MIT
# The models that come with kopt: found by name, of the kernel files that are here, and with answers for any size.
KOPT_SHARE="$DATA/../../.."
export KOPT_SHARE
for k in convolution gemm softmax; do
    python3 - "$KOPT_SHARE/models/h200/$k.model" "$KOPT_SHARE/examples/$k/$k.cu" <<'PY'
import json, struct, sys
with open(sys.argv[1], "rb") as f:
    meta = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))["__metadata__"]
same = meta["rules"] == open(sys.argv[2]).read()
print(meta["kernel"], meta["model"], "of this kernel file" if same else "of another kernel file: run models/make.sh")
PY
done
kopt predict gemm M=1 N=1 K=1 --json | json_lines kernel place
kopt predict gemm M=300 N=4096 K=1024 --top 5 --json | python3 -c '
import json, sys
rows = [json.loads(l) for l in sys.stdin]
print(len(rows), all(r["config"]["BM"] % r["config"]["TM"] == 0 for r in rows), rows[0]["slowdown"])'
kopt predict softmax R=4096 C=1000 --top 3 --json | json_lines kernel place
kopt predict convolution W=4096 H=4096 FW=5 FH=5 --json | json_lines kernel place
# A file in the way counts first; other limits are allowed; what is not there is said.
: >gemm
try kopt predict gemm M=1 N=1 K=1
rm gemm
kopt predict gemm M=512 N=512 K=512 --device-limits max_threads=64,shared_bytes=16384,cc=75 2>&1 | tail -1 | cut -c1-16
try kopt predict gone M=1
try kopt predict gemm M=1
try kopt predict gemm M=99999999999999999999 N=4 K=4
# A rule that leaves nothing is one of the model's.
try kopt predict softmax R=1 C=1 --device-limits max_threads=1,shared_bytes=1
# The rules of a model that comes with kopt are in its kernel file.
try kopt train gone.csv --rules gemm -o m.model
