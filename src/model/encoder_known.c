/* SPDX-License-Identifier: MIT */
/* What an encoder's fields were in training. Layer: model. */
#include "model/encoder_impl.h"

#include "base/num.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* NULL: the field's values were all the same, or too many to be kept. */
static const struct kp_token *token_with_values(const struct kp_encoder *e, size_t field)
{
    for (size_t i = 0; i < e->n_tokens; i++)
        if (e->tokens[i].field == field)
            return e->tokens[i].n_known > 0 ? &e->tokens[i] : NULL;
    return NULL;
}

bool kp_encoder_range(const struct kp_encoder *e, size_t i, double *low, double *high)
{
    const struct kp_token *t = token_with_values(e, i);
    *low = *high = (double)NAN;
    if (e->fields[i].is_word)
        return false;
    *low = t ? t->known[0] : e->only[i];
    *high = t ? t->known[t->n_known - 1] : e->only[i];
    return isfinite(*low);
}

size_t kp_encoder_n_words(const struct kp_encoder *e, size_t i)
{
    const struct kp_token *t = token_with_values(e, i);
    return t ? t->n_known : isfinite(e->only[i]) ? 1 : e->fields[i].n_words;
}

const char *kp_encoder_word(const struct kp_encoder *e, size_t i, size_t w)
{
    const struct kp_token *t = token_with_values(e, i);
    double at = t ? t->known[w] : isfinite(e->only[i]) ? e->only[i] : (double)w;
    return e->fields[i].words[(size_t)at];
}

static bool knows_word(const struct kp_encoder *e, size_t i, struct kp_value v)
{
    char number[KP_F64_TEXT];
    struct kp_str text = v.as.s;
    if (v.type == KP_INT)
        (void)snprintf(number, sizeof(number), "%" PRId64, v.as.i);
    else if (v.type == KP_FLOAT)
        number[kp_f64_to_text(v.as.f, number)] = '\0';
    if (v.type != KP_STRING)
        text = v.type == KP_BOOL ? kp_str_from(v.as.b ? "true" : "false") : kp_str_from(number);
    for (size_t w = 0; w < kp_encoder_n_words(e, i); w++)
        if (kp_str_is(text, kp_encoder_word(e, i, w)))
            return true;
    return false;
}

bool kp_encoder_knows(const struct kp_encoder *e, size_t i, struct kp_value v)
{
    double low;
    double high;
    double x;
    if (e->fields[i].is_word)
        return knows_word(e, i, v);
    return !kp_encoder_range(e, i, &low, &high) || !kp_value_to_f64(v, &x) ||
           (x >= low && x <= high);
}
