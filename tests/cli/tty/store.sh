# SPDX-License-Identifier: MIT
# Of a narrow table the problem and the command stay; a device that all rows have in common goes.
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
python3 - <<'P'
import sqlite3
c = sqlite3.connect("s.db")
c.execute("UPDATE subject SET device = 'A Device With A Rather Long Name (and more)',"
          """ problem = '{"KKKK":4096,"MMMM":4096,"NNNN":4096}'""")
c.execute("UPDATE run SET command = 'kopt tune gemm.cl KKKK=4096 MMMM=4096 NNNN=4096 --budget 10m"
          " --strategy random --seed 7 --store s.db', begun_us = 1700000000000000, ended_us = 1700000061500000")
c.commit()
P
plain() { sed 's/<E>\[[0-9]*m//g'; }
for columns in 80 160; do
    on_tty $columns kopt store list | plain
    on_tty $columns kopt store runs | plain
done
kopt store list
kopt store import "$DATA/cache_other.json" >/dev/null
on_tty 80 kopt store list | plain
on_tty 64 kopt store list | plain
on_tty 80 kopt store best axpy | plain
