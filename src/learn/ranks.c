/* SPDX-License-Identifier: MIT */
#include "learn/ranks.h"

#include "base/alloc.h"
#include "learn/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 128,          /* rows of an example */
    PARTS_LEAST = 5,      /* a network learns from four fifths at least */
    PARTS_MOST = 10,      /* kp_split_part_of() */
    PROBLEMS_LEAST = 10,  /* fewer say nothing */
    FLOATS_MAX = 1 << 29, /* of all features */
    TIMES_MANY = 8,
    CONFIGS_FEW = 48 /* so many are all kept */
};
static const float worst = 2;    /* of ln(time / best) */
static const float hope = 0.05F; /* the same, with one problem at least */

/* --- configurations -------------------------------------------------------------------------
 */

struct sorting {
    const uint32_t *configs;
    size_t n_targets;
};

static int compare_configs(const void *a, const void *b, void *user)
{
    const struct sorting *s = user;
    const uint32_t *x = s->configs + *(const uint32_t *)a * s->n_targets;
    const uint32_t *y = s->configs + *(const uint32_t *)b * s->n_targets;
    for (size_t t = 0; t < s->n_targets; t++)
        if (x[t] != y[t])
            return x[t] < y[t] ? -1 : 1;
    return 0;
}

/* Numbers the configurations of the rows in `rows`; number_of[data set's row]. Returns how many
 * there are. */
static size_t number_configs(const struct kp_dataset *d, uint32_t *rows, size_t n,
                             uint32_t *number_of)
{
    struct sorting s = {d->configs, d->n_targets};
    size_t found = 0;
    qsort_r(rows, n, sizeof(*rows), compare_configs, &s);
    for (size_t i = 0; i < n; i++) {
        found += i == 0 || compare_configs(&rows[i - 1], &rows[i], &s) != 0;
        number_of[rows[i]] = (uint32_t)found - 1;
    }
    return found;
}

/* --- rows -----------------------------------------------------------------------------------
 */

static bool is_for_us(const struct kp_lesson *l, size_t problem)
{
    return l->roles[problem] == KP_ROLE_TRAIN || l->roles[problem] == KP_ROLE_VALID;
}

static bool is_known(const struct kp_dataset *d, size_t row)
{
    return !isnan(d->times_ns[row]);
}

/* Problems with two times, their rows into `rows`. */
static size_t take_rows(struct kp_ranks *r, uint32_t *rows)
{
    const struct kp_dataset *d = r->lesson->data;
    size_t n = 0;
    for (size_t from = 0, to; from < d->n_rows; from = to) {
        size_t timed = 0;
        for (to = from; to < d->n_rows && d->of[to] == d->of[from]; to++)
            timed += isfinite(d->times_ns[to]) != 0;
        if (timed < 2 || !is_for_us(r->lesson, d->of[from]))
            continue;
        r->problem[r->n] = d->of[from];
        r->helps[r->n] = d->twins && d->twins[d->of[from]] != d->of[from];
        r->first[r->n++] = (uint32_t)n;
        for (size_t i = from; i < to; i++)
            if (is_known(d, i))
                rows[n++] = (uint32_t)i;
        size_t own = n - r->first[r->n - 1];
        r->n_most = own > r->n_most ? own : r->n_most;
    }
    r->first[r->n] = (uint32_t)n;
    return n;
}

static void set_wanted(struct kp_ranks *r, const uint32_t *rows)
{
    const float *times = r->lesson->data->times_ns;
    for (size_t p = 0; p < r->n; p++) {
        float best = INFINITY;
        for (size_t i = r->first[p]; i < r->first[p + 1]; i++)
            best = fminf(best, times[rows[i]]);
        for (size_t i = r->first[p]; i < r->first[p + 1]; i++)
            r->wanted[i] = fminf(logf(times[rows[i]] / best), worst);
    }
}

