/* SPDX-License-Identifier: MIT */
/* Asking a model: the problem's names and words become numbers, the rules a space over the
 * values that the model knows, and the beam goes through it. Layer: model. */
#include "model/encoder_impl.h"
#include "model/model_impl.h"
#include "model/model_spaces.h"
#include "model/ranking.h"
#include "model/scratch.h"

#include "base/alloc.h"
#include "base/num.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH_LEAST = 8,
    LIST_MAX = 240 /* bytes of the names in a hint */
};
static const double exact_max = 0x1p53;

struct asking {
    const struct kp_model *m;
    const struct kp_predict_options *o;
    struct kp_scratch *s;
    struct kp_beam_space allowed;
    kopt_error *err;
};

/* --- the problem ----------------------------------------------------------------------------
 */

static void hint(const struct asking *a)
{
    struct kp_buf names = KP_BUF_INIT(LIST_MAX);
    for (size_t i = 0; i < a->m->n_raw; i++)
        kp_buf_addf(&names, " %s", kp_encoder_field(a->m->encoder, i)->name);
    kp_err_hint(a->err, "problem:%s%s", kp_buf_text(&names),
                names.failed == KOPT_ERANGE ? " .." : "");
    kp_buf_deinit(&names);
}

__attribute__((format(printf, 2, 3))) static kopt_status refuse(const struct asking *a,
                                                                const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    kopt_status st = kp_err(a->err, KOPT_EUSAGE, "%s", text);
    hint(a);
    return st;
}

static size_t rules_index(const struct kp_kernel *rules, const char *name)
{
    for (size_t i = 0; rules && i < rules->n_problem; i++)
        if (strcmp(rules->problem[i], name) == 0)
            return i;
    return SIZE_MAX;
}

/* Has the model seen a number below 0 there? */
static bool may_be_negative(const struct kp_encoder *e, size_t field)
{
    for (size_t i = 0; i < e->n_tokens; i++)
        if (e->tokens[i].field == field)
            return e->tokens[i].n_known > 0 && e->tokens[i].known[0] < 0;
    return false;
}

/* The word that a value is written as, in the scratch unless it is one already. */
static kopt_status as_word(struct asking *a, struct kp_value *v)
{
    struct kp_buf *words = &a->s->words;
    size_t at = words->len;
    size_t cap = words->cap;
    if (v->type == KP_STRING)
        return KOPT_OK;
    kp_value_to_text(*v, words);
    kopt_status st = kp_buf_status(words, a->err);
    KP_CHECK(st != KOPT_OK || words->cap == cap); /* else earlier words had moved */
    if (st == KOPT_OK)
        *v = kp_string((struct kp_str){(const char *)words->ptr + at, words->len - at});
    return st;
}

static double word_index(const struct kp_field *f, struct kp_str word)
{
    size_t w = 0;
    while (w < f->n_words && !kp_str_is(word, f->words[w]))
        w++;
    return (double)w; /* n_words: unknown */
}

static kopt_status as_number(const struct asking *a, size_t field, struct kp_value *v,
                             double *x)
{
    const char *name = kp_encoder_field(a->m->encoder, field)->name;
    if (!kp_value_to_f64(*v, x))
        return refuse(a, "%s=%.*s: a number is expected", name, KP_STR_FMT(v->as.s));
    if (!isfinite(*x))
        return refuse(a, "%s is not a finite number", name);
    if (*x < 0 && !may_be_negative(a->m->encoder, field))
        return refuse(a, "%s=%g is negative", name, *x);
    /* As whole numbers stand in data sets, so that rules compute with integers. */
    if (v->type == KP_FLOAT && *x == floor(*x) && fabs(*x) <= exact_max)
        *v = kp_int((int64_t)*x);
    return KOPT_OK;
}

