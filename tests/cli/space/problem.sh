# SPDX-License-Identifier: MIT
# What is wrong with the problem is told first, device or not.
L="--device-limits max_threads=64"
try kopt space "$DATA/rules.cu"
try kopt space "$DATA/rules.cu" M=0 $L
try kopt space "$DATA/rules.cu" M=x $L
try kopt space "$DATA/rules.cu" M=99999999999999999999 $L
try kopt space "$DATA/rules.cu" M=8 K=8 $L
try kopt space "$DATA/rules.cu" M=8 M=9 $L
try kopt space "$DATA/rules.cu" M=8 BM=17 $L
try kopt space "$DATA/rules.cu" M=8 BM=16,32 KIND=row --count $L
