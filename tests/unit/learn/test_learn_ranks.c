/* SPDX-License-Identifier: MIT */
/* Networks that rank, from a surface whose times follow a formula: who learns from what,
 * features, the correction, the answers, the file, and bad input. */
#include "base/alloc.h"
#include "learn/fit.h"
#include "learn/judge.h"
#include "learn/problem.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char kernel_text[] = "#pragma kopt kernel tile\n"
                                  "#pragma kopt problem M N\n"
                                  "#pragma kopt param BM {16,32,64,128}\n"
                                  "#pragma kopt param BN {16,32,64,128}\n"
                                  "#pragma kopt param MODE {\"a\",\"b\"}\n"
                                  "#pragma kopt let WORK = BM*BN\n"
                                  "#pragma kopt let LEFT = M % BM\n"
                                  "#pragma kopt require BM*BN <= 8192\n"
                                  "#pragma kopt require BM <= M\n"
                                  "#pragma kopt block 64\n"
                                  "#pragma kopt grid ceildiv(M, BM) ceildiv(N, BN)\n"
                                  "__global__ void tile(float *x) { x[0] = 1; }\n";

enum { SIDE = 11, PROBLEMS = SIDE * SIDE, UNITS = 12 };

static const struct kp_limits limits = {.max_threads = 1024,
                                        .max_block = {1024, 1024, 64},
                                        .shared_bytes = 65536,
                                        .compute_units = UNITS};

/* Groups run in waves of UNITS; a group takes BM*BN and some start; mode b pays off on tall
 * tiles; rows that are left over cost. */
static double time_of(int64_t M, int64_t N, int64_t bm, int64_t bn, bool b)
{
    double groups = ceil((double)M / (double)bm) * ceil((double)N / (double)bn);
    double work = (double)(bm * bn) * (b == (bm > bn) ? 1 : 1.25) + 900;
    double reuse = 1 + 8.0 / (double)bm + 8.0 / (double)bn;
    return 100 * ceil(groups / UNITS) * work * reuse * (M % bm ? 1.1 : 1);
}

struct world {
    struct kp_kernel *rules;
    struct kp_dataset *data;
    struct kp_lesson *lesson;
    struct kp_ranks *ranks;
};

static int64_t size_at(size_t i)
{
    return 40 + 24 * (int64_t)(i * i) / 2 + 17 * (int64_t)i;
}

/* `failing`: BM = 128 fails for small M. */
static struct kp_dataset *surface(bool failing, size_t problems)
{
    static const char *const fields[] = {"M", "N"};
    static const char *const targets[] = {"BM", "BN", "MODE"};
    struct kp_dataset_builder *b;
    struct kp_dataset *d;
    kopt_error err;
    assert_int_equal(kp_dataset_begin("tile", fields, 2, targets, 3, NULL, &b, &err), KOPT_OK);
    for (size_t p = 0; p < problems; p++) {
        int64_t M = size_at(p % SIDE);
        int64_t N = size_at(p / SIDE);
        const struct kp_value problem[] = {kp_int(M), kp_int(N)};
        for (int64_t bm = 16; bm <= 128; bm *= 2) {
            for (int64_t bn = 16; bn <= 128 && bm * bn <= 8192 && bm <= M; bn *= 2) {
                for (int mode = 0; mode < 2; mode++) {
                    const struct kp_value config[] = {kp_int(bm), kp_int(bn),
                                                      mode ? kp_string(KP_STR("b"))
                                                           : kp_string(KP_STR("a"))};
                    float t = failing && bm == 128 && M < 400
                                  ? INFINITY
                                  : (float)time_of(M, N, bm, bn, mode);
                    assert_int_equal(kp_dataset_add(b, problem, config, NULL, t, &err),
                                     KOPT_OK);
                }
            }
        }
    }
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    return d;
}

static struct kp_model *fit(const struct world *w, const struct kp_fit_options *o);