/* Value `v` of a field, for the encoder and for the rules. */
static kopt_status set_field(struct asking *a, size_t field, struct kp_value v)
{
    const struct kp_field *f = kp_encoder_field(a->m->encoder, field);
    kopt_status st =
        f->is_word ? as_word(a, &v) : as_number(a, field, &v, &a->s->problem[field]);
    if (st != KOPT_OK)
        return st;
    if (f->is_word)
        a->s->problem[field] = word_index(f, v.as.s);
    size_t index = rules_index(a->m->rules, f->name);
    if (index != SIZE_MAX)
        a->s->sizes[index] = v;
    return KOPT_OK;
}

/* A kernel's sizes are sizes. */
static kopt_status check_size(const struct asking *a, size_t index)
{
    const struct kp_kernel *k = a->m->rules;
    struct kp_value v = a->s->sizes[index];
    if (k->rules_only || (v.type == KP_INT && v.as.i >= 1))
        return KOPT_OK;
    return refuse(a, "%s: a problem size is an integer from 1 to %" PRId64, k->problem[index],
                  INT64_MAX);
}

static kopt_status take_given(struct asking *a, const struct kp_given *given, size_t n)
{
    const struct kp_model *m = a->m;
    for (size_t i = 0; i < n; i++) {
        size_t field = kp_model_field(m->encoder, kp_str_from(given[i].name));
        size_t index = rules_index(m->rules, given[i].name);
        if (field >= m->n_raw && index == SIZE_MAX)
            return refuse(a, "the model of '%s' has no '%s'", m->kernel, given[i].name);
        if (field < m->n_raw ? a->s->given[field] != NULL : a->s->taken[index])
            return refuse(a, "%s is given twice", given[i].name);
        if (field < m->n_raw) {
            a->s->given[field] = &given[i];
        } else {
            a->s->sizes[index] = given[i].value;
            a->s->taken[index] = true;
        }
    }
    return KOPT_OK;
}

/* What a field has that is not given: the text that the data had which the model is for, where
 * others only helped; else the rules' default. Borrowed. */
static bool default_of(const struct asking *a, size_t field, struct kp_value *out)
{
    const struct kp_field *f = kp_encoder_field(a->m->encoder, field);
    const struct kp_json *pooled = kp_json_get(a->m->info, "pooled");
    size_t index = rules_index(a->m->rules, f->name);
    struct kp_str text;
    double x = 0;
    if (kp_json_as_str(kp_json_get(pooled, f->name), &text)) {
        bool number = !f->is_word && kp_f64_from_text(text, &x);
        *out = number ? kp_float(x) : kp_string(text);
        return true;
    }
    if (index == SIZE_MAX || !a->m->rules->has_problem_default[index])
        return false;
    *out = a->m->rules->problem_default[index];
    return true;
}

static kopt_status missing(const struct asking *a)
{
    struct kp_buf names = KP_BUF_INIT(LIST_MAX);
    for (size_t i = 0; i < a->m->n_raw; i++) {
        const char *name = kp_encoder_field(a->m->encoder, i)->name;
        struct kp_value v;
        if (!a->s->given[i] && !default_of(a, i, &v))
            kp_buf_addf(&names, "%s%s", names.len ? ", " : "", name);
    }
    kopt_status st = KOPT_OK;
    if (names.len > 0 || names.failed != KOPT_OK)
        st = refuse(a, "the problem lacks %s", kp_buf_text(&names));
    kp_buf_deinit(&names);
    return st;
}

static kopt_status read_problem(struct asking *a, const struct kp_given *given, size_t n)
{
    const struct kp_model *m = a->m;
    const struct kp_kernel *rules = m->rules;
    size_t n_sizes = rules ? rules->n_problem : 0;
    for (size_t i = 0; i < n_sizes; i++)
        if (rules->has_problem_default[i])
            a->s->sizes[i] = rules->problem_default[i];
    kopt_status st = take_given(a, given, n);
    if (st == KOPT_OK)
        st = missing(a);
    for (size_t i = 0; st == KOPT_OK && i < m->n_raw; i++) {
        struct kp_value v = kp_int(0);
        if (a->s->given[i])
            v = a->s->given[i]->value;
        else
            (void)default_of(a, i, &v); /* one without a default was missing */
        st = set_field(a, i, v);
    }
    for (size_t i = 0; st == KOPT_OK && i < n_sizes; i++)
        st = check_size(a, i);
    return st;
}

