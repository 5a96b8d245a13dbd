# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store runs --json | json_lines id subject state
kopt store runs axpy --json | json_lines id
