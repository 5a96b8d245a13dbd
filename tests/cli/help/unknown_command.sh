# SPDX-License-Identifier: MIT
try kopt tnue
try kopt store lst
try kopt frobnicate
try kopt help frobnicate
try kopt store
