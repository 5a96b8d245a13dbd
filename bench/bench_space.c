/* SPDX-License-Identifier: MIT */
/* How long spaces take to make and to use:
 *
 *   bench_space [--json] [T1.json ..]
 *
 * Without files: the T1 files of KOPT_SHARED_DATA/t1 (or ../shared/data/t1 of the folder it is
 * started in), where they are there. Behind them, spaces of 10^18 candidates that are made
 * here. One core; every figure is taken with the space's own functions, nothing is kept between
 * rounds. Columns: candidates (the product of all value counts); valid; ms to make the space
 * and count it, median of 21 rounds, and the lowest and highest; bytes held, and at most;
 * microseconds for a uniform sample, for the configuration of a rank, for the rank of a
 * configuration, for all neighbours that differ in one parameter (and how many those are), for
 * whether a random half of the parameters has a completion; nanoseconds for each configuration
 * when all are listed. */
#include "base/alloc.h"
#include "base/rng.h"
#include "os/clock.h"
#include "space/kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 21, QUERIES = 2000, LISTED = 5 * 1000 * 1000, MADE_PARAMS = 18 };

struct result {
    const char *name;
    double candidates;
    uint64_t valid;
    double ms[ROUNDS]; /* sorted */
    struct kp_space_stats stats;
    double sample_us;
    double at_us;
    double rank_us;
    double neighbours_us;
    double n_neighbours;
    double completable_us;
    double list_ns;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double since_us(int64_t start)
{
    return (double)(kp_clock_ns() - start) * 1e-3;
}

static bool count_one(void *user, const uint32_t *config)
{
    (void)config;
    ++*(uint64_t *)user;
    return true;
}

/* The configurations that all questions are asked about. */
static void take_samples(const struct kp_space *s, uint32_t *configs, struct result *r)
{
    struct kp_rng rng;
    size_t n = kp_space_n_params(s);
    kp_rng_init(&rng, 1);
    int64_t start = kp_clock_ns();
    for (size_t i = 0; i < QUERIES; i++)
        kp_space_sample(s, &rng, configs + i * n);
    r->sample_us = since_us(start) / QUERIES;
}

static void ask_ranks(const struct kp_space *s, const uint32_t *configs, struct result *r)
{
    size_t n = kp_space_n_params(s);
    uint32_t config[KP_PARAMS_MAX];
    uint64_t *ranks = kp_calloc(QUERIES, sizeof(*ranks));
    bool ok = ranks != NULL;
    int64_t start = kp_clock_ns();
    for (size_t i = 0; ok && i < QUERIES; i++)
        ok = kp_space_rank(s, configs + i * n, &ranks[i]);
    r->rank_us = since_us(start) / QUERIES;
    start = kp_clock_ns();
    for (size_t i = 0; ok && i < QUERIES; i++)
        ok = kp_space_at(s, ranks[i], config, NULL) == KOPT_OK;
    r->at_us = since_us(start) / QUERIES;
    if (!ok)
        (void)fprintf(stderr, "bench_space: %s: a sample has no rank\n", r->name);
    kp_free(ranks);
}

static void ask_around(const struct kp_space *s, const uint32_t *configs, struct result *r)
{
    size_t n = kp_space_n_params(s);
    uint64_t found = 0;
    uint64_t complete = 0;
    struct kp_rng rng;
    kp_rng_init(&rng, 2);
    int64_t start = kp_clock_ns();
    for (size_t i = 0; i < QUERIES; i++)
        kp_space_neighbours(s, configs + i * n, KP_NEAR_HAMMING, count_one, &found);
    r->neighbours_us = since_us(start) / QUERIES;
    r->n_neighbours = (double)found / QUERIES;
    start = kp_clock_ns();
    for (size_t i = 0; i < QUERIES; i++) {
        /* Half of the parameters from one configuration, a quarter from another. */
        unsigned char fixed[KP_PARAMS_MAX];
        uint32_t config[KP_PARAMS_MAX];
        uint64_t bits = kp_rng_u64(&rng);
        for (size_t k = 0; k < n; k++) {
            unsigned two = (bits >> (2 * (k % 32))) & 3;
            fixed[k] = two != 0;
            config[k] = configs[(two == 3 ? (i + 1) % QUERIES : i) * n + k];
        }
        complete += kp_space_completable(s, config, fixed);
    }
    r->completable_us = since_us(start) / QUERIES;
    if (complete == 0)
        (void)fprintf(stderr, "bench_space: %s: nothing was completable\n", r->name);
}

static void list_all(const struct kp_space *s, struct result *r)
{
    uint32_t config[KP_PARAMS_MAX];
    struct kp_space_iter it;
    uint64_t n = 0;
    kp_space_iter_init(&it, s, 0);
    int64_t start = kp_clock_ns();
    while (n < LISTED && kp_space_iter_next(&it, config))
        n++;
    r->list_ns = since_us(start) * 1e3 / (double)(n ? n : 1);
}

static kopt_status measure(const struct kp_space_desc *desc, struct result *r, kopt_error *err)
{
    struct kp_space *s = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        kp_space_free(s);
        int64_t start = kp_clock_ns();
        kopt_status st = kp_space_new(desc, &s, err);
        if (st != KOPT_OK)
            return st;
        r->valid = kp_space_count(s);
        r->ms[i] = since_us(start) * 1e-3;
    }
    qsort(r->ms, ROUNDS, sizeof(r->ms[0]), by_size);
    r->candidates = kp_space_cartesian(s);
    kp_space_stats(s, &r->stats);
    uint32_t *configs = kp_calloc(QUERIES * desc->n_params, sizeof(*configs));
    if (configs && r->valid) {
        take_samples(s, configs, r);
        ask_ranks(s, configs, r);
        ask_around(s, configs, r);
        list_all(s, r);
    }
    kp_free(configs);
    kp_space_free(s);
    return KOPT_OK;
}

