/* SPDX-License-Identifier: MIT */
/* A ranking as text in a model's file. Layer: model. */
#include "model/ranking.h"

#include "model/encoder_impl.h"

#include <math.h>
#include <string.h>

static const char *const kinds[KP_PAIR_KINDS] = {"param", "is",     "let",   "grid",
                                                 "block", "shared", "ratio", "rest",
                                                 "waves", "tail",   "fill",  "threads"};

const char *kp_pair_kind_name(enum kp_pair_kind kind)
{
    return kinds[kind];
}

/* --- writing --------------------------------------------------------------------------------
 */

static struct kp_json *pair_to_json(const struct kp_pair *p)
{
    struct kp_json *row = kp_json_new_array();
    if (row && kp_json_push(row, kp_json_new_str(kp_str_from(kinds[p->kind]))) &&
        kp_json_push(row, kp_json_new_i64(p->a)) && kp_json_push(row, kp_json_new_i64(p->b)) &&
        kp_json_push(row, kp_json_new_f64(p->mean)) &&
        kp_json_push(row, kp_json_new_f64(p->scale)))
        return row;
    kp_json_free(row);
    return NULL;
}

static struct kp_json *list_to_json(const uint32_t *x, size_t n)
{
    struct kp_json *list = kp_json_new_array();
    for (size_t i = 0; list && i < n; i++) {
        if (!kp_json_push(list, kp_json_new_i64(x[i]))) {
            kp_json_free(list);
            list = NULL;
        }
    }
    return list;
}

struct kp_json *kp_ranking_to_json(const struct kp_ranking *r)
{
    struct kp_json *j = kp_json_new_object();
    struct kp_json *pairs = kp_json_new_array();
    bool ok = j && pairs;
    for (size_t i = 0; ok && i < r->n_pairs; i++)
        ok = kp_json_push(pairs, pair_to_json(&r->pairs[i]));
    ok = kp_json_set(j, "pairs", pairs) && ok;
    ok = ok && kp_json_set_f64(j, "units", r->units) &&
         kp_json_set_f64(j, "length", r->length) &&
         kp_json_set_i64(j, "sites", (int64_t)r->n_sites) &&
         kp_json_set_i64(j, "known", (int64_t)r->n_configs) &&
         kp_json_set(j, "coordinates", list_to_json(r->coordinates, r->n_coordinates)) &&
         kp_json_set(j, "configs", list_to_json(r->configs, r->n_configs * r->n_targets));
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

/* --- reading --------------------------------------------------------------------------------
 */

static kopt_status wrong(const char *key, kopt_error *err)
{
    return kp_err(err, KOPT_EINPUT, "'%s' is out of range", key);
}

/* A list of numbers, each below limits[i % n_limits]. */
struct listing {
    const char *key;
    const uint32_t *limits;
    size_t n_limits; /* at least 1 */
    uint32_t *list;
    size_t n;
};

static kopt_status read_list(struct kp_ranking *r, const struct kp_json *j, struct listing *l,
                             kopt_error *err)
{
    const struct kp_json *list;
    size_t turn = 0;
    kopt_status st = kp_json_need_array(j, l->key, &list, err);
    if (st != KOPT_OK)
        return st;
    l->n = kp_json_size(list);
    l->list = kp_arena_alloc(&r->arena, l->n + 1, sizeof(*l->list));
    if (!l->list)
        return kp_err_nomem(err);
    for (size_t i = 0; i < l->n; i++) {
        int64_t x;
        if (!kp_json_as_i64(kp_json_at(list, i), &x) || x < 0 || x >= l->limits[turn])
            return wrong(l->key, err);
        l->list[i] = (uint32_t)x;
        turn = turn + 1 < l->n_limits ? turn + 1 : 0;
    }
    return KOPT_OK;
}

/* Does what the pair is about exist? */
static bool makes_sense(const struct kp_pair *p, const struct kp_model *m)
{
    size_t T = m->n_targets;
    size_t n_lets = m->rules ? m->rules->n_lets : 0;
    switch (p->kind) {
    case KP_PAIR_PARAM:
        return p->a < T;
    case KP_PAIR_IS:
        return p->a < T && p->b < m->targets[p->a].n_values;
    case KP_PAIR_LET:
        return p->a < n_lets;
    case KP_PAIR_RATIO:
    case KP_PAIR_REST:
        return p->a < m->n_raw && p->b < T;
    case KP_PAIR_GRID:
    case KP_PAIR_BLOCK:
    case KP_PAIR_SHARED:
    case KP_PAIR_WAVES:
    case KP_PAIR_TAIL:
    case KP_PAIR_FILL:
    case KP_PAIR_THREADS:
    case KP_PAIR_KINDS:
        break;
    }
    return p->a == 0 && p->b == 0 && m->rules;
}

static kopt_status read_pair(const struct kp_json *row, const struct kp_model *m,
                             struct kp_pair *p, kopt_error *err)
{
    struct kp_str kind;
    int64_t a;
    int64_t b;
    size_t k = 0;
    if (kp_json_type(row) != KP_JSON_ARRAY || kp_json_size(row) != 5 ||
        !kp_json_as_str(kp_json_at(row, 0), &kind) || !kp_json_as_i64(kp_json_at(row, 1), &a) ||
        !kp_json_as_i64(kp_json_at(row, 2), &b) ||
        !kp_json_as_f64(kp_json_at(row, 3), &p->mean) ||
        !kp_json_as_f64(kp_json_at(row, 4), &p->scale) || a < 0 || b < 0 || a > UINT32_MAX ||
        b > UINT32_MAX || !isfinite(p->mean) || !isfinite(p->scale))
        return wrong("pairs", err);
    while (k < KP_PAIR_KINDS && !kp_str_is(kind, kinds[k]))
        k++;
    if (k == KP_PAIR_KINDS)
        return kp_err(err, KOPT_EINPUT, "'pairs': '%.*s' is unknown", KP_STR_FMT(kind));
    p->kind = (enum kp_pair_kind)k;
    p->a = (uint32_t)a;
    p->b = (uint32_t)b;
    return makes_sense(p, m) ? KOPT_OK : wrong("pairs", err);
}

static kopt_status read_pairs(struct kp_ranking *r, const struct kp_json *j,
                              const struct kp_model *m, kopt_error *err)
{
    const struct kp_json *list;
    kopt_status st = kp_json_need_array(j, "pairs", &list, err);
    if (st != KOPT_OK)
        return st;
    r->n_pairs = kp_json_size(list);
    if (r->n_pairs > KP_PAIRS_MAX)
        return wrong("pairs", err);
    r->pairs = kp_arena_alloc(&r->arena, r->n_pairs + 1, sizeof(*r->pairs));
    if (!r->pairs)
        return kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < r->n_pairs; i++)
        st = read_pair(kp_json_at(list, i), m, &r->pairs[i], err);
    return st;
}

