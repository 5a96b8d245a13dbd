/* SPDX-License-Identifier: MIT */
/* From the rows that were kept to the data set: what kind each column is, the targets' lists,
 * the derived fields. Layer: learn. */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_NUMBER, KIND_TRUTH, KIND_TEXT };

struct finish {
    struct kp_intake *in;
    enum kind kinds[KP_LOAD_SLOTS_MAX];
    const char *names[KP_FIELDS_MAX]; /* of all fields */
    size_t n_fields;                  /* with the derived ones */
    size_t derived[KP_FIELDS_MAX];    /* of field n_raw + i: which of the rules' */
    struct kp_target lists[KP_TARGETS_MAX];
    struct kp_value *sizes; /* by the rules' problem index */
    struct kp_buf key;
    struct kp_arena arena;
};

static struct kp_value truth_of(struct kp_str text, bool *known)
{
    bool yes = kp_str_is(text, "true") || kp_str_is(text, "True");
    *known = yes || kp_str_is(text, "false") || kp_str_is(text, "False");
    return kp_bool(yes);
}

static const struct kp_text *text_at(const struct kp_intake *in, size_t row, size_t slot)
{
    return &in->texts[in->cells[row * (in->n_fields + in->n_targets) + slot]];
}

static enum kind kind_of(const struct kp_intake *in, size_t slot)
{
    bool numbers = true;
    bool truths = slot >= in->n_fields;
    const struct kp_kernel *rules = in->o->rules;
    if (slot == in->source_slot)
        return KIND_TEXT;
    if (rules && slot < in->n_fields && in->of_rules[slot] != SIZE_MAX &&
        rules->has_problem_default[in->of_rules[slot]] &&
        rules->problem_default[in->of_rules[slot]].type == KP_STRING)
        return KIND_TEXT;
    for (size_t r = 0; (numbers || truths) && r < in->n_rows; r++) {
        const struct kp_text *t = text_at(in, r, slot);
        bool known = false;
        (void)truth_of(t->text, &known);
        truths &= known;
        numbers &= t->value.type != KP_STRING;
    }
    return truths ? KIND_TRUTH : numbers ? KIND_NUMBER : KIND_TEXT;
}

static struct kp_value as_kind(const struct kp_text *t, enum kind k)
{
    bool known = false;
    if (k == KIND_TRUTH)
        return truth_of(t->text, &known);
    return k == KIND_NUMBER ? t->value : kp_string(t->text);
}

static int by_value(const void *a, const void *b)
{
    int order = 0;
    (void)kp_value_compare(*(const struct kp_value *)a, *(const struct kp_value *)b, &order);
    return order;
}

/* The rules' list and behind it, sorted, what it lacks. A list that is too long for a data set
 * is left out: the values that occur are then collected. */
static kopt_status make_list(struct finish *f, size_t target)
{
    struct kp_listed *l = &f->in->listed[target];
    struct kp_target *out = &f->lists[target];
    if (!l->param || l->param->n_values + l->n_extra > KP_TARGET_VALUES_MAX)
        return KOPT_OK;
    size_t n = l->param->n_values + l->n_extra;
    struct kp_value *values = kp_arena_alloc(&f->arena, n, sizeof(*values));
    if (!values)
        return kp_err_nomem(f->in->err);
    memcpy(values, l->param->values, l->param->n_values * sizeof(*values));
    if (l->n_extra > 0) {
        qsort(l->extra, l->n_extra, sizeof(*l->extra), by_value);
        memcpy(values + l->param->n_values, l->extra, l->n_extra * sizeof(*values));
    }
    *out =
        (struct kp_target){.type = l->param->type, .values = values, .n_values = (uint32_t)n};
    for (size_t i = 0; i < l->n_extra; i++)
        if (l->extra[i].type == KP_FLOAT)
            out->type = KP_FLOAT;
    return KOPT_OK;
}

