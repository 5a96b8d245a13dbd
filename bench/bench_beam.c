/* SPDX-License-Identifier: MIT */
/* What a constrained beam costs beside its network: a space with the parameters and the rules
 * of a 1x1 convolution kernel of 8 parameters, and a network that looks its answers up. Behind
 * it, what a question costs with a real rules file: its space for a problem that was not asked
 * about before, without and with a cache that knows others, and a whole prediction with
 * untrained networks, for new problems and for the same ones again: `factored` with 64 units,
 * and the recurrent ones with their own sizes.
 *
 * bench_beam [--json] [RULES.kopt]
 *
 * Without a file: kernels/miopen/ConvAsm1x1U.kopt of the folder it is started in, where it is
 * there. A file's problem must be that of a convolution there. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/rng.h"
#include "model/beam.h"
#include "model/model.h"
#include "os/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_PARAMS = 8, N_NAMES = 12, N_RULES = 11, MOST_NETS = 3, TABLES = 64, ROUNDS = 40 };

/* ---- the space ---- */

static const char *const names[N_NAMES] = {"read_size",
                                           "k_mult",
                                           "chunks_per_wave",
                                           "chunk_size",
                                           "n_mult",
                                           "c_mult",
                                           "waves_c_in_group",
                                           "waves_k_in_group",
                                           "C",
                                           "K",
                                           "HW",
                                           "N"};
static const char *const lists[N_PARAMS] = {"{1..4}",         "{1,4,8,16,32}", "{1..8}",
                                            "{1,4,16,32,64}", "{1..4}",        "{1,2,4}",
                                            "{1,2,4}",        "{1,2,4,8}"};
/* Registers that a configuration takes. */
#define VGPR "(5 + chunks_per_wave * n_mult * (2 * c_mult + k_mult))"
static const char *const rules[N_RULES] = {
    "read_size <= chunks_per_wave",
    "chunks_per_wave <= ceildiv(HW, chunk_size)",
    "n_mult <= ceildiv(N, 64 / chunk_size)",
    VGPR " < 256",
    "25 + 2 * k_mult * c_mult < 102",
    "waves_c_in_group <= C",
    "ceildiv(C, waves_c_in_group) % c_mult == 0",
    "(C - ceildiv(C, waves_c_in_group) * (waves_c_in_group - 1)) % c_mult == 0",
    "k_mult * waves_k_in_group <= K && waves_c_in_group * waves_k_in_group <= 16",
    "256 / " VGPR " * 4 >= waves_c_in_group * waves_k_in_group",
    "(k_mult >= 8) == (chunk_size >= 16)"};
static const int64_t problem[] = {256, 256, 196, 16}; /* C, K, HW, N */

struct made {
    struct kp_arena arena;
    struct kp_scope scope;
    struct kp_param params[N_PARAMS];
    struct kp_rule rules[N_RULES];
    struct kp_value values[N_NAMES];
    unsigned char known[N_NAMES];
    struct kp_space_desc desc;
    struct kp_space *space;
    kopt_error err;
};

static bool make_params(struct made *m)
{
    for (uint32_t i = 0; i < N_NAMES; i++) {
        struct kp_value *values = NULL;
        size_t n = 0;
        size_t used = 0;
        if (kp_scope_add(&m->scope, names[i], i, &m->err) != KOPT_OK)
            return false;
        if (i >= N_PARAMS) {
            m->values[i] = kp_int(problem[i - N_PARAMS]);
            m->known[i] = 1;
            continue;
        }
        if (kp_list_parse(kp_str_from(lists[i]), NULL, NULL, KP_DIALECT_KOPT, NULL, &m->arena,
                          &values, &n, &used, &m->err) != KOPT_OK)
            return false;
        m->params[i] = (struct kp_param){.name = names[i],
                                         .values = values,
                                         .n_values = (uint32_t)n,
                                         .default_index = -1,
                                         .slot = i};
    }
    return true;
}

