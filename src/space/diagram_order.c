/* SPDX-License-Identifier: MIT */
/* Where to put each parameter. The rules make a hypergraph; its connected components come one
 * after the other, so that between two of them the diagram has a single node. Within one, a
 * greedy order and the declared one are improved by moving single parameters for as long as the
 * estimated size falls.
 *
 * The estimate: before level k, the diagram has at most as many nodes as there are assignments
 * of the known parameters that some open rule still needs, and at most the product of what the
 * open rules can tell apart. */
#include "space/residual.h"

#include <string.h>

enum { UNIT = 1 << 16, WORK_MAX = 200 * 1000, WORK_SHARE = 4 };

struct width {
    uint64_t residuals; /* what a rule tells apart */
    uint64_t states;    /* what the search for its diagram has to tell apart */
};

struct rule {
    struct kp_outline outline;
    struct kp_varset vars;
    uint32_t *members; /* own indices of its parameters */
    uint32_t size;
    uint64_t log_all;   /* of its assignments */
    uint64_t log_left;  /* of those of its parameters that are not known */
    struct width width; /* at present */
    bool threshold;
    uint32_t left; /* parameters not known */
};

struct model {
    uint32_t n;           /* parameters of the component */
    uint32_t *param;      /* by own index, in order of declaration */
    uint32_t *log_domain; /* by own index */
    struct rule *rules;
    uint32_t n_rules;
    uint32_t **rules_of; /* by own index */
    uint32_t *n_rules_of;
    uint32_t *open; /* by own index, when known: open rules it is in */
    struct kp_varset known;
    uint64_t log_params; /* the two estimates */
    uint64_t log_rules;
    uint64_t work;
};

