/* SPDX-License-Identifier: MIT */
#include "learn/lesson.h"

#include "base/alloc.h"
#include "learn/problem.h"

#include <math.h>
#include <string.h>

/* --- canonical forms ------------------------------------------------------------------------
 */

/* A parameter whose canonical value is another one takes that, as long as the configuration
 * stays valid and the target knows it. */
static bool make_canonical(const struct kp_problem_rules *r, uint32_t *config)
{
    struct kp_value values[KP_PARAMS_MAX];
    bool changed = false;
    if (!kp_problem_rules_canonical(r, config, values))
        return false;
    for (size_t p = 0; p < kp_space_n_params(r->bound->space); p++) {
        uint32_t *at = &config[r->map[p]];
        const struct kp_target *t = &r->targets[r->map[p]];
        uint32_t was = *at;
        uint32_t to = kp_value_find(t->values, t->n_values, values[p]);
        if (to == t->n_values || to == was)
            continue;
        *at = to;
        if (kp_problem_rules_valid(r, config))
            changed = true;
        else
            *at = was;
    }
    return changed;
}

static kopt_status canonical_rows(struct kp_lesson *l, const struct kp_lesson_options *o,
                                  uint32_t *configs, kopt_error *err)
{
    const struct kp_dataset *d = l->data;
    struct kp_problem_rules r = {0};
    size_t bound_to = SIZE_MAX;
    kopt_status st = KOPT_OK;
    if (!o->rules || o->rules->n_canonicals == 0)
        return KOPT_OK;
    for (size_t i = 0; i < d->n_rows && st == KOPT_OK; i++) {
        if (d->of[i] != bound_to) {
            kp_problem_rules_deinit(&r);
            bound_to = d->of[i];
            st = kp_problem_rules_init(d, bound_to, o->rules, o->limits, d->targets,
                                       d->n_targets, &r);
        }
        if (st == KOPT_OK && make_canonical(&r, configs + i * d->n_targets))
            l->n_canonical++;
    }
    kp_problem_rules_deinit(&r);
    return st == KOPT_OK ? st : kp_err(err, st, "the rules cannot be bound to the data");
}

/* --- examples -------------------------------------------------------------------------------
 */

/* How much of its problem's examples a row is, not yet adding up to 1. */
static double worth(const struct kp_dataset *d, size_t row, double best, double near_best)
{
    double t = (double)d->times_ns[row];
    if (!isfinite(best))
        return isnan(t) ? 1 : 0;
    double over = t / best - 1;
    if (!(over <= near_best))
        return 0;
    return near_best > 0 ? exp(-over / (near_best / 3)) : 1;
}

static double best_time(const struct kp_dataset *d, size_t from, size_t to)
{
    double best = (double)INFINITY;
    for (size_t r = from; r < to; r++)
        best = fmin(best, (double)d->times_ns[r]); /* NaN gives way */
    return best;
}

struct filling {
    const struct kp_dataset *d;
    const uint32_t *configs;
    struct kp_examples *e;
    float *shares;
    uint32_t *first;
    uint32_t *kept;
    int32_t *tokens;
    float *features;
    float *weights;
    size_t n_configs;
};

static bool is_extra(const struct kp_dataset *d, size_t problem)
{
    return d->twins && d->twins[problem] != problem;
}

static bool fill_problem(struct filling *f, const struct kp_encoder *enc, size_t problem,
                         size_t from, size_t to, const struct kp_lesson_options *o)
{
    const struct kp_dataset *d = f->d;
    size_t P = d->n_targets;
    size_t before = f->n_configs;
    double best = best_time(d, from, to);
    double sum = 0;
    for (size_t r = from; r < to; r++) {
        double w = worth(d, r, best, o->near_best);
        if (w <= 0)
            continue;
        memcpy(f->kept + f->n_configs * P, f->configs + r * P, P * sizeof(uint32_t));
        f->shares[f->n_configs++] = (float)w;
        sum += w;
    }
    if (f->n_configs == before)
        return false;
    for (size_t k = before; k < f->n_configs; k++)
        f->shares[k] = (float)((double)f->shares[k] / sum);
    size_t i = f->e->n++;
    f->weights[i] = is_extra(d, problem) && o->extra_weight > 0 ? (float)o->extra_weight : 1;
    kp_encode(enc, d->problems + problem * d->n_fields,
              f->tokens + i * kp_encoder_n_tokens(enc),
              f->features + i * kp_encoder_n_features(enc));
    f->first[f->e->n] = (uint32_t)f->n_configs;
    return true;
}

static bool times_known(const struct kp_dataset *d)
{
    for (size_t r = 0; r < d->n_rows; r++)
        if (isfinite(d->times_ns[r]))
            return true;
    return false;
}

static bool is_for(const struct kp_lesson *l, const struct kp_lesson_options *o, size_t problem,
                   enum kp_role role)
{
    return l->roles[problem] == role || (role == KP_ROLE_TRAIN && o->split.learn_valid &&
                                         l->roles[problem] == KP_ROLE_VALID);
}

