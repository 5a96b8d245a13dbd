# SPDX-License-Identifier: MIT
# Another process keeps the store locked: one line, exit 3.
export KOPT_FAKE_LIBRARY=$FAKE
kopt store import "$DATA/cache.json" --store s.db >/dev/null
python3 - <<'P' &
import sqlite3, time, pathlib
c = sqlite3.connect("s.db", isolation_level=None)
c.execute("begin immediate")
pathlib.Path("held").touch()
time.sleep(100)
P
holder=$!
while [ ! -e held ]; do sleep 0.05; done
try kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store s.db -q
kill $holder
wait $holder 2>/dev/null
kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --store s.db -q | head -1