static void world_init(struct world *w, bool failing, size_t nets)
{
    kopt_error err;
    *w = (struct world){0};
    assert_int_equal(kp_kernel_parse("tile.cu", KP_STR(kernel_text), &w->rules, &err), KOPT_OK);
    w->data = surface(failing, PROBLEMS);
    const struct kp_lesson_options o = {
        .split = {.salt = 1}, .near_best = 0.1, .rules = w->rules, .limits = &limits};
    assert_int_equal(kp_lesson_new(w->data, &o, &w->lesson, &err), KOPT_OK);
    assert_int_equal(kp_ranks_new(w->lesson, w->rules, &limits, 2, nets, &w->ranks, &err),
                     KOPT_OK);
}

static void world_deinit(struct world *w)
{
    kp_ranks_free(w->ranks);
    kp_lesson_free(w->lesson);
    kp_dataset_free(w->data);
    kp_kernel_free(w->rules);
}

static struct kp_fit_options options(const struct world *w, size_t nets)
{
    struct kp_fit_options o = kp_fit_default(kp_net_find("ranker"));
    o.nets = nets;
    o.shape.hidden = 32;
    o.plan.epochs = 25;
    o.plan.threads = 1;
    o.rules_path = "tile.cu";
    o.rules_text = KP_STR(kernel_text);
    o.n_raw = 2;
    o.ranks = w->ranks;
    return o;
}

static struct kp_model *fit(const struct world *w, const struct kp_fit_options *o)
{
    struct kp_model *m;
    kopt_error err = {0};
    kopt_status st = kp_fit(w->lesson, o, NULL, &m, &err);
    if (st != KOPT_OK)
        fail_msg("%s", err.message);
    return m;
}

/* --- the lesson ----------------------------------------------------------------------------
 */

/* Nothing of a test problem is there; a network's examples and its validation have no problem
 * in common, together they have all, and each problem is some network's validation. */
static void test_who_learns_from_what(void **state)
{
    (void)state;
    enum { NETS = 5 };
    struct world w;
    bool checked[PROBLEMS] = {false};
    world_init(&w, false, NETS);
    const struct kp_ranks *r = w.ranks;
    assert_int_equal(r->n, w.lesson->count[KP_ROLE_TRAIN] + w.lesson->count[KP_ROLE_VALID]);
    for (size_t p = 0; p < r->n; p++)
        assert_true(w.lesson->roles[r->problem[p]] != KP_ROLE_TEST);
    for (size_t k = 0; k < NETS; k++) {
        struct kp_ranks_course c;
        kopt_error err;
        bool learned[PROBLEMS] = {false};
        assert_int_equal(kp_ranks_course(r, k, &c, &err), KOPT_OK);
        for (size_t i = 0; i < c.course.n; i++)
            learned[c.examples[2 * i]] = true;
        for (size_t i = 0; i < c.n_checks; i++) {
            assert_false(learned[c.checks[i]]);
            assert_false(checked[c.checks[i]]);
            checked[c.checks[i]] = true;
            learned[c.checks[i]] = true;
        }
        for (size_t p = 0; p < r->n; p++)
            assert_true(learned[p]);
        assert_true(c.n_checks > 5);
        kp_ranks_course_deinit(&c);
    }
    for (size_t p = 0; p < r->n; p++)
        assert_true(checked[p]);
    world_deinit(&w);
}

/* Each network's examples and validation, where there are few problems for many networks: all
 * have some of both, and none of a validation is learned from. */
static void check_courses(const struct kp_ranks *r, size_t nets)
{
    for (size_t k = 0; k < nets; k++) {
        struct kp_ranks_course c;
        kopt_error err;
        assert_int_equal(kp_ranks_course(r, k, &c, &err), KOPT_OK);
        assert_true(c.course.n > 0 && c.n_checks > 0);
        for (size_t i = 0; i < c.n_checks; i++)
            for (size_t e = 0; e < c.course.n; e++)
                assert_true(c.checks[i] != c.examples[2 * e]);
        kp_ranks_course_deinit(&c);
    }
}

/* A lesson of any fold that has problems of each role. */
static struct kp_lesson *any_lesson(const struct kp_dataset *d, struct kp_lesson_options o)
{
    struct kp_lesson *l = NULL;
    kopt_error err;
    o.split.salt = 1;
    o.near_best = 0.1;
    for (o.split.fold = 0; o.split.fold < 10 && !l; o.split.fold++)
        (void)kp_lesson_new(d, &o, &l, &err);
    assert_non_null(l);
    return l;
}

