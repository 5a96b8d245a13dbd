/* SPDX-License-Identifier: MIT */
#include "model/ranking.h"

#include "base/alloc.h"
#include "math/vec.h"
#include "model/encoder_impl.h"
#include "model/forest.h"
#include "model/models.h"

#include <math.h>
#include <string.h>

#define ARENA_MAX  ((size_t)256 << 20)
#define WORDS_MOST 16

struct kp_ranking *kp_ranking_new(void)
{
    struct kp_ranking *r = kp_calloc(1, sizeof(*r));
    if (r)
        r->arena = KP_ARENA_INIT(ARENA_MAX);
    return r;
}

void kp_ranking_free(struct kp_ranking *r)
{
    if (!r)
        return;
    if (!r->borrowed)
        kp_slab_free(r->values);
    kp_params_deinit(&r->params);
    kp_arena_deinit(&r->arena);
    kp_free(r);
}

const float *kp_ranking_sites(const struct kp_ranking *r, int which)
{
    return r->values + r->params.tensors[which].offset;
}

/* --- what features may be made of -----------------------------------------------------------
 */

static void add(struct kp_ranking *r, enum kp_pair_kind kind, size_t a, size_t b)
{
    if (r->n_pairs < KP_PAIRS_MAX)
        r->pairs[r->n_pairs++] = (struct kp_pair){kind, (uint32_t)a, (uint32_t)b, 0, 1};
}

static bool is_number(const struct kp_target *t)
{
    return t->type == KP_INT || t->type == KP_FLOAT;
}

