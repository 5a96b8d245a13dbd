/* SPDX-License-Identifier: MIT */
/* State of a T1 reader, shared by t1*.c. Layer: space. */
#ifndef KP_SPACE_T1_IMPL_H
#define KP_SPACE_T1_IMPL_H

#include "space/kernel_impl.h"
#include "json/json.h"

struct kp_t1 {
    struct kp_builder *b;
    struct kp_str raw; /* the file's text, for positions */
    const struct kp_json *root;
    const struct kp_json *spec; /* KernelSpecification */
    bool grid_by_problem;       /* Kernel Tuner's way: ProblemSize and GridDiv */
};

/* The text with its place in the file (of the first string that is equal to it). */
struct kp_piece kp_t1_piece(const struct kp_t1 *t, struct kp_str text);

/* An error, at the place of `at` where that is a string; `at` may be NULL. */
__attribute__((format(printf, 3, 4))) kopt_status
kp_t1_fail(struct kp_t1 *t, const struct kp_json *at, const char *fmt, ...);
/* An expression out of a JSON integer, number, boolean or string. */
kopt_status kp_t1_expr(struct kp_t1 *t, const struct kp_json *j, enum kp_names names,
                       const struct kp_expr **out);
/* A JSON number, boolean or string as a value; strings are in the kernel's arena. */
kopt_status kp_t1_value(struct kp_t1 *t, const struct kp_json *j, struct kp_value *out);

/* Calls `read` with each element of a member and its number; a member that is missing or null
 * has none. */
kopt_status kp_t1_each(struct kp_t1 *t, const struct kp_json *in, const char *key,
                       kopt_status (*read)(struct kp_t1 *, const struct kp_json *, size_t));

kopt_status kp_t1_problem(struct kp_t1 *t);
kopt_status kp_t1_launch(struct kp_t1 *t);
kopt_status kp_t1_argument(struct kp_t1 *t, const struct kp_json *j, size_t index);
kopt_status kp_t1_reference(struct kp_t1 *t, const struct kp_json *j, size_t index);

#endif
