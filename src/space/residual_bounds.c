/* SPDX-License-Identifier: MIT */
/* Interval arithmetic over rules. An interval is closed and in doubles; integers that have no
 * double are rounded outwards, so that a decision from intervals is always right. Operations on
 * floats round to nearest, which is monotone: the end points of a monotone operation bound it.
 */
#include "space/residual.h"

#include <math.h>

static const struct kp_bounds anything = {(double)-INFINITY, (double)INFINITY};
static const struct kp_bounds either = {0, 1};

static const double exact = 0x1p53; /* below it, each integer has a double of its own */

static struct kp_bounds outward(double lo, double hi)
{
    if (isnan(lo) || isnan(hi))
        return anything;
    if (fabs(lo) >= exact)
        lo -= fabs(lo) * 0x1p-52;
    if (fabs(hi) >= exact)
        hi += fabs(hi) * 0x1p-52;
    return (struct kp_bounds){lo, hi};
}

static struct kp_bounds hull(struct kp_bounds a, struct kp_bounds b)
{
    return (struct kp_bounds){fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
}

struct kp_bounds kp_bounds_value(struct kp_value v)
{
    double d = 0;
    if (!kp_value_to_f64(v, &d) || !isfinite(d))
        return anything;
    return v.type == KP_INT ? outward(d, d) : (struct kp_bounds){d, d};
}

int kp_bounds_truth(struct kp_bounds b)
{
    if (b.lo > 0 || b.hi < 0)
        return 1;
    return b.lo == 0 && b.hi == 0 ? 0 : -1;
}

static struct kp_bounds from_truth(int truth)
{
    return truth < 0 ? either : (struct kp_bounds){truth, truth};
}

static double times(double a, double b)
{
    return a == 0 || b == 0 ? 0 : a * b;
}

/* The hull of f over the four corners. */
static struct kp_bounds corners(double (*f)(double, double), struct kp_bounds a,
                                struct kp_bounds b)
{
    double v[4] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
    struct kp_bounds r = {v[0], v[0]};
    for (int i = 0; i < 4; i++) {
        if (isnan(v[i]))
            return anything;
        r = hull(r, (struct kp_bounds){v[i], v[i]});
    }
    return r;
}

static double quotient(double a, double b)
{
    return a / b;
}

/* A rounding function over a quotient of whole numbers. Below 2^52 the rounded quotient of two
 * doubles has the same floor as the exact one: they are 1/b apart from the next integer, and
 * the rounding is at most half of that. */
static struct kp_bounds rounded(struct kp_bounds q, double (*f)(double), bool whole)
{
    struct kp_bounds r = {f(q.lo), f(q.hi)};
    if (!whole || fabs(q.lo) >= 0x1p52 || fabs(q.hi) >= 0x1p52) {
        r.lo -= 1;
        r.hi += 1;
        r = hull(r, q);
    }
    return outward(r.lo, r.hi);
}

static struct kp_bounds divided(const struct kp_expr *e, struct kp_bounds a, struct kp_bounds b,
                                unsigned char types)
{
    if (kp_bounds_has_zero(b))
        return anything;
    struct kp_bounds q = corners(quotient, a, b);
    bool whole = types == KP_TYPES_INT;
    if (e->op == KP_OP_FLOORDIV)
        return rounded(q, floor, whole);
    if (e->op == KP_OP_DIV && types != KP_TYPES_FLOAT)
        return rounded(q, trunc, whole);
    if (e->op == KP_OP_CALL)
        return rounded(q, ceil, whole);
    /* A quotient of integers may have been rounded twice, through long double. */
    return outward(q.lo - fabs(q.lo) * 0x1p-51, q.hi + fabs(q.hi) * 0x1p-51);
}

static struct kp_bounds remainder_of(struct kp_bounds a, struct kp_bounds b,
                                     unsigned char types)
{
    double less = types == KP_TYPES_INT ? 1 : 0;
    if (b.lo > 0) {
        if (a.lo >= 0 && a.hi < b.lo)
            return a;
        double hi = b.hi - less;
        return (struct kp_bounds){0, a.lo >= 0 ? fmin(hi, a.hi) : hi};
    }
    if (b.hi < 0)
        return (struct kp_bounds){b.lo + less, 0};
    return anything;
}

/* Only what rules use: a base of at least 1 (or 0) and an exponent of at least 0. */
static struct kp_bounds power(struct kp_bounds a, struct kp_bounds b)
{
    if (a.lo < 0 || b.lo < 0)
        return anything;
    double lo = a.lo >= 1 ? pow(a.lo, b.lo) : 0;
    double hi = fmax(1, pow(a.hi, b.hi));
    double slack = 0x1p-40; /* pow() is not monotone to the last bit */
    return outward(lo * (1 - slack), hi * (1 + slack));
}

/* Is a < b, for every value of each? */
static int less(struct kp_bounds a, struct kp_bounds b)
{
    if (a.hi < b.lo)
        return 1;
    return a.lo >= b.hi ? 0 : -1;
}

static int negated(int truth)
{
    return truth < 0 ? truth : !truth;
}

static int equal(struct kp_bounds a, struct kp_bounds b)
{
    if (a.hi < b.lo || b.hi < a.lo)
        return 0;
    return a.lo == a.hi && b.lo == b.hi && fabs(a.lo) < exact ? 1 : -1;
}

static struct kp_bounds compared(const struct kp_expr *e, struct kp_bounds a,
                                 struct kp_bounds b)
{
    switch ((int)e->op) {
    case KP_OP_LT:
        return from_truth(less(a, b));
    case KP_OP_LE:
        return from_truth(negated(less(b, a)));
    case KP_OP_GT:
        return from_truth(less(b, a));
    case KP_OP_GE:
        return from_truth(negated(less(a, b)));
    case KP_OP_EQ:
        return from_truth(equal(a, b));
    default: /* KP_OP_NE */
        return from_truth(negated(equal(a, b)));
    }
}

static struct kp_bounds logic(const struct kp_expr *e, struct kp_bounds a, struct kp_bounds b)
{
    int ta = kp_bounds_truth(a);
    int tb = kp_bounds_truth(b);
    int decides = e->op == KP_OP_OR;
    if (e->operand)
        return ta == -1 ? hull(a, b) : ta == decides ? a : b;
    if (ta == decides || tb == decides)
        return from_truth(decides);
    return from_truth(ta == -1 || tb == -1 ? -1 : !decides);
}

static struct kp_bounds extremum(const struct kp_expr *e, const struct kp_bounds *args)
{
    struct kp_bounds r = args[0];
    for (uint32_t i = 1; i < e->n_args; i++) {
        bool least = e->func == KP_FN_MIN;
        r.lo = least ? fmin(r.lo, args[i].lo) : fmax(r.lo, args[i].lo);
        r.hi = least ? fmin(r.hi, args[i].hi) : fmax(r.hi, args[i].hi);
    }
    return r;
}

static struct kp_bounds absolute(struct kp_bounds a)
{
    double hi = fmax(fabs(a.lo), fabs(a.hi));
    return (struct kp_bounds){kp_bounds_has_zero(a) ? 0 : fmin(fabs(a.lo), fabs(a.hi)), hi};
}

static struct kp_bounds logarithm(struct kp_bounds a, unsigned char types)
{
    if (a.lo <= 0)
        return anything;
    if (types == KP_TYPES_INT)
        return (struct kp_bounds){floor(log2(a.lo)) - 1, floor(log2(a.hi)) + 1};
    return (struct kp_bounds){log2(a.lo) - 1, log2(a.hi) + 1}; /* whole or not */
}

static struct kp_bounds called(const struct kp_expr *e, const struct kp_bounds *args,
                               unsigned char types)
{
    struct kp_bounds a = args[0];
    switch (e->func) {
    case KP_FN_MIN:
    case KP_FN_MAX:
        return extremum(e, args);
    case KP_FN_CEILDIV:
        return divided(e, a, args[1], types);
    case KP_FN_ALIGN:
        return args[1].lo > 0 ? outward(a.lo, a.hi + args[1].hi - 1) : anything;
    case KP_FN_LOG2:
        return logarithm(a, types);
    case KP_FN_IS_POW2:
        return either;
    case KP_FN_ABS:
        return absolute(a);
    case KP_FN_SQRT:
        return a.lo < 0 ? anything : (struct kp_bounds){sqrt(a.lo), sqrt(a.hi)};
    case KP_FN_FLOOR:
        return outward(floor(a.lo), floor(a.hi));
    case KP_FN_CEIL:
        return outward(ceil(a.lo), ceil(a.hi));
    case KP_FN_INT:
        return outward(trunc(a.lo), trunc(a.hi));
    case KP_FN_FLOAT:
        return a;
    }
    return anything;
}

static struct kp_bounds arithmetic(const struct kp_expr *e, const struct kp_bounds *args,
                                   unsigned char types)
{
    struct kp_bounds a = args[0];
    struct kp_bounds b = args[1];
    switch ((int)e->op) {
    case KP_OP_ADD:
        return outward(a.lo + b.lo, a.hi + b.hi);
    case KP_OP_SUB:
        return outward(a.lo - b.hi, a.hi - b.lo);
    case KP_OP_MUL:
        a = corners(times, a, b);
        return outward(a.lo, a.hi);
    case KP_OP_MOD:
        return remainder_of(a, b, types);
    case KP_OP_POW:
        return power(a, b);
    default: /* the divisions */
        return divided(e, a, b, types);
    }
}

struct kp_bounds kp_bounds_of(const struct kp_expr *shape, const struct kp_bounds *args,
                              unsigned char types)
{
    switch ((int)shape->op) {
    case KP_OP_CONST:
        return kp_bounds_value(shape->value);
    case KP_OP_VAR:
        return anything;
    case KP_OP_NEG:
        return (struct kp_bounds){-args[0].hi, -args[0].lo};
    case KP_OP_POS:
        return args[0];
    case KP_OP_NOT:
        return from_truth(negated(kp_bounds_truth(args[0])));
    case KP_OP_AND:
    case KP_OP_OR:
        return logic(shape, args[0], args[1]);
    case KP_OP_COND: {
        int t = kp_bounds_truth(args[0]);
        return t == 1 ? args[1] : t == 0 ? args[2] : hull(args[1], args[2]);
    }
    case KP_OP_IN:
        return either;
    case KP_OP_CALL:
        return called(shape, args, types);
    case KP_OP_LT:
    case KP_OP_LE:
    case KP_OP_GT:
    case KP_OP_GE:
    case KP_OP_EQ:
    case KP_OP_NE:
        return compared(shape, args[0], args[1]);
    default:
        return arithmetic(shape, args, types);
    }
}

static int sign_of(struct kp_bounds b)
{
    return b.lo >= 0 ? 1 : b.hi <= 0 ? -1 : 0;
}

/* Of a quotient that is rounded by a monotone function: it rises with the dividend where the
 * divisor is positive, and falls with a positive divisor where the dividend is not negative. */
static int quotient_direction(const struct kp_bounds *args, size_t i)
{
    if (kp_bounds_has_zero(args[1]))
        return 0;
    return i == 0 ? sign_of(args[1]) : -sign_of(args[0]);
}

static int call_direction(const struct kp_expr *shape, const struct kp_bounds *args,
                          unsigned char types, size_t i)
{
    switch (shape->func) {
    case KP_FN_LOG2: /* the library's log2() need not be monotone */
        return types == KP_TYPES_INT ? 1 : 0;
    case KP_FN_MIN:
    case KP_FN_MAX:
    case KP_FN_SQRT:
    case KP_FN_FLOOR:
    case KP_FN_CEIL:
    case KP_FN_INT:
    case KP_FN_FLOAT:
        return 1;
    case KP_FN_CEILDIV:
        return quotient_direction(args, i);
    case KP_FN_ALIGN:
        return i == 0 && args[1].lo > 0 ? 1 : 0;
    case KP_FN_ABS:
        return sign_of(args[0]);
    case KP_FN_IS_POW2:
        return 0;
    }
    return 0;
}

int kp_bounds_direction(const struct kp_expr *shape, const struct kp_bounds *args,
                        unsigned char types, size_t i)
{
    switch ((int)shape->op) {
    case KP_OP_POS:
    case KP_OP_ADD:
        return 1;
    case KP_OP_NEG:
        return -1;
    case KP_OP_NOT: /* truth rises with a number that is not negative */
        return args[0].lo >= 0 ? -1 : 0;
    case KP_OP_SUB:
        return i == 0 ? 1 : -1;
    case KP_OP_MUL:
        return sign_of(args[1 - i]);
    case KP_OP_DIV:
    case KP_OP_TRUEDIV:
        return quotient_direction(args, i);
    case KP_OP_GT:
    case KP_OP_GE:
        return i == 0 ? 1 : -1;
    case KP_OP_LT:
    case KP_OP_LE:
        return i == 0 ? -1 : 1;
    case KP_OP_AND:
    case KP_OP_OR:
        return !shape->operand && args[i].lo >= 0 ? 1 : 0;
    case KP_OP_COND:
        return i == 0 ? 0 : 1;
    case KP_OP_CALL:
        return call_direction(shape, args, types, i);
    case KP_OP_FLOORDIV: /* that of floats is a rounded difference before a rounded quotient */
        return types == KP_TYPES_INT ? quotient_direction(args, i) : 0;
    default:
        return 0;
    }
}
