/* SPDX-License-Identifier: MIT */
/* The course of a network that translates: problems with configurations worth learning.
 * Layer: model. */
#include "model/train.h"
#include "model/course.h"
#include "model/models.h"

#include "base/alloc.h"

#include <string.h>

enum { VALID_ROWS = 256 };

struct translating {
    struct kp_course course;
    const struct kp_examples *train;
    const struct kp_examples *valid;
    size_t valid_rows;  /* (problem, configuration) pairs */
    uint32_t *valid_of; /* [valid_rows]: their problems */
};

/* Rows as a network takes them. */
struct rows {
    int32_t *tokens;  /* [T][B] */
    float *features;  /* [B][F] */
    int32_t *targets; /* [P][B] */
    float *weights;   /* [B] */
    float *work;
    size_t B;
};

/* NOLINTBEGIN(readability-non-const-parameter): memory that is written by way of its pieces */
static size_t lay_out(const struct kp_net *net, size_t B, bool train, float *base,
                      struct rows *r)
/* NOLINTEND(readability-non-const-parameter) */
{
    struct kp_carve c = {.base = base};
    r->tokens = (int32_t *)(void *)kp_carve_take(&c, B * net->shape.n_tokens);
    r->features = kp_carve_take(&c, B * net->shape.n_features + 1);
    r->targets = (int32_t *)(void *)kp_carve_take(&c, B * net->shape.n_targets);
    r->weights = kp_carve_take(&c, B);
    r->work = kp_carve_take(&c, net->ops->work(net, B, train));
    r->B = B;
    return c.used;
}

static size_t work(const struct kp_course *c, const struct kp_net *net, size_t n)
{
    struct rows r;
    (void)c;
    size_t learn = lay_out(net, n, true, NULL, &r);
    size_t check = lay_out(net, VALID_ROWS, false, NULL, &r);
    return learn > check ? learn : check;
}

/* One of a problem's configurations, by its shares. */
static uint32_t draw(const struct kp_examples *e, size_t problem, uint64_t key)
{
    uint32_t at = e->first[problem];
    uint32_t end = e->first[problem + 1];
    double u = kp_course_unit(key);
    while (at + 1 < end && u >= (double)e->shares[at])
        u -= (double)e->shares[at++];
    return at;
}

static void put_row(const struct kp_net *net, const struct kp_examples *e, size_t problem,
                    uint32_t config, size_t row, const struct rows *r)
{
    size_t T = net->shape.n_tokens;
    size_t F = net->shape.n_features;
    size_t P = net->shape.n_targets;
    for (size_t t = 0; t < T; t++)
        r->tokens[t * r->B + row] = e->tokens[problem * T + t];
    memcpy(r->features + row * F, e->features + problem * F, F * sizeof(float));
    for (size_t p = 0; p < P; p++)
        r->targets[p * r->B + row] = (int32_t)e->configs[config * P + p];
}

static struct kp_batch batch_of(const struct rows *r)
{
    return (struct kp_batch){.B = r->B,
                             .tokens = r->tokens,
                             .features = r->features,
                             .targets = r->targets,
                             .weights = r->weights};
}

static void learn(const struct kp_course *c, const struct kp_net *net,
                  const struct kp_course_part *part, float *grad, float *memory,
                  struct kp_net_score *score)
{
    const struct translating *t = c->user;
    const float *weights = t->train->weights;
    float weight = 1.0F / (float)(part->batch * net->shape.n_targets);
    struct rows r;
    (void)lay_out(net, part->n, true, memory, &r);
    for (size_t i = 0; i < r.B; i++) {
        size_t problem = part->examples[i];
        uint64_t key = kp_course_mix(part->epoch_key ^ kp_course_mix(problem + 1));
        put_row(net, t->train, problem, draw(t->train, problem, key), i, &r);
        r.weights[i] = weights ? weight * weights[problem] : weight;
        for (size_t k = 0; part->unknown > 0 && k < net->shape.n_tokens; k++)
            if (kp_course_unit(kp_course_mix(key + k + 1)) < (double)part->unknown)
                r.tokens[k * r.B + i] = t->train->unknown[k];
    }
    const struct kp_batch b = batch_of(&r);
    net->ops->run(net, &b, part->smoothing, part->key, grad, r.work, score);
}

/* Piece i: so many of the pairs. */
static void check(const struct kp_course *c, const struct kp_net *net, size_t i, float *memory,
                  struct kp_net_score *score)
{
    const struct translating *t = c->user;
    size_t from = i * VALID_ROWS;
    size_t left = t->valid_rows - from;
    struct rows r;
    (void)lay_out(net, left < VALID_ROWS ? left : VALID_ROWS, false, memory, &r);
    for (size_t k = 0; k < r.B; k++) {
        uint32_t config = (uint32_t)(from + k);
        put_row(net, t->valid, t->valid_of[config], config, k, &r);
        r.weights[k] = t->valid->shares[config] / (float)(t->valid->n * net->shape.n_targets);
    }
    const struct kp_batch b = batch_of(&r);
    net->ops->run(net, &b, 0, 0, NULL, r.work, score);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kp_train(struct kp_net *net, const struct kp_examples *train,
                     const struct kp_examples *valid, const struct kp_train_plan *plan,
                     const struct kp_train_hooks *hooks, const struct kp_train_state *resume,
                     struct kp_epoch *best, kopt_error *err)
{
    struct translating t = {.train = train, .valid = valid};
    t.valid_rows = valid->n ? valid->first[valid->n] : 0;
    t.valid_of = kp_calloc(t.valid_rows + 1, sizeof(*t.valid_of));
    if (!t.valid_of)
        return kp_err_nomem(err);
    for (size_t i = 0; i < valid->n; i++)
        for (uint32_t k = valid->first[i]; k < valid->first[i + 1]; k++)
            t.valid_of[k] = (uint32_t)i;
    t.course = (struct kp_course){.user = &t,
                                  .n = train->n,
                                  .n_valid = (t.valid_rows + VALID_ROWS - 1) / VALID_ROWS,
                                  .work = work,
                                  .learn = learn,
                                  .check = check};
    for (size_t i = 0; i < train->n; i++)
        t.course.weight += train->weights ? (double)train->weights[i] : 1;
    kopt_status st = kp_course_teach(net, &t.course, plan, hooks, resume, best, err);
    kp_free(t.valid_of);
    return st;
}