static void add_derived(struct finish *f)
{
    const struct kp_intake *in = f->in;
    memcpy(f->names, in->names, in->n_fields * sizeof(f->names[0]));
    f->n_fields = in->n_fields;
    for (size_t d = 0; d < in->n_derived && f->n_fields < KP_FIELDS_MAX; d++) {
        bool there = false;
        for (size_t i = 0; i < in->n_fields; i++)
            there |= strcmp(in->names[i], in->derived[d]) == 0;
        if (there)
            continue;
        f->derived[f->n_fields - in->n_fields] = d;
        f->names[f->n_fields++] = in->derived[d];
    }
}

/* The derived values behind the others. */
static kopt_status derive(struct finish *f, struct kp_value *problem)
{
    const struct kp_intake *in = f->in;
    const struct kp_kernel *rules = in->o->rules;
    double values[KP_FIELDS_MAX];
    if (f->n_fields == in->n_fields)
        return KOPT_OK;
    for (size_t i = 0; i < rules->n_problem; i++)
        if (rules->has_problem_default[i])
            f->sizes[i] = rules->problem_default[i];
    for (size_t i = 0; i < in->n_fields; i++)
        if (in->of_rules[i] != SIZE_MAX)
            f->sizes[in->of_rules[i]] = problem[i];
    kopt_status st = kp_model_derive(rules, f->sizes, values, in->err);
    for (size_t i = in->n_fields; st == KOPT_OK && i < f->n_fields; i++)
        problem[i] = kp_float(values[f->derived[i - in->n_fields]]);
    return st;
}

/* The row's problem. `same`: it is the one before's, whose derived values stand there. */
static kopt_status make_problem(struct finish *f, size_t row, bool same,
                                struct kp_value *problem)
{
    const struct kp_intake *in = f->in;
    for (size_t i = 0; i < in->n_fields; i++)
        problem[i] = as_kind(text_at(in, row, i), f->kinds[i]);
    return same ? KOPT_OK : derive(f, problem);
}

/* The key of a problem whose source has none: as without `source`, and with the texts that keys
 * have. */
static kopt_status make_key(struct finish *f, const struct kp_value *problem)
{
    const struct kp_intake *in = f->in;
    struct kp_value as[KP_FIELDS_MAX];
    size_t n = f->n_fields;
    memcpy(as, problem, n * sizeof(*as));
    for (size_t i = 0; i < in->n_fields; i++) {
        struct kp_str text = kp_intake_as(in, in->names[i], (struct kp_str){0});
        if (text.ptr)
            as[i] = f->kinds[i] == KIND_TEXT ? kp_string(text) : kp_value_of_text(text);
    }
    kopt_status st = derive(f, as);
    if (in->source_slot != SIZE_MAX) {
        n--;
        memmove(as + in->source_slot, as + in->source_slot + 1,
                (n - in->source_slot) * sizeof(*as));
    }
    kp_buf_clear(&f->key);
    kp_problem_key(as, n, &f->key);
    return st == KOPT_OK ? kp_buf_status(&f->key, in->err) : st;
}

static void make_config(const struct finish *f, size_t row, struct kp_value *config)
{
    const struct kp_intake *in = f->in;
    for (size_t t = 0; t < in->n_targets; t++) {
        const struct kp_text *text = text_at(in, row, in->n_fields + t);
        const struct kp_target *l = &f->lists[t];
        config[t] = as_kind(text, f->kinds[in->n_fields + t]);
        for (uint32_t v = 0; v < l->n_values; v++)
            if (kp_value_means(l->values[v], text->text)) {
                config[t] = l->values[v];
                break;
            }
    }
}

static kopt_status add_rows(struct finish *f, struct kp_dataset_builder *b)
{
    struct kp_intake *in = f->in;
    struct kp_value problem[KP_FIELDS_MAX];
    struct kp_value config[KP_TARGETS_MAX];
    size_t width = in->n_fields + in->n_targets;
    for (size_t r = 0; r < in->n_rows; r++) {
        kopt_error why = {0};
        bool same = r > 0 && memcmp(in->cells + r * width, in->cells + (r - 1) * width,
                                    in->n_fields * sizeof(*in->cells)) == 0;
        kopt_status st = make_problem(f, r, same, problem);
        if (st != KOPT_OK)
            return st;
        make_config(f, r, config);
        const char *key = in->keys[r] == UINT32_MAX ? NULL : in->texts[in->keys[r]].text.ptr;
        if (!key && (in->o->source || in->o->n_as > 0)) {
            st = make_key(f, problem);
            if (st != KOPT_OK)
                return st;
            key = kp_buf_text(&f->key);
        }
        st = kp_dataset_add(b, problem, config, key, in->times[r], &why);
        if (st == KOPT_EINPUT)
            kp_intake_skip(in, in->lines[r], "%s", why.message);
        else if (st != KOPT_OK)
            return kp_err_nomem(in->err);
    }
    return KOPT_OK;
}

