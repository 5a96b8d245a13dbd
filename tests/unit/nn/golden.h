/* SPDX-License-Identifier: MIT */
/* Reading golden.json, and comparing with it. What goes wrong fails the test. */
#ifndef KP_TESTS_NN_GOLDEN_H
#define KP_TESTS_NN_GOLDEN_H

#include "json/json.h"

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_ARRAYS_MAX = 64 };

struct golden {
    struct kp_json *file;
    const struct kp_json *one; /* the case */
    const char *name;
    void *arrays[GOLDEN_ARRAYS_MAX]; /* what golden_f32() and golden_i32() gave out */
    size_t n_arrays;
};

void golden_open(struct golden *g, const char *case_name);
void golden_close(struct golden *g);
/* The size along an axis; an array without axes holds one number. */
size_t golden_shape(const struct golden *g, const char *array, size_t axis);
/* A copy, which lives until golden_close() and may be written to. `n`: the elements that it
 * must have. */
float *golden_f32(struct golden *g, const char *array, size_t n);
int32_t *golden_i32(struct golden *g, const char *array, size_t n);
double golden_number(const struct golden *g, const char *array);
/* Zeros, for results: lives as long. */
float *golden_zeros(struct golden *g, size_t n);

/* |got - want| <= tolerance * (1 + |want|), for each element of the array. */
void golden_check(struct golden *g, const char *array, const float *got, size_t n,
                  double tolerance);

#endif
