/* SPDX-License-Identifier: MIT */
/* A small model with everything that a model has: words, derived fields, rules, several
 * networks. */
#ifndef TEST_MODEL_SMALL_MODEL_H
#define TEST_MODEL_SMALL_MODEL_H

#include "base/alloc.h"
#include "model/model.h"
#include "model/ranking.h"
#include "translators.h"

#include <string.h>

/* Among its targets' values BM=8 stands in no rule, and the rules' BM=256 in no target. */
#define SMALL_RULES                                         \
    "kernel small\n"                                        \
    "problem M N dtype=\"f32\" batch=1\n"                   \
    "param BM {16,32,64,128,256}\n"                         \
    "param mode {\"a\",\"b\"}\n"                            \
    "param BN {1,2,4}\n"                                    \
    "let rows = M\n"                                        \
    "let tiles = ceildiv(M, 16)*batch\n"                    \
    "let half = dtype == \"f16\"\n"                         \
    "let name = half ? \"h\" : \"s\"\n"                     \
    "let ratio = N / (M - 7)\n"                             \
    "let block = BM*BN\n"                                   \
    "let threads = device.max_threads - M\n"                \
    "require BM <= M\n"                                     \
    "require BN*BM <= N : \"a tile is no larger than N\"\n" \
    "require mode == \"a\" || !half\n"                      \
    "require block <= device.max_threads\n"
static const char small_rules[] = SMALL_RULES;
/* For networks that rank all targets must be parameters of the rules. */
static const char small_rules_of_all[] = SMALL_RULES "param extra {0.0,0.5}\n";

struct small_plan {
    const char *net;
    const char *rules; /* NULL: none, and no derived fields */
    const char *rules_path;
    size_t n_nets;
    uint64_t seed;
};

/* Owner: kp_model_free(). Its texts and values are copies. */
static inline struct kp_model *small_model(const struct small_plan *plan);

enum { SMALL_RAW = 3, SMALL_TARGETS = 4 };

static inline void small_row(struct kp_dataset_builder *b, const struct kp_kernel *rules,
                             int64_t i)
{
    static const int64_t tiles[] = {8, 16, 32, 64, 128};
    const int64_t M = 16 + 8 * (i % 11);
    const int64_t N = 20 + 13 * (i % 7);
    const struct kp_value dtype = kp_string(i % 3 ? KP_STR("f32") : KP_STR("f16"));
    /* In the order of the rules' problem. */
    const struct kp_value sizes[] = {kp_int(M), kp_int(N), dtype, kp_int(1)};
    struct kp_value problem[KP_FIELDS_MAX] = {kp_int(M), kp_int(N), dtype};
    double derived[KP_FIELDS_MAX];
    const char *names[KP_FIELDS_MAX];
    kopt_error err;
    if (rules) {
        size_t n = kp_model_derived_names(rules, names);
        KP_CHECK(kp_model_derive(rules, sizes, derived, &err) == KOPT_OK);
        for (size_t d = 0; d < n; d++)
            problem[SMALL_RAW + d] = kp_float(derived[d]);
    }
    const struct kp_value config[SMALL_TARGETS] = {
        kp_int((int64_t)1 << (i % 3)), kp_int(tiles[i % 5]), kp_float(0.5 * (double)(i % 2)),
        kp_string(i % 2 ? KP_STR("a") : KP_STR("b"))};
    KP_CHECK(kp_dataset_add(b, problem, config, NULL, 1.0F, &err) == KOPT_OK);
}

static inline struct kp_dataset *small_data(const struct kp_kernel *rules)
{
    const char *fields[KP_FIELDS_MAX] = {"M", "N", "dtype"};
    static const char *const targets[SMALL_TARGETS] = {"BN", "BM", "extra", "mode"};
    size_t n = SMALL_RAW + (rules ? kp_model_derived_names(rules, fields + SMALL_RAW) : 0);
    struct kp_dataset_builder *b;
    struct kp_dataset *d;
    kopt_error err;
    KP_CHECK(kp_dataset_begin("small", fields, n, targets, SMALL_TARGETS, NULL, &b, &err) ==
             KOPT_OK);
    for (int64_t i = 0; i < 60; i++)
        small_row(b, rules, i);
    KP_CHECK(kp_dataset_finish(b, &d, &err) == KOPT_OK);
    return d;
}

static inline void small_target(struct kp_model *m, const struct kp_target *from,
                                struct kp_target *to)
{
    struct kp_value *values = kp_arena_alloc(&m->arena, from->n_values, sizeof(*values));
    *to = *from;
    to->name = kp_arena_strndup(&m->arena, from->name, strlen(from->name));
    to->values = values;
    for (uint32_t v = 0; v < from->n_values; v++) {
        values[v] = from->values[v];
        if (values[v].type == KP_STRING)
            values[v].as.s.ptr =
                kp_arena_strndup(&m->arena, values[v].as.s.ptr, values[v].as.s.len);
    }
}

