/* SPDX-License-Identifier: MIT */
/* What a configuration means: launch, arguments, macros, metrics. Layer: space. */
#include "base/alloc.h"
#include "base/checked.h"
#include "space/kernel_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The environment of one configuration. */
struct frame {
    struct kp_value *values;
    unsigned char *known;
    struct kp_env env;
};

static bool frame_init(struct frame *f, const struct kp_bound *b, const uint32_t *config)
{
    size_t n = b->kernel->n_slots;
    f->values = kp_calloc(n, sizeof(*f->values));
    f->known = kp_calloc(n, 1);
    if (!f->values || !f->known)
        return false;
    memcpy(f->values, b->values, n * sizeof(*f->values));
    memcpy(f->known, b->known, n);
    f->env = (struct kp_env){f->values, f->known};
    if (config)
        kp_space_bind(b->space, config, f->values, f->known);
    return true;
}

static void frame_deinit(struct frame *f)
{
    kp_free(f->known);
    kp_free(f->values);
}

enum kp_outcome kp_bound_eval(const struct kp_bound *b, const struct kp_expr *e,
                              const uint32_t *config, struct kp_value *out,
                              struct kp_eval_error *why)
{
    struct frame f = {0};
    enum kp_outcome o = KP_EVAL_ERROR;
    if (frame_init(&f, b, config))
        o = kp_expr_eval(e, &f.env, out, why);
    else if (why)
        *why = (struct kp_eval_error){e->pos, "out of memory"};
    frame_deinit(&f);
    return o;
}

/* ---- numbers of one frame ---- */

struct place {
    const struct kp_bound *b;
    const struct frame *f;
    const char *what; /* "grid", "the count of A" */
    int line;
    kopt_error *err;
};

/* Lines count in the source only where the declarations stand in it. */
static struct kp_str source_line(const struct kp_kernel *k, int line)
{
    struct kp_str rest = k->source;
    struct kp_str found = {"", 0};
    if (strcmp(k->source_path, k->path) != 0)
        return found;
    for (int i = 0; i < line && rest.len > 0; i++)
        found = kp_str_cut(rest, '\n', &rest);
    return found;
}

static kopt_status wrong(const struct place *p, const char *detail)
{
    kopt_status st = kp_err(p->err, KOPT_ERANGE, "%s: %s", p->what, detail);
    if (p->line > 0) {
        struct kp_str line = source_line(p->b->kernel, p->line);
        kp_err_at(p->err, p->b->kernel->path, p->line, 0, line.ptr, (int)line.len);
    }
    return st;
}

static kopt_status value_of(const struct place *p, const struct kp_expr *e,
                            struct kp_value *out)
{
    struct kp_eval_error why;
    switch (kp_expr_eval(e, &p->f->env, out, &why)) {
    case KP_EVAL_VALUE:
        return KOPT_OK;
    case KP_EVAL_UNKNOWN:
        return wrong(p, "depends on a parameter that is not known here");
    case KP_EVAL_ERROR:
        break;
    }
    return wrong(p, why.what);
}

/* An integer of at least `least`; a float counts when it is whole (T1 files divide by "/"). */
static kopt_status size_of(const struct place *p, const struct kp_expr *e, int64_t least,
                           int64_t *out)
{
    struct kp_value v;
    *out = 0;
    kopt_status st = value_of(p, e, &v);
    if (st != KOPT_OK)
        return st;
    if (v.type == KP_FLOAT && v.as.f == floor(v.as.f) && fabs(v.as.f) < 0x1p62)
        v = kp_int((int64_t)v.as.f);
    if (v.type != KP_INT || v.as.i < least) {
        struct kp_buf text = KP_BUF_INIT(256);
        kp_value_to_text(v, &text);
        char detail[320];
        (void)snprintf(detail, sizeof(detail), "%.200s is not an integer of at least %" PRId64,
                       kp_buf_text(&text), least);
        kp_buf_deinit(&text);
        return wrong(p, detail);
    }
    *out = v.as.i;
    return KOPT_OK;
}

static kopt_status triple(struct place *p, const struct kp_expr *const e[3], int64_t out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = 1;
        kopt_status st = e[i] ? size_of(p, e[i], 1, &out[i]) : KOPT_OK;
        if (st != KOPT_OK)
            return st;
    }
    return KOPT_OK;
}

/* ---- launch ---- */

