# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
on_tty 80 kopt store show 1 --all
echo --
NO_COLOR=1 on_tty 80 kopt store show 1 -n 1
echo --
on_tty 80 kopt --color=never store show 1 -n 1
echo --
kopt store show 1 -n 1 --color=always | sed 's/\x1b/<E>/g'
on_tty 80 kopt tnue
