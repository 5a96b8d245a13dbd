# SPDX-License-Identifier: MIT
kopt space "$DATA/plain.cl"
