/* SPDX-License-Identifier: MIT */
/* Some hundred small spaces made at random, every question answered also by trying every
 * assignment. */
#include "test_space_engine.h"

#include "base/buf.h"
#include "base/rng.h"

#include <stdio.h>

enum { N_SPACES = 500, MAX_POINTS = 2500, MAX_PARAMS = 6 };

struct brute {
    struct made m;
    struct kp_space *s;
    size_t n;         /* parameters */
    size_t n_points;  /* assignments */
    uint32_t *points; /* [n_points][n], in the order of ranks */
    size_t *failing;  /* by point: the first rule that fails */
    size_t n_valid;
    uint32_t *listed;       /* NULL: the rules alone say */
    unsigned char *in_list; /* by point */
    struct kp_rng rng;
};

/* ---- random text ---- */

static uint64_t below(struct kp_rng *r, uint64_t n)
{
    return kp_rng_below(r, n);
}

static const char *pick(struct kp_rng *r, const char *const *words, size_t n)
{
    return words[below(r, n)];
}
#define PICK(r, words) pick(r, words, sizeof(words) / sizeof((words)[0]))

static const char *const lists[] = {
    "{1,2,4,8}",
    "{1,2,3,4,5,6,7,8,9,10}",
    "{1,2,3,4,5}",
    "{16,32,64}",
    "{0,1}",
    "{0,1,2}",
    "{-2,-1,0,1,2}",
    "{7}",
    "{-3,5}",
    "{0.5,1.0,2.25}",
    "{1,2.5,4}",
    "{-1.5,0.0,1.5}",
    "{true,false}",
    "{\"row\",\"col\"}",
    "{\"a\",\"\",\"ab\"}",
    "{4611686018427387904,2,-4611686018427387904}",
    "{9007199254740993,9007199254740992,3}",
    "{8,4,2,1}",
};

struct writer {
    struct kp_buf out;
    struct kp_rng *rng;
    size_t n_params;
    bool python;
};

static void write_expr(struct writer *w, int depth);

