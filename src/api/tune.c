/* SPDX-License-Identifier: MIT */
#include <kopt/tune.h>

#include "api/tune_model.h"
#include "search/search.h"
#include "tune/session.h"

#include <string.h>

enum { MODEL_TOP = 20 };

/* The handle is the session itself under its public name. */
static struct kp_session *session(kopt_tuner *t)
{
    return (struct kp_session *)(void *)t;
}

void kopt_tune_options_init(kopt_tune_options *o)
{
    memset(o, 0, sizeof(*o));
    o->struct_bytes = sizeof(*o);
}

kopt_status kopt_tuner_new(const kopt_tune_options *o, kopt_tuner **out, kopt_error *err)
{
    struct kp_session *s = NULL;
    struct kp_tune_model model = {0};
    const struct kp_predictor predictor = {kp_tune_model_predict, &model};
    kopt_status st = KOPT_OK;
    if (o->struct_bytes == sizeof(*o) && o->model) {
        model.path = o->model;
        model.top = o->model_top ? o->model_top : MODEL_TOP;
        st = kp_model_load(o->model, &model.model, err);
    }
    if (st == KOPT_OK)
        st = kp_session_new(o, model.model ? &predictor : NULL, &s, err);
    kp_model_free(model.model);
    *out = (kopt_tuner *)(void *)s;
    return st;
}

kopt_status kopt_tuner_run(kopt_tuner *t, const kopt_tune_report **report, kopt_error *err)
{
    return kp_session_run(session(t), report, err);
}

void kopt_tuner_stop(kopt_tuner *t)
{
    kp_session_stop(session(t));
}

void kopt_tuner_free(kopt_tuner *t)
{
    kp_session_free(session(t));
}

const char *kopt_strategy(size_t i, const char **summary)
{
    size_t n;
    const struct kp_strategy *list = kp_search_list(&n);
    if (summary)
        *summary = i < n ? list[i].summary : NULL;
    return i < n ? list[i].name : NULL;
}
