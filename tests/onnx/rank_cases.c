/* SPDX-License-Identifier: MIT */
/* Models that rank, all of their configurations for some problems. */
#include "model/onnx.h"

#include "base/alloc.h"
#include "onnx_cases.h"
#include "unit/model/forests.h"
#include "unit/model/small_model.h"

#include <math.h>
#include <stdio.h>

struct rank_case {
    const char *name;
    size_t n_nets;
    bool rules;
    bool sites;
    double trees; /* the forest's weight; 0: there is none */
};

static const struct rank_case cases[] = {
    {"ranker_plain", 1, false, false, 0},
    {"ranker", 2, false, true, 0},
    {"ranker_trees", 1, false, true, 0.4},
    {"ranker_rules_trees", 3, true, true, 0.4},
};

enum { PROBLEMS = 3, GIVEN = 3 };
static const struct kp_given problems[PROBLEMS][GIVEN] = {
    {{"M", {.type = KP_INT, .as.i = 96}},
     {"N", {.type = KP_INT, .as.i = 200}},
     {"dtype", {.type = KP_STRING, .as.s = {"f32", 3}}}},
    {{"M", {.type = KP_INT, .as.i = 16}},
     {"N", {.type = KP_INT, .as.i = 20}},
     {"dtype", {.type = KP_STRING, .as.s = {"f16", 3}}}},
    {{"M", {.type = KP_INT, .as.i = 4100}},
     {"N", {.type = KP_INT, .as.i = 98}},
     {"dtype", {.type = KP_STRING, .as.s = {"f32", 3}}}}};

/* One problem as its fields, and what is made of it. */
struct asked {
    double problem[KP_FIELDS_MAX];
    float features[KP_FIELDS_MAX * 32];
    float z[KP_FIELDS_MAX];
    float *x;      /* [configs][F] */
    float *scores; /* [configs] */
};

static double field_of(const struct kp_field *f, const struct kp_value *v)
{
    double x;
    if (kp_value_to_f64(*v, &x))
        return x;
    for (size_t w = 0; w < f->n_words; w++)
        if (kp_str_is(v->as.s, f->words[w]))
            return (double)w;
    return (double)f->n_words;
}

/* In the rules, batch stands behind what is given. */
static void set_problem(const struct kp_model *m, size_t p, struct kp_value *sizes,
                        struct asked *a)
{
    int32_t tokens[KP_FIELDS_MAX];
    kopt_error err;
    for (size_t i = 0; i < GIVEN; i++) {
        sizes[i] = problems[p][i].value;
        a->problem[i] = field_of(kp_encoder_field(m->encoder, i), &sizes[i]);
    }
    sizes[GIVEN] = kp_int(1);
    if (m->rules)
        KP_CHECK(kp_model_derive(m->rules, sizes, a->problem + m->n_raw, &err) == KOPT_OK);
    KP_CHECK(kp_encoder_n_features(m->encoder) <= sizeof(a->features) / sizeof(float));
    kp_encode(m->encoder, a->problem, tokens, a->features);
    kp_ranking_coordinates(m->ranking, a->features, a->z);
}

/* As in ranking.c, for all configurations. */
static void look(const struct kp_model *m, const struct kp_value *sizes, struct asked *a)
{
    const struct kp_ranking *r = m->ranking;
    size_t n_slots = m->rules ? m->rules->n_slots : 0;
    size_t F = r->n_coordinates + r->n_pairs;
    struct kp_value *slots = kp_calloc(n_slots + 1, sizeof(*slots));
    unsigned char *known = kp_calloc(n_slots + 1, 1);
    KP_CHECK(slots && known);
    if (m->rules)
        kp_kernel_environment(m->rules, sizes, NULL, slots, known);
    const struct kp_pair_view v = {r, m->targets, m->rules, a->problem, slots, known};
    for (size_t c = 0; c < r->n_configs; c++) {
        memcpy(a->x + c * F, a->z, r->n_coordinates * sizeof(float));
        kp_pair_features(&v, r->configs + c * r->n_targets, a->x + c * F + r->n_coordinates);
    }
    kp_free(slots);
    kp_free(known);
}

static void score(const struct kp_model *m, struct asked *a)
{
    const struct kp_ranking *r = m->ranking;
    size_t n = r->n_configs;
    float w = m->forest ? (float)m->forest->weight : 0;
    float *work = kp_slab_new(m->nets[0]->ops->work(m->nets[0], n, false));
    float *one = kp_slab_new(n);
    int32_t *numbers = kp_calloc(n, sizeof(*numbers));
    KP_CHECK(work && one && numbers);
    for (size_t c = 0; c < n; c++)
        numbers[c] = (int32_t)c;
    memset(a->scores, 0, n * sizeof(float));
    for (size_t k = 0; k < m->n_nets; k++) {
        m->nets[k]->ops->rank(m->nets[k], n, numbers, a->x, work, one);
        for (size_t c = 0; c < n; c++)
            a->scores[c] += one[c] / (float)m->n_nets;
    }
    kp_ranking_correct(r, a->z, a->scores);
    for (size_t c = 0; m->forest && c < n; c++) {
        float trees;
        kp_grove_ask(&m->forest->groves[0], a->x + c * (r->n_coordinates + r->n_pairs), &trees);
        a->scores[c] = (1 - w) * a->scores[c] + w * trees;
    }
    kp_slab_free(work);
    kp_slab_free(one);
    kp_free(numbers);
}