static void write_atom(struct writer *w)
{
    static const char *const constants[] = {"0",       "1",
                                            "2",       "3",
                                            "4",       "6",
                                            "8",       "10",
                                            "16",      "32",
                                            "64",      "-1",
                                            "1.5",     "0.25",
                                            "100",     "true",
                                            "\"a\"",   "N",
                                            "Z",       "2.0",
                                            "\"col\"", "4611686018427387904"};
    if (below(w->rng, 10) < 7)
        kp_buf_addf(&w->out, "p%d", (int)below(w->rng, w->n_params));
    else
        kp_buf_adds(&w->out, PICK(w->rng, constants));
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is given */
static void write_binary(struct writer *w, int depth, const char *op)
{
    kp_buf_addc(&w->out, '(');
    write_expr(w, depth - 1);
    kp_buf_addf(&w->out, " %s ", op);
    write_expr(w, depth - 1);
    kp_buf_addc(&w->out, ')');
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is given */
static void write_call(struct writer *w, int depth)
{
    static const char *const one[] = {"log2", "is_pow2", "abs",   "sqrt", "floor",
                                      "ceil", "int",     "float", "abs",  "int"};
    static const char *const two[] = {"min", "max", "ceildiv", "align", "min", "max"};
    bool pair = below(w->rng, 2) == 0;
    const char *name = pair ? PICK(w->rng, two) : PICK(w->rng, one);
    kp_buf_addf(&w->out, "%s(", name);
    write_expr(w, depth - 1);
    if (pair) {
        kp_buf_adds(&w->out, ", ");
        write_expr(w, depth - 1);
    }
    if (pair && name[0] == 'm' && below(w->rng, 3) == 0) {
        kp_buf_adds(&w->out, ", ");
        write_expr(w, depth - 1);
    }
    kp_buf_addc(&w->out, ')');
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is given */
static void write_logic(struct writer *w, int depth)
{
    switch (below(w->rng, 6)) {
    case 0:
    case 1:
        write_binary(w, depth, w->python ? "and" : "&&");
        break;
    case 2:
    case 3:
        write_binary(w, depth, w->python ? "or" : "||");
        break;
    case 4:
        kp_buf_adds(&w->out, w->python ? "(not " : "(!");
        write_expr(w, depth - 1);
        kp_buf_addc(&w->out, ')');
        break;
    default:
        kp_buf_addc(&w->out, '(');
        write_expr(w, depth - 1);
        kp_buf_adds(&w->out, " ? ");
        write_expr(w, depth - 1);
        kp_buf_adds(&w->out, " : ");
        write_expr(w, depth - 1);
        kp_buf_addc(&w->out, ')');
        break;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is given */
static void write_in(struct writer *w, int depth)
{
    kp_buf_addc(&w->out, '(');
    write_expr(w, depth - 1);
    if (below(w->rng, 2)) {
        kp_buf_adds(&w->out,
                    below(w->rng, 2) ? " in {12, 1, 4, 2})" : " in {2.0, true, \"a\", 8})");
        return;
    }
    kp_buf_adds(&w->out, " in {");
    write_atom(w);
    kp_buf_adds(&w->out, ", ");
    write_atom(w);
    kp_buf_adds(&w->out, "})");
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is given */
static void write_expr(struct writer *w, int depth)
{
    static const char *const sums[] = {"+", "-", "*", "+", "*"};
    static const char *const divisions[] = {"/", "//", "%", "%"};
    static const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
    uint64_t kind = below(w->rng, 20);
    if (depth <= 0 || kind < 4)
        write_atom(w);
    else if (kind < 9)
        write_binary(w, depth, PICK(w->rng, sums));
    else if (kind < 11)
        write_binary(w, depth, PICK(w->rng, divisions));
    else if (kind < 14)
        write_binary(w, depth, PICK(w->rng, comparisons));
    else if (kind < 17)
        write_logic(w, depth);
    else if (kind < 18)
        write_call(w, depth);
    else if (kind < 19)
        write_in(w, depth);
    else
        kp_buf_adds(&w->out, "p0");
}

/* What rules mostly look like: a comparison of sums of products. */
static void write_usual(struct writer *w)
{
    static const char *const limits[] = {"<= 16",     "<= 64", "< 10",     ">= 8",
                                         "> 3",       "== 12", "% 3 == 0", "% 5 == 2",
                                         "% 64 == 0", "<= N",  "!= 4",     "// 2 > 3"};
    uint64_t n = 1 + below(w->rng, 3);
    kp_buf_addc(&w->out, '(');
    for (uint64_t i = 0; i < n; i++) {
        uint64_t factors = 1 + below(w->rng, 3);
        kp_buf_adds(&w->out, i == 0 ? "" : below(w->rng, 4) ? " + " : " - ");
        for (uint64_t k = 0; k < factors; k++)
            kp_buf_addf(&w->out, "%sp%d", k ? "*" : "", (int)below(w->rng, w->n_params));
    }
    kp_buf_addf(&w->out, ") %s", PICK(w->rng, limits));
}

static void write_guarded(struct writer *w)
{
    int a = (int)below(w->rng, w->n_params);
    int b = (int)below(w->rng, w->n_params);
    kp_buf_addf(&w->out,
                below(w->rng, 2) ? "p%d == 0 || p%d %% p%d == 0"
                                 : "p%d != 0 && p%d %% p%d == 0",
                a, b, a);
}

static void write_rule(struct writer *w)
{
    static const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
    uint64_t kind = below(w->rng, 10);
    if (kind < 5)
        write_usual(w);
    else if (kind < 6)
        write_guarded(w);
    else if (kind < 8)
        write_binary(w, 1 + (int)below(w->rng, 4), PICK(w->rng, comparisons));
    else
        write_expr(w, 1 + (int)below(w->rng, 4));
}

static void make_rules(struct brute *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct writer w = {.out = KP_BUF_INIT(1 << 16), .rng = &b->rng, .n_params = b->n};
        w.python = below(&b->rng, 2) == 0;
        write_rule(&w);
        made_rule(&b->m, w.python ? KP_DIALECT_PYTHON : KP_DIALECT_KOPT, kp_buf_text(&w.out));
        kp_buf_deinit(&w.out);
    }
}

static void brute_make(struct brute *b, uint64_t seed)
{
    char name[32];
    memset(b, 0, sizeof(*b));
    kp_rng_init(&b->rng, seed);
    made_init(&b->m);
    made_fixed(&b->m, "N", kp_int(24));
    made_fixed(&b->m, "Z", kp_int(0));
    b->n = 1 + below(&b->rng, MAX_PARAMS);
    b->n_points = 1;
    for (size_t i = 0; i < b->n; i++) {
        (void)snprintf(name, sizeof(name), "p%zu", i);
        /* Mostly integers: strings make most rules fail. */
        size_t n_lists = sizeof(lists) / sizeof(lists[0]);
        const char *list = lists[below(&b->rng, below(&b->rng, 3) ? 8 : n_lists)];
        made_param(&b->m, name, list);
        b->n_points *= b->m.params[i].n_values;
        if (b->n_points > MAX_POINTS)
            b->n = i + 1;
    }
    make_rules(b, 1 + below(&b->rng, 3));
    b->points = test_calloc(b->n_points * b->n, sizeof(uint32_t));
    b->failing = test_calloc(b->n_points, sizeof(size_t));
}

/* The space, and all assignments one by one. */
static void brute_solve(struct brute *b)
{
    uint32_t config[MAX_PARAMS] = {0};
    b->s = made_space(&b->m);
    b->n_valid = 0;
    for (size_t k = 0; k < b->n_points; k++) {
        memcpy(b->points + k * b->n, config, b->n * sizeof(uint32_t));
        b->failing[k] = made_first_failing(&b->m, config);
        b->n_valid += b->failing[k] == b->m.desc.n_rules;
        assert_int_equal(made_next(&b->m, kp_space_order(b->s), config), k + 1 < b->n_points);
    }
}

static void brute_init(struct brute *b, uint64_t seed)
{
    brute_make(b, seed);
    brute_solve(b);
}

static void brute_deinit(struct brute *b)
{
    test_free(b->points);
    test_free(b->failing);
    test_free(b->listed);
    test_free(b->in_list);
    kp_space_free(b->s);
    made_deinit(&b->m);
}

static bool is_listed(const struct brute *b, size_t point)
{
    return !b->in_list || b->in_list[point];
}

static bool is_valid(const struct brute *b, size_t point)
{
    return is_listed(b, point) && b->failing[point] == b->m.desc.n_rules;
}

static const uint32_t *point(const struct brute *b, size_t i)
{
    return b->points + i * b->n;
}

static size_t index_of(const struct brute *b, const uint32_t *config)
{
    const uint32_t *order = kp_space_order(b->s);
    size_t i = 0;
    for (size_t k = 0; k < b->n; k++)
        i = i * b->m.params[order[k]].n_values + config[order[k]];
    return i;
}

static void say(const struct brute *b, uint64_t seed)
{
    for (size_t i = 0; i < b->n; i++)
        print_error("p%zu: %u values, first type %s\n", i, b->m.params[i].n_values,
                    kp_type_name(b->m.params[i].values[0].type));
    for (size_t r = 0; r < b->m.desc.n_rules; r++)
        print_error("seed %llu rule %s\n", (unsigned long long)seed, b->m.rules[r].text);
}

static void for_each_space(void (*check)(struct brute *b), size_t n)
{
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct brute b;
        brute_init(&b, seed);
        if (b.n_valid != kp_space_count(b.s))
            say(&b, seed);
        check(&b);
        brute_deinit(&b);
    }
}

/* ---- the checks ---- */

static void check_set(struct brute *b)
{
    struct kp_space_iter it;
    uint32_t config[MAX_PARAMS];
    uint32_t back[MAX_PARAMS];
    struct kp_rule_hit hit;
    uint64_t rank = 0;
    uint64_t got = 0;
    kp_space_iter_init(&it, b->s, 0);
    assert_int_equal(kp_space_count(b->s), b->n_valid);
    for (size_t i = 0; i < b->n_points; i++) {
        bool valid = is_valid(b, i);
        assert_int_equal(kp_space_valid(b->s, point(b, i), &hit), valid);
        assert_int_equal(hit.rule, b->failing[i]);
        assert_int_equal(kp_space_rank(b->s, point(b, i), &got), valid);
        if (!valid)
            continue;
        assert_int_equal(got, rank);
        assert_int_equal(kp_space_at(b->s, rank, back, NULL), KOPT_OK);
        assert_memory_equal(back, point(b, i), b->n * sizeof(uint32_t));
        assert_true(kp_space_iter_next(&it, config));
        assert_memory_equal(config, point(b, i), b->n * sizeof(uint32_t));
        rank++;
    }
    assert_false(kp_space_iter_next(&it, config));
    assert_int_equal(kp_space_at(b->s, rank, back, NULL), KOPT_ERANGE);
    if (b->n_valid > 1) {
        uint64_t from = below(&b->rng, b->n_valid);
        kp_space_iter_init(&it, b->s, from);
        for (uint64_t k = from; kp_space_iter_next(&it, config); k++) {
            assert_true(kp_space_rank(b->s, config, &got));
            assert_int_equal(got, k);
        }
        assert_int_equal(it.left, 0);
    }
}

static void every_space_has_the_configurations_that_the_rules_leave(void **state)
{
    (void)state;
    for_each_space(check_set, N_SPACES);
}

static bool matches(const struct brute *b, size_t i, const uint32_t *config,
                    const unsigned char *fixed)
{
    if (!is_valid(b, i))
        return false;
    for (size_t k = 0; k < b->n; k++)
        if (fixed[k] && point(b, i)[k] != config[k])
            return false;
    return true;
}

static bool completable(const struct brute *b, const uint32_t *config,
                        const unsigned char *fixed)
{
    for (size_t i = 0; i < b->n_points; i++)
        if (matches(b, i, config, fixed))
            return true;
    return false;
}

static void random_partial(struct brute *b, uint32_t *config, unsigned char *fixed)
{
    for (size_t k = 0; k < b->n; k++) {
        fixed[k] = below(&b->rng, 2) == 0;
        config[k] = (uint32_t)below(&b->rng, b->m.params[k].n_values);
    }
}

static void check_allowed(struct brute *b, const uint32_t *config, unsigned char *fixed)
{
    unsigned char allowed[16];
    unsigned char want[16] = {0};
    size_t n = 0;
    size_t param = below(&b->rng, b->n);
    size_t got = kp_space_allowed(b->s, config, fixed, param, allowed);
    fixed[param] = 0;
    for (size_t i = 0; i < b->n_points; i++)
        if (matches(b, i, config, fixed))
            want[point(b, i)[param]] = 1;
    for (uint32_t v = 0; v < b->m.params[param].n_values; v++) {
        assert_int_equal(allowed[v], want[v]);
        n += want[v];
    }
    assert_int_equal(got, n);
}

static void check_completions(struct brute *b)
{
    for (int i = 0; i < 12; i++) {
        uint32_t config[MAX_PARAMS];
        unsigned char fixed[MAX_PARAMS];
        random_partial(b, config, fixed);
        assert_int_equal(kp_space_completable(b->s, config, fixed),
                         completable(b, config, fixed));
        check_allowed(b, config, fixed);
    }
}

static void partial_configurations_complete_as_trying_all_says(void **state)
{
    (void)state;
    for_each_space(check_completions, N_SPACES);
}

static void check_prefixes(struct brute *b)
{
    struct kp_space_prefix p;
    const uint32_t *order = kp_space_order(b->s);
    unsigned char fixed[MAX_PARAMS] = {0};
    uint32_t config[MAX_PARAMS] = {0};
    assert_int_equal(kp_space_prefix_init(b->s, &p), b->n_valid > 0);
    if (!b->n_valid)
        return;
    for (size_t k = 0; k < b->n; k++) {
        uint64_t n = 0;
        for (size_t i = 0; i < b->n_points; i++)
            n += matches(b, i, config, fixed);
        assert_int_equal(kp_space_prefix_count(b->s, &p), n);
        fixed[order[k]] = 1;
        uint32_t start = (uint32_t)below(&b->rng, b->m.params[order[k]].n_values);
        for (uint32_t v = 0; v < b->m.params[order[k]].n_values; v++) {
            struct kp_space_prefix next = p;
            config[order[k]] = (start + v) % b->m.params[order[k]].n_values;
            bool yes = kp_space_prefix_step(b->s, &next, config[order[k]]);
            assert_int_equal(yes, completable(b, config, fixed));
            if (yes) {
                p = next;
                break;
            }
        }
    }
    assert_false(kp_space_prefix_step(b->s, &p, 0));
    assert_true(is_valid(b, index_of(b, config)));
}

static void prefixes_grow_only_where_a_completion_is_left(void **state)
{
    (void)state;
    for_each_space(check_prefixes, N_SPACES);
}

struct found {
    uint32_t configs[128][MAX_PARAMS];
    size_t n;
    size_t limit;
    size_t n_params;
};

static bool collect(void *user, const uint32_t *config)
{
    struct found *f = user;
    assert_true(f->n < f->limit);
    memcpy(f->configs[f->n++], config, f->n_params * sizeof(uint32_t));
    return f->n < f->limit;
}

/* Expected neighbours along one parameter, in the promised order. */
static void expect_along(const struct brute *b, const uint32_t *config, size_t param,
                         enum kp_near kind, struct found *f)
{
    uint32_t near[MAX_PARAMS];
    memcpy(near, config, b->n * sizeof(uint32_t));
    uint32_t n = b->m.params[param].n_values;
    int64_t below_it = -1;
    int64_t above_it = -1;
    for (uint32_t v = 0; v < n; v++) {
        near[param] = v;
        if (v == config[param] || !is_valid(b, index_of(b, near)))
            continue;
        if (v < config[param])
            below_it = v;
        else if (above_it < 0)
            above_it = v;
        if (kind == KP_NEAR_HAMMING)
            (void)collect(f, near);
    }
    for (int k = 0; kind == KP_NEAR_ADJACENT && k < 2; k++) {
        int64_t v = k ? above_it : below_it;
        near[param] = (uint32_t)v;
        if (v >= 0)
            (void)collect(f, near);
    }
}

static void check_neighbours(struct brute *b)
{
    for (int i = 0; i < 10; i++) {
        const uint32_t *config = point(b, below(&b->rng, b->n_points));
        enum kp_near kind = i % 2 ? KP_NEAR_ADJACENT : KP_NEAR_HAMMING;
        struct found want = {.limit = 128, .n_params = b->n};
        struct found got = {.limit = 128, .n_params = b->n};
        for (size_t k = 0; k < b->n; k++)
            expect_along(b, config, k, kind, &want);
        kp_space_neighbours(b->s, config, kind, collect, &got);
        assert_int_equal(got.n, want.n);
        for (size_t k = 0; k < want.n; k++)
            assert_memory_equal(got.configs[k], want.configs[k], b->n * sizeof(uint32_t));
        if (want.n < 2)
            continue;
        struct found some = {.limit = want.n - 1, .n_params = b->n};
        kp_space_neighbours(b->s, config, kind, collect, &some);
        assert_int_equal(some.n, want.n - 1);
    }
}

static void neighbours_are_those_that_trying_all_finds(void **state)
{
    (void)state;
    for_each_space(check_neighbours, N_SPACES);
}

/* What the header says, step by step. */
static void repair(const struct brute *b, uint32_t *config)
{
    unsigned char fixed[MAX_PARAMS] = {0};
    for (size_t k = 0; k < b->n; k++) {
        uint32_t want = config[k];
        uint32_t best = 0;
        uint32_t distance = UINT32_MAX;
        fixed[k] = 1;
        for (uint32_t v = 0; v < b->m.params[k].n_values; v++) {
            config[k] = v;
            uint32_t away = v > want ? v - want : want - v;
            if (away < distance && completable(b, config, fixed)) {
                distance = away;
                best = v;
            }
        }
        config[k] = best;
    }
}

static void check_repair(struct brute *b)
{
    for (int i = 0; i < 4; i++) {
        uint32_t got[MAX_PARAMS];
        uint32_t want[MAX_PARAMS];
        memcpy(got, point(b, below(&b->rng, b->n_points)), b->n * sizeof(uint32_t));
        memcpy(want, got, sizeof(got));
        assert_int_equal(kp_space_repair(b->s, got), b->n_valid > 0);
        if (!b->n_valid)
            return;
        repair(b, want);
        assert_memory_equal(got, want, b->n * sizeof(uint32_t));
        assert_true(kp_space_valid(b->s, got, NULL));
    }
}

static void repair_keeps_what_can_be_kept(void **state)
{
    (void)state;
    for_each_space(check_repair, N_SPACES);
}

static void check_explain(struct brute *b)
{
    struct kp_rule_effect effects[8];
    struct kp_rule_effect want[8] = {{0, 0}};
    struct kp_env env = {b->m.values, b->m.known};
    size_t n_rules = b->m.desc.n_rules;
    size_t last = 99;
    size_t want_last = n_rules;
    uint64_t left = 0;
    for (size_t i = 0; i < b->n_points; i++) {
        if (!is_listed(b, i))
            continue;
        left++;
        if (b->failing[i] < n_rules)
            want[b->failing[i]].in_turn++;
        kp_space_bind(b->s, point(b, i), b->m.values, b->m.known);
        for (size_t r = 0; r < n_rules; r++)
            want[r].alone += kp_expr_truth(b->m.rules[r].expr, &env, NULL) != 1;
        for (size_t k = 0; k < b->n; k++)
            b->m.known[b->m.params[k].slot] = 0;
    }
    for (size_t r = 0; left > 0 && r < n_rules && want_last == n_rules; r++) {
        left -= want[r].in_turn;
        if (left == 0)
            want_last = r;
    }
    assert_int_equal(kp_space_explain(b->s, effects, &last, NULL), KOPT_OK);
    for (size_t r = 0; r < n_rules; r++) {
        assert_int_equal(effects[r].alone, want[r].alone);
        assert_int_equal(effects[r].in_turn, want[r].in_turn);
    }
    assert_int_equal(last, want_last);
}

static void explain_counts_what_each_rule_removes(void **state)
{
    (void)state;
    for_each_space(check_explain, N_SPACES);
}

/* ---- spaces one after the other, from one cache ---- */

static void check_all(struct brute *b, uint64_t seed)
{
    if (b->n_valid != kp_space_count(b->s))
        say(b, seed);
    check_set(b);
    check_completions(b);
    check_prefixes(b);
    check_neighbours(b);
    check_repair(b);
    check_explain(b);
}

static struct kp_value random_fixed(struct brute *b)
{
    switch (below(&b->rng, 12)) {
    case 0:
        return kp_float(1.5);
    case 1:
        return kp_string(KP_STR("col"));
    case 2:
        return kp_bool(true);
    case 3:
        return kp_int(INT64_MAX);
    case 4:
        return kp_float(24);
    default:
        return kp_int((int64_t)below(&b->rng, 9) * 8 - 8);
    }
}

static void with_cache(uint64_t seed, size_t max_bytes)
{
    static const char *const of_both[] = {"p0 <= N || p0 * Z > 3", "(p0 + N) % 3 == Z // 8",
                                          "N ? p0 > Z : p0 <= 2",  "p0 in {N, Z, 4}",
                                          "min(p0, N) >= Z",       "!(p0 - N < 8 && Z != 16)",
                                          "p0 % 2 == 0 && N <= Z", "N / Z * p0 != 3"};
    struct brute b;
    brute_make(&b, seed);
    made_rule(&b.m, KP_DIALECT_KOPT, PICK(&b.rng, of_both));
    struct kp_space_cache *cache = kp_space_cache_new(max_bytes);
    assert_non_null(cache);
    b.m.desc.cache = cache;
    for (int i = 0; i < 8; i++) {
        /* Some problems come twice. */
        if (i % 3 != 2) {
            b.m.values[0] = random_fixed(&b);
            b.m.values[1] = random_fixed(&b);
        }
        brute_solve(&b);
        if (i == 7) {
            kp_space_cache_free(cache);
            b.m.desc.cache = NULL;
        }
        check_all(&b, seed);
        if (i < 7)
            kp_space_free(b.s);
    }
    brute_deinit(&b);
}

static void spaces_from_a_cache_are_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SPACES / 2; seed++)
        with_cache(seed, 0);
}

/* It fills up and starts anew, or has no room at all. */
static void a_small_cache_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SPACES / 10; seed++)
        with_cache(seed, (size_t)1 << (10 + seed % 8));
}

