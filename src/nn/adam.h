/* SPDX-License-Identifier: MIT */
/* Adam (Kingma and Ba, 2015) with decoupled weight decay (Loshchilov and Hutter, 2019),
 * clipping of the gradient's norm and a schedule. Layer: nn. */
#ifndef KP_NN_ADAM_H
#define KP_NN_ADAM_H

#include <stddef.h>
#include <stdint.h>

struct kp_adam {
    float rate;     /* of learning, before the schedule */
    float beta1;    /* 0.9 */
    float beta2;    /* 0.999 */
    float epsilon;  /* 1e-8 */
    float decay;    /* of weights, for each step times the rate; 0 = none */
    float clip;     /* largest norm of the whole gradient; 0 = none */
    uint64_t warm;  /* steps in which the rate rises from 0 in a line */
    uint64_t total; /* steps after which it has fallen, as a half cosine, to `floor`; 0 = it
                       does not fall */
    float floor;    /* share of the rate that is left at the end */
};

struct kp_adam kp_adam_default(void);
/* The rate of step number `step`, the first is 1. */
float kp_adam_rate(const struct kp_adam *a, uint64_t step);
/* The norm, summed in a fixed order in double. NaN or infinity where an element is. */
double kp_grad_norm(const float *g, size_t n);
/* One step: values x, gradient g (scaled by the clipping), moments m and v, each [n]. `norm` is
 * kp_grad_norm(g, n), which must be finite. */
void kp_adam_step(const struct kp_adam *a, uint64_t step, size_t n, double norm, float *x,
                  float *g, float *m, float *v);

#endif