static uint64_t exp2_units(uint64_t units)
{
    uint64_t whole = units / UNIT;
    if (whole >= 44)
        return (uint64_t)1 << 60;
    return (((uint64_t)UNIT + units % UNIT) << whole) / UNIT;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What a rule tells apart, and what the search for its diagram has to. A threshold has as many
 * residuals along one of its values as there are assignments of its other parameters, or few
 * more; no rule has more than all subsets of these. */
static struct width rule_width(struct model *m, struct rule *r, const struct kp_varset *known,
                               uint64_t log_left)
{
    uint64_t largest = 0;
    uint64_t states = kp_outline_log_states(&r->outline, known, &largest);
    uint64_t subsets =
        log_left < (uint64_t)16 * UNIT ? exp2_units(log_left) * UNIT : UINT64_MAX;
    m->work += r->outline.n_nodes;
    uint64_t apart = states;
    if (r->threshold)
        apart = states - largest + smaller(largest, log_left);
    return (struct width){smaller(apart, subsets), r->threshold ? apart : states};
}

/* Parameter `i` becomes known. */
static void assign(struct model *m, uint32_t i)
{
    kp_varset_add(&m->known, m->param[i]);
    m->open[i] = m->n_rules_of[i];
    m->log_params += m->open[i] ? m->log_domain[i] : 0;
    for (uint32_t k = 0; k < m->n_rules_of[i]; k++) {
        struct rule *r = &m->rules[m->rules_of[i][k]];
        m->log_rules -= r->width.residuals;
        r->log_left -= m->log_domain[i];
        r->left--;
        r->width = r->left ? rule_width(m, r, &m->known, r->log_left) : (struct width){0, 0};
        m->log_rules += r->width.residuals;
        for (uint32_t q = 0; r->left == 0 && q < r->size; q++)
            if (--m->open[r->members[q]] == 0)
                m->log_params -= m->log_domain[r->members[q]];
    }
    m->work += m->n_rules_of[i] + 1;
}

static void forget(struct model *m)
{
    m->known = (struct kp_varset){{0}};
    m->log_params = 0;
    m->log_rules = 0;
    for (uint32_t r = 0; r < m->n_rules; r++) {
        m->rules[r].log_left = m->rules[r].log_all;
        m->rules[r].left = m->rules[r].size;
        m->rules[r].width = (struct width){0, 0};
    }
    m->work += m->n_rules;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Transitions of the product, and of the searches for the diagrams of the rules. */
static uint64_t cost_of(struct model *m, const uint32_t *order)
{
    uint64_t cost = 0;
    forget(m);
    for (uint32_t k = 0; k < m->n; k++) {
        uint32_t i = order[k];
        uint64_t log_domain = m->log_domain[i];
        cost = add(cost, exp2_units(smaller(m->log_params, m->log_rules) + log_domain));
        for (uint32_t r = 0; r < m->n_rules_of[i]; r++)
            cost = add(cost, exp2_units(m->rules[m->rules_of[i][r]].width.states + log_domain));
        assign(m, i);
    }
    return cost;
}

/* The rules' estimate behind parameter `i`, were it next. */
static uint64_t width_after(struct model *m, uint32_t i)
{
    uint64_t width = m->log_rules;
    struct kp_varset known = m->known;
    kp_varset_add(&known, m->param[i]);
    for (uint32_t k = 0; k < m->n_rules_of[i]; k++) {
        struct rule *r = &m->rules[m->rules_of[i][k]];
        width -= r->width.residuals;
        if (r->left > 1)
            width += rule_width(m, r, &known, r->log_left - m->log_domain[i]).residuals;
    }
    m->work += m->n_rules_of[i] + 1;
    return width;
}

static void greedy(struct model *m, uint32_t *order)
{
    bool taken[KP_PARAMS_MAX] = {false};
    forget(m);
    for (uint32_t k = 0; k < m->n; k++) {
        uint32_t best = 0;
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < m->n; i++) {
            uint64_t width = taken[i] ? UINT64_MAX : width_after(m, i);
            if (width < least) {
                least = width;
                best = i;
            }
        }
        taken[best] = true;
        order[k] = best;
        assign(m, best);
    }
}

static void move(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t x = order[from];
    if (from < to)
        memmove(order + from, order + from + 1, (to - from) * sizeof(*order));
    else
        memmove(order + to + 1, order + to, (from - to) * sizeof(*order));
    order[to] = x;
}

/* Tries all places for the parameter at `from`; leaves it at the best one. */
static bool improve_one(struct model *m, uint32_t *order, uint32_t from, uint64_t *cost)
{
    uint32_t best = from;
    for (uint32_t to = 0; to < m->n; to++) {
        if (to == from)
            continue;
        move(order, from, to);
        uint64_t c = cost_of(m, order);
        move(order, to, from);
        if (c < *cost) {
            *cost = c;
            best = to;
        }
    }
    move(order, from, best);
    return best != from;
}

/* Until nothing gets better, or more was spent than building the diagram will take. */
static uint64_t improve(struct model *m, uint32_t *order)
{
    uint64_t start = m->work;
    uint64_t cost = cost_of(m, order);
    for (bool better = true; better;) {
        better = false;
        for (uint32_t i = 0; i < m->n; i++) {
            uint64_t spent = m->work - start;
            if (spent > WORK_MAX || spent / WORK_SHARE > cost)
                return cost;
            better |= improve_one(m, order, i, &cost);
        }
    }
    return cost;
}

/* The best order of the component's own indices. */
static void order_component(struct model *m, int attempt, uint32_t *order)
{
    uint32_t other[KP_PARAMS_MAX] = {0};
    for (uint32_t i = 0; i < m->n; i++)
        order[i] = i;
    if (attempt == 1)
        return;
    uint64_t cost = improve(m, order);
    greedy(m, other);
    if (improve(m, other) < cost)
        memcpy(order, other, m->n * sizeof(*order));
    for (uint32_t i = 0; attempt == 2 && i < m->n / 2; i++) {
        uint32_t x = order[i];
        order[i] = order[m->n - 1 - i];
        order[m->n - 1 - i] = x;
    }
}

static bool intersects(const struct kp_varset *a, const struct kp_varset *b)
{
    for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++)
        if (a->w[w] & b->w[w])
            return true;
    return false;
}

static void add_all(struct kp_varset *a, const struct kp_varset *b)
{
    for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++)
        a->w[w] |= b->w[w];
}

/* All parameters that rules tie to `param`. */
static struct kp_varset component_of(const struct kp_atoms *atoms, size_t param)
{
    struct kp_varset c = {{0}};
    kp_varset_add(&c, param);
    for (bool grown = true; grown;) {
        struct kp_varset before = c;
        for (size_t r = 0; r < atoms->n; r++)
            if (intersects(&c, &atoms->items[r].term->vars))
                add_all(&c, &atoms->items[r].term->vars);
        grown = memcmp(&before, &c, sizeof(c)) != 0;
    }
    return c;
}

/* Two rules that hold the same parts, such as a lower and an upper limit, count once. */
static bool same_parts(const struct rule *a, const struct rule *b)
{
    if (a->outline.n_nodes != b->outline.n_nodes)
        return false;
    for (uint32_t i = 0; i < a->outline.n_nodes; i++) {
        const struct kp_outline_node *x = &a->outline.nodes[i];
        const struct kp_outline_node *y = &b->outline.nodes[i];
        if (memcmp(&x->vars, &y->vars, sizeof(x->vars)) != 0 || x->log_n != y->log_n)
            return false;
    }
    return true;
}