/* ---- configurations one by one ---- */

/* Some of the assignments, in any order, some of them twice. */
static void make_list(struct brute *b)
{
    uint64_t one_in = 1 + below(&b->rng, 5);
    b->listed = test_calloc(2 * b->n_points * b->n, sizeof(uint32_t));
    b->m.desc.listed = b->listed;
    b->m.desc.n_listed = 0;
    uint64_t all = below(&b->rng, 12);
    uint64_t n = all == 0 ? 0 : all == 1 ? 1 : 1 + below(&b->rng, 2 * b->n_points);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t *row = b->listed + b->m.desc.n_listed * b->n;
        if (n > 1 && below(&b->rng, one_in))
            continue;
        for (size_t k = 0; k < b->n; k++)
            row[k] = (uint32_t)below(&b->rng, b->m.params[k].n_values);
        b->m.desc.n_listed++;
    }
}

static void mark_listed(struct brute *b)
{
    b->in_list = test_calloc(b->n_points, 1);
    for (size_t i = 0; i < b->m.desc.n_listed; i++)
        b->in_list[index_of(b, b->listed + i * b->n)] = 1;
    b->n_valid = 0;
    for (size_t i = 0; i < b->n_points; i++)
        b->n_valid += is_valid(b, i);
}

static void check_samples(struct brute *b)
{
    uint32_t config[MAX_PARAMS];
    uint64_t rank = 0;
    for (int i = 0; b->n_valid && i < 8; i++) {
        kp_space_sample(b->s, &b->rng, config);
        assert_true(is_valid(b, index_of(b, config)));
        assert_true(kp_space_rank(b->s, config, &rank));
    }
}

static void with_list(uint64_t seed, bool rules)
{
    struct brute b;
    brute_make(&b, seed);
    if (!rules)
        b.m.desc.n_rules = 0;
    make_list(&b);
    brute_solve(&b);
    mark_listed(&b);
    check_all(&b, seed);
    check_samples(&b);
    brute_deinit(&b);
}

static void a_list_is_the_space(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SPACES / 2; seed++)
        with_list(seed, false);
}

static void rules_hold_for_what_is_listed_too(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SPACES / 2; seed++)
        with_list(seed, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_space_has_the_configurations_that_the_rules_leave),
        cmocka_unit_test(partial_configurations_complete_as_trying_all_says),
        cmocka_unit_test(prefixes_grow_only_where_a_completion_is_left),
        cmocka_unit_test(neighbours_are_those_that_trying_all_finds),
        cmocka_unit_test(repair_keeps_what_can_be_kept),
        cmocka_unit_test(explain_counts_what_each_rule_removes),
        cmocka_unit_test(spaces_from_a_cache_are_the_same),
        cmocka_unit_test(a_small_cache_changes_nothing),
        cmocka_unit_test(a_list_is_the_space),
        cmocka_unit_test(rules_hold_for_what_is_listed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
