# SPDX-License-Identifier: MIT
# Without a UTF-8 locale signs are plain; the user's own text is as it was.
export KOPT_STORE=s.db LC_ALL=C
kopt store import "$DATA/cache.json" >/dev/null
kopt store show 1 -n 1
printf '// SPDX\n#pragma kopt kernel k\n#pragma kopt param \303\244 {1}\nkernel void k() {}\n' >k.cl
try kopt space k.cl
