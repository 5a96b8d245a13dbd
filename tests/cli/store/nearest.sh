# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store best axpy x=4000
