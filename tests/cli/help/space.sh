# SPDX-License-Identifier: MIT
kopt space -h
