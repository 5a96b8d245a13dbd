# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
echo '{"hello": 1}' >other.json
echo 'not json' >text.json
try kopt store import other.json
try kopt store import text.json
try kopt store import missing.json
