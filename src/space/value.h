/* SPDX-License-Identifier: MIT */
/* The values of the kernel-file language: integer, float, boolean, string. Layer: space. */
#ifndef KP_SPACE_VALUE_H
#define KP_SPACE_VALUE_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum kp_type { KP_INT, KP_FLOAT, KP_BOOL, KP_STRING };

struct kp_value {
    enum kp_type type;
    union {
        int64_t i;
        double f;
        bool b;
        struct kp_str s; /* borrowed from the arena or text it was parsed from */
    } as;
};

static inline struct kp_value kp_int(int64_t i)
{
    return (struct kp_value){KP_INT, {.i = i}};
}

static inline struct kp_value kp_float(double f)
{
    return (struct kp_value){KP_FLOAT, {.f = f}};
}

static inline struct kp_value kp_bool(bool b)
{
    return (struct kp_value){KP_BOOL, {.b = b}};
}

static inline struct kp_value kp_string(struct kp_str s)
{
    return (struct kp_value){KP_STRING, {.s = s}};
}

/* "int", "float", "bool", "string". */
const char *kp_type_name(enum kp_type type);

/* Same type and same value; a float equals itself bit for bit (NaN equals NaN). */
bool kp_value_same(struct kp_value a, struct kp_value b);
/* The first of values[n] that is the same as `v`; n when there is none. */
uint32_t kp_value_find(const struct kp_value *values, uint32_t n, struct kp_value v);

/* Numeric order across int, float and bool as in Python; strings bytewise. False when the two
 * cannot be ordered. */
bool kp_value_compare(struct kp_value a, struct kp_value b, int *order);

/* As it stands in a macro definition: 16, 0.5 (shortest text that reads back equal, always with
 * a point or exponent), true/false as 1/0, a string raw. */
void kp_value_to_macro(struct kp_value v, struct kp_buf *out);

/* As it stands in messages and configuration keys: true/false, strings raw. */
void kp_value_to_text(struct kp_value v, struct kp_buf *out);

/* As JSON: true/false, quoted and escaped string, numbers as above. */
void kp_value_to_json(struct kp_value v, struct kp_buf *out);

/* Does a text of the user's name this value? Numbers by value ("1" for 1.0 and true), booleans
 * also "true", "True", strings as they are. */
bool kp_value_means(struct kp_value v, struct kp_str text);

/* Number as double (bool as 0/1); false for a string. */
bool kp_value_to_f64(struct kp_value v, double *out);

#endif
