# SPDX-License-Identifier: MIT
kopt space "$DATA/rules.cu" M=128
