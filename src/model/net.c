/* SPDX-License-Identifier: MIT */
#include "model/models.h"

#include "base/alloc.h"
#include "math/thin.h"
#include "nn/layers.h"

#include <math.h>
#include <string.h>

enum { SIZE_LIMIT = 8192, LAYERS_LIMIT = 16, VOCAB_LIMIT = 1 << 20 };

/* --- models ---------------------------------------------------------------------------------
 */

const struct kp_net_ops *kp_net_at(size_t i)
{
    static const struct kp_net_ops *const all[] = {&kp_net_factored,  &kp_net_seq2seq,
                                                   &kp_net_attention, &kp_net_hybrid1,
                                                   &kp_net_hybrid2,   &kp_net_ranker};
    return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

const struct kp_net_ops *kp_net_named(struct kp_str name)
{
    const struct kp_net_ops *at = NULL;
    for (size_t i = 0; (at = kp_net_at(i)) != NULL && !kp_str_is(name, at->name); i++)
        ;
    return at;
}

const struct kp_net_ops *kp_net_find(const char *name)
{
    return kp_net_named(kp_str_from(name));
}

/* --- what models share ----------------------------------------------------------------------
 */

float *kp_carve_take(struct kp_carve *c, size_t n)
{
    float *at = c->base ? c->base + c->used : NULL;
    c->used += (n + 15) / 16 * 16;
    return at;
}

kp_half *kp_carve_packed(struct kp_carve *c, size_t count, size_t n, size_t k)
{
    /* Columns of 16 halves are whole floats. */
    return (kp_half *)kp_carve_take(c, count * kp_pack_size(n, k) / 2);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_net_declare(struct kp_net *net, size_t number, const char *name, size_t rows,
                    size_t cols, enum kp_init init, float scale)
{
    KP_CHECK(number < sizeof(net->offset) / sizeof(*net->offset));
    net->offset[number] = kp_params_add(&net->params, name, rows, cols, init, scale);
}

void kp_net_drop(const struct kp_net *net, uint64_t key, uint64_t place, float *x, size_t n)
{
    if (key && net->shape.dropout > 0)
        kp_dropout(key + place * 0x9e3779b97f4a7c15U, net->shape.dropout, x, n);
}

size_t kp_net_values_before(const struct kp_net *net, size_t p)
{
    size_t n = 0;
    for (size_t i = 0; i < p; i++)
        n += net->shape.n_values[i];
    return n;
}

size_t kp_net_most_values(const struct kp_net *net)
{
    size_t most = 1;
    for (size_t i = 0; i < net->shape.n_targets; i++)
        most = net->shape.n_values[i] > most ? net->shape.n_values[i] : most;
    return most;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_heads_run(const struct kp_heads *h, const struct kp_batch *b, float smoothing,
                  const float *x, float *dx, float *dw, float *db, float *work,
                  struct kp_net_score *score)
{
    const struct kp_net *net = h->net;
    size_t at = 0;
    for (size_t p = 0; p < net->shape.n_targets; p++) {
        size_t V = net->shape.n_values[p];
        const struct kp_linear l = {b->B, h->H, V, h->w + at * h->H, h->b + at};
        const int32_t *target = b->targets + p * b->B;
        const float *x_p = x + p * b->B * h->H; /* [B][H] */
        kp_linear_forward(net->blas, &l, x_p, work);
        score->loss +=
            kp_cross_entropy(b->B, V, work, target, b->weights, smoothing, &score->n_right);
        for (size_t i = 0; i < b->B; i++)
            score->n_target += target[i] >= 0;
        if (dx)
            kp_linear_backward(net->blas, &l, x_p, work, dx + p * b->B * h->H, dw + at * h->H,
                               db + at);
        at += V;
    }
}

void kp_heads_logp(const struct kp_heads *h, size_t p, size_t n, const float *x, float *logp)
{
    size_t at = kp_net_values_before(h->net, p);
    size_t V = h->net->shape.n_values[p];
    const struct kp_linear l = {n, h->H, V, h->w + at * h->H, h->b + at};
    kp_linear_forward(h->net->blas, &l, x, logp);
    kp_log_softmax(n, V, logp);
}

/* --- life -----------------------------------------------------------------------------------
 */

static kopt_status check_shape(const struct kp_net_shape *s, kopt_error *err)
{
    bool good = s->n_tokens >= 1 && s->n_tokens <= KP_FIELDS_MAX && s->n_vocab >= 1 &&
                s->n_vocab <= VOCAB_LIMIT && s->n_features <= SIZE_LIMIT && s->n_targets >= 1 &&
                s->n_targets <= KP_TARGETS_MAX && s->embed <= SIZE_LIMIT &&
                s->hidden <= SIZE_LIMIT && s->hidden % 2 == 0 && s->layers <= LAYERS_LIMIT &&
                (s->kernel == 0 || (s->kernel % 2 == 1 && s->kernel < 16)) && s->dropout < 1 &&
                s->cell <= 1 && s->score <= 1;
    for (size_t p = 0; good && p < s->n_targets; p++)
        good = s->n_values[p] >= 1 && s->n_values[p] <= KP_TARGET_VALUES_MAX;
    return good ? KOPT_OK : kp_err(err, KOPT_EINPUT, "no network can have these sizes");
}

kopt_status kp_net_new(const struct kp_net_ops *ops, const struct kp_net_shape *shape,
                       uint64_t seed, struct kp_net **out, kopt_error *err)
{
    *out = NULL;
    kopt_status st = check_shape(shape, err);
    if (st != KOPT_OK)
        return st;
    struct kp_net *net = kp_calloc(1, sizeof(*net));
    if (!net)
        return kp_err_nomem(err);
    net->ops = ops;
    net->shape = *shape;
    net->blas = kp_blas_fast();
    st = ops->build(net, err);
    if (st == KOPT_OK)
        st = kp_params_status(&net->params, err);
    if (st == KOPT_OK && seed) {
        struct kp_rng rng;
        kp_rng_init(&rng, seed);
        net->values = kp_slab_new(net->params.n_floats);
        if (net->values)
            kp_params_init(&net->params, &rng, net->values);
        else
            st = kp_err_nomem(err);
    }
    if (st != KOPT_OK) {
        kp_net_free(net);
        return st;
    }
    *out = net;
    return KOPT_OK;
}

/* Is every parameter there as a half, too? */
static bool fits_halves(const struct kp_net *net)
{
    bool fits = true;
    for (size_t t = 0; t < net->params.n_tensors; t++) {
        const struct kp_tensor *w = &net->params.tensors[t];
        for (size_t i = 0; i < w->rows * w->cols; i++)
            fits &= fabsf(net->values[w->offset + i]) <= KP_HALF_MAX;
    }
    return fits;
}

kopt_status kp_net_prepare(struct kp_net *net, kopt_error *err)
{
    if (net->prepared || !fits_halves(net))
        return KOPT_OK;
    float *made = kp_slab_new(net->ops->prepare(net, NULL));
    if (!made)
        return kp_err_nomem(err);
    (void)net->ops->prepare(net, made);
    net->prepared = made;
    return KOPT_OK;
}

void kp_net_unprepare(struct kp_net *net)
{
    kp_slab_free(net->prepared);
    net->prepared = NULL;
}

void kp_net_free(struct kp_net *net)
{
    if (!net)
        return;
    kp_net_unprepare(net);
    if (!net->borrowed)
        kp_slab_free(net->values);
    kp_params_deinit(&net->params);
    kp_free(net);
}

/* --- shapes as text -------------------------------------------------------------------------
 */

struct size_field {
    const char *name;
    size_t offset;
};
static const struct size_field sizes[] = {
    {"tokens", offsetof(struct kp_net_shape, n_tokens)},
    {"vocabulary", offsetof(struct kp_net_shape, n_vocab)},
    {"features", offsetof(struct kp_net_shape, n_features)},
    {"targets", offsetof(struct kp_net_shape, n_targets)},
    {"embed", offsetof(struct kp_net_shape, embed)},
    {"hidden", offsetof(struct kp_net_shape, hidden)},
    {"layers", offsetof(struct kp_net_shape, layers)},
    {"kernel", offsetof(struct kp_net_shape, kernel)}};

struct kp_json *kp_net_shape_to_json(const struct kp_net_shape *s)
{
    struct kp_json *j = kp_json_new_object();
    struct kp_json *values = kp_json_new_array();
    bool ok = j && values;
    for (size_t i = 0; ok && i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t v;
        memcpy(&v, (const char *)s + sizes[i].offset, sizeof(v));
        ok = kp_json_set_i64(j, sizes[i].name, (int64_t)v);
    }
    for (size_t p = 0; ok && p < s->n_targets; p++)
        ok = kp_json_push(values, kp_json_new_i64(s->n_values[p]));
    ok = ok && kp_json_set_f64(j, "dropout", (double)s->dropout) &&
         kp_json_set_i64(j, "cell", s->cell) && kp_json_set_i64(j, "score", s->score);
    if (ok && kp_json_set(j, "values", values))
        return j;
    if (!ok)
        kp_json_free(values);
    kp_json_free(j);
    return NULL;
}

static kopt_status need_u32(const struct kp_json *j, const char *key, uint32_t *out,
                            kopt_error *err)
{
    int64_t v;
    kopt_status st = kp_json_need_i64(j, key, &v, err);
    if (st == KOPT_OK && (v < 0 || v > UINT32_MAX))
        st = kp_err(err, KOPT_EINPUT, "'%s' is out of range", key);
    *out = st == KOPT_OK ? (uint32_t)v : 0;
    return st;
}

kopt_status kp_net_shape_from_json(const struct kp_json *j, struct kp_net_shape *s,
                                   kopt_error *err)
{
    const struct kp_json *values = NULL;
    double dropout = 0;
    kopt_status st = KOPT_OK;
    *s = (struct kp_net_shape){0};
    for (size_t i = 0; st == KOPT_OK && i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint32_t v;
        st = need_u32(j, sizes[i].name, &v, err);
        size_t size = v;
        memcpy((char *)s + sizes[i].offset, &size, sizeof(size));
    }
    if (st == KOPT_OK)
        st = need_u32(j, "cell", &s->cell, err);
    if (st == KOPT_OK)
        st = need_u32(j, "score", &s->score, err);
    if (st == KOPT_OK)
        st = kp_json_need_f64(j, "dropout", &dropout, err);
    if (st == KOPT_OK)
        st = kp_json_need_array(j, "values", &values, err);
    if (st != KOPT_OK)
        return st;
    s->dropout = (float)dropout;
    if (s->n_targets > KP_TARGETS_MAX || kp_json_size(values) != s->n_targets)
        return kp_err(err, KOPT_EINPUT, "the targets' values do not fit their number");
    for (size_t p = 0; p < s->n_targets; p++) {
        int64_t v;
        if (!kp_json_as_i64(kp_json_at(values, p), &v) || v < 1 || v > KP_TARGET_VALUES_MAX)
            return kp_err(err, KOPT_EINPUT, "a target's number of values is out of range");
        s->n_values[p] = (uint32_t)v;
    }
    return check_shape(s, err);
}