static kopt_status make_examples(struct kp_lesson *l, enum kp_role role,
                                 const uint32_t *configs, const struct kp_lesson_options *o,
                                 kopt_error *err)
{
    const struct kp_dataset *d = l->data;
    struct kp_examples *e = &l->examples[role];
    size_t T = kp_encoder_n_tokens(l->encoder);
    size_t repeat = role != KP_ROLE_TRAIN ? 1 : o->repeat ? o->repeat : times_known(d) ? 8 : 1;
    bool both = role == KP_ROLE_TRAIN && o->split.learn_valid;
    size_t n = (l->count[role] + (both ? l->count[KP_ROLE_VALID] : 0)) * repeat;
    if (role == KP_ROLE_TRAIN)
        l->repeat = repeat;
    struct filling f = {.d = d, .configs = configs, .e = e};
    int32_t *unknown = kp_calloc(T + 1, sizeof(*unknown));
    f.shares = kp_calloc(d->n_rows * repeat + 1, sizeof(*f.shares));
    f.first = kp_calloc(n + 1, sizeof(*f.first));
    f.kept = kp_calloc(d->n_rows * repeat * d->n_targets + 1, sizeof(*f.kept));
    f.tokens = kp_calloc(n * T + 1, sizeof(*f.tokens));
    f.features = kp_calloc(n * kp_encoder_n_features(l->encoder) + 1, sizeof(*f.features));
    f.weights = kp_calloc(n + 1, sizeof(*f.weights));
    *e = (struct kp_examples){.tokens = f.tokens,
                              .features = f.features,
                              .first = f.first,
                              .configs = f.kept,
                              .shares = f.shares,
                              .weights = f.weights,
                              .unknown = unknown};
    if (!f.shares || !f.first || !f.kept || !f.tokens || !f.features || !f.weights || !unknown)
        return kp_err_nomem(err);
    for (size_t t = 0; t < T; t++)
        unknown[t] = kp_encoder_unknown(l->encoder, t);
    for (size_t from = 0; from < d->n_rows;) {
        size_t problem = d->of[from];
        size_t to = from;
        while (to < d->n_rows && d->of[to] == problem)
            to++;
        bool any = true;
        for (size_t k = 0; k < repeat && any && is_for(l, o, problem, role); k++)
            any = fill_problem(&f, l->encoder, problem, from, to, o);
        l->n_without += !any;
        from = to;
    }
    return KOPT_OK;
}

static void free_examples(struct kp_examples *e)
{
    kp_free((void *)(uintptr_t)e->tokens);
    kp_free((void *)(uintptr_t)e->features);
    kp_free((void *)(uintptr_t)e->first);
    kp_free((void *)(uintptr_t)e->configs);
    kp_free((void *)(uintptr_t)e->shares);
    kp_free((void *)(uintptr_t)e->weights);
    kp_free((void *)(uintptr_t)e->unknown);
}

void kp_lesson_free(struct kp_lesson *l)
{
    if (!l)
        return;
    free_examples(&l->examples[KP_ROLE_TRAIN]);
    free_examples(&l->examples[KP_ROLE_VALID]);
    kp_encoder_free(l->encoder);
    kp_free(l->roles);
    kp_free(l->hashes);
    kp_free(l);
}

/* --- rules and what was best ----------------------------------------------------------------
 */

enum { CHECKED_MAX = 200 /* problems */ };

/* What it is that forbids a problem's best configuration. */
struct verdict {
    bool allowed;
    const char *why; /* a rule's text, or words */
};

static struct verdict look_at(const struct kp_problem_rules *r, const uint32_t *config)
{
    uint32_t indices[KP_PARAMS_MAX];
    struct kp_rule_hit hit;
    if (!kp_problem_rules_indices(r, config, indices))
        return (struct verdict){false, "a value that they do not list"};
    if (kp_space_valid(r->bound->space, indices, &hit))
        return (struct verdict){true, NULL};
    return (struct verdict){false, hit.rule < r->bound->desc.n_rules
                                       ? r->bound->desc.rules[hit.rule].text
                                       : "a value that is out of range"};
}

/* Of equally good ones one that is allowed is enough. */
static kopt_status check_problem(const struct kp_dataset *d, size_t from, size_t to,
                                 const struct kp_lesson_options *o, struct verdict *out)
{
    struct kp_problem_rules r;
    double best = best_time(d, from, to);
    kopt_status st = kp_problem_rules_init(d, d->of[from], o->rules, o->limits, d->targets,
                                           d->n_targets, &r);
    *out = (struct verdict){st == KOPT_OK, "they do not go with the problem"};
    if (st != KOPT_OK) {
        kp_problem_rules_deinit(&r);
        return st == KOPT_ENOMEM ? st : KOPT_OK;
    }
    out->allowed = false;
    for (size_t row = from; row < to && !out->allowed; row++)
        if (worth(d, row, best, 0) > 0)
            *out = look_at(&r, d->configs + row * d->n_targets);
    kp_problem_rules_deinit(&r);
    return KOPT_OK;
}

