/* SPDX-License-Identifier: MIT */
/* MIOpen's published databases (in the folder that KOPT_DATA_DIR names, compressed): every row
 * satisfies the rules in kernels/miopen, and as many configurations are valid as an independent
 * count of the same rules found. */
#include "base/alloc.h"
#include "base/arena.h"
#include "os/clock.h"
#include "space/kernel.h"
#include "store/miopen.h"
#include "support/test.h"
#include "support/unpack.h"

enum { FIELDS_MAX = 32, SLOTS_MAX = 256, COUNTS_MAX = 20000 };

static const char *data_dir;

static const char *source_path(const char *folder, const char *name, char path[4200])
{
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, 4200, "%s/%s%s", root ? root : ".", folder, name);
    return path;
}

/* --- rows against rules --------------------------------------------------------------------
 */

struct check {
    struct kp_kernel *k;
    const char *type;      /* data type that counts; NULL = all but INT8 */
    const char *arch;      /* value of a name that is no column */
    int64_t every;         /* only each so many-th row is looked at */
    int64_t n;             /* rows of that type */
    int64_t invalid;       /* rows */
    int64_t known_invalid; /* of these, as is_known() says */
    double *counts;        /* of valid configurations */
    double *us;            /* that making the space took */
    size_t n_counts;
};

static struct kp_value value_of(const char *text)
{
    int64_t v = 0;
    return kp_str_to_i64(kp_str_from(text), &v) ? kp_int(v) : kp_string(kp_str_from(text));
}

static void problem_of(const struct check *c, const struct kp_miopen_row *row,
                       struct kp_value *problem)
{
    assert_true(c->k->n_problem <= FIELDS_MAX);
    for (size_t i = 0; i < c->k->n_problem; i++) {
        const char *text = kp_miopen_column(row, c->k->problem[i]);
        if (!text)
            assert_string_equal(c->k->problem[i], "arch");
        problem[i] = value_of(text ? text : c->arch);
    }
}

/* False where a value is not in its list. */
static bool config_of(const struct kp_kernel *k, const struct kp_miopen_row *row,
                      uint32_t *config)
{
    bool all = true;
    assert_int_equal(row->n_values, k->n_params);
    for (size_t p = 0; p < row->n_values; p++) {
        const struct kp_param *param = &k->params[p];
        config[p] = 0;
        while (config[p] < param->n_values &&
               !kp_value_means(param->values[config[p]], kp_str_from(row->values[p])))
            config[p]++;
        all = all && config[p] < param->n_values;
    }
    return all;
}

/* By the rules themselves: a space for every row would take minutes. */
static bool satisfies(const struct check *c, const struct kp_value *problem,
                      const uint32_t *config)
{
    struct kp_value values[SLOTS_MAX];
    unsigned char known[SLOTS_MAX] = {0};
    const struct kp_env env = {values, known};
    const struct kp_kernel *k = c->k;
    bool all = true;
    assert_true(k->n_slots <= SLOTS_MAX);
    for (size_t i = 0; i < k->n_problem; i++) {
        int64_t slot = kp_scope_find(&k->scope, kp_str_from(k->problem[i]));
        values[slot] = problem[i];
        known[slot] = 1;
    }
    for (size_t i = 0; i < k->n_params; i++) {
        values[k->params[i].slot] = k->params[i].values[config[i]];
        known[k->params[i].slot] = 1;
    }
    for (size_t i = 0; i < k->n_rules; i++)
        all = all && kp_expr_truth(k->rules[i].expr, &env, NULL) == 1;
    return all;
}

