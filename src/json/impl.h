/* SPDX-License-Identifier: MIT */
/* What the files of this layer share. Layer: json. */
#ifndef KP_JSON_IMPL_H
#define KP_JSON_IMPL_H

#include "json/json.h"

#include <jansson.h>

/* struct kp_json is never defined: it is Jansson's json_t under a name of ours. */
static inline struct kp_json *kp_json_wrap(json_t *j)
{
    return (struct kp_json *)j;
}

static inline const struct kp_json *kp_json_wrap_const(const json_t *j)
{
    return (const struct kp_json *)j;
}

/* Jansson's iterators and counters want a mutable pointer although they only read. */
static inline json_t *kp_json_plain(const struct kp_json *j)
{
    union {
        const struct kp_json *from;
        json_t *to;
    } u = {.from = j};
    return u.to;
}

#endif
