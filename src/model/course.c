/* SPDX-License-Identifier: MIT */
#include "model/course.h"
#include "model/crew.h"

#include "base/alloc.h"
#include "os/clock.h"

#include <math.h>
#include <string.h>

enum { SHARDS_MAX = 64, PIECES = 32 };

struct shard {
    float *grad; /* a slab */
    float *work;
    struct kp_net_score score;
};

struct teaching {
    const struct kp_train_plan *plan;
    const struct kp_course *course;
    struct kp_net *net; /* its slab has the best values */
    struct kp_net live; /* the same with the values of now */
    struct kp_train_state s;
    struct shard *shards;
    size_t n_shards;
    struct kp_crew *crew;
    uint32_t *order; /* [course->n] */
    /* What the crew works on. */
    size_t begin; /* the batch's first place in `order`, or the first piece of validation */
    size_t rows;
    uint64_t epoch_key;
    double norm;
    double norms[PIECES];
};

/* --- memory ---------------------------------------------------------------------------------
 */

static void teaching_deinit(struct teaching *t)
{
    kp_crew_free(t->crew);
    for (size_t i = 0; t->shards && i < t->n_shards; i++) {
        kp_slab_free(t->shards[i].grad);
        kp_slab_free(t->shards[i].work);
    }
    kp_free(t->shards);
    kp_slab_free(t->s.values);
    kp_slab_free(t->s.m);
    kp_slab_free(t->s.v);
    kp_free(t->order);
}