/* The least of what is wanted of each of n configurations. */
static void find_least(const struct kp_ranks *r, float *least, size_t n)
{
    for (size_t c = 0; c < n; c++)
        least[c] = worst;
    for (size_t i = 0; i < r->first[r->n]; i++)
        least[r->number[i]] = fminf(least[r->number[i]], r->wanted[i]);
}

/* Of configurations to[c] is the new number, or -1: they and their rows go. */
static void renumber(struct kp_ranks *r, uint32_t *rows, const int32_t *to)
{
    size_t n_rows = 0;
    r->n_most = 0;
    for (size_t p = 0; p < r->n; p++) {
        size_t from = r->first[p];
        size_t end = r->first[p + 1];
        r->first[p] = (uint32_t)n_rows;
        for (size_t i = from; i < end; i++) {
            if (to[r->number[i]] < 0)
                continue;
            rows[n_rows] = rows[i];
            r->wanted[n_rows] = r->wanted[i];
            r->number[n_rows++] = to[r->number[i]];
        }
        size_t own = n_rows - r->first[p];
        r->n_most = own > r->n_most ? own : r->n_most;
    }
    r->first[r->n] = (uint32_t)n_rows;
}

/* The ranking's configurations, from the rows that have them. */
static kopt_status put_configs(struct kp_ranks *r, const uint32_t *rows, size_t n,
                               kopt_error *err)
{
    const struct kp_dataset *d = r->lesson->data;
    struct kp_ranking *k = r->ranking;
    size_t T = d->n_targets;
    if (n > KP_RANKED_MAX)
        return kp_err(err, KOPT_EINPUT,
                      "%zu configurations were near the best: a network that ranks takes %d", n,
                      (int)KP_RANKED_MAX);
    k->configs = kp_arena_alloc(&k->arena, n * T, sizeof(*k->configs));
    if (!k->configs)
        return kp_err_nomem(err);
    k->n_configs = n;
    k->n_targets = T;
    for (size_t i = 0; i < r->first[r->n]; i++)
        memcpy(k->configs + (size_t)r->number[i] * T, d->configs + rows[i] * T,
               T * sizeof(*k->configs));
    return KOPT_OK;
}

/* Configurations that were far from the best with every problem are not worth knowing: dropping
 * them costs nothing of the best speed, and leaves less to choose the wrong one from. Of the n
 * configurations of all rows. */
static kopt_status keep_hopeful(struct kp_ranks *r, uint32_t *rows, size_t n, kopt_error *err)
{
    size_t n_kept = 0;
    float *least = kp_calloc(n, sizeof(*least));
    int32_t *to = kp_calloc(n, sizeof(*to));
    kopt_status st = least && to ? KOPT_OK : kp_err_nomem(err);
    if (st == KOPT_OK) {
        find_least(r, least, n);
        for (size_t c = 0; c < n; c++)
            to[c] = n <= CONFIGS_FEW || least[c] <= hope ? (int32_t)n_kept++ : -1;
        renumber(r, rows, to);
        st = put_configs(r, rows, n_kept, err);
    }
    kp_free(least);
    kp_free(to);
    return st;
}

/* --- parts ----------------------------------------------------------------------------------
 */

static uint64_t hash_of(const struct kp_ranks *r, size_t p)
{
    const uint32_t *twins = r->lesson->data->twins;
    size_t problem = r->problem[p];
    if (r->helps[p] && twins[problem] != UINT32_MAX)
        problem = twins[problem];
    return r->lesson->hashes[problem];
}

/* Has each part a problem of the data itself? */
static bool by_hash(struct kp_ranks *r)
{
    size_t own[PARTS_MOST] = {0};
    bool all = true;
    for (size_t p = 0; p < r->n; p++) {
        r->part[p] = kp_split_part_of(hash_of(r, p)) % (unsigned)r->n_parts;
        own[r->part[p]] += !r->helps[p];
    }
    for (size_t k = 0; k < r->n_parts; k++)
        all = all && own[k] > 0;
    return all;
}

