/* SPDX-License-Identifier: MIT */
#include "learn/export.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/num.h"
#include "learn/questions.h"
#include "store/miopen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    ARENA_MAX = 1 << 30,
    ROWS_MAX = 1 << 20,
    KEY_MAX = 1 << 20,
    NAMES_MAX = KP_FIELDS_MAX + KP_PARAMS_MAX,
    LIST_MAX = 200,
    NAME_MAX_BYTES = 256,
    WIDTH = 100 /* as models are judged */
};

struct exporting {
    const struct kp_model *m;
    const struct kp_export_options *o;
    struct kp_export_report *report;
    const char *path;
    const char *asked[NAMES_MAX]; /* names that the model is asked with */
    size_t n_asked;
    const char *given[NAMES_MAX];               /* the texts of o->given */
    const char *columns[KP_MIOPEN_COLUMNS_MAX]; /* of a problem there */
    const char *usual[KP_MIOPEN_COLUMNS_MAX];   /* the rules' default, or NULL */
    size_t n_columns;
    uint32_t vector[KP_TARGETS_MAX]; /* the target at each place */
    struct kp_map seen;              /* problems */
    struct kp_map index;             /* of texts */
    const char **texts;
    size_t n_texts;
    size_t cap_texts;
    struct kp_miopen_row *rows;
    size_t n_rows;
    size_t cap_rows;
    struct kp_buf key;
    struct kp_buf line;
    struct kp_arena arena;
};

/* --- what is asked and written --------------------------------------------------------------
 */

static size_t find(const char *const *names, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* Where it is among the first `n` that are given; n: nowhere. */
static size_t given_at(const struct kp_export_options *o, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(o->given[i].name, name) != 0)
        i++;
    return i;
}

/* The text of a column in the rows that the model is for, where it knows one. */
static const char *of_model(const struct exporting *x, const char *name)
{
    const struct kp_json *info = x->m->info;
    const struct kp_json *where = kp_json_get(info, "where");
    struct kp_str text;
    if (kp_json_as_str(kp_json_get(kp_json_get(info, "pooled"), name), &text))
        return text.ptr;
    for (size_t i = 0; i < kp_json_size(where); i++)
        if (kp_json_as_str(kp_json_at(where, i), &text) &&
            kp_str_is(kp_str_cut(text, '=', &text), name))
            return text.ptr;
    return NULL;
}

/* What a problem has there: what is given for all, else its own, else the model's. NULL: there
 * is nothing. */
static const char *said(const struct exporting *x, const struct kp_question *q,
                        const char *name)
{
    size_t given = given_at(x->o, x->o->n_given, name);
    size_t at = find(q->names, q->n, name);
    if (given < x->o->n_given)
        return x->given[given];
    return at < q->n ? q->values[at] : of_model(x, name);
}

/* The same, and in the end the rules' default. */
static const char *text_of(const struct exporting *x, const struct kp_question *q,
                           const char *name)
{
    const char *text = said(x, q, name);
    size_t i = find(x->columns, x->n_columns, name);
    return text ? text : i < x->n_columns ? x->usual[i] : NULL;
}

/* May it be given: does the model, the database or the choice of rows have such a name? */
static bool is_name(const struct exporting *x, const char *name)
{
    return find(x->asked, x->n_asked, name) < x->n_asked ||
           find(x->columns, x->n_columns, name) < x->n_columns || of_model(x, name);
}

static kopt_status take_given(struct exporting *x, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < x->o->n_given; i++) {
        const struct kp_given *g = &x->o->given[i];
        bool twice = given_at(x->o, i, g->name) < i;
        if (twice || i == NAMES_MAX || !is_name(x, g->name))
            return kp_err(err, KOPT_EUSAGE,
                          "the model of '%s' has no '%s', or it is given twice", x->m->kernel,
                          g->name);
        kp_buf_clear(&x->key);
        kp_value_to_text(g->value, &x->key);
        st = kp_buf_status(&x->key, err);
        x->given[i] = kp_arena_strndup(&x->arena, kp_buf_text(&x->key), x->key.len);
        if (st == KOPT_OK && !x->given[i])
            st = kp_err_nomem(err);
    }
    return st;
}

