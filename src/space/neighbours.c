/* SPDX-License-Identifier: MIT */
/* Walks over a space's diagram: iteration, completions of partial configurations, neighbours,
 * repair. Every node of the diagram has a valid completion, so a search can only fail at a
 * level whose value is given. */
#include "space/space.h"

#include "base/alloc.h"
#include "space/diagram_space.h"

#include <string.h>

static const struct kp_diagram *diagram_of(const struct kp_space *s)
{
    return &s->diagram;
}

/* ---- iteration ---- */

/* The first edge of level `k` below the edges above it. At a free level an edge is its value.
 */
static void descend(struct kp_space_iter *it, uint32_t k, uint32_t node)
{
    const struct kp_diagram *d = diagram_of(it->space);
    bool tied = k < d->n_levels;
    it->edge[k] = tied ? d->first_edge[node] : 0;
    it->edge_end[k] =
        tied ? d->first_edge[node + 1] : kp_space_values(it->space, it->space->order[k]);
}

static uint32_t value_of(const struct kp_space_iter *it, uint32_t k)
{
    const struct kp_diagram *d = diagram_of(it->space);
    return k < d->n_levels ? d->edges[it->edge[k]].value : it->edge[k];
}

static uint32_t node_behind(const struct kp_space_iter *it, uint32_t k)
{
    const struct kp_diagram *d = diagram_of(it->space);
    return k < d->n_levels ? d->edges[it->edge[k]].child : 0;
}

void kp_space_iter_init(struct kp_space_iter *it, const struct kp_space *s, uint64_t rank)
{
    const struct kp_diagram *d = diagram_of(s);
    it->space = s;
    it->left = rank < s->count ? s->count - rank : 0;
    it->started = false;
    if (!it->left)
        return;
    uint64_t tied = rank / s->n_free;
    uint64_t rest = rank % s->n_free;
    uint32_t node = d->root;
    for (uint32_t k = 0; k < s->desc->n_params; k++) {
        descend(it, k, node);
        if (k < d->n_levels) {
            const struct kp_edge *e = kp_diagram_edge_at(d, node, tied);
            it->edge[k] = (uint32_t)(e - d->edges);
            tied -= e->before;
        } else {
            it->edge[k] = (uint32_t)(rest / s->weight[k]);
            rest %= s->weight[k];
        }
        node = node_behind(it, k);
    }
}

bool kp_space_iter_next(struct kp_space_iter *it, uint32_t *config)
{
    const struct kp_space *s = it->space;
    uint32_t n = (uint32_t)s->desc->n_params;
    uint32_t k = n;
    if (it->left == 0)
        return false;
    it->left--;
    if (!it->started) {
        it->started = true;
        for (k = 0; k < n; k++)
            config[s->order[k]] = value_of(it, k);
        return true;
    }
    /* The lowest level that can move on, then the first edge of all below it. */
    while (k > 0 && it->edge[k - 1] + 1 == it->edge_end[k - 1])
        k--;
    KP_CHECK(k > 0);
    it->edge[k - 1]++;
    config[s->order[k - 1]] = value_of(it, k - 1);
    for (; k < n; k++) {
        descend(it, k, node_behind(it, k - 1));
        config[s->order[k]] = value_of(it, k);
    }
    return true;
}

/* ---- prefixes in the diagram's order ---- */

bool kp_space_prefix_init(const struct kp_space *s, struct kp_space_prefix *p)
{
    *p = (struct kp_space_prefix){s->diagram.root, 0};
    return p->node != KP_MDD_NONE;
}

bool kp_space_prefix_step(const struct kp_space *s, struct kp_space_prefix *p, uint32_t value)
{
    uint32_t node = 0;
    if (p->depth >= s->desc->n_params)
        return false;
    if (p->depth < kp_space_n_tied(s)) {
        const struct kp_edge *e = kp_diagram_edge(&s->diagram, p->node, value);
        if (!e)
            return false;
        node = e->child;
    } else if (value >= kp_space_values(s, s->order[p->depth])) {
        return false;
    }
    *p = (struct kp_space_prefix){node, p->depth + 1};
    return true;
}

uint64_t kp_space_prefix_count(const struct kp_space *s, const struct kp_space_prefix *p)
{
    if (p->depth <= kp_space_n_tied(s))
        return s->diagram.count[p->node] * s->n_free;
    return s->weight[p->depth - 1];
}

/* ---- completions ---- */

enum { LOCAL_WORDS = 512 };

/* One bit for each node. Without memory there are no bits, and the search is exact but may come
 * by the same node again and again. */
