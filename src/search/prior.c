/* SPDX-License-Identifier: MIT */
#include "search/prior.h"

#include "base/alloc.h"

#include <string.h>

kopt_status kp_prior_init(struct kp_prior *p, const struct kp_space *space, size_t max,
                          kopt_error *err)
{
    KP_CHECK(max >= 1 && max <= KP_PRIOR_MAX);
    *p = (struct kp_prior){.n_params = kp_space_n_params(space), .max = max};
    p->configs = kp_calloc(max * p->n_params + 1, sizeof(*p->configs));
    p->logp = kp_calloc(max, sizeof(*p->logp));
    p->ranks = kp_calloc(max, sizeof(*p->ranks));
    if (p->configs && p->logp && p->ranks)
        return KOPT_OK;
    kp_prior_deinit(p);
    return kp_err_nomem(err);
}

void kp_prior_deinit(struct kp_prior *p)
{
    kp_free(p->configs);
    kp_free(p->logp);
    kp_free(p->ranks);
    *p = (struct kp_prior){0};
}

bool kp_prior_add(struct kp_prior *p, const struct kp_space *space, const uint32_t *config,
                  double logp)
{
    uint64_t rank = 0;
    size_t n = p->n_params;
    if (p->n == p->max || !kp_space_rank(space, config, &rank))
        return false;
    for (size_t i = 0; i < p->n; i++)
        if (p->ranks[i] == rank)
            return false;
    memcpy(p->configs + p->n * n, config, n * sizeof(*config));
    p->logp[p->n] = logp;
    p->ranks[p->n] = rank;
    p->n++;
    return true;
}

size_t kp_prior_find(const struct kp_prior *p, const uint32_t *config)
{
    size_t i = 0;
    while (i < p->n &&
           memcmp(p->configs + i * p->n_params, config, p->n_params * sizeof(*config)) != 0)
        i++;
    return i;
}