/* What the model answers has the same scores: differences of its logarithms are theirs. */
static void compare(const struct kp_model *m, size_t p, const struct asked *a)
{
    const struct kp_ranking *r = m->ranking;
    const struct kp_predict_options o = {.k = r->n_configs, .unconstrained = true};
    struct kp_prediction out;
    kopt_error err;
    float first = 0;
    KP_CHECK(kp_model_predict(m, problems[p], GIVEN, &o, &out, &err) == KOPT_OK);
    KP_CHECK(out.n == r->n_configs);
    for (size_t i = 0; i < out.n; i++) {
        size_t c = 0;
        while (memcmp(out.configs + i * r->n_targets, r->configs + c * r->n_targets,
                      r->n_targets * sizeof(*r->configs)) != 0)
            c++;
        if (i == 0)
            first = a->scores[c];
        double want = (double)(a->scores[c] - first);
        /* Both are sums of the same floats in the same order, or nearly. */
        KP_CHECK(fabs(log(kp_ranking_slowdown(out.logp[0], out.logp[i])) - want) <
                 1e-4 * (1 + fabs(want)));
    }
    kp_prediction_deinit(&out);
}

/* The first site is at the first problem, the second near the second. */
static void move_sites(struct kp_model *m, const struct asked *asked)
{
    struct kp_ranking *r = m->ranking;
    float *at = r->values + r->params.tensors[KP_SITES_AT].offset;
    for (size_t s = 0; s < 2; s++)
        for (size_t c = 0; c < r->n_coordinates; c++)
            at[s * r->n_coordinates + c] = asked[s].z[c] + (s ? 0.3F : 0);
}

static struct kp_model *make(const struct rank_case *c)
{
    const struct small_plan plan = {.net = "ranker",
                                    .rules = c->rules ? small_rules : NULL,
                                    .rules_path = "s.kopt",
                                    .n_nets = c->n_nets,
                                    .seed = 3};
    struct kp_model *m = small_model(&plan);
    struct kp_rng rng;
    kp_rng_init(&rng, 23);
    for (size_t k = 0; k < m->n_nets; k++) {
        kp_net_unprepare(m->nets[k]); /* an export has the parameters, not their halves */
        draw(m->nets[k], &rng);
    }
    for (size_t i = 0; i < m->ranking->n_pairs; i++) {
        m->ranking->pairs[i].mean = kp_rng_normal(&rng);
        m->ranking->pairs[i].scale = 0.2 + kp_rng_f64(&rng);
    }
    if (!c->sites)
        m->ranking->n_sites = 0;
    if (c->trees > 0)
        forest_beside(m, 5, c->trees, 17);
    return m;
}

static void write_rows(FILE *f, size_t rows, size_t cols, const float *x)
{
    for (size_t i = 0; i < rows * cols; i++)
        (void)fprintf(f, "%.9g%c", (double)x[i], (i + 1) % cols ? ' ' : '\n');
}

static bool write_case(const struct kp_model *m, const struct asked *asked, const char *path)
{
    const struct kp_ranking *r = m->ranking;
    size_t n = r->n_configs;
    size_t F = r->n_coordinates + r->n_pairs;
    size_t n_fields = kp_encoder_n_fields(m->encoder);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    (void)fprintf(f, "problem float64 %d %zu\n", PROBLEMS, n_fields);
    for (size_t p = 0; p < PROBLEMS; p++)
        for (size_t i = 0; i < n_fields; i++)
            (void)fprintf(f, "%.17g%c", asked[p].problem[i], i + 1 < n_fields ? ' ' : '\n');
    (void)fprintf(f, "numbers int64 %zu 1\n", PROBLEMS * n);
    for (size_t i = 0; i < PROBLEMS * n; i++)
        (void)fprintf(f, "%zu\n", i % n);
    (void)fprintf(f, "x float32 %zu %zu\n", PROBLEMS * n, F);
    for (size_t p = 0; p < PROBLEMS; p++)
        write_rows(f, n, F, asked[p].x);
    (void)fprintf(f, "score float32 %zu 1\n", PROBLEMS * n);
    for (size_t p = 0; p < PROBLEMS; p++)
        write_rows(f, n, 1, asked[p].scores);
    return fclose(f) == 0;
}

static bool run_case(const struct rank_case *c, const char *folder)
{
    char path[4096];
    static struct asked asked[PROBLEMS];
    struct kp_value sizes[PROBLEMS][KP_FIELDS_MAX];
    kopt_error err = {0};
    struct kp_model *m = make(c);
    const struct kp_ranking *r = m->ranking;
    for (size_t p = 0; p < PROBLEMS; p++) {
        asked[p] = (struct asked){
            .x = kp_calloc(r->n_configs * (r->n_coordinates + r->n_pairs), sizeof(float)),
            .scores = kp_calloc(r->n_configs, sizeof(float))};
        KP_CHECK(asked[p].x && asked[p].scores);
        set_problem(m, p, sizes[p], &asked[p]);
    }
    move_sites(m, asked);
    for (size_t p = 0; p < PROBLEMS; p++) {
        look(m, sizes[p], &asked[p]);
        score(m, &asked[p]);
        compare(m, p, &asked[p]);
    }
    (void)snprintf(path, sizeof(path), "%s/%s.onnx", folder, c->name);
    bool ok = kp_onnx_save(m, path, &err) == KOPT_OK;
    (void)snprintf(path, sizeof(path), "%s/%s.txt", folder, c->name);
    ok = ok && write_case(m, asked, path);
    if (!ok)
        (void)fprintf(stderr, "onnx_cases: %s: %s\n", c->name, err.message);
    for (size_t p = 0; p < PROBLEMS; p++) {
        kp_free(asked[p].x);
        kp_free(asked[p].scores);
    }
    kp_model_free(m);
    return ok;
}

bool rank_cases(const char *folder)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (!run_case(&cases[i], folder))
            return false;
    return true;
}
