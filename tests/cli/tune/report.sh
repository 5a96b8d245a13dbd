# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store s.db
