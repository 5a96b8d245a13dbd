# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
try kopt store show 9
try kopt store show gemm
try kopt store show axpy x=5
try kopt store show axpy y
try kopt store result 99
try kopt store best gemm
try kopt store best 9
try kopt store compare 1 9
try kopt store runs 9
# What a message names works as it stands: with the store that was given.
unset KOPT_STORE
try kopt store show 9 --store s.db
mv s.db "my store.db"
try kopt store compare 1 9 --store "my store.db"
# .. or, where there is no room for a long path, says that it goes there.
long=$(printf '%0230d.db' 1)
cp "my store.db" "$long"
try kopt store result 99 --store "$long" | sed 's/0\{9,\}/0../'
