# SPDX-License-Identifier: MIT
try kopt store list
try kopt store list --store x.db
KOPT_STORE=y.db try kopt store show 1
XDG_DATA_HOME=/elsewhere try kopt store list
HOME= try kopt store list
