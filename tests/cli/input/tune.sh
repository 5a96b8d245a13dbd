# SPDX-License-Identifier: MIT
# The same errors before any measuring.
export KOPT_FAKE_LIBRARY=$FAKE
printf '#pragma kopt kernel k\n#pragma kopt param BM {16,32}\n#pragma kopt require BM %%%% 2 == 0\nkernel void k() {}\n' >k.cl
try kopt tune k.cl -d fake:0 --no-store
try kopt tune missing.cl -d fake:0 --no-store