/* For networks that rank: the configurations number 0, 3, 6, .. of all, and two sites. */
static inline void small_ranking(struct kp_model *m)
{
    kopt_error err;
    struct kp_ranking *r = kp_ranking_new();
    size_t all = 1;
    struct kp_rng rng;
    KP_CHECK(r && kp_ranking_declare(r, m->encoder, m->n_raw, m->targets, m->n_targets,
                                     m->rules, &err) == KOPT_OK);
    for (size_t t = 0; t < m->n_targets; t++)
        all *= m->targets[t].n_values;
    r->configs = kp_arena_alloc(&r->arena, (all / 3 + 1) * m->n_targets, sizeof(*r->configs));
    KP_CHECK(r->configs);
    for (size_t i = 0; i < all; i += 3) {
        size_t rest = i;
        for (size_t t = 0; t < m->n_targets; t++) {
            r->configs[r->n_configs * m->n_targets + t] =
                (uint32_t)(rest % m->targets[t].n_values);
            rest /= m->targets[t].n_values;
        }
        r->n_configs++;
    }
    r->units = 12;
    r->length = 0.8;
    KP_CHECK(kp_ranking_place(r, 2, &err) == KOPT_OK);
    r->values = kp_slab_new(r->params.n_floats);
    KP_CHECK(r->values);
    kp_rng_init(&rng, 4);
    for (size_t i = 0; i < r->params.n_floats; i++)
        r->values[i] = (float)kp_rng_normal(&rng);
    m->ranking = r;
}

static inline void small_nets(struct kp_model *m, const struct small_plan *plan)
{
    kopt_error err;
    struct kp_net_shape shape = {.n_tokens = kp_encoder_n_tokens(m->encoder),
                                 .n_vocab = kp_encoder_n_vocab(m->encoder),
                                 .n_features = kp_encoder_n_features(m->encoder),
                                 .n_targets = m->n_targets,
                                 .embed = 3,
                                 .hidden = 8,
                                 .layers = 1};
    if (kp_net_find(plan->net)->rank) {
        small_ranking(m);
        shape.n_tokens = 1;
        shape.n_vocab = m->ranking->n_configs;
        shape.n_features = m->ranking->n_coordinates + m->ranking->n_pairs;
    }
    for (size_t p = 0; p < m->n_targets; p++)
        shape.n_values[p] = m->targets[p].n_values;
    for (size_t k = 0; k < plan->n_nets; k++) {
        KP_CHECK(kp_net_new(kp_net_find(plan->net), &shape, plan->seed + k, &m->nets[k],
                            &err) == KOPT_OK);
        m->n_nets++;
        KP_CHECK(kp_net_prepare(m->nets[k], &err) ==
                 KOPT_OK); /* as in a model that was loaded */
    }
}

/* `n` networks of another kind that translates, behind those that are there. */
static inline void small_beside(struct kp_model *m, const char *net, size_t n)
{
    kopt_error err;
    struct kp_net_shape shape = m->nets[0]->shape;
    shape.embed = 2;
    shape.hidden = 6;
    for (size_t k = 0; k < n; k++) {
        KP_CHECK(kp_net_new(kp_net_find(net), &shape, 50 + k, &m->nets[m->n_nets], &err) ==
                 KOPT_OK);
        KP_CHECK(kp_net_prepare(m->nets[m->n_nets++], &err) == KOPT_OK);
    }
}

static inline struct kp_model *small_model(const struct small_plan *plan)
{
    kopt_error err;
    struct kp_model *m = kp_calloc(1, sizeof(*m));
    KP_CHECK(m);
    m->arena = KP_ARENA_INIT(1 << 20);
    m->kernel = "small";
    m->n_raw = SMALL_RAW;
    if (plan->rules) {
        m->rules_path = plan->rules_path;
        m->rules_text =
            kp_str_from(kp_net_find(plan->net)->rank ? small_rules_of_all : plan->rules);
        KP_CHECK(kp_kernel_parse(m->rules_path, m->rules_text, &m->rules, &err) == KOPT_OK);
    }
    struct kp_dataset *d = small_data(m->rules);
    unsigned char use[64];
    memset(use, 1, sizeof(use));
    KP_CHECK(d->n_problems <= sizeof(use));
    KP_CHECK(kp_encoder_new(d, use, &m->encoder, &err) == KOPT_OK);
    m->n_targets = d->n_targets;
    for (size_t p = 0; p < d->n_targets; p++)
        small_target(m, &d->targets[p], &m->targets[p]);
    kp_dataset_free(d);
    small_nets(m, plan);
    m->info = kp_json_new_object();
    KP_CHECK(kp_json_set_str(m->info, "hash", "0f1e") && kp_json_set_i64(m->info, "rows", 60));
    return m;
}

/* Its best configurations for M=96, N=200, dtype=f32. */
static inline kopt_status small_ask(const struct kp_model *m, size_t k, bool unconstrained,
                                    struct kp_prediction *out, kopt_error *err)
{
    const struct kp_given given[] = {
        {"dtype", kp_string(KP_STR("f32"))}, {"M", kp_int(96)}, {"N", kp_int(200)}};
    const struct kp_predict_options o = {.k = k, .unconstrained = unconstrained};
    return kp_model_predict(m, given, 3, &o, out, err);
}

#endif
