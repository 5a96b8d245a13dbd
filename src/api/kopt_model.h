/* SPDX-License-Identifier: MIT */
/* What a kopt_model holds; for those who ask models. Layer: api. */
#ifndef KP_API_KOPT_MODEL_H
#define KP_API_KOPT_MODEL_H

#include "api/config_text.h"
#include "kopt/predict.h"
#include "model/model.h"

#include <pthread.h>

enum { KP_MODEL_DEVICES_MAX = 8, KP_MODEL_DEVICE_ID = 64 };

struct kp_known_devices {
    pthread_mutex_t lock;
    size_t n;
    struct {
        char id[KP_MODEL_DEVICE_ID];
        struct kp_limits limits;
    } items[KP_MODEL_DEVICES_MAX];
};

struct kopt_model {
    struct kp_model *model;
    char network[KP_MODEL_NETWORK];
    struct kp_buf info;
    struct kp_config_texts texts;
    unsigned used; /* kp_limits_used() by its rules */
    bool has_own;  /* is it known what device it was trained for? */
    struct kp_limits own;
    struct kp_known_devices *devices; /* that were asked once */
};

/* The limits that `o` is about; *has: is it about any? Errors: as kopt_predict(). */
kopt_status kp_model_limits(const kopt_model *m, const kopt_predict_options *o,
                            struct kp_limits *out, bool *has, kopt_error *err);

/* Errors: KOPT_EUSAGE. */
kopt_status kp_model_check_options(const kopt_predict_options *o, kopt_error *err);

#endif
