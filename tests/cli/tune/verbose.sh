# SPDX-License-Identifier: MIT
export KOPT_FAKE_LIBRARY=$FAKE
# A line for each configuration, the failed ones with their reasons.
kopt tune "$DATA/copy.cl" N=1024 -d fake:0 --no-store -v 2>&1 >/dev/null |
    grep -E '^(ok|wrong|crash|compile_error|launch_error|unsteady)' | sed -E 's/(±[0-9. ]*%|one launch) */SPREAD  /; s/  \(dropped early\)//; s/  \(race\)//; s/, the first at .*/, ../' | sort -u
