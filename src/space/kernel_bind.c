/* SPDX-License-Identifier: MIT */
/* A kernel with the sizes of a problem, the numbers of a device, and the space over them.
 * Layer: space. */
#include "base/alloc.h"
#include "base/num.h"
#include "space/kernel_impl.h"
#include "json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BOUND_ARENA_MAX = 256 << 20 };

struct binding {
    struct kp_bound *b;
    struct kp_param *params; /* as narrowed */
    bool *given;             /* by problem index */
    bool *narrowed;          /* by parameter */
    kopt_error *err;
};

/* "M, N, K" for hints. */
static void list_names(const struct kp_kernel *k, struct kp_buf *out)
{
    for (size_t i = 0; i < k->n_problem; i++)
        kp_buf_addf(out, "%s%s", i ? " " : "problem: ", k->problem[i]);
    for (size_t i = 0; i < k->n_params; i++)
        kp_buf_addf(out, "%s%s",
                    i              ? " "
                    : k->n_problem ? "; parameters: "
                                   : "parameters: ",
                    k->params[i].name);
}

/* Is it a name that the command line may have? */
static bool is_given(const struct kp_kernel *k, const char *name)
{
    for (size_t i = 0; i < k->n_problem; i++)
        if (strcmp(k->problem[i], name) == 0)
            return true;
    for (size_t i = 0; i < k->n_params; i++)
        if (strcmp(k->params[i].name, name) == 0)
            return true;
    return false;
}

static kopt_status unknown(const struct binding *w, struct kp_str name)
{
    struct kp_buf names = KP_BUF_INIT(240);
    kopt_status st =
        kp_err(w->err, KOPT_EUSAGE, "%s: no problem size or parameter is named '%.*s'",
               w->b->kernel->path, KP_STR_FMT(name));
    const char *near = kp_scope_nearest(&w->b->kernel->scope, name);
    if (near && is_given(w->b->kernel, near))
        kp_buf_addf(&names, "did you mean '%s'? ", near);
    list_names(w->b->kernel, &names);
    kp_err_hint(w->err, "%s", kp_buf_text(&names));
    kp_buf_deinit(&names);
    return st;
}

static kopt_status arena_full(const struct binding *w)
{
    if (!w->b->arena.over)
        return kp_err_nomem(w->err);
    return kp_err(w->err, KOPT_ERANGE, "the problem and its lists need more than %d MiB",
                  BOUND_ARENA_MAX >> 20);
}

/* A string of the caller's becomes one of ours. */
static kopt_status own(const struct binding *w, struct kp_value *v)
{
    if (v->type != KP_STRING)
        return KOPT_OK;
    v->as.s.ptr = kp_arena_strndup(&w->b->arena, v->as.s.ptr, v->as.s.len);
    return v->as.s.ptr ? KOPT_OK : arena_full(w);
}

static kopt_status not_a_size(const struct binding *w, const char *name, struct kp_str text)
{
    kopt_status st =
        kp_err(w->err, KOPT_EUSAGE, "%s=%.*s: a problem size is an integer from 1 to %" PRId64,
               name, KP_STR_FMT(text), INT64_MAX);
    kp_err_hint(w->err, "for example %s=1024", name);
    return st;
}

static kopt_status bind_size(struct binding *w, size_t index, struct kp_str text)
{
    const char *name = w->b->kernel->problem[index];
    bool word = w->b->kernel->rules_only; /* or a number of another kind */
    int64_t v = 0;
    double f = 0;
    if (w->given[index])
        return kp_err(w->err, KOPT_EUSAGE, "%s is given twice", name);
    bool integer = kp_str_to_i64(text, &v);
    if (!word && (!integer || v < 1))
        return not_a_size(w, name, text);
    if (text.len == 0)
        return kp_err(w->err, KOPT_EUSAGE, "%s= has no value", name);
    w->given[index] = true;
    w->b->problem[index] = integer                      ? kp_int(v)
                           : kp_f64_from_text(text, &f) ? kp_float(f)
                                                        : kp_string(text);
    return own(w, &w->b->problem[index]);
}

static kopt_status no_value(const struct binding *w, const struct kp_param *p,
                            struct kp_str text)
{
    kopt_status st = kp_err(w->err, KOPT_EUSAGE, "%s=%.*s: the parameter has no such value",
                            p->name, KP_STR_FMT(text));
    kp_param_hint(p, w->err);
    return st;
}

