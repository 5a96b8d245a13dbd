# SPDX-License-Identifier: MIT
# A reader that goes ends the session in order: what was measured is kept, nothing is left behind.
export KOPT_FAKE_LIBRARY=$FAKE
kopt tune "$DATA/slow.cl" N=64 -d fake:0 -s exhaustive --store s.db --json -q | head -4 | json_lines
echo "exit ${PIPESTATUS[0]}"
kopt store runs --store s.db --json | json_lines state
[ "$(kopt store list --store s.db --json | json_lines results | tr -dc 0-9)" -ge 3 ] && echo kept
ls "$TMPDIR"
