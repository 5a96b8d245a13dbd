#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds kopt and tunes the matrix multiplication of examples/ on the CPU.
set -eu
cd "$(dirname "$0")/.."
cmake -S . -B build/kopt -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >/dev/null
cmake --build build/kopt
kopt=build/kopt/bin/kopt
store=build/demo.kopt.db

echo
echo "\$ kopt devices"
$kopt devices
echo
echo "\$ kopt tune examples/gemm/gemm.cl M=512 N=512 K=512 --budget ${KOPT_DEMO_BUDGET:-60s} --store $store"
$kopt tune examples/gemm/gemm.cl M=512 N=512 K=512 --budget "${KOPT_DEMO_BUDGET:-60s}" --store $store
echo
echo "Everything that was measured is in $store: try"
echo "  $kopt store list --store $store"
