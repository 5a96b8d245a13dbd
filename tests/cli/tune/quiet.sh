# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 --no-store -q >out
head -1 out