static kopt_status teaching_init(struct teaching *t, const struct kp_train_state *resume,
                                 kopt_error *err)
{
    size_t n = t->net->params.n_floats;
    size_t work =
        t->course->work(t->course, t->net, (t->plan->batch + t->n_shards - 1) / t->n_shards);
    t->shards = kp_calloc(t->n_shards, sizeof(*t->shards));
    t->order = kp_calloc(t->course->n, sizeof(*t->order));
    t->s.values = kp_slab_new(n);
    t->s.m = kp_slab_new(n);
    t->s.v = kp_slab_new(n);
    bool ok = t->shards && t->order && t->s.values && t->s.m && t->s.v;
    for (size_t i = 0; ok && i < t->n_shards; i++) {
        t->shards[i].grad = kp_slab_new(n);
        t->shards[i].work = kp_slab_new(work);
        ok = t->shards[i].grad && t->shards[i].work;
    }
    if (!ok)
        return kp_err_nomem(err);
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

/* --- an epoch -------------------------------------------------------------------------------
 */

/* The crew's task: gradients of shard i of the batch. */
static void do_shard(void *user, size_t i)
{
    struct teaching *t = user;
    struct shard *s = &t->shards[i];
    size_t from = t->rows * i / t->n_shards;
    size_t to = t->rows * (i + 1) / t->n_shards;
    const struct kp_course_part part = {
        .examples = t->order + t->begin + from,
        .n = to - from,
        .batch = t->rows,
        .epoch_key = t->epoch_key,
        .key = kp_course_mix(t->epoch_key + t->begin * SHARDS_MAX + i) | 1,
        .smoothing = t->plan->smoothing,
        .unknown = t->plan->unknown};
    s->score = (struct kp_net_score){0};
    memset(s->grad, 0, t->live.params.n_floats * sizeof(float));
    if (part.n)
        t->course->learn(t->course, &t->live, &part, s->grad, s->work, &s->score);
}

static void piece_of(const struct teaching *t, size_t i, size_t *from, size_t *n)
{
    size_t blocks = t->net->params.n_floats / 16;
    *from = blocks * i / PIECES * 16;
    *n = blocks * (i + 1) / PIECES * 16 - *from;
}

/* The crew's task: add up piece i of the shards' gradients, in the shards' order. */
static void do_sum(void *user, size_t i)
{
    struct teaching *t = user;
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
    struct teaching *t = user;
    size_t from;
    size_t n;
    piece_of(t, i, &from, &n);
    kp_adam_step(&t->plan->adam, t->s.step, n, t->norm, t->s.values + from,
                 t->shards[0].grad + from, t->s.m + from, t->s.v + from);
}

/* False: a loss or a gradient that is not a number; the values are as they were. */
static bool do_batch(struct teaching *t, double *loss)
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

static void shuffle(struct teaching *t)
{
    struct kp_rng rng;
    kp_rng_init(&rng, kp_course_mix(t->plan->seed) + t->s.epoch);
    t->epoch_key = kp_rng_u64(&rng);
    for (size_t i = 0; i < t->course->n; i++)
        t->order[i] = (uint32_t)i;
    for (size_t i = t->course->n - 1; i > 0; i--) {
        size_t k = (size_t)kp_rng_below(&rng, i + 1);
        uint32_t swap = t->order[i];
        t->order[i] = t->order[k];
        t->order[k] = swap;
    }
}

static bool do_epoch(struct teaching *t, double *loss)
{
    size_t n = t->course->n;
    *loss = 0;
    shuffle(t);
    for (t->begin = 0; t->begin < n; t->begin += t->rows) {
        t->rows = n - t->begin < t->plan->batch ? n - t->begin : t->plan->batch;
        if (!do_batch(t, loss))
            return false;
    }
    *loss /= t->course->weight;
    return true;
}

/* The crew's task: piece i of the validation, from `begin` on. */
static void do_check(void *user, size_t i)
{
    struct teaching *t = user;
    struct shard *s = &t->shards[i];
    s->score = (struct kp_net_score){0};
    if (t->begin + i < t->course->n_valid)
        t->course->check(t->course, &t->live, t->begin + i, s->work, &s->score);
}

static void check(struct teaching *t, struct kp_epoch *e)
{
    size_t right = 0;
    size_t targets = 0;
    e->valid_loss = 0;
    for (t->begin = 0; t->begin < t->course->n_valid; t->begin += t->n_shards) {
        kp_crew_run(t->crew, do_check, t, t->n_shards);
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

static kopt_status broken(const struct teaching *t, kopt_error *err)
{
    kopt_status st =
        kp_err(err, KOPT_EFAILED,
               "the loss is not a number any more in epoch %u; the best before was epoch %u",
               t->s.epoch + 1, t->s.best_epoch);
    kp_err_hint(err, "a lower learning rate usually helps");
    return st;
}

static kopt_status epochs(struct teaching *t, const struct kp_train_hooks *hooks,
                          struct kp_epoch *best, kopt_error *err)
{
    while (t->s.epoch < t->plan->epochs &&
           (t->s.epoch == 0 || t->s.epoch - t->s.best_epoch < t->plan->patience)) {
        struct kp_epoch e = {.number = t->s.epoch + 1};
        int64_t begun = kp_clock_ns();
        if (!do_epoch(t, &e.train_loss))
            return broken(t, err);
        check(t, &e);
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

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kp_course_teach(struct kp_net *net, const struct kp_course *course,
                            const struct kp_train_plan *plan,
                            const struct kp_train_hooks *hooks,
                            const struct kp_train_state *resume, struct kp_epoch *best,
                            kopt_error *err)
{
    struct kp_train_plan p = *plan;
    struct teaching t = {.plan = &p, .course = course, .net = net};
    *best = (struct kp_epoch){0};
    if (course->n == 0 || course->n_valid == 0)
        return kp_err(err, KOPT_EINPUT, "there are no problems to %s",
                      course->n ? "validate with" : "learn from");
    kp_net_unprepare(net);
    p.batch = p.batch ? p.batch : 1;
    p.batch = p.batch < course->n ? p.batch : course->n;
    t.n_shards = p.shards ? p.shards : 1;
    t.n_shards = t.n_shards > SHARDS_MAX ? SHARDS_MAX : t.n_shards;
    t.n_shards = t.n_shards > p.batch ? p.batch : t.n_shards;
    if (p.adam.total == 0)
        p.adam.total = (uint64_t)p.epochs * ((course->n + p.batch - 1) / p.batch);
    kopt_status st = teaching_init(&t, resume, err);
    if (st == KOPT_OK)
        st = epochs(&t, hooks, best, err);
    teaching_deinit(&t);
    return st;
}