/* Mark the values that `text` ("32,64") names. */
static kopt_status mark(const struct binding *w, const struct kp_param *p, struct kp_str text,
                        bool *keep)
{
    struct kp_str rest = text;
    do {
        struct kp_str one = kp_str_trim(kp_str_cut(rest, ',', &rest));
        bool found = false;
        for (uint32_t i = 0; i < p->n_values; i++) {
            if (kp_value_means(p->values[i], one))
                keep[i] = found = true;
        }
        if (!found)
            return no_value(w, p, one);
    } while (rest.len > 0);
    return KOPT_OK;
}

/* Keep the values that `text` names, in the order of the file. */
static kopt_status narrow(struct binding *w, size_t index, struct kp_str text)
{
    struct kp_param *p = &w->params[index];
    if (w->narrowed[index])
        return kp_err(w->err, KOPT_EUSAGE, "%s is given twice", p->name);
    bool *keep = kp_arena_alloc(&w->b->arena, p->n_values, sizeof(*keep));
    struct kp_value *values = kp_arena_alloc(&w->b->arena, p->n_values, sizeof(*values));
    if (!keep || !values)
        return arena_full(w);
    kopt_status st = mark(w, p, text, keep);
    if (st != KOPT_OK)
        return st;
    uint32_t n = 0;
    int64_t default_index = -1;
    for (uint32_t i = 0; i < p->n_values; i++) {
        if (keep[i] && p->default_index == (int64_t)i)
            default_index = n;
        if (keep[i])
            values[n++] = p->values[i];
    }
    p->values = values;
    p->n_values = n;
    p->default_index = default_index;
    w->narrowed[index] = true;
    return KOPT_OK;
}

static kopt_status bind_text(struct binding *w, const char *text)
{
    const struct kp_kernel *k = w->b->kernel;
    struct kp_str value;
    struct kp_str name = kp_str_cut(kp_str_from(text), '=', &value);
    if (name.len == strlen(text)) {
        kopt_status st = kp_err(w->err, KOPT_EUSAGE, "'%s' is not NAME=VALUE", text);
        kp_err_hint(w->err, "for example %s=1024", k->n_problem ? k->problem[0] : "N");
        return st;
    }
    for (size_t i = 0; i < k->n_problem; i++) {
        if (kp_str_is(name, k->problem[i]))
            return bind_size(w, i, value);
    }
    for (size_t i = 0; i < k->n_params; i++) {
        if (kp_str_is(name, k->params[i].name))
            return narrow(w, i, value);
    }
    return unknown(w, name);
}

/* Defaults for what was not given; an error that names all that is missing. */
static kopt_status complete(struct binding *w)
{
    const struct kp_kernel *k = w->b->kernel;
    struct kp_buf missing = KP_BUF_INIT(200);
    struct kp_buf example = KP_BUF_INIT(200);
    for (size_t i = 0; i < k->n_problem; i++) {
        if (!w->given[i] && k->has_problem_default[i]) {
            w->b->problem[i] = k->problem_default[i];
        } else if (!w->given[i]) {
            kp_buf_addf(&missing, "%s%s", missing.len ? ", " : "", k->problem[i]);
            kp_buf_addf(&example, " %s=1024", k->problem[i]);
        }
    }
    kopt_status st = KOPT_OK;
    if (missing.len > 0 || missing.failed != KOPT_OK) {
        st = kp_err(w->err, KOPT_EUSAGE, "%s: the problem's size is missing: %s", k->path,
                    kp_buf_text(&missing));
        kp_err_hint(w->err, "for example%s", kp_buf_text(&example));
    }
    kp_buf_deinit(&example);
    kp_buf_deinit(&missing);
    return st;
}

void kp_kernel_environment(const struct kp_kernel *k, const struct kp_value *problem,
                           const struct kp_limits *limits, struct kp_value *values,
                           unsigned char *known)
{
    kp_device_values(limits, values);
    memset(known, 1, kp_device_slots());
    for (size_t i = 0; i < k->n_problem; i++) {
        int64_t slot = kp_scope_find(&k->scope, kp_str_from(k->problem[i]));
        KP_CHECK(slot >= 0);
        values[slot] = problem[i];
        known[slot] = 1;
    }
}

static kopt_status allocate(struct binding *w)
{
    struct kp_bound *b = w->b;
    const struct kp_kernel *k = b->kernel;
    b->problem = kp_arena_alloc(&b->arena, k->n_problem, sizeof(*b->problem));
    b->values = kp_arena_alloc(&b->arena, k->n_slots, sizeof(*b->values));
    b->known = kp_arena_alloc(&b->arena, k->n_slots, 1);
    w->params = kp_arena_alloc(&b->arena, k->n_params, sizeof(*w->params));
    w->given = kp_arena_alloc(&b->arena, k->n_problem, sizeof(bool));
    w->narrowed = kp_arena_alloc(&b->arena, k->n_params, sizeof(bool));
    if (b->arena.failed)
        return kp_err_nomem(w->err);
    for (size_t i = 0; i < k->n_params; i++)
        w->params[i] = k->params[i];
    return KOPT_OK;
}

