# SPDX-License-Identifier: MIT
on_tty 44 kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=1024
