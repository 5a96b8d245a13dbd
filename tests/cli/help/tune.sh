# SPDX-License-Identifier: MIT
kopt tune --help
