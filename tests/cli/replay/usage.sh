# SPDX-License-Identifier: MIT
peaks_json A >peaks.json
short() { # the message alone
    echo "\$ $*"
    "$@" >/dev/null 2>err
    echo "exit $?: $(head -1 err)"
}
for option in "-d cuda:0" "--store s.db" --no-store --no-compile-cache --resume --fresh "--model m" \
    "--model-top 3" "--race 3" "--samples 5" "--precision 2%" --no-flush "--flush-bytes 1M" --no-check \
    "--compile-timeout 9s" "--launch-timeout 9s" "--memory 1G"; do
    short kopt tune --replay peaks.json $option
done
short kopt tune --replay peaks.json gemm.cl
short kopt tune --replay peaks.json N=64
short kopt tune --replay peaks.json --prior-first 3
short kopt tune --replay peaks.json --prior none --prior peaks.json
short kopt tune --replay peaks.json --until 2
short kopt tune --replay peaks.json --until 0%
short kopt tune --replay peaks.json --until soon
short kopt tune --replay peaks.json --window 0
short kopt tune --replay peaks.json -s magic
short kopt tune --replay
short kopt tune "$DATA/copy.cl" N=8 --window 3
short kopt tune "$DATA/copy.cl" N=8 --prior a.json --prior b.json
short kopt tune "$DATA/copy.cl" N=8 --prior none --prior-first 3
try kopt tune --replay missing.json
try kopt tune --replay "$DATA/copy.cl"
head -c 30000 peaks.json >cut.json
try kopt tune --replay cut.json -s exhaustive -b 3
