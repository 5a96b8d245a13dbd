/* SPDX-License-Identifier: MIT */
#include "space/residual.h"

#include <math.h>

static double magnitude(const struct kp_term *t)
{
    return fmax(fabs(t->bounds.lo), fabs(t->bounds.hi));
}

static bool is_sum(const struct kp_term *t)
{
    return (t->e.op == KP_OP_ADD || t->e.op == KP_OP_SUB) && t->types == KP_TYPES_INT;
}

static bool is_product(const struct kp_term *t)
{
    return t->e.op == KP_OP_MUL && t->types == KP_TYPES_INT;
}

static bool is_extremum(const struct kp_term *t)
{
    return t->e.op == KP_OP_CALL && (t->e.func == KP_FN_MIN || t->e.func == KP_FN_MAX) &&
           t->types == KP_TYPES_INT && !t->may_fail;
}

static bool is_sign(const struct kp_term *t)
{
    return (t->e.op == KP_OP_NEG || t->e.op == KP_OP_POS) && t->types == KP_TYPES_INT;
}

/* No partial sum, in any order, is larger. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static double sum_limit(const struct kp_term *t)
{
    if (is_sum(t))
        return sum_limit(kp_term_arg(t, 0)) + sum_limit(kp_term_arg(t, 1));
    return is_sign(t) ? sum_limit(kp_term_arg(t, 0)) : magnitude(t);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static double product_limit(const struct kp_term *t)
{
    if (is_product(t))
        return product_limit(kp_term_arg(t, 0)) * product_limit(kp_term_arg(t, 1));
    return fmax(1, magnitude(t));
}

enum kp_chain kp_term_chain(const struct kp_term *t)
{
    if (is_sum(t) && sum_limit(t) < KP_INT_LIMIT)
        return KP_CHAIN_SUM;
    if (is_product(t) && product_limit(t) < KP_INT_LIMIT)
        return KP_CHAIN_PRODUCT;
    return is_extremum(t) ? KP_CHAIN_EXTREMUM : KP_CHAIN_NONE;
}

static bool continues(const struct kp_term *t, enum kp_chain chain, enum kp_func func)
{
    switch (chain) {
    case KP_CHAIN_SUM:
        return is_sum(t) || is_sign(t);
    case KP_CHAIN_PRODUCT:
        return is_product(t);
    case KP_CHAIN_EXTREMUM:
        return is_extremum(t) && t->e.func == func;
    case KP_CHAIN_NONE:
        break;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
bool kp_term_operands(const struct kp_term *t, enum kp_chain chain, bool negative,
                      const struct kp_chain_visitor *v)
{
    for (size_t i = 0; i < t->e.n_args; i++) {
        const struct kp_term *a = kp_term_arg(t, i);
        bool minus = negative != (t->e.op == KP_OP_NEG || (t->e.op == KP_OP_SUB && i == 1));
        bool more = continues(a, chain, t->e.func) ? kp_term_operands(a, chain, minus, v)
                                                   : v->visit(v->user, a, minus);
        if (!more)
            return false;
    }
    return true;
}
