# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
head -c 1500 "$DATA/cache.json" >cut.json
kopt store import cut.json
kopt store import cut.json --json 2>/dev/null | json_lines added present bad cut