static void test_few_problems(void **state)
{
    (void)state;
    for (size_t problems = 16; problems < 40; problems += 3) {
        struct world w = {0};
        kopt_error err;
        w.data = surface(false, problems);
        w.lesson = any_lesson(w.data, (struct kp_lesson_options){0});
        assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 2, 10, &w.ranks, &err), KOPT_OK);
        assert_int_equal(w.ranks->n_parts, 10);
        check_courses(w.ranks, 10);
        world_deinit(&w);
    }
}

/* What a split's groups keep together no network's validation has apart. */
static void test_groups(void **state)
{
    (void)state;
    static const char *const group[] = {"min(M,N)", "max(M,N)"};
    static const char *const one[] = {"0*M"};
    struct world w = {0};
    struct kp_ranks *none;
    kopt_error err;
    w.data = surface(false, PROBLEMS);
    w.lesson =
        any_lesson(w.data, (struct kp_lesson_options){.split = {.group = group, .n_group = 2}});
    assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 2, 10, &w.ranks, &err), KOPT_OK);
    const struct kp_ranks *r = w.ranks;
    size_t mirrored = 0;
    for (size_t p = 0; p < r->n; p++) {
        for (size_t q = 0; q < p; q++) {
            const double *a = w.data->problems + 2 * (size_t)r->problem[p];
            const double *b = w.data->problems + 2 * (size_t)r->problem[q];
            if (a[0] != b[1] || a[1] != b[0])
                continue;
            assert_int_equal(r->part[p], r->part[q]);
            mirrored++;
        }
    }
    assert_true(mirrored > 20);
    check_courses(r, 10);
    /* All that is left is one group. */
    const struct kp_split same = {.salt = 1, .group = one, .n_group = 1};
    assert_int_equal(kp_split_hashes(w.data, &same, w.lesson->hashes, &err), KOPT_OK);
    assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 2, 10, &none, &err), KOPT_EINPUT);
    assert_null(none);
    world_deinit(&w);
}

/* Problems that only help are in no validation and no site, in the part of their twin, and
 * weigh what they are to weigh. */
static void test_helping(void **state)
{
    (void)state;
    struct world w = {0};
    kopt_error err;
    w.data = surface(false, PROBLEMS);
    uint32_t *twins = kp_arena_alloc(&w.data->arena, PROBLEMS, sizeof(*twins));
    assert_non_null(twins);
    for (uint32_t p = 0; p < PROBLEMS; p++) {
        twins[p] = p % 3 == 0 ? p : p % 3 == 1 ? p - 1 : UINT32_MAX;
        if (p % 3 == 1)
            w.data->keys[p] = w.data->keys[p - 1];
    }
    w.data->twins = twins;
    w.lesson = any_lesson(w.data, (struct kp_lesson_options){.extra_weight = 0.25});
    assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 2, 5, &w.ranks, &err), KOPT_OK);
    const struct kp_ranks *r = w.ranks;
    size_t of[PROBLEMS];
    size_t twin_pairs = 0;
    size_t own = 0;
    for (size_t p = 0; p < r->n; p++) {
        of[r->problem[p]] = p;
        own += twins[r->problem[p]] == r->problem[p];
        assert_int_equal(r->helps[p], twins[r->problem[p]] != r->problem[p]);
    }
    for (size_t p = 0; p < r->n; p++) {
        if (r->problem[p] % 3 != 1)
            continue;
        assert_int_equal(r->part[p], r->part[of[r->problem[p] - 1]]);
        twin_pairs++;
    }
    assert_true(twin_pairs > 10 && own < r->n);
    for (size_t k = 0; k < 5; k++) {
        struct kp_ranks_course c;
        double weight = 0;
        assert_int_equal(kp_ranks_course(r, k, &c, &err), KOPT_OK);
        assert_true(c.n_checks > 0);
        for (size_t i = 0; i < c.n_checks; i++)
            assert_false(r->helps[c.checks[i]]);
        for (size_t i = 0; i < c.course.n; i++)
            weight += r->helps[c.examples[2 * i]] ? 0.25 : 1;
        assert_true(c.course.weight == weight); /* quarters: no rounding */
        kp_ranks_course_deinit(&c);
    }
    struct kp_fit_options o = kp_fit_default(kp_net_find("ranker"));
    o.nets = 5;
    o.shape.hidden = 16;
    o.plan.epochs = 1;
    o.plan.threads = 1;
    o.plan.adam.rate = 1e-9F;
    o.n_raw = 2;
    o.ranks = w.ranks;
    struct kp_model *m = fit(&w, &o);
    assert_int_equal(m->ranking->n_sites, own);
    kp_model_free(m);
    world_deinit(&w);
}