/* The model's fields, and what its rules have beside them where MIOpen has it, too. */
static kopt_status choose_names(struct exporting *x, kopt_error *err)
{
    const struct kp_model *m = x->m;
    struct kp_buf foreign = KP_BUF_INIT(LIST_MAX);
    for (size_t i = 0; i < m->n_raw; i++) {
        const char *name = kp_encoder_field(m->encoder, i)->name;
        if (given_at(x->o, x->o->n_given, name) == x->o->n_given && !of_model(x, name) &&
            find(x->columns, x->n_columns, name) == x->n_columns)
            kp_buf_addf(&foreign, "%s%s", foreign.len ? ", " : "", name);
        x->asked[x->n_asked++] = name;
    }
    kopt_status st = KOPT_OK;
    if (foreign.len > 0 || foreign.failed != KOPT_OK) {
        st = kp_err(err, KOPT_EINPUT,
                    "the model of '%s' is about what MIOpen's databases do not have: %s",
                    m->kernel, kp_buf_text(&foreign));
        kp_err_hint(err, "a value for all problems can be given as NAME=VALUE");
    }
    kp_buf_deinit(&foreign);
    for (size_t i = 0; m->rules && i < m->rules->n_problem; i++)
        if (find(x->asked, x->n_asked, m->rules->problem[i]) == x->n_asked &&
            x->n_asked < NAMES_MAX)
            x->asked[x->n_asked++] = m->rules->problem[i];
    return st == KOPT_OK ? take_given(x, err) : st;
}

static kopt_status choose_columns(struct exporting *x, kopt_error *err)
{
    const struct kp_kernel *rules = x->m->rules;
    struct kp_buf text = KP_BUF_INIT(KEY_MAX);
    kopt_status st = KOPT_OK;
    for (const char *name; (name = kp_miopen_column_name(x->n_columns)); x->n_columns++) {
        size_t i = rules ? find(rules->problem, rules->n_problem, name) : 0;
        x->columns[x->n_columns] = name;
        if (st != KOPT_OK || !rules || i == rules->n_problem || !rules->has_problem_default[i])
            continue;
        kp_buf_clear(&text);
        kp_value_to_text(rules->problem_default[i], &text);
        st = kp_buf_status(&text, err);
        x->usual[x->n_columns] = kp_arena_strndup(&x->arena, kp_buf_text(&text), text.len);
        if (st == KOPT_OK && !x->usual[x->n_columns])
            st = kp_err_nomem(err);
    }
    kp_buf_deinit(&text);
    return st;
}

/* MIOpen's vectors have the rules' order. */
static kopt_status choose_places(struct exporting *x, kopt_error *err)
{
    const struct kp_model *m = x->m;
    for (size_t p = 0; p < m->n_targets; p++) {
        size_t t = 0;
        const char *name =
            m->rules && p < m->rules->n_params ? m->rules->params[p].name : m->targets[p].name;
        while (t < m->n_targets && strcmp(m->targets[t].name, name) != 0)
            t++;
        if (t == m->n_targets || (m->rules && m->rules->n_params != m->n_targets))
            return kp_err(err, KOPT_EINPUT,
                          "the model of '%s' does not predict the parameters of its rules",
                          m->kernel);
        x->vector[p] = (uint32_t)t;
    }
    return KOPT_OK;
}

/* --- rows -----------------------------------------------------------------------------------
 */

__attribute__((format(printf, 3, 4))) static void skip(struct exporting *x, int64_t line,
                                                       const char *fmt, ...)
{
    va_list args;
    if (x->report->skipped++ > 0)
        return;
    x->report->first_line = line;
    va_start(args, fmt);
    (void)vsnprintf(x->report->reason, sizeof(x->report->reason), fmt, args);
    va_end(args);
}

/* The text's one copy. */
static const char *keep(struct exporting *x, const char *text, size_t n)
{
    bool added = false;
    void *items = x->texts;
    if (!kp_grow(&items, &x->cap_texts, x->n_texts, sizeof(*x->texts), INT32_MAX))
        return NULL;
    x->texts = items;
    uint64_t *at = kp_map_put(&x->index, text, n, &added);
    if (!at)
        return NULL;
    if (added) {
        x->texts[x->n_texts] = kp_arena_strndup(&x->arena, text, n);
        *at = x->n_texts++;
    }
    return x->texts[*at];
}

static bool same(const char *a, const char *b)
{
    double x;
    double y;
    return strcmp(a, b) == 0 || (kp_f64_from_text(kp_str_from(a), &x) &&
                                 kp_f64_from_text(kp_str_from(b), &y) && x == y);
}

