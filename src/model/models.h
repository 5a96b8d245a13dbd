/* SPDX-License-Identifier: MIT */
/* What the models share. Layer: model. */
#ifndef KP_MODEL_MODELS_H
#define KP_MODEL_MODELS_H

#include "math/half.h"
#include "model/net.h"

extern const struct kp_net_ops kp_net_seq2seq;
extern const struct kp_net_ops kp_net_attention;
extern const struct kp_net_ops kp_net_hybrid1;
extern const struct kp_net_ops kp_net_hybrid2;
extern const struct kp_net_ops kp_net_factored;
extern const struct kp_net_ops kp_net_ranker;

/* Handing out pieces of one block of floats. With `base` NULL it only counts. */
struct kp_carve {
    float *base;
    size_t used;
};
/* A piece that begins at a multiple of 16 floats. NULL when only counting. */
float *kp_carve_take(struct kp_carve *c, size_t n);
/* For `count` matrices w[n][k] that are packed (math/thin.h), kp_pack_size(n, k) each. */
kp_half *kp_carve_packed(struct kp_carve *c, size_t count, size_t n, size_t k);

/* A matrix of the net's, in the order in which the model declares them; its number is the
 * caller's, `scale` as enum kp_init says. */
void kp_net_declare(struct kp_net *net, size_t number, const char *name, size_t rows,
                    size_t cols, enum kp_init init, float scale);

static inline const float *kp_net_w(const struct kp_net *net, size_t number)
{
    return net->values + net->offset[number];
}
/* Its gradient in slab `grad`. */
static inline float *kp_net_g(const struct kp_net *net, float *grad, size_t number)
{
    return grad + net->offset[number];
}

/* Dropout of the net's own share, forward and backward alike; `place` tells the places of a net
 * apart. Key 0: none. */
void kp_net_drop(const struct kp_net *net, uint64_t key, uint64_t place, float *x, size_t n);

/* Entries of all targets' vocabularies before target p; p = n_targets: of all. */
size_t kp_net_values_before(const struct kp_net *net, size_t p);

/* The deviation of first weights: He et al., 2015. */
float kp_net_spread(size_t fan_in);

/* Layers on [B][H], one behind the other: h += dropout(silu(norm(h) W' + b)). The matrices of
 * layer l are KP_RESIDUAL_COUNT from number `first` + KP_RESIDUAL_COUNT l. */
enum {
    KP_RESIDUAL_NORM_G,
    KP_RESIDUAL_NORM_B,
    KP_RESIDUAL_W,
    KP_RESIDUAL_B,
    KP_RESIDUAL_COUNT
};
struct kp_residual {
    size_t first;
    size_t B;
    float *h;              /* [L+1][B][H]: into layer l; the last is the output */
    float *norm;           /* [L][B][H] */
    float *keep;           /* [L][B][2] */
    float *pre;            /* [L][B][H]: before silu */
    float *add;            /* [B][H]: scratch */
    const kp_half *packed; /* by kp_residual_pack(), for forward; NULL: it was not called */
};
void kp_residual_declare(struct kp_net *net, size_t first);
/* Packs the layers' w into packed[L], room for [H][H] each. */
void kp_residual_pack(const struct kp_net *net, size_t first, kp_half *packed);
void kp_residual_forward(const struct kp_net *net, const struct kp_residual *r, uint64_t key);
/* dh [B][H]: of the output; becomes that of the input. r->pre is used up. */
void kp_residual_backward(const struct kp_net *net, const struct kp_residual *r, uint64_t key,
                          float *dh, float *grad);

/* Heads: for each target p a softmax over its values from row p of x[P][B][H]; the weights of
 * all are w[sum V][H], b[sum V]. The loss and, where dx is not NULL, gradients: dx[P][B][H] is
 * written, dw and db are added to. `work`: B * largest V floats. */
struct kp_heads {
    const struct kp_net *net;
    const float *w;
    const float *b;
    size_t H;
};
void kp_heads_run(const struct kp_heads *h, const struct kp_batch *b, float smoothing,
                  const float *x, float *dx, float *dw, float *db, float *work,
                  struct kp_net_score *score);
/* logp[n][V_p] from x[n][H]. */
void kp_heads_logp(const struct kp_heads *h, size_t p, size_t n, const float *x, float *logp);
size_t kp_net_most_values(const struct kp_net *net);

#endif
