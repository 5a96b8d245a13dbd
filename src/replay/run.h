/* SPDX-License-Identifier: MIT */
/* One search of a recorded space on a simulated clock. Layer: replay.
 *
 * Compilers work ahead of one device, as in a tuning session (tune/loop.c): a configuration is
 * compiled by the next compiler that is free, then measured when the device is free and all
 * that were asked before it have been measured. With one compiler and a window of one nothing
 * overlaps: an evaluation takes its compile time and its measurement. The strategy's own time
 * is not on the clock, so that a run is the same for a seed on every machine. */
#ifndef KP_REPLAY_RUN_H
#define KP_REPLAY_RUN_H

#include "replay/recording.h"
#include "search/prior.h"

struct kp_run_plan {
    const char *strategy; /* NULL = as a session chooses */
    uint64_t seed;
    uint64_t budget;          /* what the strategy is told of it; 0 = unknown */
    uint64_t max_evaluations; /* at least 1 */
    double max_ns;            /* simulated; INFINITY = no limit */
    double until;             /* 0 = never */
    uint32_t window;
    uint32_t compilers;
    const struct kp_prior *prior; /* NULL = none */
    bool remaining;               /* estimate what remains at each evaluation */
};

struct kp_run_step {
    uint64_t n; /* from 1 */
    uint64_t rank;
    const uint32_t *config;
    double time_ns; /* INFINITY = failed */
    double best_ns; /* INFINITY = none yet */
    double clock_ns;
    double remaining; /* NaN = not known */
    double ask_ns;    /* real time of the strategy for it: this ask, and the tell before */
};

struct kp_run_end {
    const char *strategy;
    kopt_end ended;
    uint64_t n;
    double clock_ns;
    double search_ns; /* processor time inside the strategy */
};

/* `step` returns false to stop; it sees evaluations in the order of asking. Errors: those of
 * kp_search_new(). */
kopt_status kp_run(const struct kp_recording *r, const struct kp_run_plan *plan,
                   bool (*step)(void *user, const struct kp_run_step *s), void *user,
                   struct kp_run_end *end, kopt_error *err);

/* Results of other recordings as a prior over r's space: what is in it, cheapest first; of
 * several recordings, by the mean of the logarithms of cost over best. Owner:
 * kp_prior_deinit(). Errors: KOPT_EINPUT (not alike), KOPT_ENOMEM. */
kopt_status kp_run_prior(const struct kp_recording *r, const struct kp_recording *const *from,
                         size_t n, size_t n_first, struct kp_prior *out, kopt_error *err);

#endif
