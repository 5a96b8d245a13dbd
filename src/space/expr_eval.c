/* SPDX-License-Identifier: MIT */
/* Three-valued evaluation. Integers are int64 and never wrap; what Python would answer with an
 * exception is KP_EVAL_ERROR. Layer: space. */
#include "base/checked.h"
#include "space/expr.h"

#include <math.h>

enum truth { TRUTH_FALSE, TRUTH_TRUE, TRUTH_UNKNOWN, TRUTH_ERROR };

static enum kp_outcome fail(const struct kp_expr *e, const char *what,
                            struct kp_eval_error *why)
{
    *why = (struct kp_eval_error){e->pos, what};
    return KP_EVAL_ERROR;
}

static enum kp_outcome give(struct kp_value v, struct kp_value *out)
{
    *out = v;
    return KP_EVAL_VALUE;
}

static bool truthy(struct kp_value v)
{
    switch (v.type) {
    case KP_INT:
        return v.as.i != 0;
    case KP_FLOAT:
        return v.as.f != 0; /* NaN counts as true, as in Python */
    case KP_BOOL:
        return v.as.b;
    case KP_STRING:
        return v.as.s.len != 0;
    }
    return false;
}

/* A number: booleans become integers. False for strings. */
static bool number(struct kp_value *v)
{
    if (v->type == KP_BOOL)
        *v = kp_int(v->as.b);
    return v->type != KP_STRING;
}

static double as_double(struct kp_value v)
{
    return v.type == KP_INT ? (double)v.as.i : v.as.f;
}

static const char why_overflow[] = "integer overflow";
static const char why_division[] = "division by zero";
static const char why_no_number[] = "a string where a number is needed";
static const char why_too_large[] = "result out of range";

/* ---- integers ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* By squaring; exponent at least 0. */
static bool int_power(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) && !kp_mul_i64(result, base, &result))
            return false;
        exponent >>= 1;
        if (exponent > 0 && !kp_mul_i64(base, base, &base))
            return false;
    }
    *out = result;
    return true;
}

static enum kp_outcome power(const struct kp_expr *e, double a, double b, struct kp_value *out,
                             struct kp_eval_error *why)
{
    if (a == 0 && b < 0)
        return fail(e, why_division, why);
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return fail(e, "a root of a negative number", why);
    double v = pow(a, b);
    if (isinf(v) && isfinite(a) && isfinite(b))
        return fail(e, why_too_large, why);
    return give(kp_float(v), out);
}

static bool is_exact(int64_t v)
{
    const int64_t limit = (int64_t)1 << 53;
    return v >= -limit && v <= limit;
}

static enum kp_outcome ints(const struct kp_expr *e, int64_t a, int64_t b, struct kp_value *out,
                            struct kp_eval_error *why)
{
    int64_t v = 0;
    bool exact = true;
    bool divides = e->op == KP_OP_DIV || e->op == KP_OP_TRUEDIV || e->op == KP_OP_FLOORDIV ||
                   e->op == KP_OP_MOD;
    if (divides && b == 0)
        return fail(e, why_division, why);
    switch ((int)e->op) {
    case KP_OP_ADD:
        exact = kp_add_i64(a, b, &v);
        break;
    case KP_OP_SUB:
        exact = kp_sub_i64(a, b, &v);
        break;
    case KP_OP_MUL:
        exact = kp_mul_i64(a, b, &v);
        break;
    case KP_OP_TRUEDIV:
        /* Where a double holds both, its quotient is the one correctly rounded result, as
         * Python's is. Beyond, long double saves the roundings of the operands. */
        if (is_exact(a) && is_exact(b))
            return give(kp_float((double)a / (double)b), out);
        return give(kp_float((double)((long double)a / (long double)b)), out);
    case KP_OP_POW:
        if (b < 0)
            return power(e, (double)a, (double)b, out, why);
        exact = int_power(a, b, &v);
        break;
    default: /* the divisions; INT64_MIN by -1 is the one that does not fit */
        if (b == -1)
            exact = e->op == KP_OP_MOD ? true : kp_sub_i64(0, a, &v);
        else if (e->op == KP_OP_DIV)
            v = a / b;
        else
            v = e->op == KP_OP_MOD ? floor_mod(a, b) : floor_div(a, b);
        break;
    }
    return exact ? give(kp_int(v), out) : fail(e, why_overflow, why);
}

