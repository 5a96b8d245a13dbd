# SPDX-License-Identifier: MIT
export KOPT_STORE=s.db
kopt store import "$DATA/cache.json" "$DATA/cache_other.json" >/dev/null
kopt store compare 1 2
echo --
kopt store compare 1 2 --json | json_lines ratio in_both only_a only_b outcome_changed geometric_mean_ratio
