/* SPDX-License-Identifier: MIT */
#include "learn/grow.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_FLOATS = 3, DEPTH_MAX = 60 };

/* Examples index[from .. to-1] wait for their node. `parent`: whose right child it is, or NONE
 * for a left one, which is the next node anyway. */
struct waiting {
    size_t from;
    size_t to;
    size_t parent;
    unsigned depth;
};
#define NONE SIZE_MAX

struct tree {
    const struct kp_grow_examples *e;
    const struct kp_grow_plan *plan;
    struct kp_rng rng;
    float *nodes;  /* [max_nodes][3] */
    float *leaves; /* [max_leaves][n_outputs] */
    size_t n_nodes;
    size_t n_leaves;
    size_t cap_nodes;
    size_t cap_leaves;
    uint32_t *index;  /* [n]: the examples, those of a node together */
    uint32_t *groups; /* of inputs: in an order drawn anew for each node */
    double *all;      /* [n_outputs]: sums of the node */
    double *left;     /* [n_outputs] */
    bool ok;
    bool too_many; /* nodes; then it is not ok */
};

struct split {
    size_t input;
    float threshold;
    double gain;
};

/* --- one node -------------------------------------------------------------------------------
 */

static double add_up(const struct tree *t, size_t from, size_t to)
{
    const struct kp_grow_examples *e = t->e;
    double weight = 0;
    memset(t->all, 0, e->n_outputs * sizeof(*t->all));
    for (size_t i = from; i < to; i++) {
        size_t k = t->index[i];
        double w = (double)e->weights[k];
        weight += w;
        if (e->n_outputs == 1)
            t->all[0] += w * (double)e->numbers[k];
        else
            t->all[e->values[k]] += w;
    }
    return weight;
}

/* Do all examples have the same answer? */
static bool is_pure(const struct tree *t, size_t from, size_t to)
{
    const struct kp_grow_examples *e = t->e;
    bool same = true;
    for (size_t i = from + 1; same && i < to; i++)
        same = e->n_outputs == 1 ? e->numbers[t->index[i]] == e->numbers[t->index[from]]
                                 : e->values[t->index[i]] == e->values[t->index[from]];
    return same;
}

/* |S|^2 / W of the left and the right side, or -1 where one of them is too light. */
static double explained(const struct tree *t, const struct waiting *p, const struct split *s,
                        double weight)
{
    const struct kp_grow_examples *e = t->e;
    const float *x = e->x + s->input * e->n;
    double w_left = 0;
    double squares = 0;
    double others = 0;
    memset(t->left, 0, e->n_outputs * sizeof(*t->left));
    for (size_t i = p->from; i < p->to; i++) {
        size_t k = t->index[i];
        double w = x[k] <= s->threshold ? (double)e->weights[k] : 0;
        w_left += w;
        if (e->n_outputs == 1)
            t->left[0] += w * (double)e->numbers[k];
        else
            t->left[e->values[k]] += w;
    }
    if (w_left < t->plan->leaf || weight - w_left < t->plan->leaf)
        return -1;
    for (size_t v = 0; v < e->n_outputs; v++) {
        double rest = t->all[v] - t->left[v];
        squares += t->left[v] * t->left[v];
        others += rest * rest;
    }
    return squares / w_left + others / (weight - w_left);
}

