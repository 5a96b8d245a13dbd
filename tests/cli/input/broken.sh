# SPDX-License-Identifier: MIT
printf '#pragma kopt kernel k\n#pragma kopt param BM {16,32}\n#pragma kopt require BMM %% 2 == 0\nkernel void k() {}\n' >name.cl
printf '#pragma kopt kernel k\n#pragma kopt param BM {16,,32}\nkernel void k() {}\n' >list.cl
printf '// \303\244\n#pragma kopt kernel k\n#pragma kopt param BM {16}\n#pragma kopt require\tBM \303\244 3\nkernel void k() {}\n' >char.cl
printf 'kernel void k() {}\n' >none.cl
printf '{"ConfigurationSpace": {]\n' >bad.json
printf 'int x;\n' >bad.xyz
mkdir dir.cl
for f in name.cl list.cl char.cl none.cl bad.json bad.xyz dir.cl missing.cl; do
    try kopt space $f
done