static bool make(struct made *m)
{
    m->arena.max = (size_t)1 << 24;
    if (!make_params(m))
        return false;
    for (size_t r = 0; r < N_RULES; r++) {
        m->rules[r].text = rules[r];
        if (kp_expr_parse(kp_str_from(rules[r]), &m->scope, KP_DIALECT_KOPT, NULL, &m->arena,
                          &m->rules[r].expr, &m->err) != KOPT_OK)
            return false;
    }
    m->desc = (struct kp_space_desc){.params = m->params,
                                     .n_params = N_PARAMS,
                                     .rules = m->rules,
                                     .n_rules = N_RULES,
                                     .values = m->values,
                                     .known = m->known,
                                     .n_slots = N_NAMES};
    return kp_space_new(&m->desc, &m->space, &m->err) == KOPT_OK;
}

static void made_free(struct made *m)
{
    kp_space_free(m->space);
    kp_scope_deinit(&m->scope);
    kp_arena_deinit(&m->arena);
}

/* ---- the network: a table of logarithms by target, value before and value ---- */

enum { SIDE = 8 };
static float table[TABLES][N_PARAMS][SIDE][SIDE]; /* shape.embed says which */

static void fill_tables(void)
{
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (size_t t = 0; t < TABLES; t++) {
        for (size_t i = 0; i < (size_t)N_PARAMS * SIDE; i++) {
            float *row = &table[t][i / SIDE][i % SIDE][0];
            double sum = 0;
            for (size_t v = 0; v < SIDE; v++) {
                row[v] = (float)exp(1.5 * kp_rng_normal(&rng));
                sum += (double)row[v];
            }
            for (size_t v = 0; v < SIDE; v++)
                row[v] = (float)log((double)row[v] / sum);
        }
    }
}

static size_t no_floats(const struct kp_net *net, size_t width)
{
    (void)net;
    (void)width;
    return 0;
}

static void no_begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                     size_t width, float *state, float *scratch)
{
    (void)net;
    (void)tokens;
    (void)features;
    (void)width;
    (void)state;
    (void)scratch;
}

static void look_up(const struct kp_net *net, const struct kp_net_step *s, float *state,
                    float *scratch, float *logp)
{
    uint32_t n = net->shape.n_values[s->p];
    (void)state;
    (void)scratch;
    for (size_t i = 0; i < s->n; i++)
        memcpy(logp + i * n, table[net->shape.embed][s->p][s->p ? s->values[i] : 0],
               n * sizeof(*logp));
}

static const struct kp_net_ops ops = {.name = "table",
                                      .state = no_floats,
                                      .scratch = no_floats,
                                      .begin = no_begin,
                                      .step = look_up};

/* ---- measuring ---- */

enum order { FREE, AS_DECLARED, AS_DIAGRAM };