/* Many configurations were measured, few of them were ever near the best. */
static struct kp_dataset *scattered(size_t near)
{
    static const char *const fields[] = {"M"};
    static const char *const targets[] = {"A", "B"};
    struct kp_dataset_builder *b;
    struct kp_dataset *d;
    kopt_error err;
    assert_int_equal(kp_dataset_begin("far", fields, 1, targets, 2, NULL, &b, &err), KOPT_OK);
    for (int64_t p = 0; p < 20; p++) {
        for (int64_t i = 0; i < 300; i++) {
            const struct kp_value problem[] = {kp_int(1 + p)};
            const struct kp_value config[] = {kp_int((p * 300 + i) / 100), kp_int(i % 100)};
            float t = i < (int64_t)near ? 100.0F + (float)i * 1e-3F : 300;
            assert_int_equal(kp_dataset_add(b, problem, config, NULL, t, &err), KOPT_OK);
        }
    }
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    return d;
}

static void test_many_configurations(void **state)
{
    (void)state;
    struct world w = {0};
    kopt_error err;
    w.data = scattered(7);
    w.lesson = any_lesson(w.data, (struct kp_lesson_options){0});
    assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 1, 5, &w.ranks, &err), KOPT_OK);
    assert_int_equal(w.ranks->ranking->n_configs, 7 * w.ranks->n);
    for (size_t p = 0; p < w.ranks->n; p++)
        assert_int_equal(w.ranks->first[p + 1] - w.ranks->first[p], 7);
    world_deinit(&w);
    w = (struct world){.data = scattered(290)};
    w.lesson = any_lesson(w.data, (struct kp_lesson_options){0});
    assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 1, 5, &w.ranks, &err), KOPT_EINPUT);
    assert_null(w.ranks);
    world_deinit(&w);
}

/* One configuration is left, and all problems look alike. */
static void test_nothing_to_see(void **state)
{
    (void)state;
    static const char *const fields[] = {"a", "b", "c", "d"};
    static const char *const targets[] = {"A"};
    struct kp_dataset_builder *b;
    struct world w = {0};
    kopt_error err;
    assert_int_equal(kp_dataset_begin("flat", fields, 4, targets, 1, NULL, &b, &err), KOPT_OK);
    for (int p = 0; p < 16; p++) {
        struct kp_value problem[4];
        for (int f = 0; f < 4; f++)
            problem[f] = kp_int(p >> f & 1 ? 1 : -1);
        for (int i = 0; i < 60; i++) {
            const struct kp_value config = kp_int(i);
            assert_int_equal(kp_dataset_add(b, problem, &config, NULL, i == 0 ? 1 : 2, &err),
                             KOPT_OK);
        }
    }
    assert_int_equal(kp_dataset_finish(b, &w.data, &err), KOPT_OK);
    w.lesson = any_lesson(w.data, (struct kp_lesson_options){0});
    assert_int_equal(kp_ranks_new(w.lesson, NULL, NULL, 4, 5, &w.ranks, &err), KOPT_EINPUT);
    assert_null(w.ranks);
    world_deinit(&w);
}

