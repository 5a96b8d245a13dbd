/* SPDX-License-Identifier: MIT */
/* The trees beside a model's networks: of what they learned from. Layer: learn. */
#include "learn/fit.h"

#include "base/alloc.h"
#include "learn/grow.h"
#include "model/encoder_impl.h"

#include <math.h>
#include <string.h>

/* Examples in the making. */
struct soil {
    struct kp_grow_examples e;
    float *x;         /* [n_inputs][n] */
    uint32_t *values; /* [n]: of the target at hand */
    float *numbers;   /* [n] */
    float *weights;   /* [n] */
    uint32_t *first;  /* [n_inputs + 1]: groups of inputs */
};

static kopt_status soil_new(struct soil *s, size_t n, size_t n_inputs, kopt_error *err)
{
    *s = (struct soil){.e = {.n = n, .n_inputs = n_inputs}};
    s->x = kp_calloc(n_inputs * n + 1, sizeof(*s->x));
    s->values = kp_calloc(n + 1, sizeof(*s->values));
    s->numbers = kp_calloc(n + 1, sizeof(*s->numbers));
    s->weights = kp_calloc(n + 1, sizeof(*s->weights));
    s->first = kp_calloc(n_inputs + 1, sizeof(*s->first));
    s->e.x = s->x;
    s->e.weights = s->weights;
    bool ok = s->x && s->values && s->numbers && s->weights && s->first;
    return ok ? KOPT_OK : kp_err_nomem(err);
}

static void soil_deinit(struct soil *s)
{
    kp_free(s->x);
    kp_free(s->values);
    kp_free(s->numbers);
    kp_free(s->weights);
    kp_free(s->first);
}

/* --- of a model that translates --------------------------------------------------------------
 */

/* All configurations worth learning, each once; columns behind the features: the values of all
 * targets. `repeat`: an example stands there so many times. */
static kopt_status take_examples(const struct kp_lesson *l, struct soil *s, kopt_error *err)
{
    const struct kp_examples *e = &l->examples[KP_ROLE_TRAIN];
    size_t F = kp_encoder_n_features(l->encoder);
    size_t P = l->data->n_targets;
    size_t n = 0;
    for (size_t i = 0; i < e->n; i += l->repeat)
        n += e->first[i + 1] - e->first[i];
    kopt_status st = soil_new(s, n, F + P, err);
    if (st != KOPT_OK)
        return st;
    size_t row = 0;
    for (size_t i = 0; i < e->n; i += l->repeat) {
        for (size_t k = e->first[i]; k < e->first[i + 1]; k++, row++) {
            for (size_t f = 0; f < F; f++)
                s->x[f * n + row] = e->features[i * F + f];
            for (size_t p = 0; p < P; p++)
                s->x[(F + p) * n + row] = (float)e->configs[k * P + p];
            s->weights[row] = e->shares[k] * (e->weights ? e->weights[i] : 1);
        }
    }
    return KOPT_OK;
}

static bool is_fine(const struct kp_feature *f)
{
    return f->kind == KP_FEATURE_DIVIDES || f->kind == KP_FEATURE_PART;
}

/* What divides a field's number is one group, however many features it has; each other feature
 * and each of `n_before` targets is its own. Returns how many groups there are. */
static size_t group_inputs(const struct kp_encoder *e, size_t n_before, uint32_t *first)
{
    size_t n = 0;
    for (size_t f = 0; f < e->n_features; f++) {
        const struct kp_feature *a = &e->features[f];
        if (f == 0 || !is_fine(a) || !is_fine(a - 1) || a->field != (a - 1)->field)
            first[n++] = (uint32_t)f;
    }
    for (size_t p = 0; p <= n_before; p++)
        first[n + p] = (uint32_t)(e->n_features + p);
    return n + n_before;
}

