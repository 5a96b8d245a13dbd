/* SPDX-License-Identifier: MIT */
/* The identity of what is measured. Change `version` when a field is added or changes its
 * meaning: results under other hashes are then no longer found. Layer: space. */
#include "base/hash.h"
#include "base/alloc.h"
#include "os/file.h"
#include "space/hash_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char version[] = "kopt kernel 2";

static void add_number(struct kp_sha256 *h, int64_t v)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%" PRId64, v);
    kp_sha256_add_field(h, text, (size_t)n);
}

/* ---- expressions ---- */

struct walk {
    struct kp_sha256 *h;
    const struct kp_kernel *k;
    struct kp_buf text; /* of one expression; its failure stays */
};

/* Names, not slots: those move when a parameter is added. */
static const char *slot_name(const struct kp_kernel *k, uint32_t slot)
{
    if (slot == k->slot_index)
        return "i";
    for (size_t i = 0; i < k->scope.n; i++) {
        if (k->scope.names[i].slot == slot)
            return k->scope.names[i].name;
    }
    return "?";
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static void write_expr(struct walk *w, const struct kp_expr *e)
{
    if (e->op == KP_OP_CONST) {
        kp_buf_adds(&w->text, kp_type_name(e->value.type));
        kp_buf_addc(&w->text, ' ');
        kp_value_to_json(e->value, &w->text);
    } else if (e->op == KP_OP_VAR) {
        kp_buf_adds(&w->text, slot_name(w->k, e->slot));
    } else {
        kp_buf_addf(&w->text, "(%d %d", (int)e->op,
                    e->op == KP_OP_CALL ? (int)e->func : (int)e->operand);
        for (uint32_t i = 0; i < e->n_args; i++) {
            kp_buf_addc(&w->text, ' ');
            write_expr(w, e->args[i]);
        }
        kp_buf_addc(&w->text, ')');
    }
}

static void add_expr(struct walk *w, const struct kp_expr *e)
{
    w->text.len = 0; /* kp_buf_clear() would forget a failure */
    if (e)
        write_expr(w, e);
    kp_sha256_add_field(w->h, kp_buf_text(&w->text), w->text.len);
}

static void add_triple(struct walk *w, const struct kp_expr *const e[3])
{
    for (int i = 0; i < 3; i++)
        add_expr(w, e[i]);
}

/* ---- files ---- */

static kopt_status add_chunk(void *user, const void *bytes, size_t n)
{
    kp_sha256_add(user, bytes, n);
    return KOPT_OK;
}

/* A file of data may be of any size: it is read through, not held. */
static kopt_status add_file(struct kp_sha256 *h, const char *beside, const char *name,
                            kopt_error *err)
{
    char *path = kp_text_path(beside, name);
    if (!path)
        return kp_err_nomem(err);
    kp_sha256_add_text(h, name);
    kopt_status st = kp_file_walk(path, add_chunk, h, err);
    kp_sha256_add_text(h, "end of file");
    kp_free(path);
    return st;
}

/* ---- the parts of a kernel ---- */

static kopt_status add_args(struct walk *w, kopt_error *err)
{
    for (size_t i = 0; i < w->k->n_args; i++) {
        const struct kp_arg *a = &w->k->args[i];
        kp_sha256_add_text(w->h, a->name);
        add_number(w->h, a->kind);
        kp_sha256_add_text(w->h, kp_elem_name(a->elem));
        add_number(w->h, a->lanes);
        add_number(w->h, a->dir);
        add_expr(w, a->count);
        add_expr(w, a->value);
        add_number(w->h, a->fill);
        add_expr(w, a->fill_a);
        add_expr(w, a->fill_b);
        kopt_status st = a->fill_file ? add_file(w->h, w->k->path, a->fill_file, err) : KOPT_OK;
        if (st != KOPT_OK)
            return st;
    }
    return KOPT_OK;
}

static kopt_status add_checks(struct walk *w, struct kp_hash_files *files, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < w->k->n_checks; i++) {
        const struct kp_check_decl *c = &w->k->checks[i];
        add_number(w->h, (int64_t)c->arg);
        add_number(w->h, c->kind);
        kp_sha256_add_text(w->h, c->name);
        add_number(w->h, c->fill);
        add_expr(w, c->fill_a);
        add_expr(w, c->rtol);
        add_expr(w, c->atol);
        if (c->kind == KP_CHECK_C)
            st = kp_hash_reference(files, c->path);
        else if (c->kind == KP_CHECK_FILE)
            st = add_file(w->h, w->k->path, c->name, err);
    }
    return st;
}

static void add_launch(struct walk *w)
{
    const struct kp_kernel *k = w->k;
    kp_sha256_add_text(w->h, k->name);
    add_number(w->h, k->lang);
    kp_sha256_add_text(w->h, k->macro_prefix);
    add_number(w->h, (int64_t)k->n_flags);
    for (size_t i = 0; i < k->n_flags; i++)
        kp_sha256_add_text(w->h, k->flags[i]);
    add_triple(w, k->block);
    add_triple(w, k->grid);
    add_expr(w, k->shared);
    add_number(w->h, (int64_t)k->n_lets);
    for (size_t i = 0; i < k->n_lets; i++) {
        kp_sha256_add_text(w->h, k->lets[i].name);
        add_expr(w, k->lets[i].expr);
    }
    add_number(w->h, (int64_t)k->n_references);
    for (size_t i = 0; i < k->n_references; i++) {
        kp_sha256_add_text(w->h, k->references[i].name);
        add_triple(w, k->references[i].block);
        add_triple(w, k->references[i].grid);
    }
}

kopt_status kp_kernel_hash(const struct kp_kernel *k, char *out, kopt_error *err)
{
    struct walk w = {.k = k, .text = KP_BUF_INIT(KP_KERNEL_FILE_MAX)};
    out[0] = 0;
    kopt_status st = kp_sha256_new(&w.h, err);
    if (st != KOPT_OK)
        return st;
    struct kp_hash_files files = {.h = w.h, .k = k, .err = err};
    kp_sha256_add_text(w.h, version);
    add_launch(&w);
    add_number(w.h, (int64_t)k->n_args);
    st = add_args(&w, err);
    add_number(w.h, (int64_t)k->n_checks);
    if (st == KOPT_OK)
        st = add_checks(&w, &files, err);
    if (st == KOPT_OK)
        st = kp_hash_source(&files);
    if (st == KOPT_OK)
        st = kp_buf_status(&w.text, err);
    if (st == KOPT_OK)
        kp_sha256_finish(w.h, out);
    else
        kp_sha256_free(w.h);
    kp_hash_files_deinit(&files);
    kp_buf_deinit(&w.text);
    return st;
}
