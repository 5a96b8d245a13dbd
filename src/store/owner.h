/* SPDX-License-Identifier: MIT */
/* Which process a run belongs to, so that one that was killed is not taken for one that goes
 * on. */
#ifndef KP_STORE_OWNER_H
#define KP_STORE_OWNER_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

enum { KP_OWNER_BYTES = 80 };

/* The summary of a run that this process begins: {"pid":1,"started":2}, the process and its
 * start in clock ticks since the machine's. "" where the system does not tell. */
void kp_owner_summary(char out[KP_OWNER_BYTES]);

/* Is this the machine of that name? */
bool kp_owner_here(const char *host);

/* Did the process of a run that was never ended come to its end? False also when that cannot
 * be known: a run of another machine, or without such a summary. */
bool kp_owner_gone(const struct kp_store_run *run);

#endif
