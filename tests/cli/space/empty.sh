# SPDX-License-Identifier: MIT
kopt space "$DATA/empty.cl"