static kopt_status geometry(const struct kp_bound *b, const struct frame *f,
                            struct kp_geometry *out, kopt_error *err)
{
    const struct kp_kernel *k = b->kernel;
    struct place p = {b, f, "block", k->block_line, err};
    kopt_status st = triple(&p, k->block, out->block);
    if (st != KOPT_OK)
        return st;
    p.what = "grid";
    p.line = k->grid_line;
    st = triple(&p, k->grid, out->grid);
    if (st != KOPT_OK || !k->shared)
        return st;
    p.what = "shared";
    p.line = k->shared_line;
    return size_of(&p, k->shared, 0, &out->shared_bytes);
}

kopt_status kp_bound_geometry(const struct kp_bound *b, const uint32_t *config,
                              struct kp_geometry *out, kopt_error *err)
{
    struct frame f = {0};
    *out = (struct kp_geometry){{1, 1, 1}, {1, 1, 1}, 0};
    kopt_status st = frame_init(&f, b, config) ? geometry(b, &f, out, err) : kp_err_nomem(err);
    frame_deinit(&f);
    return st;
}

kopt_status kp_bound_reference_geometry(const struct kp_bound *b, size_t r,
                                        struct kp_geometry *out, kopt_error *err)
{
    const struct kp_reference *ref = &b->kernel->references[r];
    struct frame f = {0};
    *out = (struct kp_geometry){{1, 1, 1}, {1, 1, 1}, 0};
    kopt_status st = frame_init(&f, b, NULL) ? KOPT_OK : kp_err_nomem(err);
    struct place p = {b, &f, "block of the reference", ref->line, err};
    if (st == KOPT_OK)
        st = triple(&p, ref->block, out->block);
    p.what = "grid of the reference";
    if (st == KOPT_OK)
        st = triple(&p, ref->grid, out->grid);
    frame_deinit(&f);
    return st;
}

/* ---- arguments ---- */

kopt_status kp_bound_arg_count(const struct kp_bound *b, size_t arg, const uint32_t *config,
                               int64_t *count, kopt_error *err)
{
    const struct kp_arg *a = &b->kernel->args[arg];
    struct frame f = {0};
    char what[300];
    int64_t bytes = 0;
    *count = 0;
    (void)snprintf(what, sizeof(what), "the count of %s", a->name);
    KP_CHECK(a->kind != KP_ARG_SCALAR);
    kopt_status st = frame_init(&f, b, config) ? KOPT_OK : kp_err_nomem(err);
    struct place p = {b, &f, what, a->line, err};
    if (st == KOPT_OK)
        st = size_of(&p, a->count, 1, count);
    if (st == KOPT_OK &&
        !kp_mul_i64(*count, (int64_t)(kp_elem_bytes(a->elem) * a->lanes), &bytes))
        st = wrong(&p, "more than 2^63 bytes");
    if (st != KOPT_OK)
        *count = 0;
    frame_deinit(&f);
    return st;
}

/* The value as the argument's type takes it: KP_FLOAT for float types, else KP_INT. */
static kopt_status convert(const struct place *p, enum kp_elem elem, struct kp_value *v)
{
    double f = 0;
    if (!kp_value_to_f64(*v, &f))
        return wrong(p, "a string is no number");
    if (kp_elem_is_float(elem)) {
        *v = kp_float(f);
        return KOPT_OK;
    }
    if (v->type == KP_BOOL)
        *v = kp_int(v->as.b);
    if (v->type == KP_FLOAT && f == floor(f) && fabs(f) < 0x1p62)
        *v = kp_int((int64_t)f);
    if (v->type != KP_INT)
        return wrong(p, "not an integer");
    return kp_elem_fits(elem, v->as.i) ? KOPT_OK
                                       : wrong(p, "does not fit into the argument's type");
}

kopt_status kp_bound_arg_value(const struct kp_bound *b, size_t arg, const uint32_t *config,
                               struct kp_value *value, kopt_error *err)
{
    const struct kp_arg *a = &b->kernel->args[arg];
    struct frame f = {0};
    char what[300];
    *value = kp_int(0);
    (void)snprintf(what, sizeof(what), "the value of %s (%s)", a->name, kp_elem_name(a->elem));
    KP_CHECK(a->kind == KP_ARG_SCALAR);
    kopt_status st = frame_init(&f, b, config) ? KOPT_OK : kp_err_nomem(err);
    struct place p = {b, &f, what, a->line, err};
    if (st == KOPT_OK)
        st = value_of(&p, a->value, value);
    if (st == KOPT_OK)
        st = convert(&p, a->elem, value);
    frame_deinit(&f);
    return st;
}

