/* SPDX-License-Identifier: MIT */
/* The diagram of configurations that are given one by one. Layer: space. */
#ifndef KP_SPACE_DIAGRAM_LIST_H
#define KP_SPACE_DIAGRAM_LIST_H

#include "space/diagram.h"

enum { KP_LISTED_MAX = INT32_MAX }; /* configurations */

/* Of desc->listed, over the parameters order[0 .. n_levels-1]; parameters behind them do not
 * tell configurations apart. False when out of budget; then `out` holds nothing. */
bool kp_list_mdd(const struct kp_space_desc *desc, const uint32_t *order, uint32_t n_levels,
                 struct kp_budget *b, struct kp_mdd *out);

#endif