struct setting {
    const char *name;
    enum order order;
    size_t n_nets;
    size_t width;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds of a search: the median of ROUNDS times all tables. */
static double measure(const struct made *m, const struct setting *s, size_t *found)
{
    static uint32_t index[SIDE] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct kp_net nets[MOST_NETS] = {0};
    const struct kp_net *list[MOST_NETS];
    uint32_t map[N_PARAMS];
    const uint32_t *values[N_PARAMS];
    double us[ROUNDS];
    for (uint32_t p = 0; p < N_PARAMS; p++) {
        map[p] = s->order == AS_DIAGRAM ? kp_space_order(m->space)[p] : p;
        values[p] = index;
        nets[0].shape.n_values[p] = m->params[map[p]].n_values;
    }
    nets[0].shape.n_targets = N_PARAMS;
    for (size_t k = 0; k < s->n_nets; k++) {
        nets[k].ops = &ops;
        nets[k].shape = nets[0].shape;
        list[k] = &nets[k];
    }
    struct kp_beam_input in = {
        .nets = list, .n_nets = s->n_nets, .width = s->width, .k = s->width};
    in.allowed.space = s->order == FREE ? NULL : m->space;
    in.allowed.map = map;
    in.allowed.value = values;
    float *work = kp_slab_new(kp_beam_work(&in) / sizeof(float) + 1);
    uint32_t *configs = kp_calloc(s->width * N_PARAMS, sizeof(*configs));
    double *logp = kp_calloc(s->width, sizeof(*logp));
    *found = 0;
    for (size_t r = 0; work && configs && logp && r < ROUNDS; r++) {
        int64_t start = kp_clock_ns();
        for (size_t t = 0; t < TABLES; t++) {
            for (size_t k = 0; k < s->n_nets; k++)
                nets[k].shape.embed = (t + 7 * k) % TABLES;
            *found = kp_beam_search(&in, work, configs, logp);
        }
        us[r] = (double)(kp_clock_ns() - start) * 1e-3 / TABLES;
    }
    kp_slab_free(work);
    kp_free(configs);
    kp_free(logp);
    if (*found == 0)
        return (double)NAN;
    qsort(us, ROUNDS, sizeof(us[0]), by_size);
    return us[ROUNDS / 2];
}

/* Microseconds of making the space anew, as for a problem that was never seen. */
static double measure_space(const struct made *m)
{
    double us[ROUNDS] = {0};
    for (size_t r = 0; r < ROUNDS; r++) {
        struct kp_space *s = NULL;
        int64_t start = kp_clock_ns();
        if (kp_space_new(&m->desc, &s, NULL) != KOPT_OK)
            return (double)NAN;
        us[r] = (double)(kp_clock_ns() - start) * 1e-3;
        kp_space_free(s);
    }
    qsort(us, ROUNDS, sizeof(us[0]), by_size);
    return us[ROUNDS / 2];
}

/* Microseconds of one question, prefixes of all lengths from random valid configurations. */
static double measure_question(const struct made *m)
{
    enum { QUESTIONS = 8000 };
    struct kp_rng rng;
    uint32_t config[N_PARAMS];
    unsigned char allowed[SIDE];
    size_t sum = 0;
    int64_t spent = 0;
    kp_rng_init(&rng, 3);
    for (size_t i = 0; i < QUESTIONS / N_PARAMS; i++) {
        unsigned char fixed[N_PARAMS] = {0};
        kp_space_sample(m->space, &rng, config);
        int64_t start = kp_clock_ns();
        for (size_t p = 0; p < N_PARAMS; p++) {
            sum += kp_space_allowed(m->space, config, fixed, p, allowed);
            fixed[p] = 1;
        }
        spent += kp_clock_ns() - start;
    }
    return sum ? (double)spent * 1e-3 / QUESTIONS : (double)NAN;
}

/* ---- a model with the rules of a file ---- */

enum { KNOWN = 600, ASKED = 300, N_FIELDS = 6, BEAM = 5 };

struct asked {
    struct kp_value sizes[KP_FIELDS_MAX]; /* by the rules' problem index */
    struct kp_given given[N_FIELDS];
};

struct real {
    struct kp_model *m;
    struct kp_kernel *rules; /* the model's */
    struct asked *problems;  /* KNOWN, then ASKED others */
    kopt_error err;
};

static const char *const fields[N_FIELDS] = {"direction", "in_channels", "in_h",
                                             "in_w",      "batchsize",   "out_channels"};

/* Sizes as networks have them. */
static bool draw(struct kp_rng *rng, const struct kp_kernel *k, struct asked *a)
{
    static const int64_t sides[] = {7, 14, 17, 28, 35, 56, 73};
    int64_t side = sides[kp_rng_below(rng, sizeof(sides) / sizeof(sides[0]))];
    const struct kp_value values[N_FIELDS] = {
        kp_string(kp_rng_below(rng, 2) ? KP_STR("F") : KP_STR("B")),
        kp_int(16 * (int64_t)(1 + kp_rng_below(rng, 64))),
        kp_int(side),
        kp_int(side),
        kp_int((int64_t)1 << kp_rng_below(rng, 8)),
        kp_int(16 * (int64_t)(1 + kp_rng_below(rng, 64)))};
    for (size_t i = 0; i < k->n_problem; i++)
        a->sizes[i] = k->problem_default[i];
    for (size_t f = 0; f < N_FIELDS; f++) {
        size_t i = 0;
        while (i < k->n_problem && strcmp(k->problem[i], fields[f]) != 0)
            i++;
        if (i == k->n_problem)
            return false;
        a->sizes[i] = values[f];
        a->given[f] = (struct kp_given){fields[f], values[f]};
    }
    return true;
}

/* A row of a problem with any valid configuration. */
static bool add_row(struct real *r, struct kp_dataset_builder *b, struct kp_space_cache *cache,
                    const struct asked *a, struct kp_rng *rng)
{
    struct kp_value row[KP_FIELDS_MAX];
    struct kp_value config[KP_PARAMS_MAX];
    uint32_t index[KP_PARAMS_MAX];
    double derived[KP_FIELDS_MAX];
    const char *derived_names[KP_FIELDS_MAX];
    struct kp_bound *bound = NULL;
    size_t n = kp_model_derived_names(r->rules, derived_names);
    if (kp_model_derive(r->rules, a->sizes, derived, &r->err) != KOPT_OK ||
        kp_kernel_bind_cached(r->rules, a->sizes, NULL, cache, &bound, &r->err) != KOPT_OK)
        return false;
    for (size_t f = 0; f < N_FIELDS; f++)
        row[f] = a->given[f].value;
    for (size_t d = 0; d < n; d++)
        row[N_FIELDS + d] = kp_float(derived[d]);
    bool ok = true;
    if (kp_space_count(bound->space) > 0) {
        kp_space_sample(bound->space, rng, index);
        for (size_t p = 0; p < r->rules->n_params; p++)
            config[p] = bound->desc.params[p].values[index[p]];
        ok = kp_dataset_add(b, row, config, NULL, 1.0F, &r->err) == KOPT_OK;
    }
    kp_bound_free(bound);
    return ok;
}

static struct kp_dataset *make_data(struct real *r)
{
    const char *names_of[KP_FIELDS_MAX];
    const char *targets[KP_PARAMS_MAX];
    struct kp_dataset_builder *b = NULL;
    struct kp_dataset *d = NULL;
    struct kp_rng rng;
    size_t n = N_FIELDS + kp_model_derived_names(r->rules, names_of + N_FIELDS);
    memcpy(names_of, fields, sizeof(fields));
    for (size_t p = 0; p < r->rules->n_params; p++)
        targets[p] = r->rules->params[p].name;
    if (kp_dataset_begin(r->rules->name, names_of, n, targets, r->rules->n_params, NULL, &b,
                         &r->err) != KOPT_OK)
        return NULL;
    struct kp_space_cache *cache = kp_space_cache_new(0);
    bool ok = cache != NULL;
    kp_rng_init(&rng, 4);
    for (size_t i = 0; ok && i < KNOWN + ASKED; i++) {
        ok = draw(&rng, r->rules, &r->problems[i]);
        if (ok && i < KNOWN)
            ok = add_row(r, b, cache, &r->problems[i], &rng);
    }
    kp_space_cache_free(cache);
    if (!ok) {
        kp_dataset_abandon(b);
        return NULL;
    }
    return kp_dataset_finish(b, &d, &r->err) == KOPT_OK ? d : NULL;
}

static bool copy_target(struct kp_model *m, const struct kp_target *from)
{
    struct kp_target *to = &m->targets[m->n_targets++];
    struct kp_value *values = kp_arena_alloc(&m->arena, from->n_values, sizeof(*values));
    *to = *from;
    to->name = kp_arena_strndup(&m->arena, from->name, strlen(from->name));
    to->values = values;
    for (uint32_t v = 0; values && v < from->n_values; v++)
        values[v] = from->values[v];
    return values && to->name;
}

/* The sizes of 0 are the network's own. */
struct network {
    const char *name;
    size_t embed;
    size_t hidden;
};

static bool make_real(struct real *r, const char *path, const struct network *w)
{
    struct kp_model *m = kp_calloc(1, sizeof(*m));
    struct kp_net_shape shape = {.embed = w->embed, .hidden = w->hidden, .layers = 1};
    r->m = m;
    r->problems = kp_calloc(KNOWN + ASKED, sizeof(*r->problems));
    unsigned char *use = kp_calloc(KNOWN, 1);
    struct kp_dataset *d = NULL;
    bool ok =
        m && r->problems && use && kp_kernel_load(path, false, &m->rules, &r->err) == KOPT_OK;
    if (ok) {
        m->arena = KP_ARENA_INIT(1 << 20);
        m->kernel = m->rules->name;
        m->n_raw = N_FIELDS;
        r->rules = m->rules;
        memset(use, 1, KNOWN);
        d = make_data(r);
    }
    ok = ok && d && kp_encoder_new(d, use, &m->encoder, &r->err) == KOPT_OK;
    for (size_t p = 0; ok && p < d->n_targets; p++) {
        ok = copy_target(m, &d->targets[p]);
        shape.n_values[p] = d->targets[p].n_values;
    }
    if (ok) {
        shape.n_tokens = kp_encoder_n_tokens(m->encoder);
        shape.n_vocab = kp_encoder_n_vocab(m->encoder);
        shape.n_features = kp_encoder_n_features(m->encoder);
        shape.n_targets = m->n_targets;
        ok = kp_net_new(kp_net_find(w->name), &shape, 1, &m->nets[0], &r->err) == KOPT_OK;
        m->n_nets = ok;
        ok = ok && kp_net_prepare(m->nets[0], &r->err) == KOPT_OK;
    }
    kp_dataset_free(d);
    kp_free(use);
    return ok;
}

static void real_free(struct real *r)
{
    kp_model_free(r->m);
    kp_free(r->problems);
}

/* Nanoseconds of a space; negative: it failed. */
static int64_t time_space(struct real *r, const struct asked *a, struct kp_space_cache *cache)
{
    struct kp_bound *b = NULL;
    int64_t start = kp_clock_ns();
    kopt_status st = kp_kernel_bind_cached(r->rules, a->sizes, NULL, cache, &b, &r->err);
    int64_t spent = kp_clock_ns() - start;
    kp_bound_free(b);
    return st == KOPT_OK ? spent : -1;
}

static int64_t time_answer(struct real *r, const struct asked *a, bool unconstrained)
{
    struct kp_prediction got;
    const struct kp_predict_options o = {
        .k = BEAM, .width = BEAM, .unconstrained = unconstrained};
    int64_t start = kp_clock_ns();
    kopt_status st = kp_model_predict(r->m, a->given, N_FIELDS, &o, &got, &r->err);
    int64_t spent = kp_clock_ns() - start;
    kp_prediction_deinit(&got);
    return st == KOPT_OK || st == KOPT_ENOTFOUND ? spent : -1;
}

enum question { SPACE_ALONE, SPACE_CACHED, ANSWER_FREE, ANSWER_NEW, ANSWER_AGAIN, QUESTIONS };

static const char *const question_names[QUESTIONS] = {
    "the space of a new problem, alone", "the space of a new problem, cache",
    "prediction, no rules", "prediction, new problem", "prediction, the same problem again"};

/* From the first question that is asked of this network. */
static void print_times(const struct real *r, double us[QUESTIONS][ASKED], size_t first,
                        bool json)
{
    const struct kp_net *net = r->m->nets[0];
    if (!json)
        (void)printf("%s, %zu parameters, %zu tokens\n", net->ops->name, net->params.n_params,
                     net->shape.n_tokens);
    for (size_t q = first; q < QUESTIONS; q++) {
        qsort(us[q], ASKED, sizeof(us[q][0]), by_size);
        const double at[] = {us[q][ASKED / 10], us[q][ASKED / 2], us[q][ASKED * 95 / 100]};
        if (json)
            (void)printf("{\"network\":\"%s\",\"question\":\"%s\",\"us_10\":%.3f,\"us\":%.3f,"
                         "\"us_95\":%.3f}\n",
                         net->ops->name, question_names[q], at[0], at[1], at[2]);
        else
            (void)printf("  %-38s %8.2f us, of 100: 10 within %.2f, 95 within %.2f us\n",
                         question_names[q], at[1], at[0], at[2]);
    }
}

static int report_real(struct real *r, bool spaces, bool json)
{
    double us[QUESTIONS][ASKED];
    struct kp_space_cache *cache = kp_space_cache_new(0);
    bool ok = cache && kp_model_keep_spaces(r->m, &r->err) == KOPT_OK;
    for (size_t i = 0; ok && i < KNOWN; i++)
        ok = time_space(r, &r->problems[i], cache) >= 0 &&
             time_answer(r, &r->problems[i], false) >= 0;
    for (size_t i = 0; ok && i < ASKED; i++) {
        const struct asked *a = &r->problems[KNOWN + i];
        const int64_t ns[QUESTIONS] = {time_space(r, a, NULL), time_space(r, a, cache),
                                       time_answer(r, a, true), time_answer(r, a, false),
                                       time_answer(r, a, false)};
        for (size_t q = 0; q < QUESTIONS; q++) {
            ok = ok && ns[q] >= 0;
            us[q][i] = (double)ns[q] * 1e-3;
        }
    }
    kp_space_cache_free(cache);
    if (!ok) {
        (void)fprintf(stderr, "bench_beam: %s\n", r->err.message);
        return 1;
    }
    print_times(r, us, spaces ? 0 : ANSWER_FREE, json);
    return 0;
}

static int bench_real(const char *path, bool json)
{
    static const struct network networks[] = {{"factored", 16, 64},
                                              {"seq2seq", 0, 0},
                                              {"attention", 0, 0},
                                              {"hybrid1", 0, 0},
                                              {"hybrid2", 0, 0}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(networks) / sizeof(networks[0]); i++) {
        struct real r = {0};
        rc = 1;
        if (make_real(&r, path, &networks[i]))
            rc = report_real(&r, i == 0, json);
        else
            (void)fprintf(stderr, "bench_beam: %s: %s\n", path, r.err.message);
        real_free(&r);
    }
    return rc;
}

static int bench_made(bool json)
{
    static const struct setting settings[] = {
        {"no rules, beam of 5", FREE, 1, 5},
        {"rules, beam of 5", AS_DECLARED, 1, 5},
        {"rules, beam of 5, the diagram's order", AS_DIAGRAM, 1, 5},
        {"rules, beam of 5, 3 networks", AS_DECLARED, 3, 5},
        {"no rules, beam of 50", FREE, 1, 50},
        {"rules, beam of 50", AS_DECLARED, 1, 50},
        {"rules, beam of 50, the diagram's order", AS_DIAGRAM, 1, 50},
        {"rules, greedy", AS_DECLARED, 1, 1}};
    struct made m = {0};
    struct kp_space_stats stats;
    int rc = 0;
    fill_tables();
    if (!make(&m)) {
        (void)fprintf(stderr, "bench_beam: %s\n", m.err.message);
        made_free(&m);
        return 1;
    }
    kp_space_stats(m.space, &stats);
    double make_us = measure_space(&m);
    double question_us = measure_question(&m);
    (void)printf(json ? "{\"valid\":%llu,\"candidates\":%.0f,\"nodes\":%zu,\"edges\":%zu,"
                        "\"make_us\":%.2f,\"question_us\":%.3f}\n"
                      : "%llu valid of %.0f, %zu nodes, %zu edges; made in %.0f us; a question "
                        "takes %.2f us\n",
                 (unsigned long long)kp_space_count(m.space), kp_space_cartesian(m.space),
                 stats.nodes, stats.edges, make_us, question_us);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        size_t found = 0;
        double us = measure(&m, &settings[i], &found);
        (void)printf(json ? "{\"search\":\"%s\",\"us\":%.3f,\"found\":%zu}\n"
                          : "%-40s %8.2f us, %zu found\n",
                     settings[i].name, us, found);
        rc |= found == 0;
    }
    made_free(&m);
    return rc;
}

int main(int argc, char **argv)
{
    static const char usual[] = "kernels/miopen/ConvAsm1x1U.kopt";
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *path = argc > 1 + json ? argv[1 + json] : usual;
    int rc = bench_made(json);
    if (path == usual && access(path, R_OK) != 0)
        (void)fprintf(stderr, "bench_beam: %s is not there\n", path);
    else
        rc |= bench_real(path, json);
    return rc;
}
