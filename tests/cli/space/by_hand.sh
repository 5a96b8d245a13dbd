# SPDX-License-Identifier: MIT
kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=1024
