/* SPDX-License-Identifier: MIT */
#include "model/beam.h"

#include "base/alloc.h"
#include "fake_net.h"
#include "forests.h"
#include "unit/search/spaces.h"

enum { MOST_NETS = 3, MOST_TARGETS = 6, MOST_CONFIGS = 4096, MOST_VALUES = 48, FEATURES = 2 };

/* Networks, what they predict, and what is allowed. */
struct scene {
    struct kp_net nets[MOST_NETS];
    const struct kp_net *list[MOST_NETS];
    size_t n_nets;
    const struct kp_space *space; /* NULL: everything is allowed */
    uint32_t map[MOST_TARGETS];
    uint32_t value[MOST_TARGETS][MOST_VALUES];
    const uint32_t *values[MOST_TARGETS];
    float features[FEATURES];
    struct kp_forest *forest; /* NULL: none */
    struct kp_beam_input in;
};

static void set_nets(struct scene *s, size_t n_nets, uint64_t seed, enum fake_mode mode)
{
    s->n_nets = n_nets;
    for (size_t k = 0; k < n_nets; k++) {
        s->nets[k].ops = &fake_ops;
        s->nets[k].shape = s->nets[0].shape;
        s->nets[k].shape.embed = seed + 100 * k;
        s->nets[k].shape.hidden = mode;
        s->list[k] = &s->nets[k];
    }
    s->in.nets = s->list;
    s->in.n_nets = n_nets;
}

/* After the networks. What it owns is freed by free_forest(). */
static void set_forest(struct scene *s, uint64_t seed, double weight)
{
    const struct forest_plan plan = {.n_groves = s->nets[0].shape.n_targets,
                                     .n_features = FEATURES,
                                     .n_values = s->nets[0].shape.n_values,
                                     .trees = 3,
                                     .weight = weight,
                                     .seed = seed};
    for (size_t k = 0; k < s->n_nets; k++)
        s->nets[k].shape.n_features = FEATURES;
    s->features[0] = 0.3F;
    s->features[1] = -0.4F + (float)seed;
    s->forest = forest_drawn(&plan);
    s->in.features = s->features;
    s->in.forest = s->forest;
}

static void free_forest(struct scene *s)
{
    kp_forest_free(s->forest);
    s->in.forest = s->forest = NULL;
}

/* Targets are the space's parameters in the order of `map` (NULL: as declared), with their
 * values as they are. */
static void set_space(struct scene *s, const struct kp_space *space, const uint32_t *map)
{
    struct kp_net_shape *shape = &s->nets[0].shape;
    *s = (struct scene){.space = space};
    shape->n_targets = kp_space_n_params(space);
    for (uint32_t p = 0; p < shape->n_targets; p++) {
        s->map[p] = map ? map[p] : p;
        shape->n_values[p] = kp_space_param(space, s->map[p])->n_values;
        for (uint32_t v = 0; v < MOST_VALUES; v++)
            s->value[p][v] = v;
        s->values[p] = s->value[p];
    }
    s->in.allowed = (struct kp_beam_space){space, s->map, s->values};
}

static void set_free(struct scene *s, const uint32_t *n_values, size_t n)
{
    *s = (struct scene){0};
    s->nets[0].shape.n_targets = n;
    memcpy(s->nets[0].shape.n_values, n_values, n * sizeof(*n_values));
}

struct found {
    size_t n;
    uint32_t *configs;
    double *logp;
};

static void found_free(struct found *f)
{
    kp_free(f->configs);
    kp_free(f->logp);
}

/* Nothing may be taken from the heap on the way. */
static struct found search(struct scene *s, size_t width, size_t k)
{
    size_t P = s->nets[0].shape.n_targets;
    struct found f = {.configs = kp_calloc(k * P, sizeof(uint32_t)),
                      .logp = kp_calloc(k, sizeof(double))};
    s->in.width = width;
    s->in.k = k;
    float *work = kp_slab_new((kp_beam_work(&s->in) + sizeof(float) - 1) / sizeof(float));
    assert_non_null(work);
    kp_alloc_fail_at(1);
    f.n = kp_beam_search(&s->in, work, f.configs, f.logp);
    void *first = kp_calloc(1, 1);
    kp_alloc_fail_at(0);
    assert_null(first);
    assert_true(f.n <= k);
    kp_slab_free(work);
    return f;
}

