/* SPDX-License-Identifier: MIT */
/* A few threads that do numbered tasks together. Layer: model. */
#ifndef KP_MODEL_CREW_H
#define KP_MODEL_CREW_H

#include "base/error.h"

#include <stddef.h>

struct kp_crew;

/* `threads` 0: as many as the process may use cores; the caller is one of them. Where the
 * system gives fewer, fewer work. Errors: KOPT_ENOMEM. */
kopt_status kp_crew_new(unsigned threads, struct kp_crew **out, kopt_error *err);
void kp_crew_free(struct kp_crew *c);
unsigned kp_crew_threads(const struct kp_crew *c);
/* Calls task(user, i) for each i below n, each once, on any of the threads; returns when all
 * are done. */
void kp_crew_run(struct kp_crew *c, void (*task)(void *user, size_t i), void *user, size_t n);

#endif