static kopt_status is_wanted(const struct exporting *x, const struct kp_question *q,
                             bool *wanted, kopt_error *err)
{
    *wanted = true;
    for (size_t w = 0; w < x->o->n_where; w++) {
        struct kp_str text;
        struct kp_str name = kp_str_cut(kp_str_from(x->o->where[w]), '=', &text);
        char column[NAME_MAX_BYTES];
        (void)snprintf(column, sizeof(column), "%.*s", KP_STR_FMT(name));
        const char *own = text_of(x, q, column);
        if (!own)
            return kp_err(err, KOPT_EINPUT, "%s: there is no column '%s'", x->path, column);
        *wanted = *wanted && same(own, text.ptr);
    }
    return KOPT_OK;
}

/* Is there a word that the model never learned from, or another value than the one that a field
 * always had? */
static bool is_unseen(const struct exporting *x, const struct kp_question *q)
{
    const struct kp_encoder *e = x->m->encoder;
    struct kp_export_report *r = x->report;
    for (size_t i = 0; i < x->m->n_raw; i++) {
        const struct kp_field *f = kp_encoder_field(e, i);
        const char *text = text_of(x, q, f->name);
        double low = 0;
        double high = 1;
        if (!text || (!f->is_word && (!kp_encoder_range(e, i, &low, &high) || low < high)) ||
            kp_encoder_knows(e, i, kp_given_value(text)))
            continue;
        if (r->unseen++ == 0) {
            r->unseen_line = q->line;
            (void)snprintf(r->unseen_why, sizeof(r->unseen_why), "%s=%s", f->name, text);
        }
        return true;
    }
    return false;
}

static kopt_status ask(struct exporting *x, const struct kp_question *q,
                       struct kp_prediction *out, kopt_error *err)
{
    struct kp_given problem[NAMES_MAX];
    const struct kp_predict_options o = {
        .k = 1, .width = x->o->width ? x->o->width : WIDTH, .limits = x->o->limits};
    size_t n = 0;
    for (size_t i = 0; i < x->n_asked; i++) {
        const char *text = said(x, q, x->asked[i]);
        if (text)
            problem[n++] = (struct kp_given){x->asked[i], kp_given_value(text)};
    }
    return kp_model_predict(x->m, problem, n, &o, out, err);
}

/* `row` with its texts kept. */
static kopt_status make_row(struct exporting *x, const struct kp_question *q,
                            const uint32_t *config, struct kp_miopen_row *row, kopt_error *err)
{
    const struct kp_model *m = x->m;
    const char **columns = kp_arena_alloc(&x->arena, x->n_columns, sizeof(*columns));
    const char **problem = kp_arena_alloc(&x->arena, x->n_columns, sizeof(*problem));
    const char **values = kp_arena_alloc(&x->arena, m->n_targets, sizeof(*values));
    *row = (struct kp_miopen_row){.columns = columns,
                                  .problem = problem,
                                  .solver = x->o->solver ? x->o->solver : m->kernel,
                                  .values = values,
                                  .n_values = m->n_targets,
                                  .line = q->line};
    bool ok = columns && problem && values;
    for (size_t i = 0; ok && i < x->n_columns; i++) {
        const char *text = text_of(x, q, x->columns[i]);
        if (!text)
            continue;
        columns[row->n_columns] = x->columns[i];
        problem[row->n_columns] = keep(x, text, strlen(text));
        ok = problem[row->n_columns++] != NULL;
    }
    for (size_t p = 0; ok && p < m->n_targets; p++) {
        const struct kp_target *t = &m->targets[x->vector[p]];
        kp_buf_clear(&x->key);
        kp_value_to_macro(t->values[config[x->vector[p]]], &x->key);
        ok = x->key.failed == KOPT_OK;
        values[p] = ok ? keep(x, kp_buf_text(&x->key), x->key.len) : NULL;
        ok = values[p] != NULL;
    }
    return ok ? KOPT_OK : kp_err_nomem(err);
}

/* Was it there before? */
static kopt_status is_new(struct exporting *x, const struct kp_question *q, bool *is,
                          kopt_error *err)
{
    kp_buf_clear(&x->key);
    for (size_t i = 0; i < x->n_columns; i++) {
        const char *text = text_of(x, q, x->columns[i]);
        kp_buf_adds(&x->key, text ? text : "");
        kp_buf_addc(&x->key, '\n');
    }
    kopt_status st = kp_buf_status(&x->key, err);
    if (st == KOPT_OK && !kp_map_put(&x->seen, x->key.ptr, x->key.len, is))
        st = kp_err_nomem(err);
    return st;
}