/* ---- the same by trying everything ---- */

struct truth {
    const struct scene *s;
    size_t P;
    size_t n;
    struct {
        uint32_t config[MOST_TARGETS];
        double score;
    } items[MOST_CONFIGS];
};

/* By the networks. */
static double nets_score(const struct scene *s, const uint32_t *config, size_t length)
{
    double logs[MOST_NETS];
    double top = -(double)INFINITY;
    double sum = 0;
    for (size_t k = 0; k < s->n_nets; k++) {
        logs[k] = 0;
        for (size_t p = 0; p < length; p++)
            logs[k] += fake_logp(&s->nets[k], config, p);
        top = logs[k] > top ? logs[k] : top;
    }
    if (s->n_nets == 1 || top == -(double)INFINITY)
        return top;
    for (size_t k = 0; k < s->n_nets; k++)
        sum += exp(logs[k] - top);
    return top + log(sum / (double)s->n_nets);
}

/* Value config[p] after those before, by the networks and the forest. */
static double pooled(const struct scene *s, const uint32_t *config, size_t p)
{
    uint32_t other[MOST_TARGETS];
    float x[FEATURES + MOST_TARGETS];
    float trees[MOST_VALUES];
    double w = s->forest->weight;
    double own = 0;
    double sum = 0;
    double before = nets_score(s, config, p);
    if (before == -(double)INFINITY)
        return before;
    memcpy(other, config, p * sizeof(*other));
    memcpy(x, s->features, sizeof(s->features));
    kp_forest_log(s->forest, p, FEATURES, config, x, trees);
    for (uint32_t v = 0; v < s->nets[0].shape.n_values[p]; v++) {
        other[p] = v;
        double nets = exp(nets_score(s, other, p + 1) - before);
        double joint = pow(nets, 1 - w) * exp(w * (double)trees[v]);
        own = v == config[p] ? joint : own;
        sum += joint;
    }
    return sum > 0 ? log(own / sum) : -(double)INFINITY;
}

static double score_of(const struct scene *s, const uint32_t *config, size_t length)
{
    double sum = 0;
    if (!s->forest)
        return nets_score(s, config, length);
    for (size_t p = 0; p < length; p++)
        sum += pooled(s, config, p);
    return sum;
}

/* Does some valid configuration have these values of the first `length` targets? */
static bool completable(const struct scene *s, const uint32_t *config, size_t length)
{
    uint32_t full[KP_PARAMS_MAX];
    struct kp_space_iter it;
    if (!s->space)
        return true;
    kp_space_iter_init(&it, s->space, 0);
    while (kp_space_iter_next(&it, full)) {
        bool same = true;
        for (size_t p = 0; same && p < length; p++)
            same = s->map[p] >= kp_space_n_params(s->space) ||
                   full[s->map[p]] == s->value[p][config[p]];
        if (same)
            return true;
    }
    return false;
}

static bool comes_before(const struct truth *t, size_t i, double score, const uint32_t *config)
{
    if (t->items[i].score != score)
        return t->items[i].score > score;
    for (size_t p = 0; p < t->P; p++)
        if (t->items[i].config[p] != config[p])
            return t->items[i].config[p] < config[p];
    return true;
}

static void truth_add(struct truth *t, const uint32_t *config)
{
    double score = score_of(t->s, config, t->P);
    size_t i = t->n++;
    assert_true(t->n <= MOST_CONFIGS);
    for (; i > 0 && !comes_before(t, i - 1, score, config); i--)
        t->items[i] = t->items[i - 1];
    memcpy(t->items[i].config, config, t->P * sizeof(*config));
    t->items[i].score = score;
}

static void enumerate(struct truth *t, const struct scene *s)
{
    uint32_t config[MOST_TARGETS] = {0};
    const struct kp_net_shape *shape = &s->nets[0].shape;
    t->s = s;
    t->P = shape->n_targets;
    t->n = 0;
    for (;;) {
        size_t p = t->P;
        if (completable(s, config, t->P))
            truth_add(t, config);
        while (p > 0 && ++config[p - 1] == shape->n_values[p - 1])
            config[--p] = 0;
        if (p == 0)
            return;
    }
}

