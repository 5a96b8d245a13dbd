# SPDX-License-Identifier: MIT
# A full disk behind standard output is a failure, not silence.
kopt space "$DATA/plain.cl" >/dev/full
