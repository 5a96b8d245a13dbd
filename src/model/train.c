/* SPDX-License-Identifier: MIT */
#include "model/train.h"
#include "model/crew.h"

#include "base/alloc.h"
#include "os/clock.h"

#include <math.h>
#include <string.h>

enum { SHARDS_MAX = 64, PIECES = 32, VALID_ROWS = 256 };

/* A batch's rows of one shard, as a network takes them. */
struct shard {
    int32_t *tokens;  /* [T][B] */
    float *features;  /* [B][F] */
    int32_t *targets; /* [P][B] */
    float *weights;   /* [B] */
    float *grad;      /* a slab; NULL in validation */
    float *work;
    size_t B;
    struct kp_net_score score;
};

struct trainer {
    const struct kp_train_plan *plan;
    const struct kp_examples *train;
    const struct kp_examples *valid;
    struct kp_net *net; /* its slab has the best values */
    struct kp_net live; /* the same with the values of now */
    struct kp_train_state s;
    struct shard *shards;
    size_t n_shards;
    struct kp_crew *crew;
    uint32_t *order; /* [train->n] */
    double weight;   /* of all examples */
    /* What the crew works on. */
    size_t begin; /* the batch's first place in `order` */
    size_t rows;
    uint64_t epoch_key;
    double norm;
    double norms[PIECES];
    size_t valid_rows;  /* (problem, configuration) pairs */
    uint32_t *valid_of; /* [valid_rows]: their problems */
};

/* --- memory ---------------------------------------------------------------------------------
 */

static void shard_deinit(struct shard *s)
{
    kp_free(s->tokens);
    kp_free(s->features);
    kp_free(s->targets);
    kp_free(s->weights);
    kp_slab_free(s->grad);
    kp_slab_free(s->work);
}

static bool shard_init(const struct kp_net *net, size_t rows, struct shard *s)
{
    size_t work = net->ops->work(net, rows, true);
    size_t valid = net->ops->work(net, VALID_ROWS, false);
    size_t most = rows > VALID_ROWS ? rows : VALID_ROWS;
    s->tokens = kp_calloc(most * net->shape.n_tokens, sizeof(int32_t));
    s->features = kp_calloc(most * net->shape.n_features + 1, sizeof(float));
    s->targets = kp_calloc(most * net->shape.n_targets, sizeof(int32_t));
    s->weights = kp_calloc(most, sizeof(float));
    s->grad = kp_slab_new(net->params.n_floats);
    s->work = kp_slab_new(work > valid ? work : valid);
    return s->tokens && s->features && s->targets && s->weights && s->grad && s->work;
}

static void trainer_deinit(struct trainer *t)
{
    kp_crew_free(t->crew);
    for (size_t i = 0; t->shards && i < t->n_shards; i++)
        shard_deinit(&t->shards[i]);
    kp_free(t->shards);
    kp_slab_free(t->s.values);
    kp_slab_free(t->s.m);
    kp_slab_free(t->s.v);
    kp_free(t->order);
    kp_free(t->valid_of);
}

