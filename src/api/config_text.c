/* SPDX-License-Identifier: MIT */
#include "api/config_text.h"

#include <string.h>

enum { TEXTS_MAX = 64 << 20, PIECE_MAX = 1 << 20 };

static kopt_status make_piece(struct kp_config_texts *t, const char *name, struct kp_value v,
                              bool json, struct kp_str *out, kopt_error *err)
{
    struct kp_buf b = KP_BUF_INIT(PIECE_MAX);
    if (json)
        kp_json_quote(kp_str_from(name), &b);
    else
        kp_buf_adds(&b, name);
    kp_buf_addc(&b, json ? ':' : '=');
    if (json)
        kp_value_to_json(v, &b);
    else
        kp_value_to_text(v, &b);
    kopt_status st = kp_buf_status(&b, err);
    if (st == KOPT_OK) {
        *out = (struct kp_str){kp_arena_strndup(&t->arena, kp_buf_text(&b), b.len), b.len};
        if (!out->ptr)
            st = t->arena.over ? kp_err(err, KOPT_ERANGE, "the model's values are too long")
                               : kp_err_nomem(err);
    }
    kp_buf_deinit(&b);
    return st;
}

static kopt_status make_pieces(struct kp_config_texts *t, const struct kp_target *target,
                               size_t p, bool json, kopt_error *err)
{
    struct kp_str *pieces = kp_arena_alloc(&t->arena, target->n_values, sizeof(*pieces));
    if (!pieces)
        return kp_err_nomem(err);
    t->pieces[json][p] = pieces;
    kopt_status st = KOPT_OK;
    for (uint32_t v = 0; st == KOPT_OK && v < target->n_values; v++)
        st = make_piece(t, target->name, target->values[v], json, &pieces[v], err);
    return st;
}

static void sort_names(struct kp_config_texts *t, const struct kp_model *m)
{
    for (size_t p = 0; p < t->n_targets; p++) {
        size_t at = p;
        for (; at > 0 && strcmp(m->targets[t->by_name[at - 1]].name, m->targets[p].name) > 0;
             at--)
            t->by_name[at] = t->by_name[at - 1];
        t->by_name[at] = (uint32_t)p;
    }
}

kopt_status kp_config_texts_init(struct kp_config_texts *t, const struct kp_model *m,
                                 kopt_error *err)
{
    kopt_status st = KOPT_OK;
    *t = (struct kp_config_texts){.n_targets = m->n_targets, .arena = KP_ARENA_INIT(TEXTS_MAX)};
    for (size_t p = 0; st == KOPT_OK && p < m->n_targets; p++)
        for (int json = 0; st == KOPT_OK && json < 2; json++)
            st = make_pieces(t, &m->targets[p], p, json != 0, err);
    if (st == KOPT_OK)
        sort_names(t, m);
    else
        kp_config_texts_deinit(t);
    return st;
}

void kp_config_texts_deinit(struct kp_config_texts *t)
{
    kp_arena_deinit(&t->arena);
}

static struct kp_str piece(const struct kp_config_texts *t, const uint32_t *config,
                           enum kp_config_form form, size_t i)
{
    size_t p = form == KP_CONFIG_KEY ? t->by_name[i] : i;
    return t->pieces[form != KP_CONFIG_TEXT][p][config[p]];
}

size_t kp_config_bytes(const struct kp_config_texts *t, const uint32_t *config,
                       enum kp_config_form form)
{
    size_t n = form == KP_CONFIG_TEXT ? 0 : 2; /* braces */
    for (size_t i = 0; i < t->n_targets; i++)
        n += piece(t, config, form, i).len + 1; /* a comma, or the NUL */
    return n;
}

char *kp_config_write(const struct kp_config_texts *t, const uint32_t *config,
                      enum kp_config_form form, char *to)
{
    if (form != KP_CONFIG_TEXT)
        *to++ = '{';
    for (size_t i = 0; i < t->n_targets; i++) {
        struct kp_str s = piece(t, config, form, i);
        if (i)
            *to++ = ',';
        memcpy(to, s.ptr, s.len);
        to += s.len;
    }
    if (form != KP_CONFIG_TEXT)
        *to++ = '}';
    *to++ = 0;
    return to;
}
