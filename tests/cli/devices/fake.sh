# SPDX-License-Identifier: MIT
KOPT_FAKE_LIBRARY=$FAKE KOPT_FAKE_DEVICES=2 kopt devices