/* By hash, of one hash those of the data first. */
static int compare_hashes(const void *a, const void *b, void *user)
{
    const struct kp_ranks *r = user;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    uint64_t hx = hash_of(r, x);
    uint64_t hy = hash_of(r, y);
    if (hx != hy)
        return hx < hy ? -1 : 1;
    return r->helps[x] != r->helps[y] ? (r->helps[x] ? 1 : -1) : (x > y) - (x < y);
}

/* Where problems are so few that a part would be empty, they are dealt out in turn. */
static kopt_status in_turn(struct kp_ranks *r, kopt_error *err)
{
    size_t n = 0;
    uint32_t *order = kp_calloc(r->n, sizeof(*order));
    if (!order)
        return kp_err_nomem(err);
    for (size_t p = 0; p < r->n; p++)
        order[p] = (uint32_t)p;
    qsort_r(order, r->n, sizeof(*order), compare_hashes, r);
    for (size_t i = 0; i < r->n; i++) {
        size_t p = order[i];
        n += !r->helps[p] && (i == 0 || hash_of(r, order[i - 1]) != hash_of(r, p));
        r->part[p] = n ? (uint32_t)n - 1 : 0;
    }
    r->n_parts = n < r->n_parts ? n : r->n_parts;
    for (size_t p = 0; p < r->n && n > 0; p++)
        r->part[p] %= (uint32_t)r->n_parts;
    kp_free(order);
    return n >= 2 ? KOPT_OK
                  : kp_err(err, KOPT_EINPUT,
                           "all problems that are not for tests are of one group: a network "
                           "that ranks needs two");
}

/* --- features -------------------------------------------------------------------------------
 */

struct viewing {
    struct kp_pair_view view;
    struct kp_value *sizes; /* by the rules' problem index */
};

/* The rules' names that the data set does not have take their default, else 1. */
static void set_sizes(const struct kp_dataset *d, size_t problem, const struct kp_kernel *rules,
                      struct kp_value *sizes)
{
    for (size_t i = 0; i < rules->n_problem; i++) {
        sizes[i] = rules->has_problem_default[i] ? rules->problem_default[i] : kp_int(1);
        for (size_t f = 0; f < d->n_fields; f++)
            if (strcmp(d->fields[f].name, rules->problem[i]) == 0)
                sizes[i] =
                    kp_problem_value(&d->fields[f], d->problems[problem * d->n_fields + f]);
    }
}

struct measuring {
    const struct kp_kernel *rules;
    const struct kp_limits *limits;
    const uint32_t *rows;
    /* Of each pair feature, when the deviations are found. */
    double *raw;
    double *sum;
    double *squares;
    double *count;
    float *features; /* of the encoder */
    kopt_error *err;
};

static kopt_status view_new(const struct kp_ranks *r, const struct measuring *w,
                            struct viewing *v, kopt_error *err)
{
    size_t n_slots = w->rules ? w->rules->n_slots : 0;
    *v = (struct viewing){
        .view = {.r = r->ranking,
                 .targets = r->lesson->data->targets,
                 .rules = w->rules,
                 .slots = kp_calloc(n_slots + 1, sizeof(struct kp_value)),
                 .known = kp_calloc(n_slots + 1, 1)},
        .sizes = kp_calloc(w->rules ? w->rules->n_problem + 1 : 1, sizeof(struct kp_value))};
    return v->view.slots && v->view.known && v->sizes ? KOPT_OK : kp_err_nomem(err);
}

static void view_deinit(struct viewing *v)
{
    kp_free(v->view.slots);
    kp_free(v->view.known);
    kp_free(v->sizes);
}

static void view_problem(const struct kp_ranks *r, const struct measuring *w, size_t p,
                         struct viewing *v)
{
    const struct kp_dataset *d = r->lesson->data;
    v->view.problem = d->problems + (size_t)r->problem[p] * d->n_fields;
    if (!w->rules)
        return;
    set_sizes(d, r->problem[p], w->rules, v->sizes);
    kp_kernel_environment(w->rules, v->sizes, w->limits, v->view.slots, v->view.known);
}