struct marks {
    uint64_t local[LOCAL_WORDS];
    uint64_t *heap;
    uint64_t *bits;
};

static size_t marks_words(const struct kp_diagram *d)
{
    return ((size_t)d->n_nodes + 63) / 64;
}

/* `memory` (may be NULL) is used where there are too many for the stack. */
static void marks_init(struct marks *m, const struct kp_diagram *d, uint64_t *memory)
{
    size_t words = marks_words(d);
    m->heap = NULL;
    m->bits = words <= LOCAL_WORDS ? m->local : memory;
    if (m->bits) {
        memset(m->bits, 0, words * sizeof(uint64_t));
        return;
    }
    m->heap = kp_calloc(words, sizeof(uint64_t));
    m->bits = m->heap;
}

static void marks_deinit(struct marks *m)
{
    kp_free(m->heap);
}

/* Was it marked before? It is now. */
static bool mark(struct marks *m, uint32_t node)
{
    if (!m->bits)
        return false;
    uint64_t bit = (uint64_t)1 << (node % 64);
    bool was = m->bits[node / 64] & bit;
    m->bits[node / 64] |= bit;
    return was;
}

struct query {
    const struct kp_space *s;
    const uint32_t *config;
    const unsigned char *fixed;
    uint64_t *memory;   /* for two sets of marks, or NULL */
    uint32_t open_from; /* no parameter of this level or below it is fixed */
    struct marks dead;  /* nodes that were found to have no completion */
};

/* False when a free parameter (other than the one at level `except`) has an index out of range,
 * or nothing is valid at all; there is no query then. */
static bool query_init(struct query *q, uint32_t except)
{
    const struct kp_space *s = q->s;
    const struct kp_diagram *d = diagram_of(s);
    q->open_from = 0;
    for (uint32_t k = 0; k < s->desc->n_params; k++) {
        uint32_t param = s->order[k];
        if (!q->fixed[param] || k == except)
            continue;
        if (q->config[param] >= kp_space_values(s, param))
            return false;
        if (k < d->n_levels)
            q->open_from = k + 1;
    }
    if (d->root == KP_MDD_NONE)
        return false;
    marks_init(&q->dead, d, q->memory);
    return true;
}

struct span { /* edges still to be tried */
    uint32_t at;
    uint32_t end;
    uint32_t node;
};

static struct span edges_of(const struct query *q, uint32_t level, uint32_t node, uint32_t open)
{
    const struct kp_diagram *d = diagram_of(q->s);
    uint32_t param = q->s->order[level];
    if (!q->fixed[param] || level == open)
        return (struct span){d->first_edge[node], d->first_edge[node + 1], node};
    const struct kp_edge *e = kp_diagram_edge(d, node, q->config[param]);
    if (!e)
        return (struct span){0, 0, node};
    uint32_t at = (uint32_t)(e - d->edges);
    return (struct span){at, at + 1, node};
}

static void unmark_path(struct query *q, const struct span *todo, uint32_t from, uint32_t to)
{
    for (uint32_t k = from; q->dead.bits && k <= to; k++)
        q->dead.bits[todo[k].node / 64] &= ~((uint64_t)1 << (todo[k].node % 64));
}

/* Depth first. A node is marked when it is met; those on the path are unmarked on success. */
static bool completes(struct query *q, uint32_t level, uint32_t node)
{
    const struct kp_diagram *d = diagram_of(q->s);
    struct span todo[KP_PARAMS_MAX];
    uint32_t k = level;
    if (level >= q->open_from)
        return true;
    if (mark(&q->dead, node))
        return false;
    todo[k] = edges_of(q, k, node, KP_PARAMS_MAX);
    for (;;) {
        if (todo[k].at == todo[k].end) {
            if (k == level)
                return false;
            k--;
            continue;
        }
        uint32_t child = d->edges[todo[k].at++].child;
        if (k + 1 >= q->open_from) {
            unmark_path(q, todo, level, k);
            return true;
        }
        if (mark(&q->dead, child))
            continue;
        k++;
        todo[k] = edges_of(q, k, child, KP_PARAMS_MAX);
    }
}

bool kp_space_completable(const struct kp_space *s, const uint32_t *config,
                          const unsigned char *fixed)
{
    struct query q;
    q.s = s;
    q.config = config;
    q.fixed = fixed;
    q.memory = NULL;
    if (!query_init(&q, KP_PARAMS_MAX))
        return false;
    bool yes = completes(&q, 0, s->diagram.root);
    marks_deinit(&q.dead);
    return yes;
}

