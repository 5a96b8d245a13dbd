# SPDX-License-Identifier: MIT
try kopt tune --budgt 3
try kopt tune x.cl --budget
try kopt tune x.cl --budget 150%
try kopt tune x.cl -b 0
try kopt tune x.cl -b soon
try kopt tune x.cl --samples 9..2
try kopt tune x.cl --samples 7..1001
try kopt tune x.cl --samples 0
try kopt tune x.cl --race 16
try kopt tune x.cl --race 0
try kopt tune x.cl --compilers 129
try kopt tune x.cl --precision 2
try kopt tune x.cl --launch-timeout 3y
try kopt tune x.cl --compilers 0
try kopt tune x.cl --seed 0
try kopt tune x.cl --fresh=yes
try kopt tune x.cl --color sometimes
try kopt tune x.cl -z
try kopt tune x.cl --store a.db --no-store
try kopt tune x.cl --resume --fresh