/* Calls `each` for each row. */
static kopt_status for_rows(struct kp_ranks *r, const struct measuring *w,
                            void (*each)(struct kp_ranks *r, const struct measuring *w,
                                         const struct viewing *v, size_t p, size_t row))
{
    struct viewing v;
    kopt_status st = view_new(r, w, &v, w->err);
    for (size_t p = 0; st == KOPT_OK && p < r->n; p++) {
        view_problem(r, w, p, &v);
        for (size_t i = r->first[p]; i < r->first[p + 1]; i++)
            each(r, w, &v, p, i);
    }
    view_deinit(&v);
    return st;
}

static const uint32_t *config_of(const struct kp_ranks *r, const struct measuring *w,
                                 size_t row)
{
    const struct kp_dataset *d = r->lesson->data;
    return d->configs + (size_t)w->rows[row] * d->n_targets;
}

static void add_up(struct kp_ranks *r, const struct measuring *w, const struct viewing *v,
                   size_t p, size_t row)
{
    (void)p;
    kp_pair_raw(&v->view, config_of(r, w, row), w->raw);
    for (size_t k = 0; k < r->ranking->n_pairs; k++) {
        if (!isfinite(w->raw[k]))
            continue;
        w->sum[k] += w->raw[k];
        w->squares[k] += w->raw[k] * w->raw[k];
        w->count[k]++;
    }
}

/* Standardises, and drops the features that do not vary. */
static void keep_varying(struct kp_ranking *k, const struct measuring *w)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n_pairs; i++) {
        struct kp_pair p = k->pairs[i];
        double mean = w->count[i] > 0 ? w->sum[i] / w->count[i] : 0;
        double variance = w->count[i] > 0 ? w->squares[i] / w->count[i] - mean * mean : 0;
        if (variance <= 1e-10 * (1 + mean * mean))
            continue;
        p.mean = mean;
        p.scale = 1 / sqrt(variance);
        k->pairs[n++] = p;
    }
    k->n_pairs = n;
}

static kopt_status choose_features(struct kp_ranks *r, struct measuring *w)
{
    size_t n = r->ranking->n_pairs;
    w->raw = kp_calloc(n + 1, sizeof(double));
    w->sum = kp_calloc(n + 1, sizeof(double));
    w->squares = kp_calloc(n + 1, sizeof(double));
    w->count = kp_calloc(n + 1, sizeof(double));
    kopt_status st =
        w->raw && w->sum && w->squares && w->count ? KOPT_OK : kp_err_nomem(w->err);
    if (st == KOPT_OK)
        st = for_rows(r, w, add_up);
    if (st == KOPT_OK)
        keep_varying(r->ranking, w);
    kp_free(w->raw);
    kp_free(w->sum);
    kp_free(w->squares);
    kp_free(w->count);
    return st;
}

static void fill_row(struct kp_ranks *r, const struct measuring *w, const struct viewing *v,
                     size_t p, size_t row)
{
    const struct kp_dataset *d = r->lesson->data;
    size_t Z = r->ranking->n_coordinates;
    float *x = r->x + row * r->n_inputs;
    int32_t tokens[KP_FIELDS_MAX];
    if (row == r->first[p]) {
        kp_encode(r->lesson->encoder, d->problems + (size_t)r->problem[p] * d->n_fields, tokens,
                  w->features);
        kp_ranking_coordinates(r->ranking, w->features, x);
    } else {
        memcpy(x, r->x + r->first[p] * r->n_inputs, Z * sizeof(float));
    }
    kp_pair_features(&v->view, config_of(r, w, row), x + Z);
}

