/* SPDX-License-Identifier: MIT */
/* Small recorded spaces, made of a formula, for the tests of the replay layer. */
#ifndef KP_TESTS_REPLAY_RECORDED_H
#define KP_TESTS_REPLAY_RECORDED_H

#include "replay/recording.h"
#include "support/test.h"

#include <math.h>

/* What a configuration (x, y) of an n x m grid came to; times and costs in ns. */
struct recorded_cell {
    double time_ns; /* 0 = failed to compile */
    double compile_ns;
    double measure_ns;
};
typedef struct recorded_cell (*recorded_formula)(int64_t x, int64_t y);

/* Named "grid" unless said otherwise; parameters x and y from 0. */
static inline struct kp_recording *recorded_grid(const char *name, int64_t n, int64_t m,
                                                 recorded_formula formula)
{
    static const char *const names[] = {"x", "y"};
    struct kp_recorder *rec = NULL;
    struct kp_recording *r = NULL;
    kopt_error err = {0};
    kopt_recording_info info = {.path = name,
                                .format = "T4",
                                .name = name,
                                .kernel = "grid",
                                .device = name,
                                .problem = "{}"};
    assert_int_equal(kp_recorder_new(&rec, &err), KOPT_OK);
    assert_int_equal(kp_recorder_say(rec, &info, &err), KOPT_OK);
    assert_int_equal(kp_recorder_params(rec, names, 2, &err), KOPT_OK);
    for (int64_t x = 0; x < n; x++) {
        for (int64_t y = 0; y < m; y++) {
            struct recorded_cell c = formula(x, y);
            struct kp_value values[2] = {kp_int(x), kp_int(y)};
            struct kp_recorded entry = {.values = values,
                                        .outcome = c.time_ns > 0 ? KOPT_OUT_OK
                                                                 : KOPT_OUT_COMPILE_ERROR,
                                        .time_ns = c.time_ns > 0 ? c.time_ns : (double)NAN,
                                        .compile_ns = c.compile_ns,
                                        .measure_ns = c.measure_ns};
            assert_int_equal(kp_recorder_add(rec, &entry, &err), KOPT_OK);
        }
    }
    assert_int_equal(kp_recorder_finish(rec, &r, &err), KOPT_OK);
    return r;
}

/* Times 100, 101, .. by x alone; each costs 3 + 2. */
static inline struct recorded_cell recorded_line(int64_t x, int64_t y)
{
    (void)y;
    return (struct recorded_cell){100 + (double)x, 3, 2};
}

/* A bowl with its best, 100, at (7, 3). Each costs 1000 + 500 but where x + y is a multiple of
 * seven: that does not compile. */
static inline struct recorded_cell recorded_bowl(int64_t x, int64_t y)
{
    double dx = (double)(x - 7);
    double dy = (double)(y - 3);
    if ((x + y) % 7 == 0)
        return (struct recorded_cell){0, 1000, 0};
    return (struct recorded_cell){100 + 9 * dx * dx + 4 * dy * dy, 1000, 500};
}

#endif
