# SPDX-License-Identifier: MIT
try kopt tune "$DATA/copy.cl" N=1024 --no-store
KOPT_FAKE_LIBRARY=$FAKE try kopt tune "$DATA/copy.cl" N=1024 --no-store -d fake:5
KOPT_FAKE_LIBRARY=$FAKE try kopt tune "$DATA/copy.cl" N=1024 --no-store -d toaster
KOPT_LIBEXEC=/nonexistent KOPT_FAKE_LIBRARY=$FAKE try kopt tune "$DATA/copy.cl" N=1024 --no-store -d fake:0
