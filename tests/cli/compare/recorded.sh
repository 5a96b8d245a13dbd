# SPDX-License-Identifier: MIT
# Spaces that kopt recorded, packed: what is known of them, and whose results serve as priors.
cd "$SOURCE/tests/data/recorded" || exit
kopt compare ./*.json.gz --methods random,random+prior --repeats 2 --json -q >"$TMPDIR/out"
json_lines path format kernel device_name valid outcomes.ok random_evaluations <"$TMPDIR/out" | grep recording
grep '"method":"random+prior"' "$TMPDIR/out" | json_lines space prior_results runs | grep score
kopt tune --replay gemm_2048_H200.json.gz --prior gemm_4096_H200.json.gz -s random --budget 10 | grep '^prior\|^ended'