/* The beam is as wide as there are configurations: its answer is the whole truth. */
static void check_whole(struct scene *s)
{
    struct truth *t = kp_calloc(1, sizeof(*t));
    enumerate(t, s);
    size_t width = t->n + 3;
    for (size_t p = 0; p < t->P; p++) /* and as there may be prefixes */
        width = width > MOST_CONFIGS / 2 ? width : width * s->nets[0].shape.n_values[p];
    width = width > KP_BEAM_WIDTH_MAX ? KP_BEAM_WIDTH_MAX : width;
    struct found f = search(s, width, width);
    assert_int_equal(f.n, t->n);
    for (size_t i = 0; i < f.n; i++) {
        assert_memory_equal(f.configs + i * t->P, t->items[i].config, t->P * sizeof(uint32_t));
        /* Both are sums of the same few doubles in the same order, or nearly so. */
        assert_true(f.logp[i] == t->items[i].score ||
                    fabs(f.logp[i] - t->items[i].score) < 1e-12);
    }
    found_free(&f);
    kp_free(t);
}

static const char *const rules[] = {"{1,2,3,4,5}",
                                    "{1,2,4,8}",
                                    "{2,3}",
                                    "{1,2,3}",
                                    NULL,
                                    "p0 * p1 <= 8",
                                    "p3 % p2 != 1 || p0 == 1",
                                    "p1 + p3 > p2",
                                    NULL};

static void a_wide_beam_is_the_whole_truth(void **state)
{
    (void)state;
    static const uint32_t free_values[] = {3, 5, 1, 4, 2};
    static const uint32_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
    struct text_space t;
    struct scene s;
    text_space_open(&t, rules);
    for (size_t n_nets = 1; n_nets <= MOST_NETS; n_nets += 2) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            set_free(&s, free_values, 5);
            set_nets(&s, n_nets, seed, FAKE_SOUND);
            check_whole(&s);
            for (size_t o = 0; o < 3; o++) {
                set_space(&s, t.space, orders[o]);
                set_nets(&s, n_nets, seed, FAKE_SOUND);
                check_whole(&s);
            }
            set_space(&s, t.space, kp_space_order(t.space));
            set_nets(&s, n_nets, seed, FAKE_SOUND);
            check_whole(&s);
        }
    }
    text_space_close(&t);
}

static void broken_networks_change_no_rule(void **state)
{
    (void)state;
    static const enum fake_mode modes[] = {FAKE_EVEN, FAKE_HOLES, FAKE_DEAD};
    struct text_space t;
    struct scene s;
    text_space_open(&t, rules);
    for (size_t m = 0; m < 3; m++) {
        for (size_t n_nets = 1; n_nets <= MOST_NETS; n_nets += 2) {
            set_space(&s, t.space, NULL);
            set_nets(&s, n_nets, 11, modes[m]);
            check_whole(&s);
            struct found f = search(&s, 7, 7);
            assert_int_equal(f.n, 7);
            for (size_t i = 0; i < f.n; i++) {
                assert_true(completable(&s, f.configs + i * 4, 4));
                assert_true(i == 0 || f.logp[i] <= f.logp[i - 1]);
                assert_true(f.logp[i] <= 0);
            }
            found_free(&f);
        }
    }
    text_space_close(&t);
}

/* One broken network among sound ones takes nothing but its share. */
static void a_dead_network_does_not_silence_the_others(void **state)
{
    (void)state;
    static const uint32_t n_values[] = {4, 3, 5};
    struct scene s;
    set_free(&s, n_values, 3);
    set_nets(&s, 1, 5, FAKE_SOUND);
    struct found alone = search(&s, 4, 4);
    set_nets(&s, 2, 5, FAKE_SOUND);
    s.nets[1].shape.hidden = FAKE_DEAD;
    struct found both = search(&s, 4, 4);
    assert_int_equal(both.n, 4);
    assert_memory_equal(both.configs, alone.configs, sizeof(uint32_t) * 4 * 3);
    for (size_t i = 0; i < 4; i++) /* a few roundings of numbers of size 5 */
        assert_true(fabs(both.logp[i] - (alone.logp[i] - log(2))) < 1e-14);
    found_free(&alone);
    found_free(&both);
}