static kopt_status no_rows(struct kp_intake *in)
{
    const struct kp_load_report *r = in->report;
    if (r->skipped > 0)
        return kp_err(in->err, KOPT_EINPUT, "%s: no row can be used; %s", in->path, r->reason);
    if (r->left_out > 0)
        return kp_err(in->err, KOPT_EINPUT, "%s: none of %zu rows is among those chosen",
                      in->path, r->left_out);
    return kp_err(in->err, KOPT_EINPUT, "%s: there are no rows", in->path);
}

static bool is_untimed(const struct kp_intake *in)
{
    bool any = false; /* that did not fail */
    for (size_t r = 0; r < in->n_rows; r++) {
        if (isfinite(in->times[r]))
            return false;
        any |= isnan(in->times[r]) != 0;
    }
    return any && in->report->source == KP_SOURCE_CSV;
}

static kopt_status make(struct finish *f, struct kp_dataset **out)
{
    struct kp_intake *in = f->in;
    struct kp_dataset_builder *b = NULL;
    size_t skipped = in->report->skipped;
    kopt_status st = KOPT_OK;
    size_t n_sizes = in->o->rules ? in->o->rules->n_problem : 0;
    f->sizes = kp_arena_alloc(&f->arena, n_sizes + 1, sizeof(*f->sizes));
    if (!f->sizes)
        return kp_err_nomem(in->err);
    for (size_t s = 0; s < in->n_fields + in->n_targets; s++)
        f->kinds[s] = kind_of(in, s);
    for (size_t t = 0; st == KOPT_OK && t < in->n_targets; t++)
        st = make_list(f, t);
    if (st != KOPT_OK)
        return st;
    add_derived(f);
    st = kp_dataset_begin(in->kernel, f->names, f->n_fields, in->names + in->n_fields,
                          in->n_targets, f->lists, &b, in->err);
    if (st != KOPT_OK)
        return st;
    st = add_rows(f, b);
    if (st == KOPT_OK && in->report->skipped - skipped == in->n_rows)
        st = no_rows(in);
    if (st != KOPT_OK) {
        kp_dataset_abandon(b);
        return st;
    }
    return kp_dataset_finish(b, out, in->err);
}

kopt_status kp_intake_finish(struct kp_intake *in, struct kp_dataset **out)
{
    *out = NULL;
    if (in->n_rows == 0)
        return no_rows(in);
    struct finish f = {.in = in,
                       .key = KP_BUF_INIT((size_t)KP_FIELDS_MAX * (KP_LOAD_TEXT_MAX + 1)),
                       .arena = KP_ARENA_INIT((size_t)64 << 20)};
    size_t n_hashed = in->n_fields - (in->source_slot != SIZE_MAX);
    kopt_status st = make(&f, out);
    kp_buf_deinit(&f.key);
    kp_arena_deinit(&f.arena);
    in->report->n_raw = in->n_fields;
    in->report->untimed = is_untimed(in);
    if (st == KOPT_OK && in->report->helping > 0)
        st = kp_intake_twins(in, *out);
    if (st == KOPT_OK)
        st = kp_dataset_hash(*out, n_hashed, false, in->report->hash, in->err);
    if (st == KOPT_OK && in->report->helping > 0)
        st = kp_dataset_hash(*out, in->n_fields, true, in->report->all_hash, in->err);
    if (st != KOPT_OK) {
        kp_dataset_free(*out);
        *out = NULL;
    }
    return st;
}