static void count_space(struct check *c, const struct kp_value *problem, const uint32_t *config,
                        bool valid)
{
    struct kp_bound *b = NULL;
    kopt_error err = {0};
    uint64_t rank = 0;
    assert_true(c->n_counts < COUNTS_MAX);
    int64_t from = kp_clock_ns();
    if (kp_kernel_bind_values(c->k, problem, NULL, &b, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    c->us[c->n_counts] = 1e-3 * (double)(kp_clock_ns() - from);
    c->counts[c->n_counts++] = (double)kp_space_count(b->space);
    assert_int_equal(kp_space_rank(b->space, config, &rank), valid);
    kp_bound_free(b);
}

/* Four rows of one layer (5x5 on 27x27) have work-groups that do not follow from their tiles;
 * the solver computes groups anew. */
static bool is_known(const struct check *c, const struct kp_miopen_row *row)
{
    return strcmp(c->k->name, "ConvOclDirectFwd") == 0 &&
           strcmp(kp_miopen_column(row, "in_h"), "27") == 0 &&
           strcmp(kp_miopen_column(row, "fil_h"), "5") == 0 &&
           strcmp(row->values[0], "8") == 0 && strcmp(row->values[1], "16") == 0;
}

static kopt_status check_row(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct check *c = user;
    struct kp_value problem[FIELDS_MAX];
    uint32_t config[KP_PARAMS_MAX];
    const char *type = kp_miopen_column(row, "data_type");
    (void)err;
    if (c->type ? strcmp(type, c->type) != 0 : strcmp(type, "INT8") == 0)
        return KOPT_OK;
    problem_of(c, row, problem);
    bool listed = config_of(c->k, row, config);
    bool valid = listed && satisfies(c, problem, config);
    if (listed && c->n % c->every == 0)
        count_space(c, problem, config, valid);
    c->n++;
    c->invalid += !valid;
    if (!valid && is_known(c, row))
        c->known_invalid++;
    else if (!valid)
        print_message("%s: not valid: %s\n", c->k->name, row->key);
    return KOPT_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return n ? v[n / 2] : 0;
}

/* `text`: rules in the place of the file's, or NULL. Returns the median count. */
static double check_rules(struct check *c, const char *solver, const char *db, const char *text)
{
    char path[4200];
    char name[100];
    kopt_error err = {0};
    struct kp_miopen_count count;
    (void)snprintf(name, sizeof(name), "%s.kopt", solver);
    (void)source_path("kernels/miopen/", name, path);
    kopt_status st = text ? kp_kernel_parse(path, kp_str_from(text), &c->k, &err)
                          : kp_kernel_load(path, false, &c->k, &err);
    if (st != KOPT_OK)
        fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.message);
    assert_string_equal(c->k->name, solver);
    c->counts = kp_calloc(COUNTS_MAX, sizeof(*c->counts));
    c->us = kp_calloc(COUNTS_MAX, sizeof(*c->us));
    assert_non_null(c->counts);
    assert_non_null(c->us);
    if (kp_miopen_read(unpack(data_dir, db), solver, check_row, c, &count, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(count.skipped, 0);
    double valid = median(c->counts, c->n_counts);
    print_message("%s %s %s: %d rows, %d spaces, median of valid %g, space made in %g us\n", db,
                  solver, c->type ? c->type : "", (int)c->n, (int)c->n_counts, valid,
                  median(c->us, c->n_counts));
    kp_free(c->us);
    kp_free(c->counts);
    kp_kernel_free(c->k);
    return valid;
}

static void assert_all_valid(const char *solver, int64_t every)
{
    static const char *const dbs[] = {"gfx906_60.db", "gfx900_56.db"};
    for (size_t i = 0; i < 2; i++) {
        struct check c = {.every = every, .arch = i ? "gfx900" : "gfx906"};
        (void)check_rules(&c, solver, dbs[i], NULL);
        assert_int_equal(c.invalid, c.known_invalid);
        assert_true(c.known_invalid <= 4);
    }
}

static void rows_of_1x1_assembly_are_valid(void **state)
{
    (void)state;
    assert_all_valid("ConvAsm1x1U", 97);
    assert_all_valid("ConvAsmBwdWrW1x1", 97);
}

static void rows_of_3x3_assembly_are_valid(void **state)
{
    (void)state;
    assert_all_valid("ConvAsmBwdWrW3x3", 23);
    assert_all_valid("ConvAsm3x3U", 5);
}

static void rows_of_opencl_are_valid(void **state)
{
    (void)state;
    assert_all_valid("ConvOclDirectFwd", 47);
}

static void rows_of_implicit_products_are_valid(void **state)
{
    (void)state;
    assert_all_valid("ConvHipImplicitGemmV4R1Fwd", 23);
    struct check fwd = {.every = 97};
    struct check bwd = {.every = 97};
    struct check wrw = {.every = 97};
    assert_true(check_rules(&fwd, "ConvMlirIgemmFwd", "gfx906_60.db", NULL) == 324);
    assert_true(check_rules(&bwd, "ConvMlirIgemmBwd", "gfx906_60.db", NULL) == 324);
    assert_true(check_rules(&wrw, "ConvMlirIgemmWrW", "gfx906_60.db", NULL) == 324);
    assert_int_equal(fwd.invalid + bwd.invalid + wrw.invalid, 0);
}

/* The file with `from` replaced by `to`. The caller's. */
static char *changed(const char *name, const char *from, const char *to)
{
    char path[4200];
    char bytes[16384];
    struct kp_buf out = KP_BUF_INIT(1 << 16);
    FILE *f = fopen(source_path("kernels/miopen/", name, path), "rbe");
    assert_non_null(f);
    bytes[fread(bytes, 1, sizeof(bytes) - 1, f)] = '\0';
    assert_int_equal(fclose(f), 0);
    const char *at = strstr(bytes, from);
    assert_non_null(at);
    kp_buf_addf(&out, "%.*s%s%s", (int)(at - bytes), bytes, to, at + strlen(from));
    char *text = kp_buf_take(&out);
    assert_non_null(text);
    return text;
}

static void assert_near(double got, double want, double share)
{
    if (got < want * (1 - share) || got > want * (1 + share))
        fail_msg("%g valid configurations, not %g", got, want);
}

/* Medians over all FP32 problems of gfx906 that another program counted with the same rules;
 * a sample of some hundred problems scatters around them by some per cent. */
static void counts_of_valid_configurations_agree(void **state)
{
    (void)state;
    struct check all = {.type = "FP32", .every = 31};
    struct check large = all;
    char *text = changed("ConvAsm1x1U.kopt", "require large ?", "# ");
    assert_near(check_rules(&all, "ConvAsm1x1U", "gfx906_60.db", text), 23600, 0.05);
    kp_free(text);
    assert_near(check_rules(&large, "ConvAsm1x1U", "gfx906_60.db", NULL), 6672, 0.05);
    struct check wrw1 = {.type = "FP32", .every = 97};
    assert_true(check_rules(&wrw1, "ConvAsmBwdWrW1x1", "gfx906_60.db", NULL) == 3872);
    struct check wrw3 = {.type = "FP32", .arch = "gfx906", .every = 3};
    text = changed("ConvAsmBwdWrW3x3.kopt", "{1..8}      # images", "{1,2,3,4,6,7,8} # images");
    assert_near(check_rules(&wrw3, "ConvAsmBwdWrW3x3", "gfx906_60.db", text), 878, 0.05);
    kp_free(text);
    struct check ocl = {.type = "FP32", .every = 5};
    assert_near(check_rules(&ocl, "ConvOclDirectFwd", "gfx906_60.db", NULL), 216, 0.06);
}

/* --- the find database ---------------------------------------------------------------------
 */

struct times {
    int64_t problems; /* with two algorithms or more */
    int64_t algorithms;
    char last[200];
    int64_t of_last;
};

static kopt_status see_time(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct times *t = user;
    (void)err;
    assert_non_null(row->algorithm);
    assert_true(row->time_ms > 0);
    t->algorithms++;
    if (strcmp(t->last, row->key) != 0)
        t->of_last = 0;
    (void)snprintf(t->last, sizeof(t->last), "%s", row->key);
    t->problems += ++t->of_last == 2;
    return KOPT_OK;
}

static void the_find_database_is_read(void **state)
{
    (void)state;
    struct times t = {0};
    struct kp_miopen_count count;
    kopt_error err = {0};
    if (kp_miopen_read(unpack(data_dir, "gfx906_64.HIP.fdb.txt"), NULL, see_time, &t, &count,
                       &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(count.kind, KP_MIOPEN_FIND);
    print_message("%d problems with two algorithms or more; %d skipped, line %d: %s\n",
                  (int)t.problems, (int)count.skipped, (int)count.first_line, count.reason);
    assert_int_equal(count.skipped, 48); /* 3-D */
    assert_true(t.problems >= 61000 && t.problems <= 61500);
}

int main(void)
{
    data_dir = getenv("KOPT_DATA_DIR");
    if (!data_dir || !data_dir[0]) {
        (void)printf("skipped: KOPT_DATA_DIR names no folder with MIOpen's databases\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_1x1_assembly_are_valid),
        cmocka_unit_test(rows_of_3x3_assembly_are_valid),
        cmocka_unit_test(rows_of_opencl_are_valid),
        cmocka_unit_test(rows_of_implicit_products_are_valid),
        cmocka_unit_test(counts_of_valid_configurations_agree),
        cmocka_unit_test(the_find_database_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