static void equal_scores_come_in_the_order_of_values(void **state)
{
    (void)state;
    struct text_space t;
    struct scene s;
    struct truth *all = kp_calloc(1, sizeof(*all));
    text_space_open(&t, rules);
    set_space(&s, t.space, NULL);
    set_nets(&s, 2, 3, FAKE_EVEN);
    enumerate(all, &s);
    for (size_t width = 1; width <= 12; width++) {
        struct found f = search(&s, width, width);
        assert_int_equal(f.n, width);
        for (size_t i = 0; i < f.n; i++)
            assert_memory_equal(f.configs + i * 4, all->items[i].config, 4 * sizeof(uint32_t));
        found_free(&f);
    }
    kp_free(all);
    text_space_close(&t);
}

static void fewer_than_asked_for(void **state)
{
    (void)state;
    static const char *const one[] = {"{1,2,3}", "{1,2,3}", NULL, "p0 * p1 == 9", NULL};
    static const char *const none[] = {"{1,2,3}", "{1,2,3}", NULL, "p0 * p1 == 10", NULL};
    static const uint32_t few[] = {2, 1};
    struct text_space t;
    struct scene s;
    text_space_open(&t, one);
    set_space(&s, t.space, NULL);
    set_nets(&s, 3, 1, FAKE_SOUND);
    struct found f = search(&s, 5, 5);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.configs[0], 2);
    assert_int_equal(f.configs[1], 2);
    found_free(&f);
    text_space_close(&t);

    text_space_open(&t, none);
    for (int o = 0; o < 2; o++) {
        set_space(&s, t.space, o ? kp_space_order(t.space) : NULL);
        set_nets(&s, 1, 1, FAKE_SOUND);
        f = search(&s, 5, 5);
        assert_int_equal(f.n, 0);
        found_free(&f);
    }
    text_space_close(&t);

    set_free(&s, few, 2);
    set_nets(&s, 1, 1, FAKE_SOUND);
    f = search(&s, 50, 20);
    assert_int_equal(f.n, 2);
    found_free(&f);
    f = search(&s, 50, 1);
    assert_int_equal(f.n, 1);
    found_free(&f);
}

/* Values that the space does not have, targets that it does not have, parameters that are no
 * targets. */
static void lists_need_not_agree(void **state)
{
    (void)state;
    struct text_space t;
    struct scene s;
    text_space_open(&t, rules);
    for (uint64_t seed = 0; seed < 5; seed++) {
        set_space(&s, t.space, NULL);
        set_nets(&s, 1, seed, FAKE_SOUND);
        s.value[0][1] = UINT32_MAX;
        s.value[1][0] = 3;
        s.value[1][3] = 0;
        s.value[3][2] = 999;
        check_whole(&s);
        s.value[2][0] = UINT32_MAX;
        s.value[2][1] = UINT32_MAX;
        struct found f = search(&s, 9, 9);
        assert_int_equal(f.n, 0);
        found_free(&f);

        set_space(&s, t.space, NULL);
        s.nets[0].shape.n_targets = 3; /* p3 is nobody's */
        set_nets(&s, 1, seed, FAKE_SOUND);
        check_whole(&s);

        set_space(&s, t.space, NULL);
        s.map[1] = UINT32_MAX; /* the target is nobody's */
        set_nets(&s, 1, seed, FAKE_SOUND);
        check_whole(&s);
    }
    text_space_close(&t);
}

/* ---- random spaces ---- */

static void random_space(struct kp_rng *rng, struct text_space *t)
{
    static const char *const lists[] = {"{1,2,4,8}",  "{1,2,3}", "{0,1}",
                                        "{16,32,64}", "{5}",     "{1,2,3,4,5,6}"};
    static const char *const texts[] = {"p0 * p1 <= 12",
                                        "p0 % 2 == p2 % 2",
                                        "p1 + p2 > 4",
                                        "p0 < p1 || p2 == 1",
                                        "p2 % 3 != p0 % 3",
                                        "p1 != p0",
                                        "(p0 + 2 * p1 + 3 * p2) % 5 < 3"};
    const char *text[12];
    size_t n = 0;
    size_t n_params = 3 + kp_rng_below(rng, 2);
    size_t n_rules = kp_rng_below(rng, 4);
    for (size_t i = 0; i < n_params; i++)
        text[n++] = lists[kp_rng_below(rng, sizeof(lists) / sizeof(lists[0]))];
    text[n++] = NULL;
    for (size_t i = 0; i < n_rules; i++)
        text[n++] = texts[kp_rng_below(rng, sizeof(texts) / sizeof(texts[0]))];
    text[n] = NULL;
    text_space_open(t, text);
}