/* The values of `node`, at the level that was asked for. */
static size_t allow_at(struct query *q, uint32_t level, uint32_t node, unsigned char *allowed)
{
    const struct kp_diagram *d = diagram_of(q->s);
    size_t n = 0;
    for (uint32_t e = d->first_edge[node]; e < d->first_edge[node + 1]; e++) {
        const struct kp_edge *edge = &d->edges[e];
        if (allowed[edge->value] || !completes(q, level + 1, edge->child))
            continue;
        allowed[edge->value] = 1;
        n++;
    }
    return n;
}

/* All nodes of `level` that the fixed values above it lead to. */
static size_t allow_all(struct query *q, uint32_t level, unsigned char *allowed)
{
    const struct kp_diagram *d = diagram_of(q->s);
    struct span todo[KP_PARAMS_MAX];
    struct marks seen;
    size_t n = 0;
    uint32_t k = 0;
    if (level == 0)
        return allow_at(q, 0, d->root, allowed);
    marks_init(&seen, d, q->memory ? q->memory + marks_words(d) : NULL);
    todo[0] = edges_of(q, 0, d->root, level);
    while (n < d->domain[level]) {
        if (todo[k].at == todo[k].end) {
            if (k-- == 0)
                break;
            continue;
        }
        uint32_t child = d->edges[todo[k].at++].child;
        if (mark(&seen, child))
            continue;
        if (k + 1 == level) {
            n += allow_at(q, level, child, allowed);
            continue;
        }
        k++;
        todo[k] = edges_of(q, k, child, level);
    }
    marks_deinit(&seen);
    return n;
}

size_t kp_space_query_words(const struct kp_space *s)
{
    size_t words = marks_words(diagram_of(s));
    return words <= LOCAL_WORDS ? 0 : 2 * words;
}

size_t kp_space_allowed(const struct kp_space *s, const uint32_t *config,
                        const unsigned char *fixed, size_t param, unsigned char *allowed)
{
    return kp_space_allowed_in(s, config, fixed, param, allowed, NULL);
}

size_t kp_space_allowed_in(const struct kp_space *s, const uint32_t *config,
                           const unsigned char *fixed, size_t param, unsigned char *allowed,
                           uint64_t *memory)
{
    struct query q; /* its marks are set up by query_init() */
    size_t n = kp_space_values(s, param);
    q.s = s;
    q.config = config;
    q.fixed = fixed;
    q.memory = memory;
    memset(allowed, 0, n);
    if (!query_init(&q, s->level[param]))
        return 0;
    if (s->level[param] < kp_space_n_tied(s)) {
        n = allow_all(&q, s->level[param], allowed);
    } else {
        bool yes = completes(&q, 0, s->diagram.root);
        memset(allowed, yes, n);
        n = yes ? n : 0;
    }
    marks_deinit(&q.dead);
    return n;
}

/* ---- neighbours ---- */

struct path {
    const struct kp_space *s;
    const uint32_t *config;
    uint32_t node[KP_PARAMS_MAX + 1]; /* by level, as far as the configuration leads */
    uint32_t length;                  /* levels it leads to */
    uint32_t n_bad;                   /* free parameters with an index out of range */
    uint32_t bad;                     /* the level of one */
};

static void follow(struct path *p, const struct kp_space *s, const uint32_t *config)
{
    const struct kp_diagram *d = diagram_of(s);
    p->s = s;
    p->config = config;
    p->length = 0;
    p->n_bad = 0;
    p->node[0] = d->root;
    for (uint32_t k = d->n_levels; k < s->desc->n_params; k++)
        if (config[s->order[k]] >= kp_space_values(s, s->order[k])) {
            p->n_bad++;
            p->bad = k;
        }
    for (uint32_t k = 0; k < d->n_levels; k++) {
        const struct kp_edge *e = kp_diagram_edge(d, p->node[k], config[s->order[k]]);
        if (!e)
            return;
        p->node[++p->length] = e->child;
    }
}

/* Does the rest of the configuration lead on from `node`, behind another value above it? */
static bool rejoins(const struct path *p, uint32_t node, uint32_t level)
{
    const struct kp_diagram *d = diagram_of(p->s);
    bool valid = p->length == d->n_levels;
    for (uint32_t k = level; k < d->n_levels; k++) {
        if (valid && node == p->node[k])
            return true;
        const struct kp_edge *e = kp_diagram_edge(d, node, p->config[p->s->order[k]]);
        if (!e)
            return false;
        node = e->child;
    }
    return true;
}

