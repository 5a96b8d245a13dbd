# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
kopt store export 1 -o out.json
kopt store export axpy >other.json
cmp out.json other.json && python3 -c "
import json
t4 = json.load(open('out.json'))
print(t4['schema_version'], len(t4['results']), sorted(r['invalidity'] for r in t4['results']))"
try kopt store export 1 -o /nonexistent/out.json