static void encode(struct asking *a)
{
    const struct kp_model *m = a->m;
    struct kp_scratch *s = a->s;
    size_t n_fields = kp_encoder_n_fields(m->encoder);
    const struct kp_env env = {s->slots, s->known};
    for (size_t i = 0; m->rules && i < m->rules->n_problem; i++)
        s->slots[s->size_slot[i]] = s->sizes[i];
    for (size_t i = m->n_raw; i < n_fields; i++)
        if (s->derived[i])
            s->problem[i] = kp_model_derived_value(s->derived[i], &env);
    kp_encode(m->encoder, s->problem, s->tokens, s->features);
}

/* --- the space ------------------------------------------------------------------------------
 */

/* Line `number` of the rules. */
static struct kp_str rules_line(const struct kp_model *m, int number)
{
    struct kp_str rest = m->rules_text;
    struct kp_str line = {0};
    for (int i = 0; i < number; i++)
        line = kp_str_cut(rest, '\n', &rest);
    return line;
}

static kopt_status no_rule_leaves(const struct asking *a, const struct kp_bound *bound)
{
    const struct kp_kernel *k = a->m->rules;
    size_t last = k->n_rules;
    struct kp_rule_effect *effects = kp_calloc(k->n_rules + 1, sizeof(*effects));
    if (!effects)
        return kp_err_nomem(a->err);
    kopt_status st = kp_space_explain(bound->space, effects, &last, a->err);
    kp_free(effects);
    if (st != KOPT_OK)
        return st;
    if (last == k->n_rules)
        return kp_err(a->err, KOPT_ENOTFOUND, "no configuration satisfies the rules");
    const struct kp_rule *r = &k->rules[last];
    st = kp_err(a->err, KOPT_ENOTFOUND,
                "no configuration for this problem is left after the rule '%s'%s%s", r->text,
                r->message ? ": " : "", r->message ? r->message : "");
    struct kp_str line = r->line > 0 ? rules_line(a->m, r->line) : (struct kp_str){0};
    if (line.len > 0)
        kp_err_at(a->err, k->path, r->line, 1, line.ptr, (int)line.len);
    return st;
}

/* The error: the rules leave nothing, or nothing that the model has seen. */
static kopt_status nothing_left(const struct asking *a, const struct kp_spaces *spaces)
{
    struct kp_bound *bound = NULL;
    kopt_status st =
        kp_kernel_bind_values(a->m->rules, a->s->sizes, a->o->limits, &bound, a->err);
    if (st != KOPT_OK)
        return st;
    if (kp_space_count(bound->space) == 0)
        st = no_rule_leaves(a, bound);
    else if (kp_spaces_lost(spaces))
        st = kp_err(a->err, KOPT_ENOTFOUND,
                    "the rules have no value of '%s' that the model knows",
                    kp_spaces_lost(spaces));
    else
        st = kp_err(a->err, KOPT_ENOTFOUND,
                    "the rules leave only configurations with values that the model has not "
                    "seen");
    kp_bound_free(bound);
    return st;
}

/* --- the answer -----------------------------------------------------------------------------
 */