static void shuffle(struct kp_rng *rng, uint32_t *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)kp_rng_below(rng, i);
        uint32_t swap = x[i - 1];
        x[i - 1] = x[k];
        x[k] = swap;
    }
}

/* A beam of one takes the likeliest value that can be completed, each time. */
static void check_greedy(struct scene *s)
{
    size_t P = s->nets[0].shape.n_targets;
    uint32_t config[MOST_TARGETS] = {0};
    struct found f = search(s, 1, 1);
    assert_int_equal(f.n, kp_space_count(s->space) > 0);
    for (size_t p = 0; f.n && p < P; p++) {
        uint32_t best = UINT32_MAX;
        double top = 0;
        for (uint32_t v = 0; v < s->nets[0].shape.n_values[p]; v++) {
            config[p] = v;
            double score = score_of(s, config, p + 1);
            if (completable(s, config, p + 1) && (best == UINT32_MAX || score > top)) {
                best = v;
                top = score;
            }
        }
        config[p] = best;
        assert_int_equal(f.configs[p], best);
    }
    found_free(&f);
}

static void check_beam(struct scene *s, size_t width)
{
    size_t P = s->nets[0].shape.n_targets;
    uint64_t count = kp_space_count(s->space);
    struct found f = search(s, width, width);
    assert_int_equal(f.n, count < width ? count : width);
    for (size_t i = 0; i < f.n; i++) {
        const uint32_t *c = f.configs + i * P;
        uint32_t own[KP_PARAMS_MAX];
        for (size_t p = 0; p < P; p++)
            own[s->map[p]] = s->value[p][c[p]];
        assert_true(kp_space_valid(s->space, own, NULL));
        assert_true(fabs(f.logp[i] - score_of(s, c, P)) < 1e-12);
        for (size_t k = 0; k < i; k++) {
            assert_true(f.logp[k] >= f.logp[i]);
            assert_memory_not_equal(f.configs + k * P, c, P * sizeof(*c));
        }
    }
    found_free(&f);
}

static void no_rule_is_ever_broken(void **state)
{
    (void)state;
    struct kp_rng rng;
    size_t n_whole = 0;
    size_t n_empty = 0;
    kp_rng_init(&rng, 2024);
    for (size_t i = 0; i < 10000; i++) {
        struct text_space t;
        struct scene s;
        uint32_t order[MOST_TARGETS];
        random_space(&rng, &t);
        shuffle(&rng, order, (uint32_t)kp_space_n_params(t.space));
        set_space(&s, t.space, i % 2 ? order : kp_space_order(t.space));
        set_nets(&s, 1 + i % 3, i, FAKE_SOUND);
        check_beam(&s, 1 + i % 7);
        if (i % 20 == 0) {
            check_greedy(&s);
            check_whole(&s);
            n_whole++;
        }
        n_empty += kp_space_count(t.space) == 0;
        text_space_close(&t);
    }
    assert_true(n_whole == 500 && n_empty > 0 && n_empty < 5000);
}

/* ---- trees beside the networks ---- */

static void check_with_forest(struct scene *s, uint64_t seed)
{
    static const double weights[] = {0, 0.4, 0.95};
    for (size_t i = 0; i < 3; i++) {
        set_forest(s, seed, weights[i]);
        check_whole(s);
        free_forest(s);
    }
}

static void a_forest_joins_the_networks(void **state)
{
    (void)state;
    static const uint32_t free_values[] = {3, 5, 1, 4, 2};
    static const uint32_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}};
    struct text_space t;
    struct scene s;
    text_space_open(&t, rules);
    for (size_t n_nets = 1; n_nets <= MOST_NETS; n_nets++) {
        for (uint64_t seed = 0; seed < 2; seed++) {
            set_free(&s, free_values, 5);
            set_nets(&s, n_nets, seed, FAKE_SOUND);
            check_with_forest(&s, seed);
            for (size_t o = 0; o < 3; o++) {
                set_space(&s, t.space, o < 2 ? orders[o] : kp_space_order(t.space));
                set_nets(&s, n_nets, seed, FAKE_SOUND);
                check_with_forest(&s, seed);
            }
        }
    }
    text_space_close(&t);
}

