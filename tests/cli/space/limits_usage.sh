# SPDX-License-Identifier: MIT
try kopt space "$DATA/rules.cu" M=128 --device-limits shared_bytes=1024
try kopt space "$DATA/rules.cu" M=128 --device-limits max_thread=1024
try kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=many
try kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=1,max_threads=2
try kopt space "$DATA/rules.cu" M=128 --device cuda:0 --device-limits max_threads=1
