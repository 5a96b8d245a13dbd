/* SPDX-License-Identifier: MIT */
#include "api/tune_prior.h"

#include "base/alloc.h"
#include "space/transfer.h"

#include <string.h>

static void fill(const struct kp_recording *r, const struct kp_transfer *t, uint32_t *configs,
                 size_t n_params, double *costs, size_t *n)
{
    uint32_t config[KP_PARAMS_MAX];
    uint64_t rank = 0;
    struct kp_space_iter it;
    kp_space_iter_init(&it, r->space, 0);
    for (; kp_space_iter_next(&it, config); rank++)
        if (kp_transfer_config(t, config, configs + *n * n_params))
            costs[(*n)++] = r->time_ns[rank];
}

static kopt_status make_prior(const struct kp_recording *r, const struct kp_transfer *t,
                              const struct kp_space *space, struct kp_prior *out,
                              kopt_error *err)
{
    size_t count = (size_t)kp_space_count(r->space); /* KP_RECORDING_MAX at most */
    size_t n_params = kp_space_n_params(space);
    struct kp_results results = {.n = 0};
    uint32_t *configs = kp_calloc(count * n_params + 1, sizeof(*configs));
    double *costs = kp_calloc(count + 1, sizeof(*costs));
    kopt_status st = configs && costs ? KOPT_OK : kp_err_nomem(err);
    if (st == KOPT_OK) {
        fill(r, t, configs, n_params, costs, &results.n);
        results.configs = configs;
        results.costs = costs;
        st = kp_prior_of_results(out, space, &results, KP_PRIOR_MAX, err);
    }
    kp_free(configs);
    kp_free(costs);
    return st;
}

kopt_status kp_tune_prior_predict(void *user, const struct kp_bound *bound,
                                  const struct kp_limits *limits, struct kp_predictions *out,
                                  kopt_error *err)
{
    const struct kp_tune_prior *p = user;
    struct kp_transfer *t = NULL;
    (void)limits;
    kopt_status st = kp_transfer_new(p->recording->space, bound->space, &t, err);
    if (st == KOPT_EINPUT) {
        kp_err_wrap(err, "%s does not fit %s", p->path, bound->kernel->path);
        kp_err_hint(err, "a prior is a recording of a kernel with the same parameters; leave "
                         "--prior out to take the store's results, or say --prior none");
    }
    if (st == KOPT_OK)
        st = make_prior(p->recording, t, bound->space, &out->prior, err);
    if (st == KOPT_OK) {
        out->of = kp_strdup(p->path);
        st = out->of ? KOPT_OK : kp_err_nomem(err);
    }
    kp_transfer_free(t);
    return st;
}