static kopt_status trainer_init(struct trainer *t, const struct kp_train_state *resume,
                                kopt_error *err)
{
    size_t n = t->net->params.n_floats;
    size_t shard_rows = (t->plan->batch + t->n_shards - 1) / t->n_shards;
    t->valid_rows = t->valid->first[t->valid->n];
    t->shards = kp_calloc(t->n_shards, sizeof(*t->shards));
    t->order = kp_calloc(t->train->n, sizeof(*t->order));
    t->valid_of = kp_calloc(t->valid_rows + 1, sizeof(*t->valid_of));
    t->s.values = kp_slab_new(n);
    t->s.m = kp_slab_new(n);
    t->s.v = kp_slab_new(n);
    bool ok = t->shards && t->order && t->valid_of && t->s.values && t->s.m && t->s.v;
    for (size_t i = 0; ok && i < t->n_shards; i++)
        ok = shard_init(t->net, shard_rows, &t->shards[i]);
    if (!ok)
        return kp_err_nomem(err);
    for (size_t i = 0; i < t->valid->n; i++)
        for (uint32_t k = t->valid->first[i]; k < t->valid->first[i + 1]; k++)
            t->valid_of[k] = (uint32_t)i;
    for (size_t i = 0; i < t->train->n; i++)
        t->weight += t->train->weights ? (double)t->train->weights[i] : 1;
    memcpy(t->s.values, resume ? resume->values : t->net->values, n * sizeof(float));
    if (resume) {
        memcpy(t->s.m, resume->m, n * sizeof(float));
        memcpy(t->s.v, resume->v, n * sizeof(float));
        t->s.epoch = resume->epoch;
        t->s.best_epoch = resume->best_epoch;
        t->s.best_loss = resume->best_loss;
        t->s.step = resume->step;
    }
    t->live = *t->net;
    t->live.values = t->s.values;
    return kp_crew_new(t->plan->threads, &t->crew, err);
}

/* --- batches --------------------------------------------------------------------------------
 */

static uint64_t mix(uint64_t x) /* splitmix64's finish: Steele, Lea and Flood, 2014 */
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static double unit(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}

/* One of a problem's configurations, by its shares. */
static uint32_t draw(const struct kp_examples *e, size_t problem, uint64_t key)
{
    uint32_t at = e->first[problem];
    uint32_t end = e->first[problem + 1];
    double u = unit(key);
    while (at + 1 < end && u >= (double)e->shares[at])
        u -= (double)e->shares[at++];
    return at;
}

static void put_row(const struct kp_net *net, const struct kp_examples *e, size_t problem,
                    uint32_t config, size_t row, struct shard *s)
{
    size_t T = net->shape.n_tokens;
    size_t F = net->shape.n_features;
    size_t P = net->shape.n_targets;
    for (size_t t = 0; t < T; t++)
        s->tokens[t * s->B + row] = e->tokens[problem * T + t];
    memcpy(s->features + row * F, e->features + problem * F, F * sizeof(float));
    for (size_t p = 0; p < P; p++)
        s->targets[p * s->B + row] = (int32_t)e->configs[config * P + p];
}

static struct kp_batch batch_of(const struct shard *s)
{
    return (struct kp_batch){s->B, s->tokens, s->features, s->targets, s->weights};
}

/* The crew's task: gradients of shard i of the batch. */
static void do_shard(void *user, size_t i)
{
    struct trainer *t = user;
    struct shard *s = &t->shards[i];
    const struct kp_net *net = &t->live;
    size_t from = t->rows * i / t->n_shards;
    size_t to = t->rows * (i + 1) / t->n_shards;
    const float *weights = t->train->weights;
    float weight = 1.0F / (float)(t->rows * net->shape.n_targets);
    s->B = to - from;
    s->score = (struct kp_net_score){0};
    memset(s->grad, 0, net->params.n_floats * sizeof(float));
    if (s->B == 0)
        return;
    for (size_t r = 0; r < s->B; r++) {
        size_t problem = t->order[t->begin + from + r];
        uint64_t key = mix(t->epoch_key ^ mix(problem + 1));
        put_row(net, t->train, problem, draw(t->train, problem, key), r, s);
        s->weights[r] = weights ? weight * weights[problem] : weight;
        for (size_t k = 0; t->plan->unknown > 0 && k < net->shape.n_tokens; k++)
            if (unit(mix(key + k + 1)) < (double)t->plan->unknown)
                s->tokens[k * s->B + r] = t->train->unknown[k];
    }
    const struct kp_batch b = batch_of(s);
    uint64_t key = mix(t->epoch_key + t->begin * SHARDS_MAX + i) | 1;
    net->ops->run(net, &b, t->plan->smoothing, key, s->grad, s->work, &s->score);
}

