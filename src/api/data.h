/* SPDX-License-Identifier: MIT */
/* Data sets as the public options describe them. Layer: api. */
#ifndef KP_API_DATA_H
#define KP_API_DATA_H

#include "kopt/predict.h"
#include "learn/load.h"

struct kp_data {
    struct kp_buf text;            /* of the rules file */
    struct kp_kernel *own;         /* parsed from it */
    const struct kp_kernel *rules; /* those or the caller's; NULL: none */
    struct kp_limits numbers;
    const struct kp_limits *limits; /* NULL: not bound */
    struct kp_dataset *set;
    struct kp_load_report report;
};

/* `rules` (may be NULL) count where the options name no file. Owner: kp_data_close(), whatever
 * comes of it. Errors: KOPT_EUSAGE, those of kp_kernel_parse(), kp_limits_by_hand() and
 * kp_load(). */
kopt_status kp_data_open(const kopt_data_options *o, const struct kp_kernel *rules,
                         struct kp_data *out, kopt_error *err);
void kp_data_close(struct kp_data *d);

/* The folder's names left away. */
const char *kp_base_name(const char *path);

#endif