static kopt_status read_configs(struct kp_ranking *r, const struct kp_json *j,
                                const struct kp_model *m, kopt_error *err)
{
    int64_t known;
    uint32_t limits[KP_TARGETS_MAX] = {0};
    struct listing l = {.key = "configs", .limits = limits, .n_limits = m->n_targets};
    kopt_status st = kp_json_need_i64(j, "known", &known, err);
    for (size_t t = 0; t < m->n_targets; t++)
        limits[t] = m->targets[t].n_values;
    if (st == KOPT_OK)
        st = read_list(r, j, &l, err);
    if (st != KOPT_OK)
        return st;
    if (known < 1 || known > KP_RANKED_MAX || l.n != (size_t)known * m->n_targets)
        return wrong("known", err);
    r->configs = l.list;
    r->n_configs = (size_t)known;
    r->n_targets = m->n_targets;
    return KOPT_OK;
}

static kopt_status read_sites(struct kp_ranking *r, const struct kp_json *j,
                              const struct kp_model *m, kopt_error *err)
{
    int64_t sites;
    uint32_t limit = (uint32_t)kp_encoder_n_features(m->encoder);
    kopt_status st = kp_json_need_i64(j, "sites", &sites, err);
    if (st == KOPT_OK)
        st = kp_json_need_f64(j, "length", &r->length, err);
    struct listing l = {.key = "coordinates", .limits = &limit, .n_limits = 1};
    if (st == KOPT_OK)
        st = read_list(r, j, &l, err);
    if (st != KOPT_OK)
        return st;
    r->coordinates = l.list;
    r->n_coordinates = l.n;
    if (sites < 0 || sites > KP_SITES_MAX || !isfinite(r->length) ||
        (sites > 0 && (!(r->length > 0) || r->n_coordinates == 0)))
        return wrong("sites", err);
    return sites ? kp_ranking_place(r, (size_t)sites, err) : KOPT_OK;
}

static bool is_param(const struct kp_kernel *rules, const char *name)
{
    for (size_t i = 0; i < rules->n_params; i++)
        if (strcmp(rules->params[i].name, name) == 0)
            return true;
    return false;
}

/* A configuration is looked up whole among those that the rules allow. */
static kopt_status check_targets(const struct kp_model *m, kopt_error *err)
{
    bool all = !m->rules || m->rules->n_params == m->n_targets;
    for (size_t t = 0; all && m->rules && t < m->n_targets; t++)
        all = is_param(m->rules, m->targets[t].name);
    return all ? KOPT_OK
               : kp_err(err, KOPT_EINPUT, "the rules' parameters are not the targets");
}

kopt_status kp_ranking_from_json(const struct kp_json *j, const struct kp_model *m,
                                 struct kp_ranking **out, kopt_error *err)
{
    struct kp_ranking *r = kp_ranking_new();
    *out = NULL;
    if (!r)
        return kp_err_nomem(err);
    kopt_status st = check_targets(m, err);
    if (st == KOPT_OK)
        st = kp_json_need_f64(j, "units", &r->units, err);
    if (st == KOPT_OK && !isfinite(r->units))
        st = wrong("units", err);
    if (st == KOPT_OK)
        st = read_configs(r, j, m, err);
    if (st == KOPT_OK)
        st = read_pairs(r, j, m, err);
    if (st == KOPT_OK)
        st = read_sites(r, j, m, err);
    if (st != KOPT_OK) {
        kp_ranking_free(r);
        return st;
    }
    *out = r;
    return KOPT_OK;
}
