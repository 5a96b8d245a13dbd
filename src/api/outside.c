/* SPDX-License-Identifier: MIT */
/* What a model knows of the values of a problem. Layer: api. */
#include "api/kopt_model.h"
#include "base/alloc.h"
#include "base/num.h"
#include "model/encoder_impl.h"
#include "model/model_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A field that is given, with what its values in training were. */
struct look {
    const struct kp_field *field;
    const struct kp_token *token; /* NULL: all of them were the same */
    const char *value;            /* borrowed from the problem */
};

static bool find(const struct kp_model *m, const char *pair, struct look *out)
{
    struct kp_str value;
    struct kp_str name = kp_str_cut(kp_str_from(pair), '=', &value);
    size_t field = kp_model_field(m->encoder, name);
    if (field >= m->n_raw || value.len == 0)
        return false;
    *out = (struct look){kp_encoder_field(m->encoder, field), NULL, value.ptr};
    for (size_t i = 0; i < m->encoder->n_tokens; i++)
        if (m->encoder->tokens[i].field == field)
            out->token = &m->encoder->tokens[i];
    return true;
}

/* The words that the field had in training: all, where they were the same or too many. */
static size_t n_words(const struct look *l)
{
    return l->token && l->token->n_known ? l->token->n_known : l->field->n_words;
}

static const char *word_at(const struct look *l, size_t i)
{
    return l->field->words[l->token && l->token->n_known ? (size_t)l->token->known[i] : i];
}

/* A number that is given for a word is the word that kopt_predict() takes it for. */
static bool is_known_word(const struct look *l)
{
    struct kp_value v = kp_given_value(l->value);
    char number[KP_F64_TEXT];
    const char *text = l->value;
    if (v.type == KP_INT)
        (void)snprintf(number, sizeof(number), "%" PRId64, v.as.i);
    else if (v.type == KP_FLOAT)
        number[kp_f64_to_text(v.as.f, number)] = '\0';
    if (v.type != KP_STRING)
        text = number;
    for (size_t i = 0; i < n_words(l); i++)
        if (strcmp(word_at(l, i), text) == 0)
            return true;
    return false;
}

static bool is_outside(const struct look *l, double *low, double *high)
{
    double x = 0;
    *low = *high = (double)NAN;
    if (l->field->is_word)
        return !is_known_word(l);
    if (!l->token || l->token->n_known == 0 || !kp_value_to_f64(kp_given_value(l->value), &x))
        return false;
    *low = l->token->known[0];
    *high = l->token->known[l->token->n_known - 1];
    return !(x >= *low && x <= *high);
}

kopt_status kopt_model_outside(const kopt_model *m, const char *const *problem,
                               size_t n_problem, kopt_outside **out, size_t *n, kopt_error *err)
{
    struct look l;
    double low;
    double high;
    size_t words = 0;
    *out = NULL;
    *n = 0;
    for (size_t i = 0; i < n_problem; i++) {
        if (!find(m->model, problem[i], &l) || !is_outside(&l, &low, &high))
            continue;
        words += l.field->is_word ? n_words(&l) : 0;
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
        if (!find(m->model, problem[i], &l) || !is_outside(&l, &low, &high))
            continue;
        kopt_outside *o = &block[(*n)++];
        *o = (kopt_outside){.field = l.field->name, .value = l.value, .low = low, .high = high};
        if (!l.field->is_word)
            continue;
        o->words = at;
        o->n_words = n_words(&l);
        for (size_t w = 0; w < o->n_words; w++)
            *at++ = word_at(&l, w);
    }
    *out = block;
    return KOPT_OK;
}
