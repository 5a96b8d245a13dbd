# SPDX-License-Identifier: MIT
kopt
