/* SPDX-License-Identifier: MIT */
/* Spaces written as text, for the tests of the search. */
#ifndef KP_TESTS_SEARCH_SPACES_H
#define KP_TESTS_SEARCH_SPACES_H

#include "base/arena.h"
#include "space/space.h"
#include "support/test.h"

enum { TEXT_PARAMS = KP_PARAMS_MAX, TEXT_RULES = 8 };

struct text_space {
    struct kp_arena arena;
    struct kp_scope scope;
    struct kp_param params[TEXT_PARAMS];
    struct kp_rule rules[TEXT_RULES];
    struct kp_value values[TEXT_PARAMS];
    unsigned char known[TEXT_PARAMS];
    struct kp_space_desc desc;
    struct kp_space *space;
};

/* Parameter `i` is called p0, p1, ..; `list` as in a kernel file. */
static inline void text_param(struct text_space *t, const char *list)
{
    size_t i = t->desc.n_params++;
    struct kp_value *values = NULL;
    size_t n = 0;
    size_t used = 0;
    kopt_error err = {0};
    char name[16];
    (void)snprintf(name, sizeof(name), "p%zu", i);
    char *kept = kp_arena_strndup(&t->arena, name, strlen(name));
    assert_non_null(kept);
    assert_int_equal(kp_scope_add(&t->scope, kept, (uint32_t)i, &err), KOPT_OK);
    assert_int_equal(kp_list_parse(kp_str_from(list), NULL, NULL, KP_DIALECT_KOPT, NULL,
                                   &t->arena, &values, &n, &used, &err),
                     KOPT_OK);
    t->params[i] = (struct kp_param){.name = kept,
                                     .type = values[0].type,
                                     .values = values,
                                     .n_values = (uint32_t)n,
                                     .default_index = -1,
                                     .slot = (uint32_t)i};
}

static inline void text_rule(struct text_space *t, const char *text)
{
    kopt_error err = {0};
    struct kp_rule *r = &t->rules[t->desc.n_rules++];
    r->text = text;
    assert_int_equal(kp_expr_parse(kp_str_from(text), &t->scope, KP_DIALECT_KOPT, NULL,
                                   &t->arena, &r->expr, &err),
                     KOPT_OK);
}

/* Lists up to a NULL, then rules up to a NULL: {"{1,2}", "{1,2}", NULL, "p0 < p1", NULL}. */
static inline void text_space_open(struct text_space *t, const char *const *text)
{
    kopt_error err = {0};
    memset(t, 0, sizeof(*t));
    t->arena.max = (size_t)64 << 20;
    for (; *text; text++)
        text_param(t, *text);
    for (text++; *text; text++)
        text_rule(t, *text);
    t->desc.params = t->params;
    t->desc.rules = t->rules;
    t->desc.values = t->values;
    t->desc.known = t->known;
    t->desc.n_slots = t->desc.n_params;
    assert_int_equal(kp_space_new(&t->desc, &t->space, &err), KOPT_OK);
}

static inline void text_space_close(struct text_space *t)
{
    kp_space_free(t->space);
    kp_arena_deinit(&t->arena);
    kp_scope_deinit(&t->scope);
}

#endif
