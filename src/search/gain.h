/* SPDX-License-Identifier: MIT */
/* Expected improvement (Jones, Schonlau and Welch, J. Global Optimization 13, 1998). Layer:
 * search. The same number on every machine. */
#ifndef KP_SEARCH_GAIN_H
#define KP_SEARCH_GAIN_H

/* The mean of max(0, best - y) over a normal y; dev > 0. Relative error below 1e-6, far in the
 * tail too, until it is no normal double any more. */
double kp_expected_gain(double mean, double dev, double best);

#endif
