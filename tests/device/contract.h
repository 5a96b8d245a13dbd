/* SPDX-License-Identifier: MIT */
/* The contract of device.h as one suite of tests over every back end. A dialect says the same
 * kernels in a back end's language. */
#ifndef KOPT_TESTS_DEVICE_CONTRACT_H
#define KOPT_TESTS_DEVICE_CONTRACT_H

#include "device/device.h"

struct dialect {
    enum kp_backend backend;
    /* "the user's" path of sources, so that messages can be looked at */
    const char *path;

    /* kernel add(a, b, c, n): c[i] = combine(a[i], b[i]) for i < n, one item each; floats */
    const char *add;
    float (*combine)(float a, float b);
    /* kernel add2(a, b, c, width, height), the same in two dimensions */
    const char *add2;
    /* kernel through_local(a, c, tile): a group copies its part over local memory that is an
     * argument of 4 bytes an item; NULL = cannot be said */
    const char *local;
    /* kernel accumulate(io, a, n): io[i] += a[i]; NULL = cannot be said */
    const char *accumulate;
    /* kernel half(c, a, n): c[i] = a[i] for the first half of c only */
    const char *half;
    /* kernel scaled(a, c, n): c[i] = FACTOR a[i] by a macro; NULL = cannot be said */
    const char *scaled;
    /* kernel add as above, with #include "kopt_part.h", which holds `part` */
    const char *including;
    const char *part;

    /* does not compile: the error is at this line and column (0: not checked) and names `word`
     */
    const char *broken;
    int broken_line;
    int broken_column;
    const char *broken_word;
};

const struct dialect *contract_dialect(void);

#endif