/* ---- floats ---- */

/* Python's rule: the remainder has the divisor's sign, and quotient * divisor + remainder is
 * the dividend as nearly as doubles allow. */
static double float_mod(double a, double b, double *quotient)
{
    double r = fmod(a, b);
    double q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) {
        r += b;
        q -= 1;
    } else if (r == 0) {
        r = copysign(0, b);
    }
    double whole = floor(q);
    if (q - whole > 0.5)
        whole += 1;
    *quotient = q != 0 ? whole : copysign(0, a / b);
    return r;
}

static enum kp_outcome floats(const struct kp_expr *e, double a, double b, struct kp_value *out,
                              struct kp_eval_error *why)
{
    double q = 0;
    switch ((int)e->op) {
    case KP_OP_ADD:
        return give(kp_float(a + b), out);
    case KP_OP_SUB:
        return give(kp_float(a - b), out);
    case KP_OP_MUL:
        return give(kp_float(a * b), out);
    case KP_OP_POW:
        return power(e, a, b, out, why);
    default:
        break;
    }
    if (b == 0)
        return fail(e, why_division, why);
    if (e->op == KP_OP_DIV || e->op == KP_OP_TRUEDIV)
        return give(kp_float(a / b), out);
    double r = float_mod(a, b, &q);
    return give(kp_float(e->op == KP_OP_MOD ? r : q), out);
}

static enum kp_outcome arithmetic(const struct kp_expr *e, struct kp_value a, struct kp_value b,
                                  struct kp_value *out, struct kp_eval_error *why)
{
    if (!number(&a) || !number(&b))
        return fail(e, why_no_number, why);
    if (a.type == KP_INT && b.type == KP_INT)
        return ints(e, a.as.i, b.as.i, out, why);
    return floats(e, as_double(a), as_double(b), out, why);
}

/* ---- comparisons ---- */

static bool equal(struct kp_value a, struct kp_value b)
{
    int order = 0;
    return kp_value_compare(a, b, &order) && order == 0;
}

static enum kp_outcome comparison(const struct kp_expr *e, struct kp_value a, struct kp_value b,
                                  struct kp_value *out, struct kp_eval_error *why)
{
    int order = 0;
    if (e->op == KP_OP_EQ || e->op == KP_OP_NE)
        return give(kp_bool(equal(a, b) == (e->op == KP_OP_EQ)), out);
    if ((a.type == KP_STRING) != (b.type == KP_STRING))
        return fail(e, "a string compared with a number", why);
    if (!kp_value_compare(a, b, &order))
        return give(kp_bool(false), out); /* NaN */
    bool v = e->op == KP_OP_LT   ? order < 0
             : e->op == KP_OP_LE ? order <= 0
             : e->op == KP_OP_GT ? order > 0
                                 : order >= 0;
    return give(kp_bool(v), out);
}

/* ---- functions ---- */

static enum kp_outcome to_int(const struct kp_expr *e, double f, struct kp_value *out,
                              struct kp_eval_error *why)
{
    if (!(f >= -0x1p63 && f < 0x1p63))
        return fail(e, why_too_large, why);
    return give(kp_int((int64_t)f), out);
}

static enum kp_outcome ceil_div(const struct kp_expr *e, int64_t a, int64_t b,
                                struct kp_value *out, struct kp_eval_error *why)
{
    if (b == 0)
        return fail(e, why_division, why);
    if (b == -1 && a == INT64_MIN)
        return fail(e, why_overflow, why);
    bool up = b != -1 && a % b != 0 && (a < 0) == (b < 0);
    int64_t q = b == -1 ? -a : a / b;
    if (e->func == KP_FN_CEILDIV)
        return give(kp_int(q + up), out);
    if (b < 0)
        return fail(e, "align() to a negative multiple", why);
    int64_t v = 0;
    return kp_mul_i64(q + up, b, &v) ? give(kp_int(v), out) : fail(e, why_overflow, why);
}