static bool add_rule(struct model *m, const struct kp_term *atom, const uint32_t *log_domain,
                     struct kp_arena *a)
{
    struct rule *r = &m->rules[m->n_rules];
    *r = (struct rule){.vars = atom->vars};
    r->threshold = !atom->may_fail && (atom->e.op == KP_OP_LT || atom->e.op == KP_OP_LE ||
                                       atom->e.op == KP_OP_GT || atom->e.op == KP_OP_GE);
    r->members = kp_arena_alloc(a, m->n, sizeof(uint32_t));
    if (!r->members || !kp_outline_build(&r->outline, atom, log_domain, a))
        return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (kp_varset_has(&r->vars, m->param[i])) {
            r->members[r->size++] = i;
            r->log_all += m->log_domain[i];
        }
    for (uint32_t i = 0; i < m->n_rules; i++)
        if (same_parts(&m->rules[i], r))
            return true;
    m->n_rules++;
    return true;
}

static bool alloc_model(struct model *m, struct kp_arena *a, size_t n_rules)
{
    m->param = kp_arena_alloc(a, KP_PARAMS_MAX, sizeof(*m->param));
    m->log_domain = kp_arena_alloc(a, KP_PARAMS_MAX, sizeof(*m->log_domain));
    m->open = kp_arena_alloc(a, KP_PARAMS_MAX, sizeof(*m->open));
    m->rules_of = kp_arena_alloc(a, KP_PARAMS_MAX, sizeof(uint32_t *));
    m->n_rules_of = kp_arena_alloc(a, KP_PARAMS_MAX, sizeof(*m->n_rules_of));
    m->rules = kp_arena_alloc(a, n_rules, sizeof(*m->rules));
    return !a->failed;
}

static bool make_model(struct model *m, const struct kp_order_input *in,
                       const struct kp_varset *component, struct kp_arena *a)
{
    uint32_t log_domain[KP_PARAMS_MAX];
    if (!alloc_model(m, a, in->atoms->n))
        return false;
    for (size_t i = 0; i < in->n_params; i++) {
        log_domain[i] = kp_log2_units(in->domain[i]);
        if (!kp_varset_has(component, i))
            continue;
        m->param[m->n] = (uint32_t)i;
        m->log_domain[m->n++] = log_domain[i];
    }
    for (size_t r = 0; r < in->atoms->n; r++)
        if (intersects(component, &in->atoms->items[r].term->vars) &&
            !add_rule(m, in->atoms->items[r].term, log_domain, a))
            return false;
    for (uint32_t i = 0; i < m->n; i++) {
        m->rules_of[i] = kp_arena_alloc(a, (size_t)m->n_rules + 1, sizeof(uint32_t));
        if (!m->rules_of[i])
            return false;
    }
    for (uint32_t r = 0; r < m->n_rules; r++)
        for (uint32_t q = 0; q < m->rules[r].size; q++) {
            uint32_t i = m->rules[r].members[q];
            m->rules_of[i][m->n_rules_of[i]++] = r;
        }
    return true;
}

bool kp_order_choose(const struct kp_order_input *in, int attempt, struct kp_arena *arena,
                     uint32_t *order, uint32_t *n_tied)
{
    struct kp_varset placed = {{0}};
    struct kp_varset in_rule = {{0}};
    uint32_t own[KP_PARAMS_MAX] = {0};
    size_t n = 0;
    for (size_t r = 0; r < in->atoms->n; r++)
        add_all(&in_rule, &in->atoms->items[r].term->vars);
    for (size_t i = 0; i < in->n_params; i++) {
        if (kp_varset_has(&placed, i) || !kp_varset_has(&in_rule, i))
            continue;
        struct model m = {0};
        struct kp_varset component = component_of(in->atoms, i);
        if (!make_model(&m, in, &component, arena))
            return false;
        order_component(&m, attempt, own);
        for (uint32_t k = 0; k < m.n; k++)
            order[n++] = m.param[own[k]];
        add_all(&placed, &component);
    }
    *n_tied = (uint32_t)n;
    for (size_t i = 0; i < in->n_params; i++)
        if (!kp_varset_has(&in_rule, i))
            order[n++] = (uint32_t)i;
    return true;
}