static void piece_of(const struct trainer *t, size_t i, size_t *from, size_t *n)
{
    size_t blocks = t->net->params.n_floats / 16;
    *from = blocks * i / PIECES * 16;
    *n = blocks * (i + 1) / PIECES * 16 - *from;
}

/* The crew's task: add up piece i of the shards' gradients, in the shards' order. */
static void do_sum(void *user, size_t i)
{
    struct trainer *t = user;
    size_t from;
    size_t n;
    piece_of(t, i, &from, &n);
    float *sum = t->shards[0].grad + from;
    for (size_t k = 1; k < t->n_shards; k++) {
        const float *g = t->shards[k].grad + from;
        for (size_t j = 0; j < n; j++)
            sum[j] += g[j];
    }
    t->norms[i] = kp_grad_norm(sum, n);
}

static void do_step(void *user, size_t i)
{
    struct trainer *t = user;
    size_t from;
    size_t n;
    piece_of(t, i, &from, &n);
    kp_adam_step(&t->plan->adam, t->s.step, n, t->norm, t->s.values + from,
                 t->shards[0].grad + from, t->s.m + from, t->s.v + from);
}

/* False: a loss or a gradient that is not a number; the values are as they were. */
static bool do_batch(struct trainer *t, double *loss)
{
    double sum = 0;
    double squares = 0;
    kp_crew_run(t->crew, do_shard, t, t->n_shards);
    kp_crew_run(t->crew, do_sum, t, PIECES);
    for (size_t i = 0; i < t->n_shards; i++)
        sum += t->shards[i].score.loss;
    for (size_t i = 0; i < PIECES; i++)
        squares += t->norms[i] * t->norms[i];
    t->norm = sqrt(squares);
    if (!isfinite(sum) || !isfinite(t->norm))
        return false;
    t->s.step++;
    kp_crew_run(t->crew, do_step, t, PIECES);
    *loss += sum * (double)t->rows;
    return true;
}

static void shuffle(struct trainer *t)
{
    struct kp_rng rng;
    kp_rng_init(&rng, mix(t->plan->seed) + t->s.epoch);
    t->epoch_key = kp_rng_u64(&rng);
    for (size_t i = 0; i < t->train->n; i++)
        t->order[i] = (uint32_t)i;
    for (size_t i = t->train->n - 1; i > 0; i--) {
        size_t k = (size_t)kp_rng_below(&rng, i + 1);
        uint32_t swap = t->order[i];
        t->order[i] = t->order[k];
        t->order[k] = swap;
    }
}

static bool do_epoch(struct trainer *t, double *loss)
{
    *loss = 0;
    shuffle(t);
    for (t->begin = 0; t->begin < t->train->n; t->begin += t->rows) {
        size_t left = t->train->n - t->begin;
        t->rows = left < t->plan->batch ? left : t->plan->batch;
        if (!do_batch(t, loss))
            return false;
    }
    *loss /= t->weight;
    return true;
}

/* --- validation -----------------------------------------------------------------------------
 */

/* The crew's task: chunk i of the validation's pairs, `begin` chunks into them. */
static void do_chunk(void *user, size_t i)
{
    struct trainer *t = user;
    struct shard *s = &t->shards[i];
    const struct kp_net *net = &t->live;
    size_t from = (t->begin + i) * VALID_ROWS;
    s->score = (struct kp_net_score){0};
    if (from >= t->valid_rows)
        return;
    s->B = t->valid_rows - from < VALID_ROWS ? t->valid_rows - from : VALID_ROWS;
    for (size_t r = 0; r < s->B; r++) {
        uint32_t config = (uint32_t)(from + r);
        put_row(net, t->valid, t->valid_of[config], config, r, s);
        s->weights[r] = t->valid->shares[config] / (float)(t->valid->n * net->shape.n_targets);
    }
    const struct kp_batch b = batch_of(s);
    net->ops->run(net, &b, 0, 0, NULL, s->work, &s->score);
}