/* Is this fault one of the problem, so that others may be without? */
static bool is_its_own(kopt_status st)
{
    return st == KOPT_ENOTFOUND || st == KOPT_EUSAGE || st == KOPT_EINPUT;
}

static kopt_status add_row(struct exporting *x, const struct kp_question *q,
                           const uint32_t *config, kopt_error *why)
{
    void *items = x->rows;
    struct kp_miopen_row row;
    kopt_status st = make_row(x, q, config, &row, why);
    if (st != KOPT_OK)
        return st;
    kp_buf_clear(&x->line);
    st = kp_miopen_write(&row, 1, &x->line, why); /* can it be written? */
    if (st != KOPT_OK)
        return st;
    if (x->n_rows == ROWS_MAX)
        return kp_err(why, KOPT_ERANGE, "more than %d problems", (int)ROWS_MAX);
    if (!kp_grow(&items, &x->cap_rows, x->n_rows, sizeof(*x->rows), ROWS_MAX))
        return kp_err_nomem(why);
    x->rows = items;
    x->rows[x->n_rows++] = row;
    return KOPT_OK;
}

static kopt_status take(void *user, const struct kp_question *q, kopt_error *err)
{
    struct exporting *x = user;
    struct kp_prediction got = {0};
    kopt_error why = {0};
    bool wanted = true;
    x->report->read++;
    if (q->broken) {
        skip(x, q->line, "%s", q->broken);
        return KOPT_OK;
    }
    kopt_status st = is_wanted(x, q, &wanted, err);
    if (st != KOPT_OK || !wanted) {
        x->report->left_out += st == KOPT_OK;
        return st;
    }
    st = is_new(x, q, &wanted, err);
    if (st != KOPT_OK || !wanted) {
        x->report->repeated += st == KOPT_OK;
        return st;
    }
    if (is_unseen(x, q))
        return KOPT_OK;
    st = ask(x, q, &got, &why);
    if (st == KOPT_OK)
        st = add_row(x, q, got.configs, &why);
    kp_prediction_deinit(&got);
    if (is_its_own(st)) {
        skip(x, q->line, "%s", why.message);
        return KOPT_OK;
    }
    if (st != KOPT_OK && err)
        *err = why;
    return st;
}

/* --- the whole ------------------------------------------------------------------------------
 */

static kopt_status nothing(const struct exporting *x, kopt_error *err)
{
    const struct kp_export_report *r = x->report;
    if (r->skipped > 0)
        return kp_err(err, KOPT_EINPUT,
                      "%s: nothing can be predicted for any problem; line %" PRId64 ": %s",
                      x->path, r->first_line, r->reason);
    if (r->unseen > 0)
        return kp_err(err, KOPT_EINPUT,
                      "%s: the model learned from no such problems: line %" PRId64 ": %s",
                      x->path, r->unseen_line, r->unseen_why);
    kopt_status st = kp_err(err, KOPT_EINPUT, "%s: there is no problem to predict", x->path);
    if (r->left_out > 0)
        kp_err_hint(err, "rows left out, since their columns have other texts: %zu",
                    r->left_out);
    return st;
}

static void exporting_deinit(struct exporting *x)
{
    kp_map_deinit(&x->seen);
    kp_map_deinit(&x->index);
    kp_free(x->texts);
    kp_free(x->rows);
    kp_buf_deinit(&x->key);
    kp_buf_deinit(&x->line);
    kp_arena_deinit(&x->arena);
}

kopt_status kp_export_miopen(const struct kp_model *m, const char *problems,
                             const struct kp_export_options *o, struct kp_buf *out,
                             struct kp_export_report *report, kopt_error *err)
{
    struct exporting x = {.m = m,
                          .o = o,
                          .report = report,
                          .path = problems,
                          .key = KP_BUF_INIT(KEY_MAX),
                          .line = KP_BUF_INIT(KEY_MAX),
                          .arena = KP_ARENA_INIT(ARENA_MAX)};
    *report = (struct kp_export_report){0};
    kopt_status st = choose_columns(&x, err);
    if (st == KOPT_OK)
        st = choose_names(&x, err);
    if (st == KOPT_OK)
        st = choose_places(&x, err);
    if (st == KOPT_OK)
        st = kp_questions(problems, take, &x, err);
    if (st == KOPT_OK && x.n_rows == 0)
        st = nothing(&x, err);
    if (st == KOPT_OK)
        st = kp_miopen_write(x.rows, x.n_rows, out, err);
    if (st == KOPT_OK)
        report->written = x.n_rows;
    exporting_deinit(&x);
    return st;
}