static kopt_status grow_grove(struct soil *s, const struct kp_lesson *l, size_t p,
                              const struct kp_grow_plan *plan, struct kp_crew *crew,
                              struct kp_grown *out, kopt_error *err)
{
    size_t F = kp_encoder_n_features(l->encoder);
    const float *column = s->x + (F + p) * s->e.n;
    struct kp_grow_plan own = *plan;
    s->e.n_inputs = F + p;
    s->e.n_outputs = l->data->targets[p].n_values;
    s->e.n_groups = group_inputs(l->encoder, p, s->first);
    s->e.first = s->first;
    s->e.values = s->values;
    if (s->e.n_outputs == 1 || s->e.n_inputs == 0) {
        out->grove = (struct kp_grove){.n_inputs = F + p, .n_outputs = s->e.n_outputs};
        return KOPT_OK;
    }
    for (size_t i = 0; i < s->e.n; i++)
        s->values[i] = (uint32_t)column[i];
    own.seed += p;
    return kp_grove_grow(&s->e, &own, crew, out, err);
}

static kopt_status grow_groves(const struct kp_lesson *l, const struct kp_grow_plan *plan,
                               struct kp_crew *crew, struct kp_grown *grown, kopt_error *err)
{
    struct soil s = {0};
    kopt_status st = take_examples(l, &s, err);
    for (size_t p = 0; st == KOPT_OK && p < l->data->n_targets; p++)
        st = grow_grove(&s, l, p, plan, crew, &grown[p], err);
    soil_deinit(&s);
    return st;
}

/* --- of a model that ranks -------------------------------------------------------------------
 */

/* kp_rank_worth() in single precision: other roundings would be other trees. */
static float worth(float wanted)
{
    return 0.1F + 0.9F * expf(-wanted / 0.3F);
}

static kopt_status grow_one(const struct kp_ranks *r, const struct kp_grow_plan *plan,
                            struct kp_crew *crew, struct kp_grown *grown, kopt_error *err)
{
    struct soil s = {0};
    size_t n = r->first[r->n];
    size_t F = r->n_inputs;
    kopt_status st = soil_new(&s, n, F, err);
    for (size_t p = 0; st == KOPT_OK && p < r->n; p++) {
        double share = r->helps[p] ? r->lesson->extra_weight : 1;
        for (size_t i = r->first[p]; i < r->first[p + 1]; i++) {
            for (size_t f = 0; f < F; f++)
                s.x[f * n + i] = r->x[i * F + f];
            s.numbers[i] = r->wanted[i];
            s.weights[i] = (float)share * worth(r->wanted[i]);
        }
    }
    s.e.n_outputs = 1;
    s.e.numbers = s.numbers;
    if (st == KOPT_OK)
        st = kp_grove_grow(&s.e, plan, crew, grown, err);
    soil_deinit(&s);
    return st;
}

/* --- the whole ------------------------------------------------------------------------------
 */

kopt_status kp_fit_trees(const struct kp_lesson *l, const struct kp_fit_options *o,
                         struct kp_model *m, kopt_error *err)
{
    struct kp_crew *crew;
    size_t n = o->ranks ? 1 : l->data->n_targets;
    struct kp_grow_plan plan = o->grow;
    plan.seed = o->plan.seed;
    if (plan.trees == 0)
        return KOPT_OK;
    struct kp_grown *grown = kp_calloc(n, sizeof(*grown));
    if (!grown)
        return kp_err_nomem(err);
    kopt_status st = kp_crew_new(o->plan.threads, &crew, err);
    bool again = st == KOPT_OK;
    while (again) {
        st = o->ranks ? grow_one(o->ranks, &plan, crew, grown, err)
                      : grow_groves(l, &plan, crew, grown, err);
        if (st == KOPT_OK)
            st = kp_grown_plant(grown, n, o->trees_weight, &m->forest, err);
        again = st == KOPT_ERANGE; /* more than a file can have */
        plan.leaf *= 2;
        for (size_t g = 0; g < n; g++)
            kp_grown_deinit(&grown[g]);
    }
    kp_free(grown);
    kp_crew_free(crew);
    return st;
}
