# SPDX-License-Identifier: MIT
KOPT_FAKE_LIBRARY=$FAKE kopt devices --json | json_lines id backend is_cpu max_threads shared_bytes
