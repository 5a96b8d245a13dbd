# SPDX-License-Identifier: MIT
L="--device-limits max_threads=1024"
try kopt space "$DATA/rules.cu" M=128 $L --check "BM=64,BN=32,TM=2,KIND=row,FAST=true"
try kopt space "$DATA/rules.cu" M=128 $L --check "FAST=true KIND=column TM=2 BN=32 BM=64"
try kopt space "$DATA/rules.cu" M=128 $L --check "BM=128,BN=128,TM=1,KIND=row,FAST=true"
try kopt space "$DATA/rules.cu" M=128 $L --check "BM=64,BN=32"
try kopt space "$DATA/rules.cu" M=128 $L --check "BM=64,BM=32"
try kopt space "$DATA/rules.cu" M=128 $L --check "BM=65"
try kopt space "$DATA/rules.cu" M=128 $L --check "XX=1"
try kopt space "$DATA/rules.cu" M=128 $L --check ""
kopt space "$DATA/plain.cl" --check BM=1,BN=3 --json | json_lines valid why
