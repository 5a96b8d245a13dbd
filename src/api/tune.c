/* SPDX-License-Identifier: MIT */
#include <kopt/tune.h>

#include "api/tune_model.h"
#include "api/tune_prior.h"
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

/* Who tells the session what to expect; what they need is opened. */
struct oracle {
    struct kp_tune_model model;
    struct kp_tune_prior prior;
    struct kp_predictor predictor; /* without a function: nobody */
};

static kopt_status open_oracle(const kopt_tune_options *o, struct oracle *x, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    if (o->struct_bytes != sizeof(*o))
        return KOPT_OK; /* the session refuses it */
    if (o->model) {
        x->predictor = (struct kp_predictor){kp_tune_model_predict, &x->model};
        x->model.path = o->model;
        x->model.top = o->model_top ? o->model_top : MODEL_TOP;
        st = kp_model_load(o->model, &x->model.model, err);
    } else if (o->prior && strcmp(o->prior, "none") != 0) {
        x->predictor = (struct kp_predictor){kp_tune_prior_predict, &x->prior};
        x->prior.path = o->prior;
        st = kp_recording_open(o->prior, &x->prior.recording, err);
    }
    return st;
}

kopt_status kopt_tuner_new(const kopt_tune_options *o, kopt_tuner **out, kopt_error *err)
{
    struct kp_session *s = NULL;
    struct oracle x = {0};
    kopt_status st = open_oracle(o, &x, err);
    if (st == KOPT_OK)
        st = kp_session_new(o, x.predictor.predict ? &x.predictor : NULL, &s, err);
    kp_model_free(x.model.model);
    kp_recording_close(x.prior.recording);
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
