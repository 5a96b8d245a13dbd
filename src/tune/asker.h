/* SPDX-License-Identifier: MIT */
/* A strategy on a thread of its own, so that a slow one never keeps the device waiting.
 * Layer: tune.
 *
 * Tells and asks are queued and carried out in the order in which they were posted; a run is
 * therefore the same for a seed however long each takes. Every ask gets one answer. One that
 * has to wait for results stays with the thread and is tried again after each tell. */
#ifndef KP_TUNE_ASKER_H
#define KP_TUNE_ASKER_H

#include "search/search.h"

struct kp_asker;

/* `search` is used by the thread alone until kp_asker_free(). A byte count is added to the
 * eventfd `wake_fd` whenever an answer has come. Errors: KOPT_ENOMEM, KOPT_EIO (no thread). */
kopt_status kp_asker_new(struct kp_search *search, size_t n_params, int wake_fd,
                         struct kp_asker **out, kopt_error *err);
/* Waits for what is being carried out; the rest is dropped. NULL is fine. */
void kp_asker_free(struct kp_asker *a);

void kp_asker_tell(struct kp_asker *a, double cost);
void kp_asker_ask(struct kp_asker *a);

enum kp_answer {
    KP_ANSWER_NONE,   /* not yet */
    KP_ANSWER_CONFIG, /* *config is the next to measure */
    KP_ANSWER_END     /* the strategy has nothing more to say */
};
enum kp_answer kp_asker_take(struct kp_asker *a, uint32_t *config);

/* Answer every ask with KP_ANSWER_END once the search expects to gain less than `until`:
 * decided between two posts, so it is the same however long each takes. Before the first post;
 * the search keeps its estimate (search options, `remaining`). 0 = never. */
void kp_asker_until(struct kp_asker *a, double until);
/* kp_search_remaining() behind the last tell that was carried out; NaN before. */
double kp_asker_remaining(struct kp_asker *a);
/* Was an ask answered with the end because of kp_asker_until()? */
bool kp_asker_ended(struct kp_asker *a);

/* Block until everything posted has been carried out. */
void kp_asker_settle(struct kp_asker *a);
/* Everything posted has been carried out, and asks are left that wait for results. */
bool kp_asker_waits(struct kp_asker *a);
/* Nanoseconds inside the strategy so far. */
int64_t kp_asker_busy_ns(struct kp_asker *a);

#endif