static void test_wanted(void **state)
{
    (void)state;
    struct world w;
    size_t failed = 0;
    world_init(&w, true, 5);
    const struct kp_ranks *r = w.ranks;
    for (size_t p = 0; p < r->n; p++) {
        const double *size = w.data->problems + 2 * (size_t)r->problem[p];
        double least = (double)INFINITY;
        for (size_t i = r->first[p]; i < r->first[p + 1]; i++) {
            const uint32_t *c = r->ranking->configs + 3 * (size_t)r->number[i];
            int64_t bm = w.data->targets[0].values[c[0]].as.i;
            int64_t bn = w.data->targets[1].values[c[1]].as.i;
            double best = (double)INFINITY;
            bool fails = bm == 128 && size[0] < 400;
            for (size_t k = r->first[p]; k < r->first[p + 1]; k++) {
                const uint32_t *o = r->ranking->configs + 3 * (size_t)r->number[k];
                int64_t m = w.data->targets[0].values[o[0]].as.i;
                if (m != 128 || size[0] >= 400)
                    best = fmin(best, time_of((int64_t)size[0], (int64_t)size[1], m,
                                              w.data->targets[1].values[o[1]].as.i, o[2] == 1));
            }
            double t = time_of((int64_t)size[0], (int64_t)size[1], bm, bn, c[2] == 1);
            double want = fails ? 2 : fmin(2, log(t / best));
            /* Times are floats. */
            assert_true(fabs((double)r->wanted[i] - want) < 1e-5);
            failed += fails;
            least = fmin(least, (double)r->wanted[i]);
        }
        assert_true(least == 0);
    }
    assert_true(failed > 20);
    world_deinit(&w);
}

/* Before standardising. */
static void test_features(void **state)
{
    (void)state;
    struct world w;
    kopt_error err;
    world_init(&w, false, 5);
    struct kp_ranking *r = kp_ranking_new();
    assert_non_null(r);
    assert_int_equal(
        kp_ranking_declare(r, w.lesson->encoder, 2, w.data->targets, 3, w.rules, &err),
        KOPT_OK);
    r->units = UNITS;
    const double problem[] = {200, 1000};
    const struct kp_value sizes[] = {kp_int(200), kp_int(1000)};
    struct kp_value slots[256] = {0};
    unsigned char known[256] = {0};
    assert_true(w.rules->n_slots <= 256);
    kp_kernel_environment(w.rules, sizes, &limits, slots, known);
    const struct kp_pair_view v = {r, w.data->targets, w.rules, problem, slots, known};
    const uint32_t config[] = {2, 1, 1}; /* BM 64, BN 32, mode b */
    double raw[KP_PAIRS_MAX];
    size_t seen = 0;
    kp_pair_raw(&v, config, raw);
    const double groups = 4 * 32; /* ceildiv(200, 64), ceildiv(1000, 32) */
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct kp_pair *p = &r->pairs[i];
        double want = (double)NAN;
        if (p->kind == KP_PAIR_PARAM)
            want = log2(1 + (p->a ? 32.0 : 64.0));
        if (p->kind == KP_PAIR_IS)
            want = p->b == 1;
        if (p->kind == KP_PAIR_LET)
            want = log2(1 + (p->a ? 200 % 64 : 64 * 32));
        if (p->kind == KP_PAIR_GRID)
            want = log2(1 + groups);
        if (p->kind == KP_PAIR_BLOCK)
            want = log2(65);
        if (p->kind == KP_PAIR_SHARED)
            want = 0;
        if (p->kind == KP_PAIR_RATIO)
            want = log2(1 + problem[p->a]) - log2(1 + (p->b ? 32.0 : 64.0));
        if (p->kind == KP_PAIR_REST)
            want = fmod(problem[p->a], p->b ? 32 : 64) / (p->b ? 32 : 64);
        if (p->kind == KP_PAIR_WAVES)
            want = log2(groups / UNITS);
        if (p->kind == KP_PAIR_TAIL)
            want = ceil(groups / UNITS) - groups / UNITS;
        if (p->kind == KP_PAIR_FILL)
            want = groups / UNITS / ceil(groups / UNITS);
        if (p->kind == KP_PAIR_THREADS)
            want = log2(1 + groups * 64);
        assert_true(fabs(raw[i] - want) < 1e-12); /* the same sums in doubles */
        seen |= (size_t)1 << p->kind;
    }
    assert_int_equal(seen, ((size_t)1 << KP_PAIR_KINDS) - 1);
    kp_ranking_free(r);
    world_deinit(&w);
}

