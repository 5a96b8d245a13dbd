# SPDX-License-Identifier: MIT
# Without the helper program nothing can be said of any driver: none is called missing.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_LIBEXEC=/nonexistent
try kopt devices
try kopt devices --json