/* ---- macros and metrics ---- */

struct macros {
    const struct kp_bound *b;
    struct kp_buf name;
    struct kp_buf text;
    void (*visit)(void *user, const char *name, const char *text);
    void *user;
};

static kopt_status visit_macro(const struct macros *m, kopt_error *err)
{
    kopt_status st = kp_buf_status(&m->name, err);
    if (st == KOPT_OK)
        st = kp_buf_status(&m->text, err);
    if (st == KOPT_OK)
        m->visit(m->user, kp_buf_text(&m->name), kp_buf_text(&m->text));
    return st;
}

static kopt_status one_macro(struct macros *m, const char *name, struct kp_value v,
                             kopt_error *err)
{
    kp_buf_clear(&m->name);
    kp_buf_clear(&m->text);
    kp_buf_addf(&m->name, "%s%s", m->b->kernel->macro_prefix, name);
    kp_value_to_macro(v, &m->text);
    return visit_macro(m, err);
}

static kopt_status unroll_macro(struct macros *m, const char *name, struct kp_value v,
                                kopt_error *err)
{
    kp_buf_clear(&m->name);
    kp_buf_clear(&m->text);
    kp_unroll_macro(name, v, &m->name, &m->text);
    return visit_macro(m, err);
}

kopt_status kp_bound_macros(const struct kp_bound *b, const uint32_t *config,
                            void (*visit)(void *user, const char *name, const char *text),
                            void *user, kopt_error *err)
{
    const struct kp_kernel *k = b->kernel;
    struct macros m = {b, KP_BUF_INIT(1024), KP_BUF_INIT(KP_EXPR_TEXT_MAX), visit, user};
    struct frame f = {0};
    kopt_status st = frame_init(&f, b, config) ? KOPT_OK : kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < k->n_params; i++) {
        const struct kp_param *p = &b->desc.params[i];
        st = one_macro(&m, p->name, p->values[config[i]], err);
        if (st == KOPT_OK && k->unrolls && kp_unroll_is_param(p->name))
            st = unroll_macro(&m, p->name, p->values[config[i]], err);
    }
    for (size_t i = 0; st == KOPT_OK && i < k->n_lets; i++) {
        const struct kp_let *let = &k->lets[i];
        struct kp_value v;
        struct place p = {b, &f, let->name, let->line, err};
        st = value_of(&p, let->expr, &v);
        if (st == KOPT_OK)
            st = one_macro(&m, let->name, v, err);
    }
    frame_deinit(&f);
    kp_buf_deinit(&m.text);
    kp_buf_deinit(&m.name);
    return st;
}

bool kp_bound_metric(const struct kp_bound *b, size_t m, const uint32_t *config, double time_ns,
                     double *out)
{
    const struct kp_kernel *k = b->kernel;
    struct frame f = {0};
    struct kp_value v;
    bool ok = frame_init(&f, b, config);
    *out = 0;
    if (ok) {
        f.values[k->slot_time_ns] = kp_float(time_ns);
        f.known[k->slot_time_ns] = 1;
        ok = kp_expr_eval(k->metrics[m].expr, &f.env, &v, NULL) == KP_EVAL_VALUE &&
             kp_value_to_f64(v, out);
    }
    frame_deinit(&f);
    return ok;
}

/* ---- canonical forms ---- */

kopt_status kp_bound_canonical(const struct kp_bound *b, const uint32_t *config,
                               struct kp_value *out, kopt_error *err)
{
    const struct kp_kernel *k = b->kernel;
    struct frame f = {0};
    for (size_t i = 0; i < k->n_params; i++)
        out[i] = b->desc.params[i].values[config[i]];
    if (k->n_canonicals == 0)
        return KOPT_OK;
    kopt_status st = frame_init(&f, b, config) ? KOPT_OK : kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < k->n_canonicals; i++) {
        const struct kp_canonical *c = &k->canonicals[i];
        struct kp_value v;
        if (kp_expr_eval(c->expr, &f.env, &v, NULL) == KP_EVAL_VALUE &&
            (v.type == KP_STRING) == (out[c->param].type == KP_STRING))
            out[c->param] = v;
    }
    frame_deinit(&f);
    return st;
}