static void test_too_little(void **state)
{
    (void)state;
    struct world w = {0};
    struct kp_ranks *r;
    kopt_error err;
    assert_int_equal(kp_kernel_parse("tile.cu", KP_STR(kernel_text), &w.rules, &err), KOPT_OK);
    w.data = surface(false, 12);
    struct kp_lesson_options o = {.split = {.salt = 1}, .near_best = 0.1, .rules = w.rules};
    kopt_status st = KOPT_EINPUT;
    for (o.split.fold = 0; o.split.fold < 10 && st != KOPT_OK; o.split.fold++)
        st = kp_lesson_new(w.data, &o, &w.lesson, &err);
    assert_int_equal(st, KOPT_OK);
    /* Winners alone, without times. */
    for (size_t i = 0; i < w.data->n_rows; i++)
        w.data->times_ns[i] = NAN;
    assert_int_equal(kp_ranks_new(w.lesson, w.rules, NULL, 2, 5, &r, &err), KOPT_EINPUT);
    assert_null(r);
    world_deinit(&w);
}

/* --- models --------------------------------------------------------------------------------
 */

static struct kp_judgement judge(const struct world *w, const struct kp_model *m)
{
    struct kp_judgement j;
    kopt_error err = {0};
    const struct kp_judge_options o = {
        .roles = w->lesson->roles, .role = KP_ROLE_TEST, .limits = &limits, .threads = 1};
    assert_int_equal(kp_judge(m, w->data, &o, &j, &err), KOPT_OK);
    return j;
}

/* Best speed that one configuration for all problems keeps, in the mean over tests. */
static double best_fixed(const struct world *w)
{
    const struct kp_dataset *d = w->data;
    double best = 0;
    for (uint32_t bm = 0; bm < 4; bm++)
        for (uint32_t bn = 0; bn < 4; bn++)
            for (uint32_t mode = 0; mode < 2; mode++) {
                double sum = 0;
                size_t n = 0;
                for (size_t from = 0, to; from < d->n_rows; from = to) {
                    float least = INFINITY;
                    float own = INFINITY;
                    for (to = from; to < d->n_rows && d->of[to] == d->of[from]; to++) {
                        const uint32_t *c = d->configs + to * 3;
                        least = fminf(least, d->times_ns[to]);
                        if (c[0] == bm && c[1] == bn && c[2] == mode)
                            own = d->times_ns[to];
                    }
                    if (w->lesson->roles[d->of[from]] != KP_ROLE_TEST)
                        continue;
                    sum += (double)(least / own);
                    n++;
                }
                best = fmax(best, sum / (double)n);
            }
    return best;
}

static void test_learns(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, 5);
    const struct kp_fit_options o = options(&w, 5);
    struct kp_model *m = fit(&w, &o);
    const struct kp_judgement j = judge(&w, m);
    double fixed = best_fixed(&w);
    /* The formula has no noise; what is missing is missing in the waves' steps. */
    assert_true(j.kept_mean[0] > 0.96 && j.kept_mean[2] > 0.99);
    assert_true(j.kept_mean[0] > fixed + 0.02);
    assert_true(j.valid == 1);
    assert_true(isnan(j.forced));
    kp_model_free(m);
    world_deinit(&w);
}

static struct kp_prediction ask(const struct kp_model *m, int64_t M, int64_t N, size_t k)
{
    const struct kp_given given[] = {{"M", kp_int(M)}, {"N", kp_int(N)}};
    const struct kp_predict_options o = {.k = k, .width = k, .limits = &limits};
    struct kp_prediction p;
    kopt_error err = {0};
    kopt_status st = kp_model_predict(m, given, 2, &o, &p, &err);
    if (st != KOPT_OK)
        fail_msg("%s", err.message);
    return p;
}

static void same_answers(const struct kp_model *a, const struct kp_model *b)
{
    for (int64_t M = 40; M < 3000; M += 391) {
        struct kp_prediction x = ask(a, M, 777, 50);
        struct kp_prediction y = ask(b, M, 777, 50);
        assert_int_equal(x.n, y.n);
        assert_memory_equal(x.configs, y.configs, x.n * 3 * sizeof(uint32_t));
        for (size_t i = 0; i < x.n; i++)
            assert_true(x.logp[i] == y.logp[i]);
        kp_prediction_deinit(&x);
        kp_prediction_deinit(&y);
    }
}