/* A threshold between the least and the largest number; false where they are the same. */
static bool draw_threshold(struct tree *t, const struct waiting *p, struct split *s)
{
    const float *x = t->e->x + s->input * t->e->n;
    float least = x[t->index[p->from]];
    float most = least;
    for (size_t i = p->from + 1; i < p->to; i++) {
        float v = x[t->index[i]];
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    if (!(least < most))
        return false;
    s->threshold = least + (float)kp_rng_f64(&t->rng) * (most - least);
    if (!(s->threshold < most)) /* rounding */
        s->threshold = least;
    return true;
}

static size_t one_of(struct tree *t, uint32_t group)
{
    const uint32_t *first = t->e->first;
    if (!first)
        return group;
    return first[group] + (size_t)kp_rng_below(&t->rng, first[group + 1] - first[group]);
}

/* The best of so many inputs that are not the same everywhere; false: there is none. */
static bool choose(struct tree *t, const struct waiting *p, double weight, struct split *best)
{
    size_t n = t->e->first ? t->e->n_groups : t->e->n_inputs;
    size_t tries = (size_t)ceil(t->plan->share * (double)n);
    size_t tried = 0;
    *best = (struct split){.gain = -1};
    for (size_t i = 0; i < n && tried < tries; i++) {
        size_t j = i + (size_t)kp_rng_below(&t->rng, n - i);
        uint32_t group = t->groups[j];
        struct split s = {.input = one_of(t, group)};
        t->groups[j] = t->groups[i];
        t->groups[i] = group;
        if (!draw_threshold(t, p, &s))
            continue;
        tried++;
        s.gain = explained(t, p, &s, weight);
        if (s.gain > best->gain)
            *best = s;
    }
    return best->gain >= 0;
}

/* Orders the part so that what goes left stands first; returns where the rest begins. */
static size_t divide(struct tree *t, const struct waiting *p, const struct split *s)
{
    const float *x = t->e->x + s->input * t->e->n;
    size_t i = p->from;
    size_t j = p->to;
    while (i < j) {
        uint32_t k = t->index[i];
        if (x[k] <= s->threshold) {
            i++;
        } else {
            t->index[i] = t->index[--j];
            t->index[j] = k;
        }
    }
    return i;
}

/* --- one tree -------------------------------------------------------------------------------
 */

/* Room for one more row. */
static bool room(struct tree *t, float **rows, size_t *cap, size_t used, size_t cols)
{
    if (used < *cap)
        return true;
    t->too_many = used >= KP_FOREST_NODES_MAX;
    if (t->too_many)
        return false;
    size_t more = *cap ? *cap * 2 : 256;
    float *grown = kp_reallocarray(*rows, more, cols * sizeof(float));
    if (!grown)
        return false;
    *rows = grown;
    *cap = more;
    return true;
}

static void set_node(struct tree *t, size_t node, float input, float number, size_t child)
{
    float *at = t->nodes + node * NODE_FLOATS;
    at[0] = input;
    at[1] = number;
    at[2] = (float)child;
}

static void make_leaf(struct tree *t, size_t node, double weight)
{
    size_t V = t->e->n_outputs;
    if (V == 1) {
        set_node(t, node, -1, (float)(t->all[0] / weight), 0);
        return;
    }
    t->ok = room(t, &t->leaves, &t->cap_leaves, t->n_leaves, V);
    if (!t->ok)
        return;
    for (size_t v = 0; v < V; v++)
        t->leaves[t->n_leaves * V + v] = (float)(t->all[v] / weight);
    set_node(t, node, -1, 0, t->n_leaves++);
}

/* What a stack needs: a left child is looked at next, so that only right ones wait. */
static void grow_tree(struct tree *t)
{
    struct waiting stack[DEPTH_MAX + 2];
    size_t depth = 0;
    stack[depth++] = (struct waiting){0, t->e->n, NONE, 0};
    for (size_t i = 0; i < t->e->n; i++)
        t->index[i] = (uint32_t)i;
    for (size_t i = 0; i < t->e->n_inputs; i++)
        t->groups[i] = (uint32_t)i;
    while (depth && t->ok) {
        struct waiting p = stack[--depth];
        struct split s;
        size_t node = t->n_nodes;
        t->ok = room(t, &t->nodes, &t->cap_nodes, t->n_nodes, NODE_FLOATS);
        if (!t->ok)
            return;
        t->n_nodes++;
        if (p.parent != NONE)
            t->nodes[p.parent * NODE_FLOATS + 2] = (float)node;
        double weight = add_up(t, p.from, p.to);
        if (p.depth == DEPTH_MAX || weight < 2 * t->plan->leaf || is_pure(t, p.from, p.to) ||
            !choose(t, &p, weight, &s)) {
            make_leaf(t, node, weight);
            continue;
        }
        size_t middle = divide(t, &p, &s);
        set_node(t, node, (float)s.input, s.threshold, 0);
        stack[depth++] = (struct waiting){middle, p.to, node, p.depth + 1};
        stack[depth++] = (struct waiting){p.from, middle, NONE, p.depth + 1};
    }
}

struct growing {
    const struct kp_grow_examples *e;
    const struct kp_grow_plan *plan;
    struct tree *trees; /* [plan->trees] */
};

static void free_scratch(struct tree *t)
{
    kp_free(t->index);
    kp_free(t->groups);
    kp_free(t->all);
    kp_free(t->left);
    t->index = NULL;
    t->groups = NULL;
    t->all = NULL;
    t->left = NULL;
}

static void grow_one(void *user, size_t i)
{
    const struct growing *g = user;
    struct tree *t = &g->trees[i];
    *t = (struct tree){.e = g->e, .plan = g->plan};
    kp_rng_init(&t->rng, g->plan->seed * KP_FOREST_TREES_MAX + i + 1);
    t->index = kp_calloc(g->e->n, sizeof(*t->index));
    t->groups = kp_calloc(g->e->n_inputs, sizeof(*t->groups));
    t->all = kp_calloc(g->e->n_outputs, sizeof(*t->all));
    t->left = kp_calloc(g->e->n_outputs, sizeof(*t->left));
    t->ok = t->index && t->groups && t->all && t->left;
    if (t->ok)
        grow_tree(t);
    free_scratch(t);
}

/* --- a grove --------------------------------------------------------------------------------
 */

static int compare_leaves(const void *a, const void *b, void *cols)
{
    return memcmp(*(const float *const *)a, *(const float *const *)b,
                  *(const size_t *)cols * sizeof(float));
}

/* Many leaves of small counts are alike: each stands once. Nodes' rows follow. */
static kopt_status share_leaves(struct kp_grown *g, kopt_error *err)
{
    size_t V = g->grove.n_outputs;
    size_t n = g->grove.n_leaves;
    const float **sorted = kp_calloc(n + 1, sizeof(*sorted));
    float *kept = kp_calloc(n + 1, V * sizeof(*kept));
    float *place = kp_calloc(n + 1, sizeof(*place));
    size_t n_kept = 0;
    if (!sorted || !kept || !place) {
        kp_free(sorted);
        kp_free(kept);
        kp_free(place);
        return kp_err_nomem(err);
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = g->leaves + i * V;
    qsort_r(sorted, n, sizeof(*sorted), compare_leaves, &V);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || memcmp(sorted[i], sorted[i - 1], V * sizeof(float)) != 0)
            memcpy(kept + n_kept++ * V, sorted[i], V * sizeof(float));
        place[(size_t)(sorted[i] - g->leaves) / V] = (float)(n_kept - 1);
    }
    for (size_t i = 0; i < g->grove.n_nodes; i++)
        if (g->nodes[i * NODE_FLOATS] == -1)
            g->nodes[i * NODE_FLOATS + 2] = place[(size_t)g->nodes[i * NODE_FLOATS + 2]];
    kp_free(sorted);
    kp_free(place);
    kp_free(g->leaves);
    g->leaves = kept;
    g->grove.n_leaves = n_kept;
    return KOPT_OK;
}

