#!/bin/sh
# SPDX-License-Identifier: MIT
# Trains the models that come with kopt, from the times in data/. The program: $KOPT, else kopt of build/release.
set -eu
cd "$(dirname "$0")/.."
for kernel in ${*:-convolution gemm softmax}; do
  "${KOPT:-build/release/bin/kopt}" train "data/h200/$kernel.csv.gz" --rules "examples/$kernel/$kernel.cu" \
    --device-limits max_threads=1024,shared_bytes=232448,compute_units=132,cc=90 -o "models/h200/$kernel.model"
done
