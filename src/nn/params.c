/* SPDX-License-Identifier: MIT */
#include "nn/params.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <string.h>

enum {
    ALIGN_FLOATS = 16, /* 64 bytes: a cache line, and the widest vector */
    ALIGN_BYTES = 64
};

/* So that a slab's size in bytes fits with room to spare. */
static const size_t floats_max = SIZE_MAX / 16;

static size_t round_up(size_t n)
{
    return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static size_t refuse(struct kp_params *p, kopt_status why)
{
    if (p->failed == KOPT_OK)
        p->failed = why;
    return KP_NO_TENSOR;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
size_t kp_params_add(struct kp_params *p, const char *name, size_t rows, size_t cols,
                     enum kp_init init, float scale)
{
    if (p->failed != KOPT_OK)
        return KP_NO_TENSOR;
    size_t len = strlen(name);
    if (len == 0 || len >= KP_TENSOR_NAME || kp_params_find(p, name))
        return refuse(p, KOPT_EUSAGE);
    size_t n = 0;
    if (!kp_mul_size(rows, cols, &n) || n > floats_max - ALIGN_FLOATS - p->n_floats ||
        p->n_tensors >= KP_TENSORS_MAX)
        return refuse(p, KOPT_ERANGE);
    if (p->n_tensors % 16 == 0) { /* the struct keeps no capacity */
        struct kp_tensor *more =
            kp_reallocarray(p->tensors, p->n_tensors + 16, sizeof(*p->tensors));
        if (!more)
            return refuse(p, KOPT_ENOMEM);
        p->tensors = more;
    }
    struct kp_tensor *t = &p->tensors[p->n_tensors++];
    *t = (struct kp_tensor){
        .rows = rows, .cols = cols, .offset = p->n_floats, .init = init, .scale = scale};
    memcpy(t->name, name, len + 1);
    p->n_floats += round_up(n);
    p->n_params += n;
    return t->offset;
}

kopt_status kp_params_status(const struct kp_params *p, kopt_error *err)
{
    if (p->failed == KOPT_ENOMEM)
        return kp_err_nomem(err);
    if (p->failed == KOPT_ERANGE)
        return kp_err(err, KOPT_ERANGE,
                      "the network is too large: after %zu matrices with %zu parameters "
                      "another does not fit (at most %d matrices)",
                      p->n_tensors, p->n_params, (int)KP_TENSORS_MAX);
    if (p->failed != KOPT_OK)
        return kp_err(err, p->failed,
                      "a matrix of the network has no name, one that stands already, or one "
                      "longer than %d characters",
                      KP_TENSOR_NAME - 1);
    return KOPT_OK;
}

void kp_params_deinit(struct kp_params *p)
{
    kp_free(p->tensors);
    *p = (struct kp_params){0};
}

const struct kp_tensor *kp_params_find(const struct kp_params *p, const char *name)
{
    for (size_t i = 0; i < p->n_tensors; i++) {
        if (strcmp(p->tensors[i].name, name) == 0)
            return &p->tensors[i];
    }
    return NULL;
}

/* The block's own address stands right before the slab. */
float *kp_slab_new(size_t n_floats)
{
    if (n_floats > floats_max)
        return NULL;
    unsigned char *block =
        kp_calloc(1, n_floats * sizeof(float) + ALIGN_BYTES + sizeof(void *));
    if (!block)
        return NULL;
    size_t ahead = sizeof(void *);
    ahead += (ALIGN_BYTES - ((uintptr_t)block + ahead) % ALIGN_BYTES) % ALIGN_BYTES;
    memcpy(block + ahead - sizeof(void *), &block, sizeof(void *));
    return (float *)(void *)(block + ahead);
}

void kp_slab_free(float *slab)
{
    if (!slab)
        return;
    void *block;
    memcpy(&block, (unsigned char *)(void *)slab - sizeof(void *), sizeof(void *));
    kp_free(block);
}

/* Uniform in [-1, 1): 24 bits, which a float holds exactly, so that the product with a scale
 * is never rounded up to the scale. */
static float uniform(struct kp_rng *rng)
{
    return (float)(kp_rng_u64(rng) >> 40) * 0x1p-23F - 1.0F;
}

static void init_tensor(const struct kp_tensor *t, struct kp_rng *rng, float *x)
{
    size_t n = t->rows * t->cols;
    switch (t->init) {
    case KP_INIT_ZERO:
        memset(x, 0, n * sizeof(*x));
        break;
    case KP_INIT_ONE:
        for (size_t i = 0; i < n; i++)
            x[i] = 1;
        break;
    case KP_INIT_UNIFORM:
        for (size_t i = 0; i < n; i++)
            x[i] = uniform(rng) * t->scale;
        break;
    case KP_INIT_NORMAL:
        for (size_t i = 0; i < n; i++)
            x[i] = (float)(kp_rng_normal(rng) * (double)t->scale);
        break;
    case KP_INIT_LSTM_BIAS:
        for (size_t i = 0; i < n; i++)
            x[i] = i / (n / 4 ? n / 4 : 1) == 1 ? 1.0F : 0.0F;
        break;
    }
}

void kp_params_init(const struct kp_params *p, struct kp_rng *rng, float *slab)
{
    for (size_t i = 0; i < p->n_tensors; i++)
        init_tensor(&p->tensors[i], rng, slab + p->tensors[i].offset);
}
