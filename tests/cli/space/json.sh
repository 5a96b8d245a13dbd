# SPDX-License-Identifier: MIT
kopt space "$DATA/rules.cu" M=128 --device-limits max_threads=512 --json |
    json_lines kernel language problem candidates valid parameters.0 parameters.3 parameters.4 rules.0 rules.1
