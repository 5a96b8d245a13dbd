# SPDX-License-Identifier: MIT
kopt --help
