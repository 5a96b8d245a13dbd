# SPDX-License-Identifier: MIT
# Stores of two machines become one; twice is as good as once.
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/copy.cl" N=1024 BN=32 -d fake:0 --store one.db -q >/dev/null
kopt tune "$DATA/copy.cl" N=1024 BN=64 -d fake:0 --store two.db -q >/dev/null
kopt tune "$DATA/copy.cl" N=2048 BN=64 -d fake:0 --store two.db -q >/dev/null
kopt store import one.db two.db --store all.db
kopt store import one.db two.db --store all.db --json | json_lines file added bad cut
# All of it is there, under one subject where the subject is the same.
kopt store list --store all.db --json | json_lines problem results | sort
for s in one two; do
    kopt store list --store $s.db --json | json_lines problem results | sort
done
kopt store runs --store all.db --json | json_lines state
kopt store best copy N=1024 --store all.db --json | json_lines config.BM
# A session goes on from what was imported.
kopt tune "$DATA/copy.cl" N=1024 BN=32,64 -d fake:0 --store all.db --json -q | json_lines from_store race >again
grep -c 'from_store=false race=false' again
try kopt store import all.db --store all.db
try kopt store import one.db missing.db --store all.db
truncate -s 9000 two.db
try kopt store import two.db --store all.db