static void validate(struct trainer *t, struct kp_epoch *e)
{
    size_t right = 0;
    size_t targets = 0;
    size_t chunks = (t->valid_rows + VALID_ROWS - 1) / VALID_ROWS;
    e->valid_loss = 0;
    for (t->begin = 0; t->begin < chunks; t->begin += t->n_shards) {
        kp_crew_run(t->crew, do_chunk, t, t->n_shards);
        for (size_t i = 0; i < t->n_shards; i++) {
            e->valid_loss += t->shards[i].score.loss;
            right += t->shards[i].score.n_right;
            targets += t->shards[i].score.n_target;
        }
    }
    e->valid_right = targets ? (double)right / (double)targets : 0;
}

/* --- the whole ------------------------------------------------------------------------------
 */

static kopt_status broken(const struct trainer *t, kopt_error *err)
{
    kopt_status st =
        kp_err(err, KOPT_EFAILED,
               "the loss is not a number any more in epoch %u; the values of epoch "
               "%u are kept",
               t->s.epoch + 1, t->s.best_epoch);
    kp_err_hint(err, "a lower learning rate usually helps");
    return st;
}

static kopt_status epochs(struct trainer *t, const struct kp_train_hooks *hooks,
                          struct kp_epoch *best, kopt_error *err)
{
    while (t->s.epoch < t->plan->epochs &&
           (t->s.epoch == 0 || t->s.epoch - t->s.best_epoch < t->plan->patience)) {
        struct kp_epoch e = {.number = t->s.epoch + 1};
        int64_t begun = kp_clock_ns();
        if (!do_epoch(t, &e.train_loss))
            return broken(t, err);
        validate(t, &e);
        if (!isfinite(e.valid_loss))
            return broken(t, err);
        t->s.epoch++;
        e.seconds = (double)(kp_clock_ns() - begun) / 1e9;
        e.best = t->s.epoch == 1 || e.valid_loss < t->s.best_loss;
        if (e.best) {
            t->s.best_loss = e.valid_loss;
            t->s.best_epoch = t->s.epoch;
            memcpy(t->net->values, t->s.values, t->net->params.n_floats * sizeof(float));
            *best = e;
        }
        if (hooks && hooks->save && !hooks->save(hooks->user, &t->s))
            return kp_err(err, KOPT_EIO, "the state of the training could not be saved");
        if (hooks && hooks->epoch && !hooks->epoch(hooks->user, &e))
            break;
    }
    return KOPT_OK;
}

kopt_status kp_train(struct kp_net *net, const struct kp_examples *train,
                     const struct kp_examples *valid, const struct kp_train_plan *plan,
                     const struct kp_train_hooks *hooks, const struct kp_train_state *resume,
                     struct kp_epoch *best, kopt_error *err)
{
    struct kp_train_plan p = *plan;
    struct trainer t = {.plan = &p, .train = train, .valid = valid, .net = net};
    *best = (struct kp_epoch){0};
    if (train->n == 0 || valid->n == 0)
        return kp_err(err, KOPT_EINPUT, "there are no problems to %s",
                      train->n ? "validate with" : "learn from");
    p.batch = p.batch ? p.batch : 1;
    p.batch = p.batch < train->n ? p.batch : train->n;
    t.n_shards = p.shards ? p.shards : 1;
    t.n_shards = t.n_shards > SHARDS_MAX ? SHARDS_MAX : t.n_shards;
    t.n_shards = t.n_shards > p.batch ? p.batch : t.n_shards;
    if (p.adam.total == 0)
        p.adam.total = (uint64_t)p.epochs * ((train->n + p.batch - 1) / p.batch);
    kopt_status st = trainer_init(&t, resume, err);
    if (st == KOPT_OK)
        st = epochs(&t, hooks, best, err);
    trainer_deinit(&t);
    return st;
}