static enum kp_outcome log_two(const struct kp_expr *e, struct kp_value a, struct kp_value *out,
                               struct kp_eval_error *why)
{
    if (as_double(a) <= 0)
        return fail(e, "log2() of a number that is not positive", why);
    if (a.type == KP_INT)
        return give(kp_int(63 - __builtin_clzll((unsigned long long)a.as.i)), out);
    return give(kp_float(log2(a.as.f)), out);
}

static enum kp_outcome of_one(const struct kp_expr *e, struct kp_value a, struct kp_value *out,
                              struct kp_eval_error *why)
{
    bool whole = a.type == KP_INT;
    switch ((int)e->func) {
    case KP_FN_LOG2:
        return log_two(e, a, out, why);
    case KP_FN_IS_POW2:
        if (!whole)
            return fail(e, "is_pow2() of a number that is no integer", why);
        return give(kp_bool(a.as.i > 0 && (a.as.i & (a.as.i - 1)) == 0), out);
    case KP_FN_ABS:
        if (whole && a.as.i == INT64_MIN)
            return fail(e, why_overflow, why);
        return give(whole ? kp_int(a.as.i < 0 ? -a.as.i : a.as.i) : kp_float(fabs(a.as.f)),
                    out);
    case KP_FN_SQRT:
        if (as_double(a) < 0)
            return fail(e, "a root of a negative number", why);
        return give(kp_float(sqrt(as_double(a))), out);
    case KP_FN_FLOOR:
        return whole ? give(a, out) : to_int(e, floor(a.as.f), out, why);
    case KP_FN_CEIL:
        return whole ? give(a, out) : to_int(e, ceil(a.as.f), out, why);
    case KP_FN_INT:
        return whole ? give(a, out) : to_int(e, trunc(a.as.f), out, why);
    default: /* KP_FN_FLOAT */
        return give(kp_float(as_double(a)), out);
    }
}

static enum kp_outcome evaluate(const struct kp_expr *e, const struct kp_env *env,
                                struct kp_value *out, struct kp_eval_error *why);

/* The two operands of a strict operator. An error of either comes before "unknown". */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome both(const struct kp_expr *e, const struct kp_env *env,
                            struct kp_value v[2], struct kp_eval_error *why)
{
    enum kp_outcome a = evaluate(e->args[0], env, &v[0], why);
    if (a == KP_EVAL_ERROR)
        return a;
    enum kp_outcome b = evaluate(e->args[1], env, &v[1], why);
    return b == KP_EVAL_VALUE ? a : b;
}

/* The first argument that is least (greatest), as Python chooses among equal ones. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome extremum(const struct kp_expr *e, const struct kp_env *env,
                                struct kp_value *out, struct kp_eval_error *why)
{
    enum kp_outcome result = KP_EVAL_VALUE;
    struct kp_value best = {0};
    bool mixed = false;
    for (uint32_t i = 0; i < e->n_args; i++) {
        struct kp_value v;
        int order = 0;
        enum kp_outcome o = evaluate(e->args[i], env, &v, why);
        if (o == KP_EVAL_ERROR)
            return o;
        if (o == KP_EVAL_UNKNOWN) {
            result = o;
            continue;
        }
        if (i > 0 && result == KP_EVAL_VALUE) {
            mixed |= (best.type == KP_STRING) != (v.type == KP_STRING);
            if (!kp_value_compare(v, best, &order) ||
                (e->func == KP_FN_MIN ? order >= 0 : order <= 0))
                continue;
        }
        best = v;
    }
    if (result == KP_EVAL_VALUE && mixed)
        return fail(e, "a string compared with a number", why);
    return result == KP_EVAL_VALUE ? give(best, out) : result;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome call(const struct kp_expr *e, const struct kp_env *env,
                            struct kp_value *out, struct kp_eval_error *why)
{
    struct kp_value v[2];
    if (e->func == KP_FN_MIN || e->func == KP_FN_MAX)
        return extremum(e, env, out, why);
    if (e->func == KP_FN_CEILDIV || e->func == KP_FN_ALIGN) {
        enum kp_outcome o = both(e, env, v, why);
        if (o != KP_EVAL_VALUE)
            return o;
        if (!number(&v[0]) || !number(&v[1]) || v[0].type != KP_INT || v[1].type != KP_INT)
            return fail(e, "ceildiv() and align() take integers", why);
        return ceil_div(e, v[0].as.i, v[1].as.i, out, why);
    }
    enum kp_outcome o = evaluate(e->args[0], env, &v[0], why);
    if (o != KP_EVAL_VALUE)
        return o;
    if (!number(&v[0]))
        return fail(e, why_no_number, why);
    return of_one(e, v[0], out, why);
}

/* ---- logic ---- */

