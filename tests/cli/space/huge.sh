# SPDX-License-Identifier: MIT
# 4^30 is about 1.2e18.
kopt space "$DATA/huge.cl" --count
kopt space "$DATA/huge.cl" --sample 2 | wc -l
