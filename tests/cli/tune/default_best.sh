# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
# No speed-up over itself.
kopt tune "$DATA/copy.cl" N=1024 BM=32,64 BN=32 -d fake:0 -q | grep speed-up
# All is known: no table of zeros.
kopt tune "$DATA/copy.cl" N=1024 BM=32,64 BN=32 -d fake:0 -q | sed -n '/TIME SPENT/p; /from the store/s/; .* in all/; T in all/p'
kopt tune "$DATA/copy.cl" N=1024 BM=32 BN=32 -d fake:0 -q | sed -n '/TIME SPENT/p; /from the store/s/; .* in all/; T in all/p'
# A single launch has no interval.
kopt tune "$DATA/copy.cl" N=1024 BM=32 BN=32 -d fake:0 -q --store one.db --samples 1 --race 1 | grep '^best'
kopt store show copy --store one.db | tail -1 | sed 's/^ *[0-9]*/ID/'
kopt store result 1 --store one.db | grep median