static kopt_status rank(const struct asking *a, struct kp_prediction *out)
{
    const struct kp_model *m = a->m;
    struct kp_scratch *s = a->s;
    const struct kp_rank_question q = {.problem = s->problem,
                                       .features = s->features,
                                       .slots = s->slots,
                                       .known = s->known,
                                       .allowed = a->allowed,
                                       .k = a->o->k};
    if (!kp_scratch_work(s, kp_ranking_work(m) * sizeof(float)) ||
        !kp_scratch_answer(s, m->n_targets, a->o->k))
        return kp_err_nomem(a->err);
    if (m->rules)
        kp_kernel_environment(m->rules, s->sizes, a->o->limits, s->slots, s->known);
    out->configs = s->configs;
    out->logp = s->logp;
    out->n = kp_ranking_ask(m, &q, s->work, out->configs, out->logp);
    if (out->n == 0)
        return kp_err(
            a->err, KOPT_ENOTFOUND,
            "none of the %zu configurations that were measured for training satisfies "
            "the rules",
            m->ranking->n_configs);
    return KOPT_OK;
}

static kopt_status answer(const struct asking *a, size_t width, struct kp_prediction *out)
{
    const struct kp_model *m = a->m;
    struct kp_scratch *s = a->s;
    if (m->ranking)
        return rank(a, out);
    const struct kp_beam_input in = {.nets = (const struct kp_net *const *)m->nets,
                                     .n_nets = m->n_nets,
                                     .forest = m->forest,
                                     .tokens = s->tokens,
                                     .features = s->features,
                                     .allowed = a->allowed,
                                     .width = width,
                                     .k = a->o->k};
    if (!kp_scratch_work(s, kp_beam_work(&in)) || !kp_scratch_answer(s, m->n_targets, a->o->k))
        return kp_err_nomem(a->err);
    out->configs = s->configs;
    out->logp = s->logp;
    out->n = kp_beam_search(&in, s->work, out->configs, out->logp);
    return KOPT_OK;
}

/* In the space of the problem. */
static kopt_status answer_in(struct asking *a, struct kp_spaces *spaces, size_t width,
                             struct kp_prediction *out)
{
    struct kp_spaces_entry *entry = NULL;
    kopt_status st = kp_spaces_take(spaces, a->s->sizes, a->o->limits, &entry, a->err);
    if (st != KOPT_OK)
        return st;
    if (!entry)
        return nothing_left(a, spaces);
    a->allowed = kp_spaces_allowed(spaces, entry);
    st = answer(a, width, out);
    kp_spaces_give(spaces, entry);
    return st;
}

static kopt_status search(struct asking *a, size_t width, struct kp_prediction *out)
{
    struct kp_spaces *own = NULL;
    if (!a->m->rules || a->o->unconstrained)
        return answer(a, width, out);
    if (a->m->spaces)
        return answer_in(a, a->m->spaces, width, out);
    kopt_status st = kp_spaces_new(a->m, &own, a->err);
    if (st == KOPT_OK)
        st = answer_in(a, own, width, out);
    kp_spaces_free(own);
    return st;
}

kopt_status kp_model_predict(const struct kp_model *m, const struct kp_given *given,
                             size_t n_given, const struct kp_predict_options *o,
                             struct kp_prediction *out, kopt_error *err)
{
    struct asking a = {.m = m, .o = o, .err = err};
    *out = (struct kp_prediction){0};
    size_t width = o->width ? o->width : o->k > WIDTH_LEAST ? o->k : WIDTH_LEAST;
    if (o->k < 1 || o->k > width || width > KP_BEAM_WIDTH_MAX)
        return kp_err(err, KOPT_EUSAGE,
                      "%zu configurations from a beam of %zu: 1 to %d, and no more than the "
                      "beam's width, can be asked for",
                      o->k, width, (int)KP_BEAM_WIDTH_MAX);
    kopt_status st = kp_scratch_take(m, &a.s, err);
    if (st != KOPT_OK)
        return st;
    out->scratch = a.s;
    st = read_problem(&a, given, n_given);
    if (st == KOPT_OK) {
        encode(&a);
        st = search(&a, width, out);
    }
    if (st != KOPT_OK)
        kp_prediction_deinit(out);
    return st;
}