/* All that is valid comes out, once each, and probabilities add up to 1. */
static void test_answers(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, 5);
    struct kp_fit_options o = options(&w, 5);
    o.plan.epochs = 5;
    struct kp_model *m = fit(&w, &o);
    struct kp_prediction p = ask(m, 48, 1000, 50); /* BM is 16 or 32 */
    bool seen[4][4][2] = {{{false}}};
    double sum = 0;
    assert_int_equal(p.n, 2 * 4 * 2);
    for (size_t i = 0; i < p.n; i++) {
        const uint32_t *c = p.configs + 3 * i;
        assert_true(c[0] <= 1 && !seen[c[0]][c[1]][c[2]]);
        seen[c[0]][c[1]][c[2]] = true;
        sum += exp(p.logp[i]);
    }
    assert_true(fabs(sum - 1) < 1e-6); /* scores are floats, divided by 0.1 */
    kp_prediction_deinit(&p);
    struct kp_prediction one = ask(m, 48, 1000, 1);
    assert_int_equal(one.n, 1);
    kp_prediction_deinit(&one);
    kp_model_free(m);
    world_deinit(&w);
}

static void test_file(void **state)
{
    (void)state;
    struct world w;
    struct kp_model *read;
    kopt_error err = {0};
    char path[] = "/tmp/kopt-ranks-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    world_init(&w, false, 2);
    struct kp_fit_options o = options(&w, 2);
    o.plan.epochs = 6;
    struct kp_model *m = fit(&w, &o);
    assert_int_equal(kp_model_save(m, path, &err), KOPT_OK);
    assert_int_equal(kp_model_load(path, &read, &err), KOPT_OK);
    assert_non_null(read->ranking);
    assert_int_equal(read->ranking->n_sites, m->ranking->n_sites);
    same_answers(m, read);
    kp_model_free(read);
    kp_model_free(m);
    world_deinit(&w);
    (void)unlink(path);
}

static void test_threads(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, 2);
    struct kp_fit_options o = options(&w, 2);
    o.plan.epochs = 3;
    struct kp_model *one = fit(&w, &o);
    o.plan.threads = 3;
    struct kp_model *three = fit(&w, &o);
    same_answers(one, three);
    kp_model_free(one);
    kp_model_free(three);
    world_deinit(&w);
}

/* --- the correction ------------------------------------------------------------------------
 */

/* Networks that know nothing leave everything to the correction, which at a site with little
 * noise is what they were off by. */
static void test_correction(void **state)
{
    (void)state;
    struct world w;
    kopt_error err;
    world_init(&w, false, 5);
    struct kp_fit_options o = options(&w, 5);
    o.plan.epochs = 1;
    o.plan.adam.rate = 1e-9F;
    o.grow.trees = 0;
    struct kp_model *m = fit(&w, &o);
    const struct kp_ranking *r = m->ranking;
    double mean = judge(&w, m).kept_mean[0];
    assert_int_equal(r->n_sites, w.ranks->n);
    assert_true(r->length > 0);
    /* By hand, at a point between sites. */
    size_t E = kp_encoder_n_features(m->encoder);
    float *features = kp_calloc(E, sizeof(float));
    float *scores = kp_calloc(r->n_configs, sizeof(float));
    int32_t tokens[KP_FIELDS_MAX];
    const double problem[KP_FIELDS_MAX] = {333, 555};
    kp_encode(m->encoder, problem, tokens, features);
    float z[8];
    assert_true(r->n_coordinates <= 8);
    kp_ranking_coordinates(r, features, z);
    kp_ranking_correct(r, z, scores);
    const float *at = kp_ranking_sites(r, KP_SITES_AT);
    const float *field = kp_ranking_sites(r, KP_SITES_FIELD);
    double want = 0;
    for (size_t s = 0; s < r->n_sites; s++) {
        double square = 0;
        for (size_t c = 0; c < r->n_coordinates; c++)
            square += pow((double)(z[c] - at[s * r->n_coordinates + c]), 2);
        want +=
            exp(-square / 2 / (r->length * r->length)) * (double)field[s * r->n_configs + 5];
    }
    /* Weights below 1e-6 are left out, and sums are of floats. */
    assert_true(fabs(want - (double)scores[5]) < 1e-4);
    /* It knows the neighbours: much better than what the networks say alone. */
    m->ranking->n_sites = 0;
    assert_true(mean > judge(&w, m).kept_mean[0] + 0.05);
    (void)err;
    kp_free(features);
    kp_free(scores);
    kp_model_free(m);
    world_deinit(&w);
}

