/* SPDX-License-Identifier: MIT */
/* The parameters of a network: named matrices in one slab. Layer: nn.
 *
 * A network declares its matrices first, then the slab is made. Gradients and moments are slabs
 * of the same layout, so that a parameter and its gradient have one offset. */
#ifndef KP_NN_PARAMS_H
#define KP_NN_PARAMS_H

#include "base/error.h"
#include "base/rng.h"

#include <stddef.h>
#include <stdint.h>

enum { KP_TENSORS_MAX = 1024, KP_TENSOR_NAME = 64 };

enum kp_init {
    KP_INIT_ZERO,
    KP_INIT_ONE,
    KP_INIT_UNIFORM,   /* [-scale, scale) */
    KP_INIT_NORMAL,    /* mean 0, standard deviation `scale` */
    KP_INIT_LSTM_BIAS, /* 0, the forget gates' quarter (the second) 1: Jozefowicz, Zaremba and
                          Sutskever, ICML 2015 */
};

struct kp_tensor {
    char name[KP_TENSOR_NAME];
    size_t rows; /* 1 for a vector */
    size_t cols;
    size_t offset; /* floats into a slab; a multiple of 16 */
    enum kp_init init;
    float scale;
};

struct kp_params {
    struct kp_tensor *tensors;
    size_t n_tensors;
    size_t n_floats; /* of a slab: the tensors and the room between them, which stays 0 */
    size_t n_params; /* of the tensors alone */
    kopt_status failed;
};

/* What kp_params_add() returns: the tensor's offset, or this. */
#define KP_NO_TENSOR SIZE_MAX

/* Names are unique. KP_NO_TENSOR: no memory, too many, or a name that stands already or is too
 * long; sticky, kp_params_status() tells. */
size_t kp_params_add(struct kp_params *p, const char *name, size_t rows, size_t cols,
                     enum kp_init init, float scale);
kopt_status kp_params_status(const struct kp_params *p, kopt_error *err);
void kp_params_deinit(struct kp_params *p);
/* NULL: there is none. */
const struct kp_tensor *kp_params_find(const struct kp_params *p, const char *name);

/* A slab of zeros, aligned to 64 bytes. Owner: kp_slab_free(). NULL: no memory. */
float *kp_slab_new(size_t n_floats);
void kp_slab_free(float *slab);
/* First values, drawn in the order of declaration. */
void kp_params_init(const struct kp_params *p, struct kp_rng *rng, float *slab);

#endif
