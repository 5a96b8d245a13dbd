# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
try kopt space "$DATA/rules.cu" M=128 --device fake:0 --count
try kopt space "$DATA/rules.cu" M=128 --device fake:7 --count
try kopt space "$DATA/rules.cu" M=128 --device gpu --count
