/* SPDX-License-Identifier: MIT */
/* What the tests of the lab share: a lab over the fake device, and a runner that misbehaves in
 * ways that no device can make the real one do. The test program is then its own helper
 * program. */
#ifndef LAB_SUPPORT_H
#define LAB_SUPPORT_H

#include "measure/lab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const int64_t SECOND = 1000000000;
extern const char source[];
extern const struct kp_lab_plan plan;

/* Before the tests. False: there is no helper program. */
bool lab_helper_init(void);
/* What this program does when a lab has started it. */
int lab_helper(char **argv);
/* Which misbehaviour the labs opened from now on get; NULL = the real helper program. */
void with_part(const char *part);

struct kp_lab_options options(void);
struct kp_lab *open_lab(const struct kp_lab_options *o);
/* 64 floats in, 64 out, the output checked against the input. */
void give_data(struct kp_lab *lab);
void job_of(struct kp_lab *lab, int64_t id, const char *mode, int t,
            kopt_status (*use)(struct kp_lab *lab, const struct kp_lab_job *job,
                               kopt_error *err));
void compile(struct kp_lab *lab, int64_t id, const char *mode, int t);
struct kp_lab_event next(struct kp_lab *lab);
void measure(struct kp_lab *lab, int64_t id);
struct kp_lab_event compile_and_measure(struct kp_lab *lab, int64_t id, const char *mode,
                                        int t);
void expect(const struct kp_lab_event *ev, kopt_outcome what, const char *word);
/* Descriptors of this process; no more than those, and no child, may be left at the end. */
size_t open_files(void);
void nothing_is_left(size_t files);

#endif
