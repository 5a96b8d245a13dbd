/* SPDX-License-Identifier: MIT */
/* AMD's trained model for ConvAsm1x1U on MIOpen's performance database: how often it has the
 * position, the whole configuration among its first 1 and 5, and how many of its configurations
 * are valid; decoded as MIOpen does it and by our beam, free and under the rules. Its tokens
 * are those that the search goes over, so the rules of the search bind, too.
 *
 * bench_ktn PREFIX DATABASE RULES: the files of the model without `_encoder.ktn.model`, an
 * SQLite database (unpacked) and kernels/miopen/ConvAsm1x1U.kopt. Problems of stride 1 count,
 * as the model is for no others. */
#include "base/alloc.h"
#include "model/ktn.h"
#include "store/miopen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { P_MAX = KP_TARGETS_MAX, COLUMNS = KP_MIOPEN_COLUMNS_MAX, WIDTH = 8, TOP = 5 };

/* ---- what is counted ---- */

enum way { FREE_GREEDY, PREFIX_GREEDY, FREE_BEAM, RULES_BEAM, N_WAYS };
static const char *const way_names[N_WAYS] = {"greedy, free", "greedy, prefix rules (MIOpen)",
                                              "beam 8, free", "beam 8, all rules"};
static const bool has_five[N_WAYS] = {false, false, true, true};

struct count {
    int64_t rows;
    int64_t right[P_MAX]; /* of the first answer */
    int64_t exact;
    int64_t among_five;
    int64_t valid;
    int64_t none; /* no whole configuration came out */
    int64_t ns;
};

enum part { ALL, TEST, N_PARTS };
enum type { FP32, FP16, N_TYPES };
static const char *const type_names[N_TYPES] = {"FP32", "FP16"};

struct bench {
    struct kp_ktn *ktn;
    struct kp_kernel *rules;
    struct kp_bound *bound; /* of the row at hand */
    struct count counts[N_TYPES][N_PARTS][N_WAYS];
    size_t P;
    kopt_error err;
};

/* ---- rules ---- */

/* The parameters that stand in a rule: the last of them says how long a prefix has to be. */
struct last_param {
    const struct kp_kernel *kernel;
    size_t n;
};

static void note(void *user, uint32_t slot)
{
    struct last_param *l = user;
    for (size_t i = 0; i < l->kernel->n_params; i++)
        if (l->kernel->params[i].slot == slot && i + 1 > l->n)
            l->n = i + 1;
}

/* The last rule tells what the search goes over; MIOpen does not ask it of a
 * prediction. */
static size_t n_prefix_rules(const struct kp_kernel *k)
{
    return k->n_rules - 1;
}

static int64_t index_of(const struct kp_param *p, int64_t value)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (kp_value_same(p->values[i], kp_int(value)))
            return i;
    return -1;
}

/* MIOpen's test of a prefix: each rule over its parameters alone, no look-ahead. */
static bool begins(void *user, const int64_t *values, size_t n)
{
    struct bench *b = user;
    const struct kp_kernel *k = b->rules;
    if (index_of(&k->params[n - 1], values[n - 1]) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        b->bound->values[k->params[i].slot] = kp_int(values[i]);
        b->bound->known[k->params[i].slot] = 1;
    }
    bool ok = true;
    const struct kp_env env = {b->bound->values, b->bound->known};
    for (size_t r = 0; ok && r < n_prefix_rules(k); r++) {
        struct last_param last = {k, 0};
        kp_expr_slots(k->rules[r].expr, note, &last);
        if (last.n == n)
            ok = kp_expr_truth(k->rules[r].expr, &env, NULL) == 1;
    }
    for (size_t i = 0; i < n; i++)
        b->bound->known[k->params[i].slot] = 0;
    return ok;
}