/* What no network gives a probability the trees do not bring back. */
static void a_forest_beside_broken_networks(void **state)
{
    (void)state;
    static const enum fake_mode modes[] = {FAKE_HOLES, FAKE_DEAD};
    struct text_space t;
    struct scene s;
    text_space_open(&t, rules);
    for (size_t m = 0; m < 2; m++) {
        for (size_t n_nets = 1; n_nets <= MOST_NETS; n_nets += 2) {
            set_space(&s, t.space, NULL);
            set_nets(&s, n_nets, 11, modes[m]);
            check_with_forest(&s, 3);
        }
    }
    text_space_close(&t);
}

/* Without rules they add up to 1, and a forest of no weight changes nothing. */
static void probabilities_add_up(void **state)
{
    (void)state;
    static const uint32_t free_values[] = {3, 5, 1, 4, 2};
    struct scene s;
    set_free(&s, free_values, 5);
    for (size_t n_nets = 1; n_nets <= MOST_NETS; n_nets += 2) {
        set_nets(&s, n_nets, 7, FAKE_SOUND);
        struct found alone = search(&s, 120, 120);
        for (int i = 0; i < 2; i++) {
            double sum = 0;
            set_forest(&s, 2, i ? 0.4 : 0);
            struct found f = search(&s, 120, 120);
            assert_int_equal(f.n, 120);
            for (size_t c = 0; c < f.n; c++)
                sum += exp(f.logp[c]);
            assert_true(fabs(sum - 1) < 1e-12); /* 120 products of five roundings */
            bool same = memcmp(f.configs, alone.configs, sizeof(uint32_t) * 120 * 5) == 0;
            assert_int_equal(same, i == 0);
            for (size_t c = 0; i == 0 && c < f.n; c++) /* networks normalise in floats */
                assert_true(fabs(f.logp[c] - alone.logp[c]) < 2e-6);
            free_forest(&s);
            found_free(&f);
        }
        found_free(&alone);
    }
}

static void a_narrow_beam_with_a_forest(void **state)
{
    (void)state;
    struct text_space t;
    struct scene s;
    text_space_open(&t, rules);
    for (uint64_t seed = 0; seed < 20; seed++) {
        set_space(&s, t.space, seed % 2 ? NULL : kp_space_order(t.space));
        set_nets(&s, 1 + seed % 3, seed, FAKE_SOUND);
        set_forest(&s, seed, 0.4);
        check_greedy(&s);
        for (size_t width = 1; width <= 9; width += 2)
            check_beam(&s, width);
        free_forest(&s);
    }
    text_space_close(&t);
}

/* So many nodes that the space's own question would take memory from the heap. */
static void a_large_space_takes_nothing_from_the_heap(void **state)
{
    (void)state;
    static const char *const large[] = {
        "{0..47}",
        "{0..47}",
        "{0..47}",
        "{0..47}",
        NULL,
        "((p0 + 37*p1 + 1301*p2 + 4099*p3) * (p0 + 7*p1 + 91*p2 + 311*p3 + 1)) % 10007 < 5000",
        NULL};
    static const uint32_t order[] = {2, 0, 3, 1};
    struct text_space t;
    struct scene s;
    text_space_open(&t, large);
    assert_true(kp_space_query_words(t.space) > 0);
    set_space(&s, t.space, order);
    set_nets(&s, 1, 1, FAKE_SOUND);
    check_beam(&s, 5);
    text_space_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wide_beam_is_the_whole_truth),
        cmocka_unit_test(broken_networks_change_no_rule),
        cmocka_unit_test(a_dead_network_does_not_silence_the_others),
        cmocka_unit_test(equal_scores_come_in_the_order_of_values),
        cmocka_unit_test(fewer_than_asked_for),
        cmocka_unit_test(lists_need_not_agree),
        cmocka_unit_test(no_rule_is_ever_broken),
        cmocka_unit_test(a_forest_joins_the_networks),
        cmocka_unit_test(a_forest_beside_broken_networks),
        cmocka_unit_test(probabilities_add_up),
        cmocka_unit_test(a_narrow_beam_with_a_forest),
        cmocka_unit_test(a_large_space_takes_nothing_from_the_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