static enum truth truth_of(const struct kp_expr *e, const struct kp_env *env,
                           struct kp_eval_error *why);

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum truth connective(const struct kp_expr *e, const struct kp_env *env,
                             struct kp_eval_error *why)
{
    /* The operand that decides: false for "and", true for "or". */
    enum truth decides = e->op == KP_OP_AND ? TRUTH_FALSE : TRUTH_TRUE;
    enum truth a = truth_of(e->args[0], env, why);
    if (a == decides)
        return a;
    struct kp_eval_error second = {0, NULL};
    enum truth b = truth_of(e->args[1], env, &second);
    if (b == decides)
        return b;
    if (a == TRUTH_UNKNOWN || b == TRUTH_UNKNOWN)
        return TRUTH_UNKNOWN;
    if (a == TRUTH_ERROR)
        return a;
    if (b == TRUTH_ERROR)
        *why = second;
    return b;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum truth negation(const struct kp_expr *e, const struct kp_env *env,
                           struct kp_eval_error *why)
{
    enum truth t = truth_of(e->args[0], env, why);
    if (t == TRUTH_TRUE)
        return TRUTH_FALSE;
    return t == TRUTH_FALSE ? TRUTH_TRUE : t;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum truth truth_of(const struct kp_expr *e, const struct kp_env *env,
                           struct kp_eval_error *why)
{
    struct kp_value v;
    if (e->op == KP_OP_NOT)
        return negation(e, env, why);
    if (e->op == KP_OP_AND || e->op == KP_OP_OR)
        return connective(e, env, why);
    switch (evaluate(e, env, &v, why)) {
    case KP_EVAL_VALUE:
        return truthy(v) ? TRUTH_TRUE : TRUTH_FALSE;
    case KP_EVAL_UNKNOWN:
        return TRUTH_UNKNOWN;
    case KP_EVAL_ERROR:
        break;
    }
    return TRUTH_ERROR;
}

static enum kp_outcome from_truth(enum truth t, struct kp_value *out)
{
    if (t == TRUTH_UNKNOWN)
        return KP_EVAL_UNKNOWN;
    return t == TRUTH_ERROR ? KP_EVAL_ERROR : give(kp_bool(t == TRUTH_TRUE), out);
}

/* Python's "and" and "or": the value is the left operand where that decides, else the right. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome operand(const struct kp_expr *e, const struct kp_env *env,
                               struct kp_value *out, struct kp_eval_error *why)
{
    bool decides = e->op == KP_OP_OR;
    struct kp_value a;
    struct kp_value b;
    enum kp_outcome left = evaluate(e->args[0], env, &a, why);
    if (left == KP_EVAL_VALUE)
        return truthy(a) == decides ? give(a, out) : evaluate(e->args[1], env, out, why);
    struct kp_eval_error second = {0, NULL};
    enum kp_outcome right = evaluate(e->args[1], env, &b, &second);
    if (left == KP_EVAL_UNKNOWN)
        return left;
    if (right == KP_EVAL_VALUE && truthy(b) == decides)
        return give(b, out);
    return right == KP_EVAL_UNKNOWN ? right : left;
}

/* x in {a, b} is x == a or x == b. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome membership(const struct kp_expr *e, const struct kp_env *env,
                                  struct kp_value *out, struct kp_eval_error *why)
{
    struct kp_value needle;
    enum kp_outcome result = evaluate(e->args[0], env, &needle, why);
    if (result != KP_EVAL_VALUE)
        return result;
    for (uint32_t i = 1; i < e->n_args; i++) {
        struct kp_value v;
        struct kp_eval_error later = {0, NULL};
        enum kp_outcome o = evaluate(e->args[i], env, &v, &later);
        if (o == KP_EVAL_VALUE && equal(needle, v))
            return give(kp_bool(true), out);
        if (o == KP_EVAL_ERROR && result == KP_EVAL_VALUE) {
            result = o;
            *why = later;
        }
        if (o == KP_EVAL_UNKNOWN)
            result = o;
    }
    return result == KP_EVAL_VALUE ? give(kp_bool(false), out) : result;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome sign(const struct kp_expr *e, const struct kp_env *env,
                            struct kp_value *out, struct kp_eval_error *why)
{
    struct kp_value v;
    enum kp_outcome o = evaluate(e->args[0], env, &v, why);
    if (o != KP_EVAL_VALUE)
        return o;
    if (!number(&v))
        return fail(e, why_no_number, why);
    if (e->op == KP_OP_POS)
        return give(v, out);
    if (v.type == KP_FLOAT)
        return give(kp_float(-v.as.f), out);
    return v.as.i == INT64_MIN ? fail(e, why_overflow, why) : give(kp_int(-v.as.i), out);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome choice(const struct kp_expr *e, const struct kp_env *env,
                              struct kp_value *out, struct kp_eval_error *why)
{
    switch (truth_of(e->args[0], env, why)) {
    case TRUTH_TRUE:
        return evaluate(e->args[1], env, out, why);
    case TRUTH_FALSE:
        return evaluate(e->args[2], env, out, why);
    case TRUTH_UNKNOWN:
        return KP_EVAL_UNKNOWN;
    case TRUTH_ERROR:
        break;
    }
    return KP_EVAL_ERROR;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum kp_outcome evaluate(const struct kp_expr *e, const struct kp_env *env,
                                struct kp_value *out, struct kp_eval_error *why)
{
    struct kp_value v[2];
    enum kp_outcome o;
    switch (e->op) {
    case KP_OP_CONST:
        return give(e->value, out);
    case KP_OP_VAR:
        return env->known && env->known[e->slot] ? give(env->values[e->slot], out)
                                                 : KP_EVAL_UNKNOWN;
    case KP_OP_NEG:
    case KP_OP_POS:
        return sign(e, env, out, why);
    case KP_OP_NOT:
        return from_truth(truth_of(e, env, why), out);
    case KP_OP_AND:
    case KP_OP_OR:
        return e->operand ? operand(e, env, out, why) : from_truth(truth_of(e, env, why), out);
    case KP_OP_COND:
        return choice(e, env, out, why);
    case KP_OP_IN:
        return membership(e, env, out, why);
    case KP_OP_CALL:
        return call(e, env, out, why);
    case KP_OP_ADD:
    case KP_OP_SUB:
    case KP_OP_MUL:
    case KP_OP_DIV:
    case KP_OP_TRUEDIV:
    case KP_OP_FLOORDIV:
    case KP_OP_MOD:
    case KP_OP_POW:
        o = both(e, env, v, why);
        return o == KP_EVAL_VALUE ? arithmetic(e, v[0], v[1], out, why) : o;
    case KP_OP_LT:
    case KP_OP_LE:
    case KP_OP_GT:
    case KP_OP_GE:
    case KP_OP_EQ:
    case KP_OP_NE:
        o = both(e, env, v, why);
        return o == KP_EVAL_VALUE ? comparison(e, v[0], v[1], out, why) : o;
    }
    return KP_EVAL_UNKNOWN;
}

enum kp_outcome kp_expr_eval(const struct kp_expr *e, const struct kp_env *env,
                             struct kp_value *out, struct kp_eval_error *why)
{
    struct kp_eval_error unused;
    struct kp_eval_error *reason = why ? why : &unused;
    *reason = (struct kp_eval_error){0, NULL};
    enum kp_outcome o = evaluate(e, env, out, reason);
    if (o != KP_EVAL_ERROR)
        *reason = (struct kp_eval_error){0, NULL};
    return o;
}

int kp_expr_truth(const struct kp_expr *e, const struct kp_env *env, struct kp_eval_error *why)
{
    struct kp_eval_error unused;
    struct kp_eval_error *reason = why ? why : &unused;
    *reason = (struct kp_eval_error){0, NULL};
    enum truth t = truth_of(e, env, reason);
    if (t != TRUTH_ERROR)
        *reason = (struct kp_eval_error){0, NULL};
    return t == TRUTH_UNKNOWN ? -1 : t == TRUTH_TRUE;
}