/* The trees' arrays one behind the other. */
static kopt_status join(const struct growing *a, struct kp_grown *g, kopt_error *err)
{
    struct kp_grove *w = &g->grove;
    size_t V = a->e->n_outputs;
    *w = (struct kp_grove){
        .n_inputs = a->e->n_inputs, .n_outputs = V, .n_trees = a->plan->trees};
    for (size_t t = 0; t < w->n_trees; t++) {
        if (!a->trees[t].ok && !a->trees[t].too_many)
            return kp_err_nomem(err);
        w->n_nodes += a->trees[t].too_many ? KP_FOREST_NODES_MAX : 0;
        w->n_nodes += a->trees[t].n_nodes;
        w->n_leaves += a->trees[t].n_leaves;
    }
    if (w->n_nodes > KP_FOREST_NODES_MAX)
        return kp_err(err, KOPT_ERANGE, "%zu trees have %zu nodes: more than %d", w->n_trees,
                      w->n_nodes, (int)KP_FOREST_NODES_MAX);
    g->roots = kp_calloc(w->n_trees, sizeof(float));
    g->nodes = kp_calloc(w->n_nodes, NODE_FLOATS * sizeof(float));
    g->leaves = kp_calloc(w->n_leaves + 1, V * sizeof(float));
    if (!g->roots || !g->nodes || !g->leaves)
        return kp_err_nomem(err);
    size_t node = 0;
    size_t leaf = 0;
    for (size_t t = 0; t < w->n_trees; t++) {
        const struct tree *from = &a->trees[t];
        float *to = g->nodes + node * NODE_FLOATS;
        g->roots[t] = (float)node;
        memcpy(to, from->nodes, from->n_nodes * NODE_FLOATS * sizeof(float));
        if (from->n_leaves)
            memcpy(g->leaves + leaf * V, from->leaves, from->n_leaves * V * sizeof(float));
        for (size_t i = 0; i < from->n_nodes; i++)
            to[i * NODE_FLOATS + 2] += (float)(to[i * NODE_FLOATS] == -1 ? leaf : node);
        node += from->n_nodes;
        leaf += from->n_leaves;
    }
    return V > 1 ? share_leaves(g, err) : KOPT_OK;
}