/* ---- output ---- */

static void print_head(bool json)
{
    if (!json)
        (void)printf("%-22s %9s %20s %9s %17s %9s %9s %7s %6s %6s %7s %5s %6s %6s\n", "space",
                     "candid.", "valid", "make ms", "low-high", "bytes", "peak", "sample", "at",
                     "rank", "neighb.", "of", "compl.", "list");
}

static void print_result(const struct result *r, bool json)
{
    if (json) {
        (void)printf(
            "{\"space\":\"%s\",\"candidates\":%.17g,\"valid\":%llu,\"make_ms\":%.4f,"
            "\"make_ms_low\":%.4f,\"make_ms_high\":%.4f,\"bytes\":%zu,\"peak_bytes\":%zu,"
            "\"nodes\":%zu,\"edges\":%zu,\"sample_us\":%.4f,\"at_us\":%.4f,"
            "\"rank_us\":%.4f,\"neighbours_us\":%.4f,\"neighbours\":%.2f,"
            "\"completable_us\":%.4f,\"list_ns\":%.2f}\n",
            r->name, r->candidates, (unsigned long long)r->valid, r->ms[ROUNDS / 2], r->ms[0],
            r->ms[ROUNDS - 1], r->stats.bytes, r->stats.peak_bytes, r->stats.nodes,
            r->stats.edges, r->sample_us, r->at_us, r->rank_us, r->neighbours_us,
            r->n_neighbours, r->completable_us, r->list_ns);
        return;
    }
    char spread[32];
    (void)snprintf(spread, sizeof(spread), "%.3f-%.3f", r->ms[0], r->ms[ROUNDS - 1]);
    (void)printf("%-22s %9.3g %20llu %9.3f %17s %9zu %9zu %7.2f %6.2f %6.2f %7.2f %5.0f %6.2f "
                 "%6.1f\n",
                 r->name, r->candidates, (unsigned long long)r->valid, r->ms[ROUNDS / 2],
                 spread, r->stats.bytes, r->stats.peak_bytes, r->sample_us, r->at_us,
                 r->rank_us, r->neighbours_us, r->n_neighbours, r->completable_us, r->list_ns);
}

static int report(const char *name, const struct kp_space_desc *desc, bool json)
{
    kopt_error err = {0};
    struct result r = {.name = name};
    if (measure(desc, &r, &err) != KOPT_OK) {
        (void)fprintf(stderr, "bench_space: %s: %s\n", name, err.message);
        return 1;
    }
    print_result(&r, json);
    return 0;
}

/* ---- spaces from files ---- */

static int bench_file(const char *path, bool json)
{
    struct kp_kernel *k = NULL;
    struct kp_bound *b = NULL;
    struct kp_limits limits = {.max_threads = 1024, .shared_bytes = 49152, .warp = 32};
    kopt_error err = {0};
    char name[256];
    const char *slash = strrchr(path, '/');
    (void)snprintf(name, sizeof(name), "%s", slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot)
        *dot = 0;
    int rc = 1;
    if (kp_kernel_load(path, false, &k, &err) != KOPT_OK ||
        kp_kernel_bind(k, NULL, 0, &limits, &b, &err) != KOPT_OK)
        (void)fprintf(stderr, "bench_space: %s\n", err.message);
    else
        rc = report(name, &b->desc, json);
    kp_bound_free(b);
    kp_kernel_free(k);
    return rc;
}

static int bench_shared(bool json)
{
    static const char *const files[] = {"hotspot_milo",      "gemm_milo",   "convolution_milo",
                                        "dedispersion_milo", "convolution", "pnpoly"};
    const char *data =
        getenv("KOPT_SHARED_DATA"); /* NOLINT(concurrency-mt-unsafe): one thread */
    int rc = 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/t1/%s.json", data ? data : "../shared/data",
                       files[i]);
        if (access(path, R_OK) == 0)
            rc |= bench_file(path, json);
        else
            (void)fprintf(stderr, "bench_space: %s is not there\n", path);
    }
    return rc;
}

/* ---- spaces of 10^18 candidates ---- */

