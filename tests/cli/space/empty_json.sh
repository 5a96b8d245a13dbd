# SPDX-License-Identifier: MIT
kopt space "$DATA/empty.cl" --json 2>/dev/null | json_lines valid candidates rules.1
echo "exit ${PIPESTATUS[0]}"
