#!/bin/sh
# SPDX-License-Identifier: MIT
# Replay six spaces that Kernel Tuner recorded: bench/search.sh DATA [options of bench_search]
#
# DATA/spaces has the cache files (*.json.gz) and DATA/t1 the kernels' T1 descriptions, as found in the
# repository AutoTuningAssociation/benchmark_hub.
set -eu
data=${1:?usage: bench/search.sh DATA [options of bench_search]}
shift
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# What `make` builds, and what `cmake --workflow --preset release` does.
bench=${KOPT_BENCH:-}
for build in kopt release; do
  [ -n "$bench" ] || [ ! -x "$root/build/$build/bench/bench_search" ] || bench=$root/build/$build/bench
done
if [ ! -x "$bench/bench_search" ]; then
  echo "bench/search.sh: no bench_search in ${bench:-build/kopt/bench or build/release/bench}: run make, or name its folder in KOPT_BENCH" >&2
  exit 3
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for pair in pnpoly_RTX_3090=pnpoly convolution_RTX_2080_Ti=convolution convolution_milo_A4000=convolution_milo \
  convolution_milo_MI250X=convolution_milo dedispersion_milo_MI250X=dedispersion_milo gemm_RTX_Titan=gemm_milo; do
  cache=${pair%=*}
  gunzip -c "$data/spaces/$cache.json.gz" >"$tmp/$cache.json"
  pairs="${pairs-} $tmp/$cache.json=$data/t1/${pair#*=}.json"
done
# The pairs have no spaces in them unless DATA does.
# shellcheck disable=SC2086
"$bench/bench_search" "$@" $pairs
