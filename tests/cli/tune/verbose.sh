# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 --no-store -v 2>&1 >/dev/null | grep '^ok' | sort -u | sed 's/±.*%/SPREAD/; s/  (dropped early)//; s/  (race)//' | sort -u