static kopt_status make_features(struct kp_ranks *r, struct measuring *w, size_t n_raw)
{
    const struct kp_lesson *l = r->lesson;
    size_t n_rows = r->first[r->n];
    kopt_status st = kp_ranking_declare(r->ranking, l->encoder, n_raw, l->data->targets,
                                        l->data->n_targets, w->rules, w->err);
    r->ranking->units = w->limits ? (double)w->limits->compute_units : 0;
    if (st == KOPT_OK)
        st = choose_features(r, w);
    r->n_inputs = r->ranking->n_coordinates + r->ranking->n_pairs;
    if (st == KOPT_OK && r->n_inputs == 0)
        st = kp_err(w->err, KOPT_EINPUT, "nothing that a network that ranks could see differs");
    if (st == KOPT_OK && n_rows > FLOATS_MAX / r->n_inputs)
        st = kp_err(w->err, KOPT_EINPUT, "%zu rows are too many for a network that ranks",
                    n_rows);
    if (st != KOPT_OK)
        return st;
    r->x = kp_calloc(n_rows * r->n_inputs + 1, sizeof(*r->x));
    w->features = kp_calloc(kp_encoder_n_features(l->encoder) + 1, sizeof(*w->features));
    st = r->x && w->features ? for_rows(r, w, fill_row) : kp_err_nomem(w->err);
    kp_free(w->features);
    return st;
}

bool kp_ranks_suit(const struct kp_dataset *d)
{
    size_t suits = 0;
    size_t problems = 0;
    for (size_t from = 0, to; from < d->n_rows; from = to) {
        size_t timed = 0;
        for (to = from; to < d->n_rows && d->of[to] == d->of[from]; to++)
            timed += isfinite(d->times_ns[to]) != 0;
        suits += timed >= TIMES_MANY;
        problems++;
    }
    return suits * 2 > problems && suits >= 2 * PROBLEMS_LEAST;
}

/* --- life -----------------------------------------------------------------------------------
 */

void kp_ranks_free(struct kp_ranks *r)
{
    if (!r)
        return;
    kp_ranking_free(r->ranking);
    kp_free(r->problem);
    kp_free(r->part);
    kp_free(r->helps);
    kp_free(r->first);
    kp_free(r->number);
    kp_free(r->wanted);
    kp_free(r->x);
    kp_free(r);
}

static kopt_status make(struct kp_ranks *r, struct measuring *w, size_t n_raw, uint32_t *rows)
{
    const struct kp_dataset *d = r->lesson->data;
    size_t n = take_rows(r, rows);
    if (r->n < PROBLEMS_LEAST)
        return kp_err(w->err, KOPT_EINPUT,
                      "%zu problems for training have times of two configurations or more: a "
                      "network that ranks needs %d",
                      r->n, (int)PROBLEMS_LEAST);
    uint32_t *sorted = kp_calloc(n, sizeof(*sorted));
    uint32_t *number_of = kp_calloc(d->n_rows, sizeof(*number_of));
    r->number = kp_calloc(n, sizeof(*r->number));
    r->wanted = kp_calloc(n, sizeof(*r->wanted));
    kopt_status st =
        sorted && number_of && r->number && r->wanted ? KOPT_OK : kp_err_nomem(w->err);
    if (st == KOPT_OK && !by_hash(r))
        st = in_turn(r, w->err);
    if (st == KOPT_OK) {
        memcpy(sorted, rows, n * sizeof(*sorted));
        size_t n_configs = number_configs(d, sorted, n, number_of);
        for (size_t i = 0; i < n; i++)
            r->number[i] = (int32_t)number_of[rows[i]];
        set_wanted(r, rows);
        st = keep_hopeful(r, rows, n_configs, w->err);
    }
    if (st == KOPT_OK) {
        w->rows = rows;
        st = make_features(r, w, n_raw);
    }
    kp_free(sorted);
    kp_free(number_of);
    return st;
}