kopt_status kp_grove_grow(const struct kp_grow_examples *e, const struct kp_grow_plan *plan,
                          struct kp_crew *crew, struct kp_grown *out, kopt_error *err)
{
    struct growing g = {.e = e, .plan = plan};
    *out = (struct kp_grown){0};
    KP_CHECK(e->n > 0 && e->n_inputs > 0 && plan->trees > 0);
    g.trees = kp_calloc(plan->trees, sizeof(*g.trees));
    if (!g.trees)
        return kp_err_nomem(err);
    kp_crew_run(crew, grow_one, &g, plan->trees);
    kopt_status st = join(&g, out, err);
    for (size_t t = 0; t < plan->trees; t++) {
        kp_free(g.trees[t].nodes);
        kp_free(g.trees[t].leaves);
    }
    kp_free(g.trees);
    if (st != KOPT_OK)
        kp_grown_deinit(out);
    out->grove.roots = out->roots;
    out->grove.nodes = out->nodes;
    out->grove.leaves = out->leaves;
    return st;
}

void kp_grown_deinit(struct kp_grown *g)
{
    kp_free(g->roots);
    kp_free(g->nodes);
    kp_free(g->leaves);
    *g = (struct kp_grown){0};
}

/* --- a forest -------------------------------------------------------------------------------
 */

kopt_status kp_grown_plant(const struct kp_grown *grown, size_t n, double weight,
                           struct kp_forest **out, kopt_error *err)
{
    struct kp_forest *f = kp_forest_new();
    *out = NULL;
    if (!f)
        return kp_err_nomem(err);
    KP_CHECK(n <= KP_TARGETS_MAX);
    f->n_groves = n;
    f->weight = weight;
    for (size_t g = 0; g < n; g++)
        f->groves[g] = grown[g].grove;
    kopt_status st = kp_forest_place(f, err);
    if (st == KOPT_OK && f->params.n_floats > KP_FOREST_FLOATS_MAX)
        st = kp_err(err, KOPT_ERANGE,
                    "the trees have %zu numbers: a forest is no larger than %d",
                    f->params.n_floats, (int)KP_FOREST_FLOATS_MAX);
    if (st == KOPT_OK)
        f->values = kp_slab_new(f->params.n_floats + 1);
    if (st == KOPT_OK && !f->values)
        st = kp_err_nomem(err);
    if (st != KOPT_OK) {
        kp_forest_free(f);
        return st;
    }
    kp_forest_point(f);
    for (size_t g = 0; g < n; g++) {
        const struct kp_grove *from = &grown[g].grove;
        const struct kp_grove *to = &f->groves[g];
        if (from->n_trees == 0)
            continue;
        memcpy((void *)(uintptr_t)to->roots, from->roots, from->n_trees * sizeof(float));
        memcpy((void *)(uintptr_t)to->nodes, from->nodes,
               from->n_nodes * NODE_FLOATS * sizeof(float));
        if (from->n_outputs > 1)
            memcpy((void *)(uintptr_t)to->leaves, from->leaves,
                   from->n_leaves * from->n_outputs * sizeof(float));
    }
    *out = f;
    return KOPT_OK;
}
