/* SPDX-License-Identifier: MIT */
/* Data sets as the public options describe them. Layer: api. */
#ifndef KP_API_DATA_H
#define KP_API_DATA_H

#include "kopt/predict.h"
#include "learn/load.h"
#include "json/json.h"

struct kp_data {
    struct kp_buf text;            /* of the rules file */
    struct kp_kernel *own;         /* parsed from it */
    const struct kp_kernel *rules; /* those or the caller's; NULL: none */
    struct kp_limits numbers;
    const struct kp_limits *limits; /* NULL: not bound */
    const char *path;               /* of the file, without its name */
    struct kp_load_more *more;      /* [o->n_more] */
    /* Of the data's own rows, where anything is pooled: {"source": "NAME", "COLUMN": "TEXT"};
     * NULL: nothing is. */
    struct kp_json *pooled;
    struct kp_arena arena;
    struct kp_dataset *set;
    struct kp_load_report report;
};

/* What a model was trained with counts where the options are silent. `rules`: where they name
 * no file; `pooled`: as above; both may be NULL. Owner: kp_data_close(), whatever comes of it.
 * Errors: KOPT_EUSAGE, those of kp_kernel_parse(), kp_limits_by_hand() and kp_load(). */
kopt_status kp_data_open(const kopt_data_options *o, const struct kp_kernel *rules,
                         const struct kp_json *pooled, struct kp_data *out, kopt_error *err);
void kp_data_close(struct kp_data *d);

/* The file of "NAME=FILE" or "FILE". */
const char *kp_data_path(const char *given);

/* The folder's names left away. */
const char *kp_base_name(const char *path);

#endif
