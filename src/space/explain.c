/* SPDX-License-Identifier: MIT */
/* How much each rule removes, by counting the assignments that pass all conditions before one
 * and fail this one: the product of their diagrams with the complement of the last. Where
 * configurations are listed, the list is a factor of every product. */
#include "space/space.h"

#include "base/alloc.h"
#include "space/diagram_space.h"

struct counting {
    const struct kp_space *s;
    struct kp_budget budget;
    struct kp_mdds mdds;
    const struct kp_mdd **factors;
    uint32_t domain[KP_PARAMS_MAX];
    uint64_t n_free; /* UINT64_MAX: more */
    kopt_error *err;
};

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Of the assignments that the factors admit; UINT64_MAX when there are more than that. */
static kopt_status count_product(struct counting *c, size_t n_factors, uint64_t *count)
{
    struct kp_diagram d;
    struct kp_product_input in = {kp_space_n_tied(c->s), c->domain, c->factors, n_factors};
    *count = 0;
    c->budget.steps = 0;
    if (!kp_diagram_product(&in, &c->budget, &d))
        return kp_budget_error(&c->budget, c->err);
    *count = times(kp_diagram_total(&d), c->n_free);
    kp_diagram_deinit(&d, &c->budget);
    return KOPT_OK;
}

/* The list's diagram becomes factor `n`; returns how many factors there are then. */
static size_t add_list(struct counting *c, size_t n)
{
    if (c->mdds.n > c->s->atoms.n)
        c->factors[n++] = &c->mdds.items[c->s->atoms.n];
    return n;
}

/* Passes atoms first .. at-1 and fails atom `at`. */
static kopt_status count_failing(struct counting *c, size_t first, size_t at, uint64_t *count)
{
    size_t n = add_list(c, 0);
    for (size_t i = first; i <= at; i++)
        c->factors[n++] = &c->mdds.items[i];
    kp_mdd_complement(&c->mdds.items[at]);
    kopt_status st = count_product(c, n, count);
    kp_mdd_complement(&c->mdds.items[at]);
    return st;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static kopt_status explain_rule(struct counting *c, size_t first, size_t end,
                                struct kp_rule_effect *effect)
{
    uint64_t n = 0;
    *effect = (struct kp_rule_effect){0, 0};
    for (size_t i = first; i < end; i++) {
        kopt_status st = count_failing(c, first, i, &n);
        if (st != KOPT_OK)
            return st;
        effect->alone = add(effect->alone, n);
        if (first > 0)
            st = count_failing(c, 0, i, &n);
        if (st != KOPT_OK)
            return st;
        effect->in_turn = add(effect->in_turn, n);
    }
    return KOPT_OK;
}

/* The first rule after which nothing is left; the space is empty. */
static kopt_status find_last(struct counting *c, size_t *last)
{
    const struct kp_atoms *atoms = &c->s->atoms;
    size_t lo = 0;
    size_t hi = atoms->n - 1; /* with all atoms up to hi nothing is left */
    size_t first = add_list(c, 0);
    for (size_t i = 0; i < atoms->n; i++)
        c->factors[first + i] = &c->mdds.items[i];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uint64_t n = 0;
        kopt_status st = count_product(c, first + mid + 1, &n);
        if (st != KOPT_OK)
            return st;
        if (n)
            lo = mid + 1;
        else
            hi = mid;
    }
    *last = atoms->items[lo].rule;
    return KOPT_OK;
}

static kopt_status explain_all(struct counting *c, struct kp_rule_effect *effects, size_t *last)
{
    const struct kp_space *s = c->s;
    size_t at = 0;
    c->n_free = 1;
    for (size_t k = 0; k < s->desc->n_params; k++) {
        c->domain[k] = kp_space_values(s, s->order[k]);
        if (k >= kp_space_n_tied(s))
            c->n_free = times(c->n_free, c->domain[k]);
    }
    for (size_t r = 0; r < s->desc->n_rules; r++) {
        size_t end = at;
        while (end < s->atoms.n && s->atoms.items[end].rule == r)
            end++;
        kopt_status st = explain_rule(c, at, end, &effects[r]);
        if (st != KOPT_OK) {
            kp_err_wrap(c->err, "rule %s",
                        s->desc->rules[r].text ? s->desc->rules[r].text : "");
            return st;
        }
        at = end;
    }
    if (kp_space_count(s) == 0 && s->atoms.n > 0 &&
        !(s->desc->listed && s->desc->n_listed == 0))
        return find_last(c, last);
    return KOPT_OK;
}

static kopt_status explain(const struct kp_space *s, struct kp_rule_effect *effects,
                           size_t *last, kopt_error *err)
{
    struct counting c = {
        .s = s, .budget = {.max = s->budget.max, .max_steps = s->budget.max_steps}, .err = err};
    *last = s->desc->n_rules;
    kopt_status st = kp_space_mdds(s, &c.budget, &c.mdds, NULL, err);
    if (st != KOPT_OK)
        return st;
    c.factors = kp_calloc(s->atoms.n + 2, sizeof(struct kp_mdd *));
    st = c.factors ? explain_all(&c, effects, last) : kp_err_nomem(err);
    kp_free(c.factors);
    kp_mdds_deinit(&c.mdds, &c.budget);
    return st;
}

kopt_status kp_space_explain(const struct kp_space *s, struct kp_rule_effect *effects,
                             size_t *last, kopt_error *err)
{
    struct kp_space *own = NULL;
    if (s->rules)
        return explain(s, effects, last, err);
    struct kp_space_desc desc = *s->desc;
    desc.cache = NULL;
    *last = desc.n_rules;
    kopt_status st = kp_space_new(&desc, &own, err);
    if (st == KOPT_OK)
        st = explain(own, effects, last, err);
    kp_space_free(own);
    return st;
}
