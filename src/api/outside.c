/* SPDX-License-Identifier: MIT */
/* What a model knows of the values of a problem. Layer: api. */
#include "api/kopt_model.h"
#include "base/alloc.h"
#include "model/model_impl.h"

#include <string.h>

/* A field that is given a value which the model cannot know. */
struct outside {
    size_t field;
    const char *value; /* borrowed from the problem */
};

static bool is_outside(const struct kp_model *m, const char *pair, struct outside *out)
{
    struct kp_str value;
    struct kp_str name = kp_str_cut(kp_str_from(pair), '=', &value);
    *out = (struct outside){kp_model_field(m->encoder, name), value.ptr};
    return out->field < m->n_raw && value.len > 0 &&
           !kp_encoder_knows(m->encoder, out->field, kp_given_value(value.ptr));
}

kopt_status kopt_model_outside(const kopt_model *m, const char *const *problem,
                               size_t n_problem, kopt_outside **out, size_t *n, kopt_error *err)
{
    const struct kp_encoder *e = m->model->encoder;
    struct outside x;
    size_t words = 0;
    *out = NULL;
    *n = 0;
    for (size_t i = 0; i < n_problem; i++) {
        if (!is_outside(m->model, problem[i], &x))
            continue;
        words += kp_encoder_n_words(e, x.field);
        ++*n;
    }
    if (*n == 0)
        return KOPT_OK;
    kopt_outside *block = kp_calloc(1, *n * sizeof(*block) + words * sizeof(char *));
    if (!block) {
        *n = 0;
        return kp_err_nomem(err);
    }
    const char **at = (const char **)(void *)(block + *n);
    *n = 0;
    for (size_t i = 0; i < n_problem; i++) {
        if (!is_outside(m->model, problem[i], &x))
            continue;
        kopt_outside *o = &block[(*n)++];
        *o = (kopt_outside){.field = kp_encoder_field(e, x.field)->name, .value = x.value};
        if (kp_encoder_range(e, x.field, &o->low, &o->high))
            continue;
        o->words = at;
        o->n_words = kp_encoder_n_words(e, x.field);
        for (size_t w = 0; w < o->n_words; w++)
            *at++ = kp_encoder_word(e, x.field, w);
    }
    *out = block;
    return KOPT_OK;
}
