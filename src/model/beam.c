/* SPDX-License-Identifier: MIT */
/* The joint probability of a prefix under the mixture is the mean of what the networks give it:
 *   p(v | h) = sum_k w_k p_k(v | h), w_k = p_k(h) / sum_j p_j(h)
 *   => p(h, v) = p(h) p(v | h) = 1/K sum_k p_k(h, v),
 * so each prefix keeps one logarithm per network, and its score is that of their mean.
 *
 * Live prefixes stand in the order of their scores. An extension is never likelier than its
 * prefix's best one, so the rules are asked only about prefixes that may still bring one in. */
#include "model/beam.h"

#include <math.h>
#include <string.h>

enum { ALIGN = 64 };
#define NONE (-(double)INFINITY)

struct candidate {
    double score;
    uint32_t parent;
    uint32_t value;
};

/* What is kept of the live prefixes. */
struct live {
    uint32_t *config;           /* [width][P] */
    double *logs;               /* [width][K]: by network */
    double *score;              /* [width] */
    struct kp_space_prefix *at; /* [width]: where the targets have the diagram's order */
};

struct beam {
    const struct kp_beam_input *in;
    const struct kp_net_shape *shape;
    const struct kp_space *space; /* NULL: nothing is forbidden */
    size_t P;
    size_t K;
    size_t width;
    bool in_order; /* target p is the diagram's level p */
    size_t p;      /* the target at hand: live prefixes have that many values */
    size_t most_values;
    size_t most_logs;   /* floats of a network's answer at any target */
    size_t most_params; /* values of any parameter */
    /* In the block of memory. */
    float *state[KP_BEAM_NETS_MAX];
    float *scratch;
    float *logp[KP_BEAM_NETS_MAX]; /* [width][n_values] */
    double *row;                   /* [n_values]: scores of a prefix's extensions */
    float *inputs;                 /* of the forest */
    float *trees;                  /* [n_values]: what it says */
    struct live now;
    struct live next;
    struct candidate *heap; /* [width]: the worst on top */
    size_t n_heap;
    uint32_t *parent; /* [width] */
    uint32_t *value;  /* [width] */
    unsigned char *allowed;
    uint64_t *query;
    /* The prefix that the space is asked about. */
    uint32_t config[KP_PARAMS_MAX];
    unsigned char fixed[KP_PARAMS_MAX];
};

/* ---- memory ---- */

/* The next `n` objects of the block; with `base` NULL only their size is counted. */
static void *take(unsigned char *base, size_t *used, size_t n, size_t size)
{
    void *p = base ? base + *used : NULL;
    *used += (n * size + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

static bool has_param(const struct beam *b, size_t p)
{
    return b->space && b->in->allowed.map[p] < kp_space_n_params(b->space);
}

static bool same_order(const struct beam *b)
{
    for (size_t p = 0; p < b->P; p++)
        if (!has_param(b, p) || b->in->allowed.map[p] != kp_space_order(b->space)[p])
            return false;
    return b->P <= kp_space_n_params(b->space);
}

static void measure(struct beam *b, const struct kp_beam_input *in)
{
    KP_CHECK(in->n_nets >= 1 && in->n_nets <= KP_BEAM_NETS_MAX);
    KP_CHECK(in->width >= 1 && in->width <= KP_BEAM_WIDTH_MAX);
    size_t prefixes = 1;
    b->in = in;
    b->shape = &in->nets[0]->shape;
    b->space = in->allowed.space;
    b->P = b->shape->n_targets;
    b->K = in->n_nets;
    for (size_t p = 0; p < b->P; p++) {
        size_t n = b->shape->n_values[p];
        if (n > b->most_values)
            b->most_values = n;
        if (prefixes * n > b->most_logs)
            b->most_logs = prefixes * n;
        prefixes *= n; /* both factors are 4096 at most */
        if (prefixes > in->width)
            prefixes = in->width;
        if (has_param(b, p) &&
            kp_space_param(b->space, in->allowed.map[p])->n_values > b->most_params)
            b->most_params = kp_space_param(b->space, in->allowed.map[p])->n_values;
    }
    b->width = prefixes > 0 ? prefixes : 1;
    b->in_order = b->space && same_order(b);
}

static void take_live(const struct beam *b, struct live *l, unsigned char *base, size_t *used)
{
    l->config = take(base, used, b->width * b->P, sizeof(*l->config));
    l->logs = take(base, used, b->width * b->K, sizeof(*l->logs));
    l->score = take(base, used, b->width, sizeof(*l->score));
    l->at = take(base, used, b->width, sizeof(*l->at));
}

static size_t lay_out(struct beam *b, unsigned char *base)
{
    size_t used = 0;
    size_t scratch = 0;
    for (size_t k = 0; k < b->K; k++) {
        const struct kp_net *net = b->in->nets[k];
        size_t n = net->ops->scratch(net, b->width);
        scratch = n > scratch ? n : scratch;
        b->state[k] = take(base, &used, net->ops->state(net, b->width), sizeof(float));
        b->logp[k] = take(base, &used, b->most_logs, sizeof(float));
    }
    b->scratch = take(base, &used, scratch, sizeof(float));
    b->row = take(base, &used, b->most_values, sizeof(*b->row));
    b->inputs = take(base, &used, b->in->forest ? kp_forest_inputs(b->in->forest) : 0,
                     sizeof(*b->inputs));
    b->trees = take(base, &used, b->in->forest ? b->most_values : 0, sizeof(*b->trees));
    take_live(b, &b->now, base, &used);
    take_live(b, &b->next, base, &used);
    b->heap = take(base, &used, b->width, sizeof(*b->heap));
    b->parent = take(base, &used, b->width, sizeof(*b->parent));
    b->value = take(base, &used, b->width, sizeof(*b->value));
    b->allowed = take(base, &used, b->most_params, 1);
    b->query =
        take(base, &used, b->space ? kp_space_query_words(b->space) : 0, sizeof(*b->query));
    return used;
}

size_t kp_beam_work(const struct kp_beam_input *in)
{
    struct beam b = {0};
    measure(&b, in);
    return lay_out(&b, NULL);
}

/* ---- the best candidates: a heap with the worst of them on top ---- */

/* Does `a` come before `b`? Equal scores: by value indices, from the first target on. */
static bool before(const struct beam *b, const struct candidate *x, const struct candidate *y)
{
    if (x->score != y->score)
        return x->score > y->score;
    if (x->parent != y->parent) {
        const uint32_t *cx = b->now.config + x->parent * b->P;
        const uint32_t *cy = b->now.config + y->parent * b->P;
        for (size_t p = 0; p < b->p; p++)
            if (cx[p] != cy[p])
                return cx[p] < cy[p];
    }
    return x->value < y->value;
}

static void sift_down(struct beam *b, size_t i, size_t n)
{
    struct candidate x = b->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(b, &b->heap[child], &b->heap[child + 1]))
            child++;
        if (before(b, &b->heap[child], &x))
            break;
        b->heap[i] = b->heap[child];
        i = child;
    }
    b->heap[i] = x;
}

