# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/fail.cl" N=1024 -d fake:0 --store s.db -q >/dev/null 2>&1
echo "exit $?"
kopt store failures fail --store s.db
kopt store show fail --store s.db 2>note | tail -1; cat note
