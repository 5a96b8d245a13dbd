# SPDX-License-Identifier: MIT
head -c 5000 /dev/urandom >noise.db
echo 'hello' >text.db
python3 -c "import sqlite3; c = sqlite3.connect('other.db'); c.execute('create table t(x)'); c.commit()"
mkdir folder.db
: >empty.db
for f in noise text other folder; do
    try kopt store list --store $f.db
done
try kopt store import "$DATA/cache.json" --store noise.db
try kopt store import "$DATA/cache.json" --store /proc/nowhere/s.db
# A store cut in its middle.
kopt store import "$DATA/cache.json" --store cut.db >/dev/null
truncate -s 9000 cut.db
kopt store show 1 --store cut.db >out 2>&1
echo "cut: exit $?"
