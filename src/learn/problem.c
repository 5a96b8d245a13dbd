/* SPDX-License-Identifier: MIT */
#include "learn/problem.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct kp_value kp_problem_value(const struct kp_field *f, double x)
{
    if (f->is_word) {
        size_t w = (size_t)x;
        return kp_string(kp_str_from(w < f->n_words ? f->words[w] : ""));
    }
    return x == floor(x) && fabs(x) < 0x1p53 ? kp_int((int64_t)x) : kp_float(x);
}

static kopt_status map_params(struct kp_problem_rules *r, const struct kp_kernel *rules)
{
    for (size_t p = 0; p < rules->n_params; p++) {
        size_t t = 0;
        while (t < r->n_targets && strcmp(r->targets[t].name, rules->params[p].name) != 0)
            t++;
        if (t == r->n_targets)
            return KOPT_EINPUT;
        r->map[p] = (uint32_t)t;
    }
    return KOPT_OK;
}

kopt_status kp_problem_rules_init(const struct kp_dataset *d, size_t problem,
                                  const struct kp_kernel *rules, const struct kp_limits *limits,
                                  const struct kp_target *targets, size_t n_targets,
                                  struct kp_problem_rules *out)
{
    *out = (struct kp_problem_rules){.targets = targets, .n_targets = n_targets};
    kopt_status st = map_params(out, rules);
    if (st != KOPT_OK)
        return st;
    struct kp_value *values = kp_calloc(rules->n_problem + 1, sizeof(*values));
    if (!values)
        return KOPT_ENOMEM;
    for (size_t i = 0; i < rules->n_problem; i++) {
        values[i] = rules->has_problem_default[i] ? rules->problem_default[i] : kp_int(1);
        for (size_t f = 0; f < d->n_fields; f++)
            if (strcmp(d->fields[f].name, rules->problem[i]) == 0)
                values[i] =
                    kp_problem_value(&d->fields[f], d->problems[problem * d->n_fields + f]);
    }
    st = kp_kernel_bind_values(rules, values, limits, &out->bound, NULL);
    kp_free(values);
    return st;
}

void kp_problem_rules_deinit(struct kp_problem_rules *r)
{
    kp_bound_free(r->bound);
    r->bound = NULL;
}

bool kp_problem_rules_indices(const struct kp_problem_rules *r, const uint32_t *config,
                              uint32_t *out)
{
    for (size_t p = 0; p < kp_space_n_params(r->bound->space); p++) {
        const struct kp_param *param = kp_space_param(r->bound->space, p);
        const struct kp_target *t = &r->targets[r->map[p]];
        uint32_t value = config[r->map[p]];
        if (value >= t->n_values)
            return false;
        out[p] = kp_value_find(param->values, param->n_values, t->values[value]);
        if (out[p] == param->n_values)
            return false;
    }
    return true;
}

bool kp_problem_rules_valid(const struct kp_problem_rules *r, const uint32_t *config)
{
    uint32_t indices[KP_PARAMS_MAX];
    return kp_problem_rules_indices(r, config, indices) &&
           kp_space_valid(r->bound->space, indices, NULL);
}

bool kp_problem_rules_canonical(const struct kp_problem_rules *r, const uint32_t *config,
                                struct kp_value *values)
{
    uint32_t indices[KP_PARAMS_MAX];
    return kp_problem_rules_indices(r, config, indices) &&
           kp_bound_canonical(r->bound, indices, values, NULL) == KOPT_OK;
}