static bool is_valid(const struct bench *b, const int64_t *values)
{
    uint32_t config[KP_PARAMS_MAX];
    for (size_t i = 0; i < b->P; i++) {
        int64_t v = index_of(&b->rules->params[i], values[i]);
        if (v < 0)
            return false;
        config[i] = (uint32_t)v;
    }
    return kp_space_valid(b->bound->space, config, NULL);
}

/* ---- a row ---- */

/* The thread's own time: other work on the machine does not count. */
static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool same(const int64_t *a, const int64_t *b, size_t n)
{
    return memcmp(a, b, n * sizeof(*a)) == 0;
}

/* values[n][P]: the answers; of none the positions that were filled count. */
static void add(struct bench *b, struct count *c, const int64_t *values, size_t n,
                size_t filled, const int64_t *label)
{
    bool whole = n > 0 && filled == b->P;
    c->rows++;
    c->none += !whole;
    for (size_t p = 0; n > 0 && p < filled; p++)
        c->right[p] += values[p] == label[p];
    c->exact += whole && same(values, label, b->P);
    c->valid += whole && is_valid(b, values);
    for (size_t i = 0; whole && i < n; i++)
        c->among_five += same(values + i * b->P, label, b->P);
}

static kopt_status decode(struct bench *b, enum way way, const float *x, const int64_t *label,
                          struct count *const *counts, size_t n_counts)
{
    int64_t values[TOP * P_MAX];
    double logp[TOP];
    size_t n = 1;
    size_t filled = b->P;
    kopt_status st = KOPT_OK;
    int64_t before = now_ns();
    if (way == FREE_GREEDY || way == PREFIX_GREEDY) {
        const struct kp_ktn_prefix prefix = {way == PREFIX_GREEDY ? begins : NULL, b};
        st = kp_ktn_greedy(b->ktn, x, &prefix, values, &filled, &b->err);
    } else {
        const struct kp_ktn_ask ask = {.x = x,
                                       .space = way == RULES_BEAM ? b->bound->space : NULL,
                                       .width = WIDTH,
                                       .n = TOP};
        st = kp_ktn_predict(b->ktn, &ask, values, logp, &n, &b->err);
    }
    int64_t took = now_ns() - before;
    for (size_t i = 0; st == KOPT_OK && i < n_counts; i++) {
        add(b, counts[i], values, n, filled, label);
        counts[i]->ns += took;
    }
    return st;
}

/* The row's columns as the rules and the network take them. */
static bool read_problem(const struct bench *b, const struct kp_miopen_row *row,
                         struct kp_value *problem, struct kp_given *given)
{
    for (size_t i = 0; i < row->n_columns; i++) {
        int64_t v = 0;
        struct kp_str text = kp_str_from(row->problem[i]);
        given[i].name = row->columns[i];
        given[i].value = kp_str_to_i64(text, &v) ? kp_int(v) : kp_string(text);
    }
    for (size_t i = 0; i < b->rules->n_problem; i++) {
        bool found = false;
        for (size_t c = 0; c < row->n_columns; c++) {
            if (strcmp(b->rules->problem[i], given[c].name) != 0)
                continue;
            problem[i] = given[c].value;
            found = true;
        }
        if (!found)
            return false;
    }
    return true;
}

