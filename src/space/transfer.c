/* SPDX-License-Identifier: MIT */
#include "space/transfer.h"

#include "base/alloc.h"

#include <string.h>

struct kp_transfer {
    const struct kp_space *from;
    const struct kp_space *to;
    uint32_t param[KP_PARAMS_MAX]; /* of `to`, by those of `from` */
    size_t first[KP_PARAMS_MAX];   /* in `values` */
    uint32_t *values; /* of `to`, by those of `from`, one parameter after another; n_values: it
                         has none like it */
};

uint32_t kp_param_value_like(const struct kp_param *p, struct kp_value v)
{
    uint32_t i = 0;
    for (; i < p->n_values; i++) {
        int order = 1;
        if (kp_value_compare(p->values[i], v, &order) && order == 0)
            break;
    }
    return i;
}

static bool find_param(const struct kp_space *s, const char *name, uint32_t *out)
{
    for (size_t i = 0; i < kp_space_n_params(s); i++) {
        if (strcmp(kp_space_param(s, i)->name, name) == 0) {
            *out = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static kopt_status map_params(struct kp_transfer *t, size_t *n_values, kopt_error *err)
{
    uint32_t i = 0;
    *n_values = 0;
    for (size_t k = 0; k < kp_space_n_params(t->to); k++)
        if (!find_param(t->from, kp_space_param(t->to, k)->name, &i))
            return kp_err(err, KOPT_EINPUT, "it has no parameter '%s'",
                          kp_space_param(t->to, k)->name);
    for (size_t k = 0; k < kp_space_n_params(t->from); k++) {
        const struct kp_param *p = kp_space_param(t->from, k);
        if (!find_param(t->to, p->name, &t->param[k]))
            return kp_err(err, KOPT_EINPUT, "its parameter '%s' is not in the space", p->name);
        t->first[k] = *n_values;
        *n_values += p->n_values;
    }
    return KOPT_OK;
}

kopt_status kp_transfer_new(const struct kp_space *from, const struct kp_space *to,
                            struct kp_transfer **out, kopt_error *err)
{
    size_t n;
    *out = NULL;
    struct kp_transfer *t = kp_calloc(1, sizeof(*t));
    if (!t)
        return kp_err_nomem(err);
    t->from = from;
    t->to = to;
    kopt_status st = map_params(t, &n, err);
    if (st == KOPT_OK) {
        t->values = kp_calloc(n + 1, sizeof(*t->values));
        st = t->values ? KOPT_OK : kp_err_nomem(err);
    }
    for (size_t k = 0; st == KOPT_OK && k < kp_space_n_params(from); k++) {
        const struct kp_param *p = kp_space_param(from, k);
        for (uint32_t v = 0; v < p->n_values; v++)
            t->values[t->first[k] + v] =
                kp_param_value_like(kp_space_param(to, t->param[k]), p->values[v]);
    }
    if (st == KOPT_OK)
        *out = t;
    else
        kp_transfer_free(t);
    return st;
}

void kp_transfer_free(struct kp_transfer *t)
{
    if (!t)
        return;
    kp_free(t->values);
    kp_free(t);
}

bool kp_transfer_config(const struct kp_transfer *t, const uint32_t *from, uint32_t *to)
{
    for (size_t k = 0; k < kp_space_n_params(t->from); k++) {
        uint32_t at = t->param[k];
        to[at] = t->values[t->first[k] + from[k]];
        if (to[at] == kp_space_param(t->to, at)->n_values)
            return false;
    }
    return true;
}
