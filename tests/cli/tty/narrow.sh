# SPDX-License-Identifier: MIT
on_tty 44 kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=1024
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
on_tty 48 kopt store show 1 --all --color=never
