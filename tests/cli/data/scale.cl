// SPDX-License-Identifier: MIT
// For the fake device, with scale.json.
// fake: out 0 = copy 1
// fake: time 5000
// fake: add tile 1000
// fake: when mode=1,tile=4 wrong
kernel void scale(global float *out, global const float *in, float factor) {}
