/* SPDX-License-Identifier: MIT */
#include "search/trees.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* A node of fewer observations is a leaf; splits tried at each node; draws to find two
 * observations that differ in a feature. MAX_STACK: the smaller half is always grown first, so
 * that halves waiting are at most log2 of the observations, and one. */
enum { MIN_SPLIT = 2, N_TRIES = 4, N_DRAWS = 4, MAX_STACK = 66 };

struct node {
    float low; /* left when low < x <= high */
    float high;
    float mean;
    uint32_t feature;
    uint32_t left; /* the right child is behind it; 0: a leaf */
};

struct kp_trees {
    size_t n_trees;
    size_t n_features;
    size_t max_nodes; /* of one tree */
    bool grown;
    size_t next; /* the tree that is grown anew next */
    bool *named;
    struct node *nodes;
    uint32_t *index; /* scratch: the observations, those of a node together */
};

/* Observations index[from .. to-1], to be split at node `node`. */
struct part {
    uint32_t node;
    uint32_t from;
    uint32_t to;
};

struct totals {
    float sum;
    bool same; /* all targets are equal */
};

kopt_status kp_trees_new(size_t n_trees, size_t n_features, const bool *named, size_t max_obs,
                         struct kp_trees **out, kopt_error *err)
{
    *out = NULL;
    struct kp_trees *t = kp_calloc(1, sizeof(*t));
    if (!t)
        return kp_err_nomem(err);
    t->n_trees = n_trees;
    t->n_features = n_features;
    t->max_nodes = 2 * max_obs;
    t->named = kp_calloc(n_features + 1, sizeof(*t->named));
    t->nodes = kp_calloc(n_trees * t->max_nodes, sizeof(*t->nodes));
    t->index = kp_calloc(max_obs, sizeof(*t->index));
    if (!t->named || !t->nodes || !t->index) {
        kp_trees_free(t);
        return kp_err_nomem(err);
    }
    memcpy(t->named, named, n_features * sizeof(*named));
    *out = t;
    return KOPT_OK;
}

void kp_trees_free(struct kp_trees *t)
{
    if (!t)
        return;
    kp_free(t->named);
    kp_free(t->nodes);
    kp_free(t->index);
    kp_free(t);
}

/* Without a branch: which way an observation goes cannot be foreseen. */
static unsigned goes_left(const struct node *n, float x)
{
    return (unsigned)(x > n->low) & (unsigned)(x <= n->high);
}

static struct totals total(const struct kp_trees *t, const struct kp_sample *s,
                           const struct part *p)
{
    struct totals r = {0, true};
    float first = s->y[t->index[p->from]];
    for (uint32_t i = p->from; i < p->to; i++) {
        float y = s->y[t->index[i]];
        r.sum += y;
        r.same = r.same && y == first;
    }
    return r;
}

/* A random feature, and a threshold half-way between two random observations that differ in it.
 * False when none were met. */
static bool random_split(const struct kp_trees *t, const struct kp_sample *s,
                         const struct part *p, struct kp_rng *rng, struct node *split)
{
    size_t f = (size_t)kp_rng_below(rng, t->n_features);
    const float *x = s->x + f * s->stride;
    uint64_t n = p->to - p->from;
    float a = x[t->index[p->from + kp_rng_below(rng, n)]];
    float b = a;
    for (int k = 0; k < N_DRAWS && a == b; k++)
        b = x[t->index[p->from + kp_rng_below(rng, n)]];
    split->feature = (uint32_t)f;
    split->low = t->named[f] ? a - 0.5F : -INFINITY;
    split->high = t->named[f] ? a + 0.5F : 0.5F * (a + b);
    return a != b;
}

