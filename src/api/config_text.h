/* SPDX-License-Identifier: MIT */
/* A model's configurations as texts, put together from pieces that are made once. Layer: api.
 */
#ifndef KP_API_CONFIG_TEXT_H
#define KP_API_CONFIG_TEXT_H

#include "model/model.h"

enum kp_config_form {
    KP_CONFIG_TEXT, /* BM=64,BN=32: in the order of the targets */
    KP_CONFIG_JSON, /* {"BM":64,"BN":32}: the same */
    KP_CONFIG_KEY,  /* the same with its names sorted bytewise, as stores have it */
    KP_CONFIG_FORMS
};

struct kp_config_texts {
    size_t n_targets;
    const struct kp_str *pieces[2][KP_TARGETS_MAX]; /* text, JSON; by value */
    uint32_t by_name[KP_TARGETS_MAX];
    struct kp_arena arena;
};

/* Errors: KOPT_ENOMEM, KOPT_ERANGE (of texts, over some MiB). */
kopt_status kp_config_texts_init(struct kp_config_texts *t, const struct kp_model *m,
                                 kopt_error *err);
void kp_config_texts_deinit(struct kp_config_texts *t);

/* Bytes of a configuration (value indices of the targets), with the NUL. */
size_t kp_config_bytes(const struct kp_config_texts *t, const uint32_t *config,
                       enum kp_config_form form);
/* Writes so many bytes to `to`; returns what stands behind them. */
char *kp_config_write(const struct kp_config_texts *t, const uint32_t *config,
                      enum kp_config_form form, char *to);

#endif
