# SPDX-License-Identifier: MIT
# What was begun and never completed: shown when asked for, and hiding nothing that was measured.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 -q >/dev/null
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 -q --fresh >/dev/null
# The first run was killed in another race: rows of it were begun and are newer than all else.
python3 - <<'P'
import sqlite3
c = sqlite3.connect("s.db")
for bm in (16, 32):
    c.execute("INSERT INTO result(subject, run, config, race, outcome, begun_us, wall_us, dropped, message, log)"
              " VALUES(1, 1, ?, 1, 10, 1700000000000000, 0, 0, '', '')", (f'{{"BM":{bm},"BN":32}}',))
c.commit()
P
kopt store show copy --outcome interrupted | tail -3 | sed 's/^ *[0-9]*/ID/'
kopt store show copy --outcome interrupted --json | json_lines config outcome
kopt store show copy --all --json | json_lines config.BM outcome | sort
kopt store failures copy --json | json_lines outcome
kopt store compare 1 2 --json | json_lines config outcome_a outcome_b in_both only_a outcome_changed best_a.samples | sed 's/samples=[1-9][0-9]*/samples=N/' | sort
