# SPDX-License-Identifier: MIT
kopt store import "$DATA/cache.json" --store s.db >/dev/null
python3 - <<'P' &
import sqlite3, time, pathlib
c = sqlite3.connect("s.db", isolation_level=None)
c.execute("begin immediate")
pathlib.Path("held").touch()
time.sleep(60)
P
holder=$!
while [ ! -e held ]; do sleep 0.05; done
try kopt store import "$DATA/cache_other.json" --store s.db
# Reading goes on beside a writer.
try kopt store best 1 --store s.db
kill $holder