struct made {
    struct kp_arena arena;
    struct kp_scope scope;
    struct kp_param params[MADE_PARAMS];
    struct kp_rule rules[64];
    struct kp_space_desc desc;
    kopt_error err;
    bool failed;
};

static void made_init(struct made *m)
{
    static const char *const names[MADE_PARAMS] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",
                                                   "x6",  "x7",  "x8",  "x9",  "x10", "x11",
                                                   "x12", "x13", "x14", "x15", "x16", "x17"};
    memset(m, 0, sizeof(*m));
    m->arena.max = (size_t)1 << 24;
    m->desc = (struct kp_space_desc){.params = m->params, .rules = m->rules};
    struct kp_value *ten = kp_arena_alloc(&m->arena, 10, sizeof(*ten));
    m->failed = !ten;
    for (int64_t v = 0; ten && v < 10; v++)
        ten[v] = kp_int(v + 1);
    for (uint32_t i = 0; i < MADE_PARAMS; i++) {
        m->params[i] = (struct kp_param){
            .name = names[i], .values = ten, .n_values = 10, .default_index = -1, .slot = i};
        m->failed |= kp_scope_add(&m->scope, names[i], i, &m->err) != KOPT_OK;
    }
    m->desc.n_params = MADE_PARAMS;
    m->desc.n_slots = MADE_PARAMS;
}

static void made_deinit(struct made *m)
{
    kp_arena_deinit(&m->arena);
    kp_scope_deinit(&m->scope);
}

static void made_rule(struct made *m, const char *text)
{
    struct kp_rule *r = &m->rules[m->desc.n_rules];
    r->text = kp_arena_strndup(&m->arena, text, strlen(text));
    if (m->failed || !r->text ||
        kp_expr_parse(kp_str_from(r->text), &m->scope, KP_DIALECT_KOPT, NULL, &m->arena,
                      &r->expr, &m->err) != KOPT_OK)
        m->failed = true;
    else
        m->desc.n_rules++;
}

/* One rule over all parameters: "x0 op x1 op .. tail". */
static void made_over_all(struct made *m, const char *op, const char *tail)
{
    struct kp_buf b = KP_BUF_INIT(4096);
    for (uint32_t i = 0; i < MADE_PARAMS; i++)
        kp_buf_addf(&b, "%sx%u", i ? op : "(", i);
    kp_buf_addf(&b, ") %s", tail);
    made_rule(m, kp_buf_text(&b));
    kp_buf_deinit(&b);
}

static void make_groups(struct made *m)
{
    for (int i = 0; i < 6; i++) {
        char rule[64];
        (void)snprintf(rule, sizeof(rule), "x%d * x%d <= 7 * x%d", i, i + 6, i + 12);
        made_rule(m, rule);
    }
}

static void make_chain(struct made *m)
{
    for (int i = 0; i + 2 < MADE_PARAMS; i++) {
        char rule[64];
        (void)snprintf(rule, sizeof(rule), "(x%d + x%d * x%d) %% 3 != 0", i, i + 1, i + 2);
        made_rule(m, rule);
    }
}

static void make_sum(struct made *m)
{
    made_over_all(m, " + ", "<= 90");
}

static void make_product(struct made *m)
{
    made_over_all(m, " * ", "<= 1000000000000");
}

static void make_both(struct made *m)
{
    made_over_all(m, " * ", "<= 1000000000");
    made_over_all(m, " + ", ">= 60");
}

/* The rule of a tiled stencil, twice over, tied by the number of threads. */
static void make_tiles(struct made *m)
{
    made_rule(m, "x0 * x1 * x2 <= 100 && x9 * x10 * x11 <= 100");
    made_rule(m, "(x0*x3 + 2*x6) * (x1*x4 + 2*x7) * (x2*x5 + 2*x8) <= 4096");
    made_rule(m, "(x9*x12 + 2*x15) * (x10*x13 + 2*x16) * (x11*x14 + 2*x17) <= 4096");
    made_rule(m, "x0 * x9 >= 8");
}

static const struct {
    const char *name;
    void (*make)(struct made *m);
} made_spaces[] = {
    {"six groups of three", make_groups}, {"chain of triples", make_chain},
    {"sum of eighteen", make_sum},        {"product of eighteen", make_product},
    {"product and sum", make_both},       {"two tiled stencils", make_tiles},
};

static int bench_made(bool json)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof(made_spaces) / sizeof(made_spaces[0]); i++) {
        struct made m;
        made_init(&m);
        made_spaces[i].make(&m);
        if (m.failed) {
            (void)fprintf(stderr, "bench_space: %s: %s\n", made_spaces[i].name, m.err.message);
            rc = 1;
        } else {
            rc |= report(made_spaces[i].name, &m.desc, json);
        }
        made_deinit(&m);
    }
    return rc;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    int first = json ? 2 : 1;
    int rc = 0;
    print_head(json);
    for (int i = first; i < argc; i++)
        rc |= bench_file(argv[i], json);
    if (first >= argc) {
        rc |= bench_shared(json);
        rc |= bench_made(json);
    }
    return rc;
}