/* A kernel that waits for its problem. */
static kopt_status begin(struct binding *w, const struct kp_kernel *k, kopt_error *err)
{
    *w = (struct binding){.b = kp_calloc(1, sizeof(*w->b)), .err = err};
    if (!w->b)
        return kp_err_nomem(err);
    w->b->kernel = k;
    w->b->arena = KP_ARENA_INIT(BOUND_ARENA_MAX);
    return allocate(w);
}

/* The space over the problem, and the whole to the caller where `st` and it are well. */
static kopt_status finish(struct binding *w, kopt_status st, const struct kp_limits *limits,
                          struct kp_space_cache *cache, struct kp_bound **out)
{
    struct kp_bound *b = w->b;
    if (st == KOPT_OK) {
        kp_kernel_environment(b->kernel, b->problem, limits, b->values, b->known);
        b->desc = (struct kp_space_desc){.params = w->params,
                                         .n_params = b->kernel->n_params,
                                         .rules = b->kernel->rules,
                                         .n_rules = b->kernel->n_rules,
                                         .values = b->values,
                                         .known = b->known,
                                         .n_slots = b->kernel->n_slots,
                                         .cache = cache};
        st = kp_space_new(&b->desc, &b->space, w->err);
    }
    if (st == KOPT_OK)
        *out = b;
    else
        kp_bound_free(b);
    return st;
}

kopt_status kp_kernel_bind(const struct kp_kernel *k, const char *const *problem,
                           size_t n_problem, const struct kp_limits *limits,
                           struct kp_bound **out, kopt_error *err)
{
    struct binding w;
    *out = NULL;
    kopt_status st = begin(&w, k, err);
    for (size_t i = 0; st == KOPT_OK && i < n_problem; i++)
        st = bind_text(&w, problem[i]);
    if (st == KOPT_OK)
        st = complete(&w);
    return finish(&w, st, limits, NULL, out);
}

kopt_status kp_kernel_bind_values(const struct kp_kernel *k, const struct kp_value *problem,
                                  const struct kp_limits *limits, struct kp_bound **out,
                                  kopt_error *err)
{
    return kp_kernel_bind_cached(k, problem, limits, NULL, out, err);
}

kopt_status kp_kernel_bind_cached(const struct kp_kernel *k, const struct kp_value *problem,
                                  const struct kp_limits *limits, struct kp_space_cache *cache,
                                  struct kp_bound **out, kopt_error *err)
{
    struct binding w;
    *out = NULL;
    kopt_status st = begin(&w, k, err);
    for (size_t i = 0; st == KOPT_OK && i < k->n_problem; i++) {
        w.b->problem[i] = problem[i];
        if (problem[i].type == KP_FLOAT && !isfinite(problem[i].as.f))
            st = kp_err(err, KOPT_EUSAGE, "%s is not a finite number", k->problem[i]);
        else
            st = own(&w, &w.b->problem[i]);
    }
    return finish(&w, st, limits, cache, out);
}

void kp_bound_free(struct kp_bound *b)
{
    if (!b)
        return;
    kp_space_free(b->space);
    kp_arena_deinit(&b->arena);
    kp_free(b);
}

void kp_bound_problem_json(const struct kp_bound *b, struct kp_buf *out)
{
    const struct kp_kernel *k = b->kernel;
    const char *last = "";
    kp_buf_addc(out, '{');
    /* Selection by name: a handful of names at most, and nothing to allocate. */
    for (size_t n = 0; n < k->n_problem; n++) {
        size_t best = k->n_problem;
        for (size_t i = 0; i < k->n_problem; i++) {
            if (strcmp(k->problem[i], last) > 0 &&
                (best == k->n_problem || strcmp(k->problem[i], k->problem[best]) < 0))
                best = i;
        }
        last = k->problem[best];
        kp_buf_adds(out, n ? "," : "");
        kp_json_quote(kp_str_from(last), out);
        kp_buf_addc(out, ':');
        kp_value_to_json(b->problem[best], out);
    }
    kp_buf_addc(out, '}');
}

bool kp_bound_default(const struct kp_bound *b, uint32_t *config)
{
    for (size_t i = 0; i < b->desc.n_params; i++) {
        const struct kp_param *p = &b->desc.params[i];
        config[i] = p->default_index >= 0 ? (uint32_t)p->default_index : (p->n_values - 1) / 2;
    }
    return kp_space_repair(b->space, config);
}
