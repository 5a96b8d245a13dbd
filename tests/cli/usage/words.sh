# SPDX-License-Identifier: MIT
try kopt tune
try kopt tune M=1
try kopt tune a.cl b.cl
try kopt devices here
try kopt space "$DATA/plain.cl" --count --list
try kopt space "$DATA/plain.cl" --limit 3
try kopt store show
try kopt store result
try kopt store result x
try kopt store compare 1
try kopt store import
try kopt completion fish
# A name that is near another.
try kopt space "$DATA/copy.cl" N=64 --device-limits cc=0 NB=32
try kopt space "$DATA/copy.cl" M=64 --device-limits cc=0
try kopt space "$DATA/copy.cl" N=64 bm_=32 --device-limits cc=0
# What many try first.
kopt store help | head -1
kopt store help list | head -1
try kopt store help lst