static void sift_up(struct beam *b, size_t i)
{
    struct candidate x = b->heap[i];
    while (i > 0 && before(b, &b->heap[(i - 1) / 2], &x)) {
        b->heap[i] = b->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    b->heap[i] = x;
}

static bool comes_in(const struct beam *b, const struct candidate *c)
{
    return b->n_heap < b->width || before(b, c, &b->heap[0]);
}

static void put(struct beam *b, const struct candidate *c)
{
    if (b->n_heap < b->width) {
        b->heap[b->n_heap++] = *c;
        sift_up(b, b->n_heap - 1);
    } else {
        b->heap[0] = *c;
        sift_down(b, 0, b->n_heap);
    }
}

/* The likeliest first. */
static void sort_heap(struct beam *b)
{
    for (size_t n = b->n_heap; n > 1; n--) {
        struct candidate worst = b->heap[0];
        b->heap[0] = b->heap[n - 1];
        b->heap[n - 1] = worst;
        sift_down(b, 0, n - 1);
    }
}

/* ---- scores ---- */

/* A broken network's NaN or infinity is as good as no probability at all. */
static double usable(float logp)
{
    return logp < INFINITY ? (double)logp : NONE;
}

/* log(mean(exp(x))) */
static double log_mean(const double *x, size_t n)
{
    double top = x[0];
    double sum = 0;
    if (n == 1)
        return top;
    for (size_t k = 1; k < n; k++)
        top = x[k] > top ? x[k] : top;
    if (top == NONE)
        return top;
    for (size_t k = 0; k < n; k++)
        sum += x[k] == top ? 1 : exp(x[k] - top);
    return top + log(sum / (double)n);
}

/* The forest's word on the extensions of prefix i, whose scores by the networks are in the row.
 */
static void hear_forest(struct beam *b, size_t i)
{
    const struct kp_forest *f = b->in->forest;
    uint32_t n = b->shape->n_values[b->p];
    double before = log_mean(b->now.logs + i * b->K, b->K);
    if (before == NONE)
        return;
    for (uint32_t v = 0; v < n; v++)
        b->row[v] -= before;
    kp_forest_log(f, b->p, b->shape->n_features, b->now.config + i * b->P, b->inputs, b->trees);
    kp_forest_pool(f, n, b->trees, b->row);
    for (uint32_t v = 0; v < n; v++)
        b->row[v] += b->now.score[i];
}

/* Scores of all extensions of prefix i; returns the first of the best. */
static uint32_t score_row(struct beam *b, size_t i)
{
    uint32_t n = b->shape->n_values[b->p];
    uint32_t best = 0;
    double x[KP_BEAM_NETS_MAX];
    for (uint32_t v = 0; v < n; v++) {
        for (size_t k = 0; k < b->K; k++)
            x[k] = b->now.logs[i * b->K + k] + usable(b->logp[k][i * n + v]);
        b->row[v] = log_mean(x, b->K);
    }
    if (b->in->forest)
        hear_forest(b, i);
    for (uint32_t v = 1; v < n; v++)
        if (b->row[v] > b->row[best])
            best = v;
    return best;
}

/* ---- what the rules allow ---- */

/* All values that prefix i may take at target p, in b->allowed by the parameter's index. */
static void ask_space(struct beam *b, size_t i)
{
    const struct kp_beam_space *a = &b->in->allowed;
    for (size_t q = 0; q < b->p; q++)
        if (has_param(b, q))
            b->config[a->map[q]] = a->value[q][b->now.config[i * b->P + q]];
    (void)kp_space_allowed_in(b->space, b->config, b->fixed, a->map[b->p], b->allowed,
                              b->query);
}

static bool is_allowed(const struct beam *b, size_t i, uint32_t v)
{
    const struct kp_beam_space *a = &b->in->allowed;
    size_t p = b->p;
    if (!has_param(b, p))
        return true;
    uint32_t own = a->value[p][v];
    if (own >= kp_space_param(b->space, a->map[p])->n_values)
        return false;
    if (!b->in_order)
        return b->allowed[own];
    struct kp_space_prefix at = b->now.at[i];
    return kp_space_prefix_step(b->space, &at, own);
}

/* ---- the search ---- */

static void extend(struct beam *b, size_t i)
{
    uint32_t n = b->shape->n_values[b->p];
    if (n == 0)
        return;
    uint32_t best = score_row(b, i);
    struct candidate c = {b->row[best], (uint32_t)i, best};
    if (!comes_in(b, &c))
        return;
    if (has_param(b, b->p) && !b->in_order)
        ask_space(b, i);
    for (uint32_t v = 0; v < n; v++) {
        c.score = b->row[v];
        c.value = v;
        if (comes_in(b, &c) && is_allowed(b, i, v))
            put(b, &c);
    }
}

/* The candidates become the live prefixes. */
static void move_on(struct beam *b)
{
    size_t p = b->p;
    uint32_t n = b->shape->n_values[p];
    struct live *to = &b->next;
    for (size_t j = 0; j < b->n_heap; j++) {
        const struct candidate *c = &b->heap[j];
        size_t i = c->parent;
        memcpy(to->config + j * b->P, b->now.config + i * b->P, p * sizeof(*to->config));
        to->config[j * b->P + p] = c->value;
        for (size_t k = 0; k < b->K; k++)
            to->logs[j * b->K + k] =
                b->now.logs[i * b->K + k] + usable(b->logp[k][i * n + c->value]);
        to->score[j] = c->score;
        if (b->in_order) {
            to->at[j] = b->now.at[i];
            (void)kp_space_prefix_step(b->space, &to->at[j], b->in->allowed.value[p][c->value]);
        }
        b->parent[j] = c->parent;
        b->value[j] = c->value;
    }
    struct live old = b->now;
    b->now = b->next;
    b->next = old;
    if (has_param(b, p))
        b->fixed[b->in->allowed.map[p]] = 1;
}

static void start(struct beam *b)
{
    b->now.score[0] = 0;
    for (size_t k = 0; k < b->K; k++) {
        const struct kp_net *net = b->in->nets[k];
        b->now.logs[k] = 0;
        net->ops->begin(net, b->in->tokens, b->in->features, b->width, b->state[k], b->scratch);
    }
    if (b->in->forest && b->shape->n_features)
        memcpy(b->inputs, b->in->features, b->shape->n_features * sizeof(float));
    if (b->in_order)
        (void)kp_space_prefix_init(b->space, &b->now.at[0]);
}

size_t kp_beam_search(const struct kp_beam_input *in, void *work, uint32_t *configs,
                      double *logp)
{
    struct beam b = {0};
    size_t n = 1;
    measure(&b, in);
    (void)lay_out(&b, work);
    if (b.space && kp_space_count(b.space) == 0)
        return 0;
    start(&b);
    for (size_t p = 0; p < b.P && n > 0; p++) {
        struct kp_net_step step = {.p = p,
                                   .n = n,
                                   .width = b.width,
                                   .parent = p ? b.parent : NULL,
                                   .values = p ? b.value : NULL};
        for (size_t k = 0; k < b.K; k++)
            in->nets[k]->ops->step(in->nets[k], &step, b.state[k], b.scratch, b.logp[k]);
        b.p = p;
        b.n_heap = 0;
        for (size_t i = 0; i < n; i++)
            extend(&b, i);
        sort_heap(&b);
        move_on(&b);
        n = b.n_heap;
    }
    n = n < in->k ? n : in->k;
    memcpy(configs, b.now.config, n * b.P * sizeof(*configs));
    memcpy(logp, b.now.score, n * sizeof(*logp));
    return n;
}
