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
