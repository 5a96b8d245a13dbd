# SPDX-License-Identifier: MIT
kopt devices