/* --- bad files -----------------------------------------------------------------------------
 */

static void refuses(const struct kp_model *m, const char *from, const char *to)
{
    struct kp_json *j = kp_ranking_to_json(m->ranking);
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    struct kp_buf changed = KP_BUF_INIT(1 << 20);
    struct kp_ranking *out;
    kopt_error err;
    kp_json_dump(j, &text);
    kp_json_free(j);
    const char *at = strstr(kp_buf_text(&text), from);
    assert_non_null(at);
    kp_buf_add(&changed, kp_buf_text(&text), (size_t)(at - kp_buf_text(&text)));
    kp_buf_adds(&changed, to);
    kp_buf_adds(&changed, at + strlen(from));
    assert_int_equal(
        kp_json_parse((struct kp_str){kp_buf_text(&changed), changed.len}, "ranking", &j, &err),
        KOPT_OK);
    assert_int_equal(kp_ranking_from_json(j, m, &out, &err), KOPT_EINPUT);
    assert_null(out);
    kp_json_free(j);
    kp_buf_deinit(&text);
    kp_buf_deinit(&changed);
}

static void test_hostile_text(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, 2);
    struct kp_fit_options o = options(&w, 2);
    o.plan.epochs = 1;
    struct kp_model *m = fit(&w, &o);
    refuses(m, "\"param\",0", "\"param\",3");
    refuses(m, "\"param\",0", "\"other\",0");
    refuses(m, "\"param\",0", "\"let\",2");
    refuses(m, "\"param\",0", "\"ratio\",2");
    refuses(m, "\"param\",0", "\"is\",-1");
    refuses(m, "\"configs\":[", "\"configs\":[7,");
    refuses(m, "\"configs\":[0", "\"configs\":[4");
    refuses(m, "\"configs\":[0", "\"configs\":[-1");
    refuses(m, "\"known\":", "\"known\":9");
    refuses(m, "\"sites\":", "\"sites\":9999");
    refuses(m, "\"length\":", "\"length\":-");
    refuses(m, "\"coordinates\":[", "\"coordinates\":[999999,");
    refuses(m, "\"units\":", "\"unit\":");
    kp_model_free(m);
    world_deinit(&w);
}

/* Rules with a parameter more, or another one, than what the configurations have. */
static void test_other_rules(void **state)
{
    (void)state;
    static const char *const other[] = {"#pragma kopt kernel tile\n"
                                        "#pragma kopt problem M N\n"
                                        "#pragma kopt param BM {16,32,64,128}\n"
                                        "#pragma kopt param BN {16,32,64,128}\n"
                                        "#pragma kopt param MODE {\"a\",\"b\"}\n"
                                        "#pragma kopt param MORE {1,2}\n"
                                        "#pragma kopt require BM*MORE <= 256\n"
                                        "#pragma kopt block 64\n"
                                        "#pragma kopt grid M\n"
                                        "__global__ void tile(float *x) { x[0] = 1; }\n",
                                        "#pragma kopt kernel tile\n"
                                        "#pragma kopt problem M N\n"
                                        "#pragma kopt param BM {16,32,64,128}\n"
                                        "#pragma kopt param BN {16,32,64,128}\n"
                                        "#pragma kopt param MODUS {\"a\",\"b\"}\n"
                                        "#pragma kopt block 64\n"
                                        "#pragma kopt grid M\n"
                                        "__global__ void tile(float *x) { x[0] = 1; }\n"};
    struct world w;
    world_init(&w, false, 2);
    for (size_t i = 0; i < 2; i++) {
        struct kp_fit_options o = options(&w, 2);
        struct kp_model *m;
        kopt_error err;
        o.plan.epochs = 1;
        o.rules_text = kp_str_from(other[i]);
        assert_int_equal(kp_fit(w.lesson, &o, NULL, &m, &err), KOPT_EINPUT);
        assert_null(m);
    }
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_learns_from_what),
        cmocka_unit_test(test_few_problems),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_helping),
        cmocka_unit_test(test_many_configurations),
        cmocka_unit_test(test_nothing_to_see),
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_correction),
        cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_other_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
