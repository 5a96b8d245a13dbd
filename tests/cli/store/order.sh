# SPDX-License-Identifier: MIT
# Parameters stand as the kernel file declares them, in a table and in lines.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
cat >k.cl <<'K'
#pragma kopt kernel k
#pragma kopt lang opencl
#pragma kopt param WIDE {1,2}  BM {16}
#pragma kopt param A {0}
#pragma kopt default WIDE=1
#pragma kopt block BM
#pragma kopt grid 4
#pragma kopt arg b f32[64] out
// fake: add WIDE 1000
// fake: when WIDE=2 launch_error
kernel void k(global float *b) {}
K
kopt tune k.cl -d fake:0 --compilers 1 -q >/dev/null 2>&1
kopt store show k --all | tail -n +6 | sed 's/ *$//'
kopt store result 1 | grep configuration
kopt store failures k | grep WIDE
kopt store best k | tail -1