kopt_status kp_ranks_new(const struct kp_lesson *lesson, const struct kp_kernel *rules,
                         const struct kp_limits *limits, size_t n_raw, size_t nets,
                         struct kp_ranks **out, kopt_error *err)
{
    const struct kp_dataset *d = lesson->data;
    struct measuring w = {.rules = rules, .limits = limits, .err = err};
    struct kp_ranks *r = kp_calloc(1, sizeof(*r));
    uint32_t *rows = kp_calloc(d->n_rows, sizeof(*rows));
    kopt_status st = KOPT_ENOMEM;
    *out = NULL;
    if (r) {
        r->lesson = lesson;
        r->n_parts = nets < PARTS_LEAST ? PARTS_LEAST : nets < PARTS_MOST ? nets : PARTS_MOST;
        r->ranking = kp_ranking_new();
        r->problem = kp_calloc(d->n_problems, sizeof(*r->problem));
        r->part = kp_calloc(d->n_problems, sizeof(*r->part));
        r->helps = kp_calloc(d->n_problems, sizeof(*r->helps));
        r->first = kp_calloc(d->n_problems + 1, sizeof(*r->first));
    }
    if (r && rows && r->ranking && r->problem && r->part && r->helps && r->first)
        st = make(r, &w, n_raw, rows);
    else
        (void)kp_err_nomem(err);
    kp_free(rows);
    if (st != KOPT_OK) {
        kp_ranks_free(r);
        return st;
    }
    *out = r;
    return KOPT_OK;
}

/* --- courses --------------------------------------------------------------------------------
 */

static size_t slices_of(const struct kp_ranks *r, size_t p)
{
    return (r->first[p + 1] - r->first[p] + SLICE - 1) / SLICE;
}

/* What a network is given of some rows. */
struct given {
    float *x;         /* [B][F] */
    int32_t *numbers; /* [B] */
    float *wanted;    /* [B] */
    uint32_t *group;  /* [n_groups + 1] */
    float *weights;   /* [n_groups] */
    uint32_t *order;  /* [n_most] */
    float *work;
};

static size_t lay_out(const struct kp_ranks *r, const struct kp_net *net, size_t rows,
                      size_t groups, bool train, float *base, struct given *g)
{
    size_t used = 0;
    const size_t sizes[] = {rows * r->n_inputs, rows, rows, groups + 1, groups, r->n_most};
    float *at[sizeof(sizes) / sizeof(*sizes)];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        at[i] = base ? base + used : NULL;
        used += (sizes[i] + 15) / 16 * 16;
    }
    *g = (struct given){.x = at[0],
                        .numbers = (int32_t *)(void *)at[1],
                        .wanted = at[2],
                        .group = (uint32_t *)(void *)at[3],
                        .weights = at[4],
                        .order = (uint32_t *)(void *)at[5],
                        .work = base ? base + used : NULL};
    return used + net->ops->work(net, rows, train);
}

static size_t course_work(const struct kp_course *c, const struct kp_net *net, size_t n)
{
    const struct kp_ranks_course *own = c->user;
    struct given g;
    size_t learn = lay_out(own->ranks, net, n * SLICE, n, true, NULL, &g);
    size_t check = lay_out(own->ranks, net, own->ranks->n_most, 1, false, NULL, &g);
    return learn > check ? learn : check;
}

static void put(const struct kp_ranks *r, size_t row, size_t at, const struct given *g)
{
    memcpy(g->x + at * r->n_inputs, r->x + row * r->n_inputs, r->n_inputs * sizeof(float));
    g->numbers[at] = r->number[row];
    g->wanted[at] = r->wanted[row];
}

static float weight_of(const struct kp_ranks *r, size_t p)
{
    return r->helps[p] ? (float)r->lesson->extra_weight : 1;
}

/* A problem's rows in an order of their own in each epoch, of which an example is a slice. */
static void shuffle(const struct kp_ranks *r, size_t p, uint64_t key, uint32_t *order)
{
    size_t n = r->first[p + 1] - r->first[p];
    struct kp_rng rng;
    kp_rng_init(&rng, kp_course_mix(key ^ kp_course_mix(p + 1)));
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)(r->first[p] + i);
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = (size_t)kp_rng_below(&rng, i + 1);
        uint32_t swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

/* A problem is seen a little off where it is, all of its rows alike, so that the network cannot
 * know it by its place. */
