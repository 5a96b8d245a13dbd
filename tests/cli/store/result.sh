# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store result 2
echo --
kopt store result 4
echo --
kopt store result 2 --json | json_lines times_ns subject run log