static kopt_status visit(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct bench *b = user;
    struct kp_value problem[COLUMNS];
    struct kp_given given[COLUMNS];
    int64_t label[P_MAX];
    float x[64];
    const char *type = kp_miopen_column(row, "data_type");
    const char *stride = kp_miopen_column(row, "conv_stride_h");
    enum type t = FP32;
    while (t < N_TYPES && (!type || strcmp(type, type_names[t]) != 0))
        t++;
    if (t == N_TYPES || !stride || strcmp(stride, "1") != 0)
        return KOPT_OK;
    if (row->n_values != b->P || b->rules->n_problem > COLUMNS)
        return kp_err(err, KOPT_EINPUT, "row %lld has %zu parameters", (long long)row->line,
                      row->n_values);
    for (size_t p = 0; p < b->P; p++)
        if (!kp_str_to_i64(kp_str_from(row->values[p]), &label[p]))
            return kp_err(err, KOPT_EINPUT, "row %lld: no number", (long long)row->line);
    if (!read_problem(b, row, problem, given) || kp_ktn_n_inputs(b->ktn) != 64)
        return kp_err(err, KOPT_EINPUT, "row %lld is no such problem", (long long)row->line);
    struct count *counts[N_PARTS];
    kopt_status st = kp_ktn_features(b->ktn, given, row->n_columns, x, err);
    if (st == KOPT_OK)
        st = kp_kernel_bind_values(b->rules, problem, NULL, &b->bound, err);
    for (enum way w = 0; st == KOPT_OK && w < N_WAYS; w++) {
        counts[ALL] = &b->counts[t][ALL][w];
        counts[TEST] = &b->counts[t][TEST][w];
        st = decode(b, w, x, label, counts, kp_split_part(1, row->key) == 0 ? 2 : 1);
    }
    kp_bound_free(b->bound);
    b->bound = NULL;
    return st;
}

/* ---- the table ---- */

static double percent(int64_t n, const struct count *c)
{
    return c->rows ? 100.0 * (double)n / (double)c->rows : 0;
}

static void show(const struct bench *b, const struct count *c, const char *name, bool five)
{
    int64_t right = 0;
    (void)printf("  %-30s", name);
    for (size_t p = 0; p < b->P; p++) {
        (void)printf(" %5.1f", percent(c->right[p], c));
        right += c->right[p];
    }
    (void)printf(" | %5.1f %5.1f ", percent(right, c) / (double)b->P, percent(c->exact, c));
    if (five)
        (void)printf("%5.1f", percent(c->among_five, c));
    else
        (void)printf("    -");
    (void)printf(" %5.1f %5.1f | %6.0f\n", percent(c->valid, c), percent(c->none, c),
                 c->rows ? (double)c->ns / 1e3 / (double)c->rows : 0);
}

static void show_all(const struct bench *b)
{
    static const char *const parts[N_PARTS] = {"all rows", "test rows (salt 1, part 0)"};
    for (enum type t = 0; t < N_TYPES; t++)
        for (enum part p = 0; p < N_PARTS; p++) {
            (void)printf("%s, %s: %lld\n  %-30s", type_names[t], parts[p],
                         (long long)b->counts[t][p][0].rows, "right at position, %");
            for (size_t i = 0; i < b->P; i++)
                (void)printf(" %5zu", i + 1);
            (void)printf(" |  mean     1     5 valid  none |     us\n");
            for (enum way w = 0; w < N_WAYS; w++)
                show(b, &b->counts[t][p][w], way_names[w], has_five[w]);
        }
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct kp_miopen_count count;
    double worst = 0;
    if (argc != 4) {
        (void)fprintf(stderr, "usage: bench_ktn PREFIX DATABASE RULES\n");
        return 2;
    }
    kopt_status st = kp_kernel_load(argv[3], false, &b.rules, &b.err);
    if (st == KOPT_OK)
        st = kp_ktn_load(argv[1], &b.ktn, &b.err);
    if (st == KOPT_OK)
        st = kp_ktn_self_test(b.ktn, &worst, &b.err);
    if (st == KOPT_OK)
        st = kp_ktn_divide(b.ktn, b.rules->params, b.rules->n_params, &b.err);
    if (st == KOPT_OK) {
        b.P = kp_ktn_n_positions(b.ktn);
        (void)printf("%zu parameters; its own tests agree to %.1e\n", kp_ktn_n_params(b.ktn),
                     worst);
        st = kp_miopen_read(argv[2], b.rules->name, visit, &b, &count, &b.err);
    }
    if (st == KOPT_OK)
        show_all(&b);
    else
        (void)fprintf(stderr, "bench_ktn: %s\n", b.err.message);
    kp_ktn_free(b.ktn);
    kp_kernel_free(b.rules);
    return st == KOPT_OK ? 0 : 1;
}
