# SPDX-License-Identifier: MIT
# What the README shows, small: an example tuned on a real device, and again from the store.
unset KOPT_OPENCL_LIBRARY
if ! kopt devices --json | grep -q '"backend": *"opencl"'; then
    echo "skipped: no OpenCL device"
    exit 77
fi
tune() {
    kopt tune "$SOURCE/examples/gemm/gemm.cl" M=70 N=64 K=33 BM=64 BN=64 BK=16 TM=4 TN=4 VW=4 AV=1 PAD=0 UNROLL=1 \
        --budget 3 --strategy random --store s.db "$@"
}
tune -q || exit
tune -q --json >out || exit
json_lines from_store done outcomes.ok best.outcome <out | grep report
kopt store list --store s.db
kopt store best --store s.db 1