static void declare_pairs(struct kp_ranking *r, const struct kp_encoder *e, size_t n_raw,
                          const struct kp_target *targets, const struct kp_kernel *rules)
{
    for (size_t t = 0; t < r->n_targets; t++) {
        if (is_number(&targets[t]))
            add(r, KP_PAIR_PARAM, t, 0);
        else
            for (size_t v = 0; v < targets[t].n_values && v < WORDS_MOST; v++)
                add(r, KP_PAIR_IS, t, v);
        for (size_t f = 0; f < n_raw && is_number(&targets[t]); f++) {
            if (e->fields[f].is_word)
                continue;
            add(r, KP_PAIR_RATIO, f, t);
            add(r, KP_PAIR_REST, f, t);
        }
    }
    for (size_t l = 0; rules && l < rules->n_lets; l++)
        add(r, KP_PAIR_LET, l, 0);
    for (int kind = 0; rules && !rules->rules_only && kind < KP_PAIR_KINDS; kind++)
        if (kind == KP_PAIR_GRID || kind == KP_PAIR_BLOCK || kind == KP_PAIR_SHARED ||
            kind >= KP_PAIR_WAVES)
            add(r, (enum kp_pair_kind)kind, 0, 0);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kp_ranking_declare(struct kp_ranking *r, const struct kp_encoder *e, size_t n_raw,
                               const struct kp_target *targets, size_t n_targets,
                               const struct kp_kernel *rules, kopt_error *err)
{
    r->n_targets = n_targets;
    r->pairs = kp_arena_alloc(&r->arena, KP_PAIRS_MAX, sizeof(*r->pairs));
    r->coordinates = kp_arena_alloc(&r->arena, e->n_features + 1, sizeof(*r->coordinates));
    if (!r->pairs || !r->coordinates)
        return kp_err_nomem(err);
    declare_pairs(r, e, n_raw, targets, rules);
    for (size_t i = 0; i < e->n_features; i++) {
        const struct kp_feature *f = &e->features[i];
        if (f->field < n_raw && (f->kind == KP_FEATURE_LOG ||
                                 (f->kind == KP_FEATURE_IS && e->fields[f->field].is_word)))
            r->coordinates[r->n_coordinates++] = (uint32_t)i;
    }
    return KOPT_OK;
}

kopt_status kp_ranking_place(struct kp_ranking *r, size_t n_sites, kopt_error *err)
{
    r->n_sites = n_sites;
    (void)kp_params_add(&r->params, "sites.at", n_sites, r->n_coordinates, KP_INIT_ZERO, 0);
    (void)kp_params_add(&r->params, "sites.field", n_sites, r->n_configs, KP_INIT_ZERO, 0);
    return kp_params_status(&r->params, err);
}

/* --- features -------------------------------------------------------------------------------
 */

static double number_of(const struct kp_value *v)
{
    double x;
    return kp_value_to_f64(*v, &x) ? x : (double)NAN;
}

static double eval(const struct kp_pair_view *v, const struct kp_expr *e, double missing)
{
    const struct kp_env env = {v->slots, v->known};
    struct kp_value value;
    if (!e)
        return missing;
    return kp_expr_eval(e, &env, &value, NULL) == KP_EVAL_VALUE ? number_of(&value)
                                                                : (double)NAN;
}

static double product(const struct kp_pair_view *v, const struct kp_expr *const e[3])
{
    return eval(v, e[0], 1) * eval(v, e[1], 1) * eval(v, e[2], 1);
}

struct launch {
    double grid, block, shared;
    double waves; /* groups for each compute unit */
};

/* What features of one configuration have in common. */
struct seen {
    struct launch launch;
    double number[KP_TARGETS_MAX]; /* its values */
    double log[KP_TARGETS_MAX];    /* log_of() of them */
    double field_log[KP_FIELDS_MAX];
};

static struct launch launch_of(const struct kp_pair_view *v)
{
    const struct kp_kernel *k = v->rules;
    if (!k || k->rules_only)
        return (struct launch){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    struct launch l = {.grid = product(v, k->grid),
                       .block = product(v, k->block),
                       .shared = eval(v, k->shared, 0)};
    l.waves = l.grid / (v->r->units > 0 ? v->r->units : 1);
    return l;
}

static void set_params(const struct kp_pair_view *v, const uint32_t *config)
{
    const struct kp_kernel *k = v->rules;
    for (size_t i = 0; k && i < k->n_params; i++) {
        for (size_t t = 0; t < v->r->n_targets; t++) {
            if (strcmp(k->params[i].name, v->targets[t].name) != 0)
                continue;
            v->slots[k->params[i].slot] = v->targets[t].values[config[t]];
            v->known[k->params[i].slot] = 1;
            break;
        }
    }
}

static double log_of(double x)
{
    return log2(1 + fabs(x));
}

static void look(const struct kp_pair_view *v, const uint32_t *config, size_t n_fields,
                 struct seen *s)
{
    set_params(v, config);
    s->launch = launch_of(v);
    for (size_t t = 0; t < v->r->n_targets; t++) {
        s->number[t] = number_of(&v->targets[t].values[config[t]]);
        s->log[t] = log_of(s->number[t]);
    }
    for (size_t f = 0; f < n_fields; f++)
        s->field_log[f] = log_of(v->problem[f]);
}

/* Fields that features look at are below this. */
static size_t fields_of(const struct kp_ranking *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[i].kind == KP_PAIR_RATIO && r->pairs[i].a >= n)
            n = r->pairs[i].a + 1;
    return n;
}

static double raw_of(const struct kp_pair_view *v, const struct kp_pair *p,
                     const uint32_t *config, const struct seen *s)
{
    const struct launch *l = &s->launch;
    double x;
    switch (p->kind) {
    case KP_PAIR_PARAM:
        return s->log[p->a];
    case KP_PAIR_IS:
        return config[p->a] == p->b;
    case KP_PAIR_LET:
        return log_of(eval(v, v->rules->lets[p->a].expr, (double)NAN));
    case KP_PAIR_GRID:
        return log_of(l->grid);
    case KP_PAIR_BLOCK:
        return log_of(l->block);
    case KP_PAIR_SHARED:
        return log_of(l->shared);
    case KP_PAIR_RATIO:
        return s->field_log[p->a] - s->log[p->b];
    case KP_PAIR_REST:
        x = s->number[p->b];
        return x > 0 ? v->problem[p->a] / x - floor(v->problem[p->a] / x) : 0;
    case KP_PAIR_WAVES:
        return log2(l->waves);
    case KP_PAIR_TAIL:
        return ceil(l->waves) - l->waves;
    case KP_PAIR_FILL:
        return l->waves / ceil(l->waves);
    case KP_PAIR_THREADS:
        return log_of(l->grid * l->block);
    case KP_PAIR_KINDS:
        break;
    }
    return (double)NAN;
}

void kp_pair_raw(const struct kp_pair_view *v, const uint32_t *config, double *raw)
{
    struct seen s;
    look(v, config, fields_of(v->r), &s);
    for (size_t i = 0; i < v->r->n_pairs; i++)
        raw[i] = raw_of(v, &v->r->pairs[i], config, &s);
}

void kp_pair_features(const struct kp_pair_view *v, const uint32_t *config, float *out)
{
    struct seen s;
    look(v, config, fields_of(v->r), &s);
    for (size_t i = 0; i < v->r->n_pairs; i++) {
        const struct kp_pair *p = &v->r->pairs[i];
        double z = (raw_of(v, p, config, &s) - p->mean) * p->scale;
        out[i] = isnan(z) ? 0 : (float)fmin(fmax(z, -KP_PAIR_CLIP), KP_PAIR_CLIP);
    }
}

void kp_ranking_coordinates(const struct kp_ranking *r, const float *features, float *z)
{
    for (size_t c = 0; c < r->n_coordinates; c++)
        z[c] = features[r->coordinates[c]];
}

void kp_ranking_correct(const struct kp_ranking *r, const float *z, float *scores)
{
    if (r->n_sites == 0)
        return;
    const float *at = kp_ranking_sites(r, KP_SITES_AT);
    const float *field = kp_ranking_sites(r, KP_SITES_FIELD);
    for (size_t s = 0; s < r->n_sites; s++) {
        double square = 0;
        for (size_t c = 0; c < r->n_coordinates; c++) {
            double d = (double)(z[c] - at[s * r->n_coordinates + c]);
            square += d * d;
        }
        double w = exp(-square / (2 * r->length * r->length));
        if (w > KP_SITE_LEAST)
            kp_vec_axpy(r->n_configs, (float)w, field + s * r->n_configs, scores);
    }
}

double kp_rank_worth(double wanted)
{
    return 0.1 + 0.9 * exp(-wanted / 0.3);
}

double kp_ranking_slowdown(double logp_first, double logp)
{
    return exp((logp_first - logp) * KP_RANK_TEMPERATURE);
}

/* --- asking ---------------------------------------------------------------------------------
 *
 * A member is a network with its share of the trees. What they have in common, their mean and
 * the correction, is a configuration's score; how far they are apart says how sure it is. */

struct asking {
    float *z;         /* [n_coordinates] */
    float *x;         /* [n_configs][F] */
    float *scores;    /* [n_configs] */
    float *one;       /* [n_configs] */
    float *trees;     /* [n_configs]: what all trees say */
    int32_t *numbers; /* [n_configs]: those that are allowed */
    int32_t *taken;   /* [n_configs] */
    float *apart;     /* [n_nets][n_configs]: what a member says, less the score */
    float *best;      /* [n_nets]: of those that are taken, as a member sees them */
    float *work;
};

static size_t inputs(const struct kp_model *m)
{
    return m->ranking->n_coordinates + m->ranking->n_pairs;
}

static void lay_out(const struct kp_model *m, struct kp_carve *c, struct asking *a)
{
    size_t n = m->ranking->n_configs;
    a->z = kp_carve_take(c, m->ranking->n_coordinates + 1);
    a->x = kp_carve_take(c, n * inputs(m));
    a->scores = kp_carve_take(c, n);
    a->one = kp_carve_take(c, n);
    a->trees = kp_carve_take(c, n);
    a->numbers = (int32_t *)(void *)kp_carve_take(c, n);
    a->taken = (int32_t *)(void *)kp_carve_take(c, n);
    a->apart = kp_carve_take(c, m->n_nets * n);
    a->best = kp_carve_take(c, m->n_nets);
    a->work = kp_carve_take(c, m->nets[0]->ops->work(m->nets[0], n, false));
}

size_t kp_ranking_work(const struct kp_model *m)
{
    struct kp_carve c = {0};
    struct asking a;
    lay_out(m, &c, &a);
    return c.used;
}

static bool is_allowed(const struct kp_beam_space *s, const uint32_t *config, size_t n_targets)
{
    uint32_t theirs[KP_PARAMS_MAX];
    uint64_t rank;
    if (!s->space)
        return true;
    for (size_t t = 0; t < n_targets; t++) {
        theirs[s->map[t]] = s->value[t][config[t]];
        if (theirs[s->map[t]] == UINT32_MAX)
            return false;
    }
    return kp_space_rank(s->space, theirs, &rank);
}

/* Trees of member k, none where there are fewer trees than members. */
static struct kp_grove trees_of(const struct kp_model *m, size_t k)
{
    struct kp_grove g = m->forest->groves[0];
    size_t from = k * g.n_trees / m->n_nets;
    g.n_trees = (k + 1) * g.n_trees / m->n_nets - from;
    g.roots += from;
    return g;
}

static void hear_forest(const struct kp_model *m, size_t n, const struct asking *a)
{
    size_t C = m->ranking->n_configs;
    float w = (float)m->forest->weight;
    float share = 1 / (float)m->forest->groves[0].n_trees;
    memset(a->trees, 0, n * sizeof(float));
    for (size_t k = 0; k < m->n_nets; k++) {
        const struct kp_grove own = trees_of(m, k);
        float *apart = a->apart + k * C;
        if (own.n_trees)
            kp_grove_ask_rows(&own, n, a->x, a->one);
        else
            memset(a->one, 0, n * sizeof(float));
        for (size_t i = 0; i < n; i++) {
            a->trees[i] += share * (float)own.n_trees * a->one[i];
            apart[a->numbers[i]] = (1 - w) * apart[a->numbers[i]] + w * a->one[i];
        }
    }
    for (size_t k = 0; k < m->n_nets; k++)
        for (size_t i = 0; trees_of(m, k).n_trees && i < n; i++)
            a->apart[k * C + (size_t)a->numbers[i]] -= w * a->trees[i];
    for (size_t i = 0; i < n; i++) {
        float *score = &a->scores[a->numbers[i]];
        *score = (1 - w) * *score + w * a->trees[i];
    }
}

/* Scores of the networks by number, and how far each is from their mean. */
static void hear_networks(const struct kp_model *m, size_t n, const struct asking *a)
{
    size_t C = m->ranking->n_configs;
    for (size_t k = 0; n && k < m->n_nets; k++) {
        m->nets[k]->ops->rank(m->nets[k], n, a->numbers, a->x, a->work, a->one);
        for (size_t i = 0; i < n; i++) {
            a->apart[k * C + (size_t)a->numbers[i]] = a->one[i];
            a->scores[a->numbers[i]] += a->one[i] / (float)m->n_nets;
        }
    }
    for (size_t k = 0; k < m->n_nets; k++)
        for (size_t i = 0; i < n; i++)
            a->apart[k * C + (size_t)a->numbers[i]] -= a->scores[a->numbers[i]];
}

/* Scores by number; those that are not allowed have none. Returns how many are allowed. */
static size_t score(const struct kp_model *m, const struct kp_rank_question *q,
                    const struct asking *a)
{
    const struct kp_ranking *r = m->ranking;
    const struct kp_pair_view view = {r, m->targets, m->rules, q->problem, q->slots, q->known};
    size_t n = 0;
    kp_ranking_coordinates(r, q->features, a->z);
    for (size_t c = 0; c < r->n_configs; c++) {
        const uint32_t *config = r->configs + c * r->n_targets;
        if (!is_allowed(&q->allowed, config, r->n_targets))
            continue;
        memcpy(a->x + n * inputs(m), a->z, r->n_coordinates * sizeof(float));
        kp_pair_features(&view, config, a->x + n * inputs(m) + r->n_coordinates);
        a->numbers[n++] = (int32_t)c;
    }
    memset(a->scores, 0, r->n_configs * sizeof(float));
    hear_networks(m, n, a);
    kp_ranking_correct(r, a->z, a->scores);
    if (m->forest)
        hear_forest(m, n, a);
    return n;
}

static double log_of_sum(const struct asking *a, size_t n)
{
    double least = (double)INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        least = fmin(least, (double)a->scores[a->numbers[i]]);
    for (size_t i = 0; i < n; i++)
        sum += exp((least - (double)a->scores[a->numbers[i]]) / KP_RANK_TEMPERATURE);
    return log(sum) - least / KP_RANK_TEMPERATURE;
}

/* --- the answer ---------------------------------------------------------------------------
 */

/* Of those that are not taken. */
static int32_t fastest(const struct asking *a, size_t n)
{
    int32_t best = -1;
    for (size_t j = 0; j < n; j++) {
        int32_t c = a->numbers[j];
        if (!a->taken[c] && (best < 0 || a->scores[c] < a->scores[best]))
            best = c;
    }
    return best;
}

/* By how much the best of those that are taken becomes better with configuration c, summed over
 * the members. */
static double gain_of(const struct kp_model *m, const struct asking *a, int32_t c)
{
    const float *apart = a->apart + c;
    double gain = 0;
    for (size_t k = 0; k < m->n_nets; k++)
        gain += fmax(0, (double)(a->best[k] - a->scores[c] - apart[k * m->ranking->n_configs]));
    return gain;
}

/* Of those that are not taken the one that gains most, of equal ones the fastest. *hope becomes
 * false where none gains anything, and none ever will. */
static int32_t most_promising(const struct kp_model *m, const struct asking *a, size_t n,
                              bool *hope)
{
    int32_t best = fastest(a, n);
    double most = gain_of(m, a, best);
    for (size_t j = 0; j < n; j++) {
        int32_t c = a->numbers[j];
        double gain = a->taken[c] ? 0 : gain_of(m, a, c);
        if (gain > most || (gain == most && gain > 0 && a->scores[c] < a->scores[best])) {
            most = gain;
            best = c;
        }
    }
    *hope = most > 0;
    return best;
}

static void take(const struct kp_model *m, const struct asking *a, int32_t c)
{
    a->taken[c] = 1;
    for (size_t k = 0; k < m->n_nets; k++)
        a->best[k] =
            fminf(a->best[k], a->scores[c] + a->apart[k * m->ranking->n_configs + (size_t)c]);
}

/* NOLINTBEGIN(readability-non-const-parameter): memory that is written by way of its pieces */
size_t kp_ranking_ask(const struct kp_model *m, const struct kp_rank_question *q, float *work,
                      uint32_t *configs, double *logp)
/* NOLINTEND(readability-non-const-parameter) */
{
    const struct kp_ranking *r = m->ranking;
    struct kp_carve carve = {.base = work};
    struct asking a;
    lay_out(m, &carve, &a);
    size_t n = score(m, q, &a);
    size_t k = q->k < n ? q->k : n;
    double total = n ? log_of_sum(&a, n) : 0;
    memset(a.taken, 0, r->n_configs * sizeof(*a.taken));
    for (size_t i = 0; i < m->n_nets; i++)
        a.best[i] = INFINITY;
    bool hope = true;
    for (size_t i = 0; i < k; i++) {
        int32_t c = i == 0 || !hope ? fastest(&a, n) : most_promising(m, &a, n, &hope);
        take(m, &a, c);
        memcpy(configs + i * r->n_targets, r->configs + (size_t)c * r->n_targets,
               r->n_targets * sizeof(*configs));
        logp[i] = -(double)a.scores[c] / KP_RANK_TEMPERATURE - total;
    }
    return k;
}