static void blur(const struct kp_ranks *r, size_t from, size_t to,
                 const struct kp_course_part *part, uint32_t example, const struct given *g)
{
    struct kp_rng rng;
    kp_rng_init(&rng, kp_course_mix(~part->epoch_key ^ kp_course_mix(example + 1)));
    for (size_t z = 0; z < r->ranking->n_coordinates; z++) {
        float off = part->unknown * (float)kp_rng_normal(&rng);
        for (size_t i = from; i < to; i++)
            g->x[i * r->n_inputs + z] += off;
    }
}

static void learn(const struct kp_course *c, const struct kp_net *net,
                  const struct kp_course_part *part, float *grad, float *work,
                  struct kp_net_score *score)
{
    const struct kp_ranks_course *own = c->user;
    const struct kp_ranks *r = own->ranks;
    struct given g;
    size_t B = 0;
    (void)lay_out(r, net, part->n * SLICE, part->n, true, work, &g);
    for (size_t i = 0; i < part->n; i++) {
        const uint32_t *example = own->examples + 2 * (size_t)part->examples[i];
        size_t p = example[0];
        size_t n = r->first[p + 1] - r->first[p];
        size_t slices = slices_of(r, p);
        shuffle(r, p, part->epoch_key, g.order);
        g.group[i] = (uint32_t)B;
        g.weights[i] = weight_of(r, p) / (float)part->batch;
        for (size_t k = n * example[1] / slices; k < n * (example[1] + 1) / slices; k++)
            put(r, g.order[k], B++, &g);
        blur(r, g.group[i], B, part, part->examples[i], &g);
    }
    g.group[part->n] = (uint32_t)B;
    const struct kp_batch b = {.B = B,
                               .tokens = g.numbers,
                               .features = g.x,
                               .weights = g.weights,
                               .wanted = g.wanted,
                               .group = g.group,
                               .n_groups = part->n};
    net->ops->run(net, &b, part->smoothing, part->key, grad, g.work, score);
}

static void check(const struct kp_course *c, const struct kp_net *net, size_t i, float *work,
                  struct kp_net_score *score)
{
    const struct kp_ranks_course *own = c->user;
    const struct kp_ranks *r = own->ranks;
    size_t p = own->checks[i];
    size_t from = r->first[p];
    size_t n = r->first[p + 1] - from;
    const uint32_t group[2] = {0, (uint32_t)n};
    const float weight = 1.0F / (float)own->n_checks;
    const struct kp_batch b = {.B = n,
                               .tokens = r->number + from,
                               .features = r->x + from * r->n_inputs,
                               .weights = &weight,
                               .wanted = r->wanted + from,
                               .group = group,
                               .n_groups = 1};
    net->ops->run(net, &b, 0, 0, NULL, work, score);
}

kopt_status kp_ranks_course(const struct kp_ranks *r, size_t k, struct kp_ranks_course *out,
                            kopt_error *err)
{
    size_t n = 0;
    double weight = 0;
    *out = (struct kp_ranks_course){.ranks = r};
    for (size_t p = 0; p < r->n; p++)
        n += slices_of(r, p);
    out->examples = kp_calloc(2 * n + 1, sizeof(*out->examples));
    out->checks = kp_calloc(r->n, sizeof(*out->checks));
    if (!out->examples || !out->checks)
        return kp_err_nomem(err);
    n = 0;
    for (size_t p = 0; p < r->n; p++) {
        if (r->part[p] == k % r->n_parts) {
            if (!r->helps[p])
                out->checks[out->n_checks++] = (uint32_t)p;
            continue;
        }
        for (size_t s = 0; s < slices_of(r, p); s++) {
            weight += (double)weight_of(r, p);
            out->examples[2 * n] = (uint32_t)p;
            out->examples[2 * n++ + 1] = (uint32_t)s;
        }
    }
    out->course = (struct kp_course){.user = out,
                                     .n = n,
                                     .n_valid = out->n_checks,
                                     .weight = weight,
                                     .work = course_work,
                                     .learn = learn,
                                     .check = check};
    return KOPT_OK;
}

void kp_ranks_course_deinit(struct kp_ranks_course *c)
{
    kp_free(c->examples);
    kp_free(c->checks);
}
