# SPDX-License-Identifier: MIT
kopt --version | sed 's/[0-9]\+\.[0-9]\+\.[0-9]\+/N/'
kopt version | sed 's/[0-9]\+\.[0-9]\+\.[0-9]\+/N/g'
kopt version --json | json_lines >/dev/null && echo json
