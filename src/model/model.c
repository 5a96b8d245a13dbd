/* SPDX-License-Identifier: MIT */
#include "model/forest.h"
#include "model/model_impl.h"
#include "model/model_spaces.h"
#include "model/ranking.h"
#include "model/scratch.h"

#include "base/alloc.h"
#include "base/num.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void kp_model_free(struct kp_model *m)
{
    if (!m)
        return;
    for (size_t k = 0; k < m->n_nets; k++)
        kp_net_free(m->nets[k]);
    kp_ranking_free(m->ranking);
    kp_forest_free(m->forest);
    kp_encoder_free(m->encoder);
    kp_spaces_free(m->spaces);
    kp_scratch_pool_free(m->scratch);
    kp_kernel_free(m->rules);
    kp_json_free(m->info);
    kp_arena_deinit(&m->arena);
    struct kp_file_map map = {m->map, m->map_bytes};
    kp_file_unmap(&map);
    kp_free(m);
}

size_t kp_model_n_first(const struct kp_model *m)
{
    size_t n = 0;
    while (n < m->n_nets && m->nets[n]->ops == m->nets[0]->ops)
        n++;
    return n;
}

void kp_model_network(const struct kp_model *m, char out[KP_MODEL_NETWORK])
{
    size_t n = kp_model_n_first(m);
    (void)snprintf(out, KP_MODEL_NETWORK, "%s%s%s", m->nets[0]->ops->name,
                   n < m->n_nets ? "+" : "", n < m->n_nets ? m->nets[n]->ops->name : "");
}

kopt_status kp_model_keep_spaces(struct kp_model *m, kopt_error *err)
{
    if (!m->scratch) {
        m->scratch = kp_scratch_pool_new();
        if (!m->scratch)
            return kp_err_nomem(err);
    }
    return m->rules && !m->spaces ? kp_spaces_new(m, &m->spaces, err) : KOPT_OK;
}

void kp_prediction_deinit(struct kp_prediction *p)
{
    if (p->scratch) {
        kp_scratch_give(p->scratch);
    } else {
        kp_free(p->configs);
        kp_free(p->logp);
    }
    *p = (struct kp_prediction){0};
}

void kp_model_tensor_name(size_t net, const struct kp_tensor *t,
                          char name[KP_MODEL_TENSOR_NAME])
{
    (void)snprintf(name, KP_MODEL_TENSOR_NAME, "net%zu.%s", net, t->name);
}

size_t kp_model_field(const struct kp_encoder *e, struct kp_str name)
{
    for (size_t i = 0; i < kp_encoder_n_fields(e); i++)
        if (kp_str_is(name, kp_encoder_field(e, i)->name))
            return i;
    return SIZE_MAX;
}

struct kp_value kp_given_value(const char *text)
{
    struct kp_str s = kp_str_from(text);
    int64_t i;
    double f;
    if (kp_str_to_i64(s, &i))
        return kp_int(i);
    return kp_f64_from_text(s, &f) ? kp_float(f) : kp_string(s);
}

/* --- derived fields -------------------------------------------------------------------------
 */

struct sources {
    const unsigned char *is_problem; /* by slot */
    bool other;
    bool problem;
};

static void see_slot(void *user, uint32_t slot)
{
    struct sources *s = user;
    if (s->is_problem[slot])
        s->problem = true;
    else
        s->other = true;
}

/* False only where it is a string whatever the problem is. */
/* NOLINTNEXTLINE(misc-no-recursion): a tree of KP_EXPR_DEPTH_MAX levels */
static bool may_be_number(const struct kp_expr *e)
{
    if (e->op == KP_OP_COND)
        return may_be_number(e->args[1]) || may_be_number(e->args[2]);
    return e->op != KP_OP_CONST || e->value.type != KP_STRING;
}

static bool is_derived(const struct kp_let *let, const unsigned char *is_problem)
{
    struct sources s = {.is_problem = is_problem};
    if (let->expr->op == KP_OP_VAR)
        return false;
    kp_expr_slots(let->expr, see_slot, &s);
    return s.problem && !s.other && may_be_number(let->expr);
}

/* A let's expression has no slot above those of the names that stand in the scope. */
enum { SLOTS_MAX = KP_SCOPE_MAX + 64 };

static void mark_problem(const struct kp_kernel *rules, unsigned char *is_problem)
{
    for (size_t i = 0; i < rules->n_problem; i++) {
        int64_t slot = kp_scope_find(&rules->scope, kp_str_from(rules->problem[i]));
        KP_CHECK(slot >= 0 && slot < SLOTS_MAX);
        is_problem[slot] = 1;
    }
}

size_t kp_model_derived_lets(const struct kp_kernel *rules, const struct kp_let **lets)
{
    unsigned char is_problem[SLOTS_MAX] = {0};
    size_t n = 0;
    KP_CHECK(rules->n_slots <= SLOTS_MAX);
    mark_problem(rules, is_problem);
    for (size_t i = 0; i < rules->n_lets && n < KP_FIELDS_MAX; i++)
        if (is_derived(&rules->lets[i], is_problem))
            lets[n++] = &rules->lets[i];
    return n;
}

size_t kp_model_derived_names(const struct kp_kernel *rules, const char **names)
{
    const struct kp_let *lets[KP_FIELDS_MAX];
    size_t n = kp_model_derived_lets(rules, lets);
    for (size_t i = 0; i < n; i++)
        names[i] = lets[i]->name;
    return n;
}

double kp_model_derived_value(const struct kp_let *let, const struct kp_env *env)
{
    struct kp_value v;
    double x = 0;
    if (kp_expr_eval(let->expr, env, &v, NULL) != KP_EVAL_VALUE || !kp_value_to_f64(v, &x))
        return 0;
    return isfinite(x) ? x : 0;
}

kopt_status kp_model_derive(const struct kp_kernel *rules, const struct kp_value *problem,
                            double *values, kopt_error *err)
{
    unsigned char known[SLOTS_MAX] = {0}; /* the problem's slots and no others */
    const struct kp_let *lets[KP_FIELDS_MAX];
    size_t n = kp_model_derived_lets(rules, lets);
    struct kp_value *slots = kp_calloc(rules->n_slots + 1, sizeof(*slots));
    if (!slots)
        return kp_err_nomem(err);
    mark_problem(rules, known);
    for (size_t i = 0; i < rules->n_problem; i++)
        slots[kp_scope_find(&rules->scope, kp_str_from(rules->problem[i]))] = problem[i];
    const struct kp_env env = {slots, known};
    for (size_t i = 0; i < n; i++)
        values[i] = kp_model_derived_value(lets[i], &env);
    kp_free(slots);
    return KOPT_OK;
}