struct visitor {
    bool (*visit)(void *user, const uint32_t *config);
    void *user;
    uint32_t *near;
    const struct path *path;
    uint32_t level;
    uint32_t first; /* edges of the level's node; at a free level, values */
    uint32_t end;
};

static uint32_t edge_value(const struct visitor *v, uint32_t e)
{
    const struct kp_diagram *d = diagram_of(v->path->s);
    return v->level < d->n_levels ? d->edges[e].value : e;
}

static bool edge_valid(const struct visitor *v, uint32_t e)
{
    const struct kp_diagram *d = diagram_of(v->path->s);
    return v->level >= d->n_levels || rejoins(v->path, d->edges[e].child, v->level + 1);
}

static bool visit_edge(const struct visitor *v, uint32_t e)
{
    v->near[v->path->s->order[v->level]] = edge_value(v, e);
    return v->visit(v->user, v->near);
}

/* The nearest valid values on both sides. */
static bool visit_adjacent(const struct visitor *v, uint32_t own)
{
    uint32_t split = v->first;
    if (v->level >= kp_space_n_tied(v->path->s))
        split = own < v->end ? own : v->end;
    while (split < v->end && edge_value(v, split) < own)
        split++;
    uint32_t e = split;
    while (e > v->first && !edge_valid(v, e - 1))
        e--;
    if (e > v->first && !visit_edge(v, e - 1))
        return false;
    e = split;
    while (e < v->end && (edge_value(v, e) == own || !edge_valid(v, e)))
        e++;
    return e == v->end || visit_edge(v, e);
}

static bool visit_all(const struct visitor *v, uint32_t own)
{
    for (uint32_t e = v->first; e < v->end; e++)
        if (edge_value(v, e) != own && edge_valid(v, e) && !visit_edge(v, e))
            return false;
    return true;
}

/* Can another value at this level alone make the configuration valid? Not behind the level
 * where it leaves the diagram. */
static bool may_help(const struct path *p, uint32_t level)
{
    uint32_t n_tied = kp_space_n_tied(p->s);
    if (level < n_tied)
        return p->n_bad == 0 && level <= p->length;
    return p->length == n_tied && (p->n_bad == 0 || (p->n_bad == 1 && p->bad == level));
}

/* Neighbours that differ at one level; false when the visitor has had enough. */
static bool visit_level(struct visitor *v, uint32_t level, enum kp_near kind)
{
    const struct path *p = v->path;
    const struct kp_diagram *d = diagram_of(p->s);
    uint32_t param = p->s->order[level];
    uint32_t own = p->config[param];
    if (!may_help(p, level))
        return true;
    v->level = level;
    if (level < d->n_levels) {
        v->first = d->first_edge[p->node[level]];
        v->end = d->first_edge[p->node[level] + 1];
    } else {
        v->first = 0;
        v->end = kp_space_values(p->s, param);
    }
    bool more = kind == KP_NEAR_ADJACENT ? visit_adjacent(v, own) : visit_all(v, own);
    v->near[param] = own;
    return more;
}

void kp_space_neighbours(const struct kp_space *s, const uint32_t *config, enum kp_near kind,
                         bool (*visit)(void *user, const uint32_t *config), void *user)
{
    struct path p;
    uint32_t near[KP_PARAMS_MAX];
    struct visitor v = {.visit = visit, .user = user, .near = near, .path = &p};
    if (s->diagram.root == KP_MDD_NONE)
        return;
    follow(&p, s, config);
    for (size_t i = 0; i < s->desc->n_params; i++)
        near[i] = config[i];
    for (size_t i = 0; i < s->desc->n_params; i++)
        if (!visit_level(&v, s->level[i], kind))
            return;
}

/* ---- repair ---- */

bool kp_space_repair(const struct kp_space *s, uint32_t *config)
{
    unsigned char fixed[KP_PARAMS_MAX] = {0};
    uint64_t rank = 0;
    if (s->diagram.root == KP_MDD_NONE)
        return false;
    if (kp_space_rank(s, config, &rank))
        return true;
    for (size_t i = 0; i < s->desc->n_params; i++) {
        uint32_t n = kp_space_values(s, i);
        uint32_t want = config[i] < n ? config[i] : n - 1;
        bool found = false;
        fixed[i] = 1;
        for (uint32_t step = 0; !found; step++) {
            KP_CHECK(step < n); /* some value always has a completion */
            for (int up = 0; !found && up < 2; up++) {
                bool in_range = up ? step < n - want : step <= want;
                config[i] = up ? want + step : want - step;
                found = in_range && kp_space_completable(s, config, fixed);
            }
        }
    }
    return true;
}
