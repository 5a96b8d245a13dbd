# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store failures 1
kopt store failures axpy --json | json_lines outcome count message config
