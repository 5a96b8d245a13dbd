/* SPDX-License-Identifier: MIT */
#ifndef TESTS_MODEL_TRANSLATORS_H
#define TESTS_MODEL_TRANSLATORS_H

#include "model/net.h"

/* As kp_net_at(), without the networks that rank. */
static inline const struct kp_net_ops *translator_at(size_t i)
{
    const struct kp_net_ops *ops = kp_net_at(i);
    return ops && !ops->rank ? ops : NULL;
}

#endif
