/* SPDX-License-Identifier: MIT */
/* How good a run was, evaluation by evaluation. Layer: replay.
 *
 * After autotuning_methodology (Willemsen et al., Future Generation Computer Systems 159,
 * 2024): the score at a point of the budget is (random - found) / (random - optimum), with
 * `random` of kp_recording_random(), and a run's score is the mean over the points. Until
 * something was found a run is taken to be at the median. Two budgets: the recording's
 * evaluations, a point for each; and that many times the median cost of an evaluation,
 * KOPT_CURVE_POINTS points. */
#ifndef KP_REPLAY_SCORE_H
#define KP_REPLAY_SCORE_H

#include "replay/recording.h"

/* One run as it goes. */
struct kp_score {
    const struct kp_recording *r;
    uint64_t budget; /* evaluations */
    double budget_ns;
    uint64_t n;
    double best;     /* INFINITY = none */
    double at_ns;    /* clock of the last evaluation */
    double sum;      /* of scores, by evaluation */
    double time_sum; /* by time */
    size_t point;    /* of the curve by time that is next */
    size_t count_point;
    uint64_t near; /* evaluation at which it came within 1 %; 0 = not yet */
    float by_evaluations[KOPT_CURVE_POINTS]; /* gaps */
    float by_time[KOPT_CURVE_POINTS];
};

void kp_score_begin(struct kp_score *s, const struct kp_recording *r, double budgets);
/* The next evaluation: its time (INFINITY = failed) and when its result came. Those beyond both
 * budgets change nothing. */
void kp_score_add(struct kp_score *s, double time_ns, double clock_ns);
/* The run is over: what is left of both budgets passes without a change. */
void kp_score_end(struct kp_score *s);
/* Afterwards. The second is NaN where the recording says nothing of what evaluations cost. */
double kp_score_mean(const struct kp_score *s);
double kp_score_time_mean(const struct kp_score *s);

#endif
