/* SPDX-License-Identifier: MIT */
/* Spaces from text, and the same questions answered by trying every assignment. */
#ifndef KP_TESTS_SPACE_ENGINE_H
#define KP_TESTS_SPACE_ENGINE_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "space/space.h"
#include "support/test.h"

enum { MADE_PARAMS = KP_PARAMS_MAX, MADE_RULES = KP_RULES_MAX, MADE_FIXED = 8 };

struct made {
    struct kp_arena arena;
    struct kp_scope scope;
    struct kp_param params[MADE_PARAMS];
    struct kp_rule rules[MADE_RULES];
    struct kp_value values[MADE_PARAMS + MADE_FIXED];
    unsigned char known[MADE_PARAMS + MADE_FIXED];
    struct kp_space_desc desc;
};

static inline void made_init(struct made *m)
{
    memset(m, 0, sizeof(*m));
    m->arena.max = (size_t)64 << 20;
    m->desc.params = m->params;
    m->desc.rules = m->rules;
    m->desc.values = m->values;
    m->desc.known = m->known;
}

static inline void made_deinit(struct made *m)
{
    kp_arena_deinit(&m->arena);
    kp_scope_deinit(&m->scope);
}

static inline uint32_t made_name(struct made *m, const char *name)
{
    kopt_error err;
    uint32_t slot = (uint32_t)m->desc.n_slots++;
    assert_int_equal(kp_scope_add(&m->scope, name, slot, &err), KOPT_OK);
    return slot;
}

static inline void made_fixed(struct made *m, const char *name, struct kp_value v)
{
    uint32_t slot = made_name(m, name);
    m->values[slot] = v;
    m->known[slot] = 1;
}

/* `list` as in a kernel file: "{1,2,4}". */
static inline void made_param(struct made *m, const char *name, const char *list)
{
    kopt_error err = {0};
    struct kp_value *values = NULL;
    size_t n = 0;
    size_t used = 0;
    char *text = kp_arena_strndup(&m->arena, list, strlen(list));
    char *own = kp_arena_strndup(&m->arena, name, strlen(name));
    if (kp_list_parse(kp_str_from(text), NULL, NULL, KP_DIALECT_PYTHON, NULL, &m->arena,
                      &values, &n, &used, &err) != KOPT_OK)
        fail_msg("%s: %s", list, err.message);
    struct kp_param *p = &m->params[m->desc.n_params++];
    *p = (struct kp_param){.name = own, .values = values, .n_values = (uint32_t)n};
    p->type = values[0].type;
    p->default_index = -1;
    p->slot = made_name(m, own);
}

static inline void made_rule(struct made *m, enum kp_dialect dialect, const char *text)
{
    kopt_error err = {0};
    struct kp_rule *r = &m->rules[m->desc.n_rules++];
    char *own = kp_arena_strndup(&m->arena, text, strlen(text));
    if (kp_expr_parse(kp_str_from(own), &m->scope, dialect, NULL, &m->arena, &r->expr, &err) !=
        KOPT_OK)
        fail_msg("%s: %s", text, err.message);
    r->text = own;
}

static inline struct kp_space *made_space(struct made *m)
{
    kopt_error err = {0};
    struct kp_space *s = NULL;
    if (kp_space_new(&m->desc, &s, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_non_null(s);
    return s;
}

/* By the evaluator on the rules as parsed; the first rule that fails, or n_rules. */
static inline size_t made_first_failing(struct made *m, const uint32_t *config)
{
    struct kp_env env = {m->values, m->known};
    size_t failing = m->desc.n_rules;
    for (size_t i = 0; i < m->desc.n_params; i++) {
        m->values[m->params[i].slot] = m->params[i].values[config[i]];
        m->known[m->params[i].slot] = 1;
    }
    for (size_t r = 0; r < m->desc.n_rules && failing == m->desc.n_rules; r++)
        if (kp_expr_truth(m->rules[r].expr, &env, NULL) != 1)
            failing = r;
    for (size_t i = 0; i < m->desc.n_params; i++)
        m->known[m->params[i].slot] = 0;
    return failing;
}

/* The odometer over order[]: false at the end. `config` starts as all zero. */
static inline bool made_next(const struct made *m, const uint32_t *order, uint32_t *config)
{
    for (size_t k = m->desc.n_params; k-- > 0;) {
        uint32_t i = order[k];
        if (++config[i] < m->params[i].n_values)
            return true;
        config[i] = 0;
    }
    return false;
}

static const enum kp_dialect kopt_dialect = KP_DIALECT_KOPT;
static const enum kp_dialect python_dialect = KP_DIALECT_PYTHON;

static inline void add_params(struct made *m, const char *prefix, int n, const char *list)
{
    for (int i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%s%d", prefix, i);
        made_param(m, name, list);
    }
}

/* "x0 + x1 + .. " with the operator between, then the tail. */
static inline void add_chain_rule(struct made *m, const char *op, int n, const char *tail)
{
    struct kp_buf b = KP_BUF_INIT(1 << 16);
    for (int i = 0; i < n; i++)
        kp_buf_addf(&b, "%sx%d", i ? op : "", i);
    kp_buf_adds(&b, tail);
    made_rule(m, python_dialect, kp_buf_text(&b));
    kp_buf_deinit(&b);
}

static const char *const ten = "{1,2,3,4,5,6,7,8,9,10}";

#endif
