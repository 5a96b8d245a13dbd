/* SPDX-License-Identifier: MIT */
/* What a model answered, for problems that come again. Layer: api.
 *
 * All memory is taken at the start. Problems stand in a table of a fixed size, in which a new
 * one takes an old one's place; a reader takes no lock. The texts of configurations stand once
 * each in a block of a fixed size and stay there, so whoever has one may keep it. */
#ifndef KP_API_ANSWERS_H
#define KP_API_ANSWERS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KP_ANSWERS_PROBLEMS = 8192,     /* that are remembered */
    KP_ANSWERS_TEXTS = 32768,       /* configurations .. */
    KP_ANSWERS_TEXT_BYTES = 8 << 20 /* .. and what they may take together */
};

struct kp_answers;

struct kp_answer {
    const char *config; /* NULL: the model has none */
    double probability;
};

/* For problems of `n` words of 64 bits and configurations of `n_targets`. NULL: out of memory.
 */
struct kp_answers *kp_answers_new(size_t n, size_t n_targets);
void kp_answers_free(struct kp_answers *a);

/* Any thread may ask and put at any time. False: not remembered. */
bool kp_answers_find(const struct kp_answers *a, const uint64_t *problem,
                     struct kp_answer *out);
/* It may be forgotten at any time, at once too. */
void kp_answers_put(struct kp_answers *a, const uint64_t *problem, struct kp_answer answer);

/* The text of a configuration (value indices), where it is known. */
const char *kp_answers_text(const struct kp_answers *a, const uint32_t *config);
/* The same, added where it is new: `write` writes `bytes` of it. NULL: there is no room for it.
 */
const char *kp_answers_add_text(struct kp_answers *a, const uint32_t *config, size_t bytes,
                                void (*write)(void *user, const uint32_t *config, char *to),
                                void *user);

#endif