static bool all_failed(const struct kp_dataset *d, size_t from, size_t to)
{
    for (size_t r = from; r < to; r++)
        if (!isinf(d->times_ns[r]))
            return false;
    return true;
}

/* Do the rules allow what was best? If for no problem, whatever is learned can never be
 * predicted. A sample tells. */
static kopt_status check_rules(struct kp_lesson *l, const struct kp_lesson_options *o,
                               kopt_error *err)
{
    const struct kp_dataset *d = l->data;
    size_t step = l->count[KP_ROLE_TRAIN] / CHECKED_MAX + 1;
    size_t at = 0;
    struct verdict v;
    const char *why = NULL;
    const char *problem = NULL;
    for (size_t from = 0, to; from < d->n_rows; from = to) {
        for (to = from; to < d->n_rows && d->of[to] == d->of[from];)
            to++;
        if (!is_for(l, o, d->of[from], KP_ROLE_TRAIN) || all_failed(d, from, to) ||
            at++ % step != 0)
            continue;
        if (check_problem(d, from, to, o, &v) != KOPT_OK)
            return kp_err_nomem(err);
        l->n_checked++;
        l->n_forbidden += !v.allowed;
        if (!v.allowed && !why) {
            why = v.why;
            problem = d->keys[d->of[from]];
        }
    }
    if (l->n_forbidden == 0 || l->n_forbidden < l->n_checked || o->unbound)
        return KOPT_OK;
    kopt_status st = kp_err(
        err, KOPT_EINPUT,
        "the rules of '%s' forbid the best configuration of each problem; that of %s: %s",
        o->rules->name, problem, why);
    kp_err_hint(err, "what is learned could never be predicted; are they of other data, or of "
                     "another device?");
    return st;
}

/* --- the whole ------------------------------------------------------------------------------
 */

static kopt_status make(struct kp_lesson *l, const struct kp_lesson_options *o,
                        unsigned char *train, uint32_t *configs, kopt_error *err)
{
    const struct kp_dataset *d = l->data;
    struct kp_split other = o->split;
    other.salt++;
    kopt_status st = kp_split(d, &o->split, l->roles, err);
    if (st == KOPT_OK)
        st = kp_split_hashes(d, &other, l->hashes, err);
    if (st != KOPT_OK)
        return st;
    for (size_t p = 0; p < d->n_problems; p++) {
        l->count[l->roles[p]]++;
        train[p] = is_for(l, o, p, KP_ROLE_TRAIN);
        l->n_extra += train[p] && is_extra(d, p);
    }
    for (size_t t = 0; t < d->n_targets; t++)
        l->n_constant += d->targets[t].n_values == 1;
    if (l->count[KP_ROLE_TRAIN] == 0 || l->count[KP_ROLE_VALID] == 0)
        return kp_err(err, KOPT_EINPUT,
                      "%zu problem%s for training, %zu for validation, of %zu: there must be "
                      "some of each",
                      l->count[KP_ROLE_TRAIN], l->count[KP_ROLE_TRAIN] == 1 ? "" : "s",
                      l->count[KP_ROLE_VALID], d->n_problems);
    st = kp_encoder_new(d, train, &l->encoder, err);
    if (st == KOPT_OK && kp_encoder_n_tokens(l->encoder) == 0)
        return kp_err(err, KOPT_EINPUT,
                      "nothing differs between the problems: there is nothing to predict from");
    memcpy(configs, d->configs, d->n_rows * d->n_targets * sizeof(*configs));
    if (st == KOPT_OK && o->rules)
        st = check_rules(l, o, err);
    if (st == KOPT_OK)
        st = canonical_rows(l, o, configs, err);
    if (st == KOPT_OK)
        st = make_examples(l, KP_ROLE_TRAIN, configs, o, err);
    if (st == KOPT_OK)
        st = make_examples(l, KP_ROLE_VALID, configs, o, err);
    return st;
}

kopt_status kp_lesson_new(const struct kp_dataset *data, const struct kp_lesson_options *o,
                          struct kp_lesson **out, kopt_error *err)
{
    struct kp_lesson *l = kp_calloc(1, sizeof(*l));
    unsigned char *train = kp_calloc(data->n_problems + 1, 1);
    uint32_t *configs = kp_calloc(data->n_rows * data->n_targets + 1, sizeof(*configs));
    kopt_status st = KOPT_ENOMEM;
    *out = NULL;
    if (l) {
        l->data = data;
        l->roles = kp_calloc(data->n_problems + 1, 1);
        l->hashes = kp_calloc(data->n_problems + 1, sizeof(*l->hashes));
        l->extra_weight = o->extra_weight > 0 ? o->extra_weight : 1;
    }
    if (l && l->roles && l->hashes && train && configs)
        st = make(l, o, train, configs, err);
    else
        (void)kp_err_nomem(err);
    kp_free(train);
    kp_free(configs);
    if (st != KOPT_OK) {
        kp_lesson_free(l);
        return st;
    }
    *out = l;
    return KOPT_OK;
}
