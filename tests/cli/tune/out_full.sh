# SPDX-License-Identifier: MIT
# A full disk behind standard output: exit 3 and the reason, however much was written before.
export KOPT_FAKE_LIBRARY=$FAKE
export KOPT_SHARE=$SOURCE
full() {
    echo "\$ $*"
    "$@" 2>&1 >/dev/full | grep -v '^kopt: [^e]'
    echo "exit ${PIPESTATUS[0]}"
}
copy="$DATA/copy.cl N=64 -d fake:0 --no-store -s exhaustive -j 1"
full kopt tune $copy -q
full kopt tune $copy --json -q
full kopt predict gemm M=64 N=64 K=64
full kopt predict gemm M=64 N=64 K=64 --top 100 --json
full kopt space "$DATA/plain.cl"
full kopt help tune
kopt version >&- 2>err
echo "exit $?"
cat err
