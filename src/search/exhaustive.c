/* SPDX-License-Identifier: MIT */
/* Every configuration, in the order of a pseudo-random permutation of the ranks, which needs no
 * memory however large the space is: an interrupted run has seen the space evenly, where rank
 * order would have seen one value of the first parameter. Layer: search. */
#include "search/strategy.h"

static kopt_status exhaustive_open(const struct kp_search_env *env, void **state,
                                   kopt_error *err)
{
    (void)err;
    *state = NULL;
    kp_pool_sweep(env->pool);
    return KOPT_OK;
}

static void exhaustive_close(void *state)
{
    (void)state;
}

const struct kp_search_ops kp_strategy_exhaustive = {
    .open = exhaustive_open,
    .close = exhaustive_close,
};