/* How much of the sum of squares the split explains. */
static float gain(const struct kp_trees *t, const struct kp_sample *s, const struct part *p,
                  const struct node *split, float sum)
{
    const float *x = s->x + split->feature * s->stride;
    float left = 0;
    uint32_t n = 0;
    for (uint32_t i = p->from; i < p->to; i++) {
        uint32_t k = t->index[i];
        unsigned is_left = goes_left(split, x[k]);
        left += (float)is_left * s->y[k];
        n += is_left;
    }
    uint32_t all = p->to - p->from;
    if (n == 0 || n == all)
        return -1;
    float right = sum - left;
    return left * left / (float)n + right * right / (float)(all - n) - sum * sum / (float)all;
}

/* Order the part so that what goes left stands first; returns where the rest begins. */
static uint32_t divide(struct kp_trees *t, const struct kp_sample *s, const struct part *p,
                       const struct node *split)
{
    const float *x = s->x + split->feature * s->stride;
    uint32_t i = p->from;
    uint32_t j = p->to;
    while (i < j) {
        uint32_t k = t->index[i];
        if (goes_left(split, x[k])) {
            i++;
        } else {
            t->index[i] = t->index[--j];
            t->index[j] = k;
        }
    }
    return i;
}

/* Fill in the node of `p`. False when it is a leaf. */
static bool choose_split(const struct kp_trees *t, const struct kp_sample *s,
                         const struct part *p, struct kp_rng *rng, struct node *node)
{
    struct totals sums = total(t, s, p);
    float best = -1;
    *node = (struct node){.mean = sums.sum / (float)(p->to - p->from)};
    if (p->to - p->from < MIN_SPLIT || sums.same)
        return false;
    for (int k = 0; k < N_TRIES; k++) {
        struct node split = *node;
        if (!random_split(t, s, p, rng, &split))
            continue;
        float g = gain(t, s, p, &split, sums.sum);
        if (g > best) {
            best = g;
            *node = split;
        }
    }
    return best >= 0;
}

static void grow(struct kp_trees *t, const struct kp_sample *s, struct node *nodes,
                 struct kp_rng *rng)
{
    struct part stack[MAX_STACK] = {{0, 0, (uint32_t)s->n}};
    size_t depth = 1;
    uint32_t used = 1;
    for (size_t i = 0; i < s->n; i++)
        t->index[i] = (uint32_t)i;
    while (depth) {
        struct part p = stack[--depth];
        struct node *node = &nodes[p.node];
        if (!choose_split(t, s, &p, rng, node))
            continue;
        uint32_t middle = divide(t, s, &p, node);
        node->left = used;
        used += 2;
        struct part left = {node->left, p.from, middle};
        struct part right = {node->left + 1, middle, p.to};
        bool small_left = middle - p.from < p.to - middle;
        stack[depth++] = small_left ? right : left;
        stack[depth++] = small_left ? left : right;
    }
}

void kp_trees_grow(struct kp_trees *t, const struct kp_sample *s, size_t n, struct kp_rng *rng)
{
    if (!t->grown || n > t->n_trees)
        n = t->n_trees;
    for (size_t i = 0; i < n; i++) {
        grow(t, s, t->nodes + t->next * t->max_nodes, rng);
        t->next = (t->next + 1) % t->n_trees;
    }
    t->grown = true;
}

static float predict(const struct node *nodes, const float *x)
{
    const struct node *n = nodes;
    while (n->left)
        n = &nodes[n->left + 1 - goes_left(n, x[n->feature])];
    return n->mean;
}

void kp_trees_predict(const struct kp_trees *t, const float *x, size_t n, float *mean,
                      float *dev)
{
    memset(mean, 0, n * sizeof(*mean));
    memset(dev, 0, n * sizeof(*dev));
    for (size_t k = 0; k < t->n_trees; k++) {
        const struct node *nodes = t->nodes + k * t->max_nodes;
        for (size_t i = 0; i < n; i++) {
            float y = predict(nodes, x + i * t->n_features);
            mean[i] += y;
            dev[i] += y * y;
        }
    }
    for (size_t i = 0; i < n; i++) {
        mean[i] /= (float)t->n_trees;
        float variance = dev[i] / (float)t->n_trees - mean[i] * mean[i];
        dev[i] = variance > 0 ? sqrtf(variance) : 0;
    }
}
