# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
try kopt tune "$DATA/copy.cl" --no-store -d fake:0
try kopt tune "$DATA/copy.cl" N=0 --no-store -d fake:0
try kopt tune "$DATA/copy.cl" N=8 Q=1 --no-store -d fake:0
try kopt tune "$DATA/copy.cl" N=8 --strategy magic --no-store -d fake:0
try kopt tune "$DATA/empty.cl" --no-store -d fake:0
