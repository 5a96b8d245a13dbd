/* SPDX-License-Identifier: MIT */
/* Rows of named texts: which are fields and targets, and which rows count. Layer: learn. */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "base/num.h"
#include "model/model.h"
#include "json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 80 /* bytes of a value in a message */ };
#define ARENA_MAX ((size_t)4 << 30)

/* What a target's text is to the rules' list. */
enum fit { FIT_NEW, FIT_LISTED, FIT_EXTRA, FIT_NOT };

kopt_status kp_cells_add(struct kp_cells *c, const char *name, struct kp_str text,
                         enum kp_cell_kind kind, kopt_error *err)
{
    if (c->n >= KP_LOAD_CELLS_MAX)
        return kp_err(err, KOPT_ERANGE, "a row has more than %d values", KP_LOAD_CELLS_MAX);
    if (!kp_grow((void **)&c->cells, &c->cap, c->n, sizeof(*c->cells), KP_LOAD_CELLS_MAX))
        return kp_err_nomem(err);
    c->cells[c->n++] = (struct kp_cell){name, text, kind};
    return KOPT_OK;
}

void kp_cells_deinit(struct kp_cells *c)
{
    kp_free(c->cells);
    *c = (struct kp_cells){0};
}

bool kp_names_add(struct kp_names *names, struct kp_arena *arena, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->names[i], name) == 0)
            return true;
    if (names->n == KP_LOAD_NAMES_MAX)
        return true;
    const char *copy = kp_arena_strndup(arena, name, strlen(name));
    if (copy)
        names->names[names->n++] = copy;
    return copy != NULL;
}

/* --- life ----------------------------------------------------------------------------------
 */

void kp_intake_init(struct kp_intake *in, const char *path, const struct kp_load_options *o,
                    struct kp_load_report *report, kopt_error *err)
{
    *in = (struct kp_intake){.path = path,
                             .o = o,
                             .report = report,
                             .err = err,
                             .source = o->source,
                             .source_slot = SIZE_MAX,
                             .arena = KP_ARENA_INIT(ARENA_MAX)};
    in->kernel = o->kernel ? o->kernel : o->rules ? o->rules->name : NULL;
    if (o->rules)
        in->n_derived = kp_model_derived_names(o->rules, in->derived);
}

void kp_intake_deinit(struct kp_intake *in)
{
    for (size_t t = 0; t < KP_TARGETS_MAX; t++)
        kp_free(in->listed[t].extra);
    kp_map_deinit(&in->seen);
    kp_map_deinit(&in->index);
    kp_free(in->texts);
    kp_free(in->cells);
    kp_free(in->keys);
    kp_free(in->times);
    kp_free(in->lines);
    kp_arena_deinit(&in->arena);
}

void kp_intake_skip(struct kp_intake *in, int64_t line, const char *fmt, ...)
{
    struct kp_load_report *r = in->report;
    kopt_error text = {0};
    char why[256];
    va_list args;
    if (r->skipped++ > 0)
        return;
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    r->first_line = line;
    (void)kp_err(&text, KOPT_EINPUT, "%s%s%s %" PRId64 ": %s", in->helps ? in->path : "",
                 in->helps ? ", " : "", r->source == KP_SOURCE_CSV ? "line" : "row", line,
                 why); /* makes it printable */
    (void)snprintf(r->reason, sizeof(r->reason), "%.255s", text.message);
}

void kp_intake_hint(struct kp_intake *in, const char *what, const char *const *names, size_t n)
{
    struct kp_buf text = KP_BUF_INIT(180);
    for (size_t i = 0; i < n; i++)
        kp_buf_addf(&text, "%s%s", i ? ", " : "", names[i]);
    if (n > 0)
        kp_err_hint(in->err, "%s: %s%s", what, kp_buf_text(&text),
                    text.failed == KOPT_ERANGE ? " .." : "");
    kp_buf_deinit(&text);
}

static kopt_status memory(struct kp_intake *in)
{
    if (in->arena.over)
        return kp_err(in->err, KOPT_ERANGE, "%s: too much text", in->path);
    return kp_err_nomem(in->err);
}

kopt_status kp_intake_name(struct kp_intake *in)
{
    const char *slash = strrchr(in->path, '/');
    const char *base = slash ? slash + 1 : in->path;
    size_t n = strcspn(base, ".");
    const struct kp_load_options *o = in->o;
    if (o->kernel && o->rules && strcmp(o->kernel, o->rules->name) != 0)
        return kp_err(in->err, KOPT_EUSAGE,
                      "%s names no kernel, and the rules are those of '%s', not of '%s'",
                      in->path, o->rules->name, o->kernel);
    if (in->kernel)
        return KOPT_OK;
    in->kernel = kp_arena_strndup(&in->arena, base, n > 0 ? n : strlen(base));
    return in->kernel ? KOPT_OK : memory(in);
}

/* --- texts ---------------------------------------------------------------------------------
 */

struct kp_value kp_value_of_text(struct kp_str text)
{
    int64_t i = 0;
    double f = 0;
    if (kp_str_to_i64(text, &i))
        return kp_int(i);
    if (kp_f64_from_text(text, &f) && isfinite(f))
        return kp_float(f);
    return kp_string(text);
}

static bool same_text(struct kp_str a, struct kp_str b)
{
    int order = 1;
    if (kp_str_eq(a, b))
        return true;
    struct kp_value x = kp_value_of_text(a);
    struct kp_value y = kp_value_of_text(b);
    return x.type != KP_STRING && y.type != KP_STRING && kp_value_compare(x, y, &order) &&
           order == 0;
}

uint32_t kp_intake_text(struct kp_intake *in, struct kp_str text)
{
    bool added = false;
    const char *ptr = text.len ? text.ptr : "";
    if (!kp_grow((void **)&in->texts, &in->cap_texts, in->n_texts, sizeof(*in->texts),
                 UINT32_MAX - 1))
        return UINT32_MAX;
    uint64_t *at = kp_map_put(&in->index, ptr, text.len, &added);
    if (!at)
        return UINT32_MAX;
    if (added) {
        const char *copy = kp_arena_strndup(&in->arena, ptr, text.len);
        if (!copy)
            return UINT32_MAX;
        struct kp_str kept = {copy, text.len};
        *at = in->n_texts;
        in->texts[in->n_texts++] = (struct kp_text){kept, kp_value_of_text(kept)};
    }
    return (uint32_t)*at;
}

/* --- what is what: from the first row ------------------------------------------------------
 */

static size_t find_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return SIZE_MAX;
}

static size_t find_cell(const struct kp_cell *cells, size_t n, const char *name, size_t hint)
{
    if (hint < n && strcmp(cells[hint].name, name) == 0)
        return hint;
    for (size_t i = 0; i < n; i++)
        if (strcmp(cells[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

static kopt_status lacks(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                         const char *name, const char *why)
{
    const char *names[KP_LOAD_CELLS_MAX];
    size_t n_names = 0;
    for (size_t i = 0; i < n; i++) /* a store's parameters come in two orders */
        if (find_name(names, n_names, cells[i].name) == SIZE_MAX)
            names[n_names++] = cells[i].name;
    kopt_status st = kp_err(in->err, KOPT_EINPUT, "%s: there is no '%.*s', %s", in->path,
                            SHOWN_MAX, name, why);
    kp_intake_hint(in, "there are", names, n_names);
    return st;
}

bool kp_about(const char *entry, const char *name, const struct kp_str *text)
{
    struct kp_str rest;
    struct kp_str key = kp_str_cut(kp_str_from(entry), '=', &rest);
    return kp_str_is(key, name) && (!text || same_text(*text, rest));
}

struct kp_str kp_intake_as(const struct kp_intake *in, const char *name, struct kp_str own)
{
    struct kp_str text = own;
    for (size_t i = 0; i < in->o->n_as; i++)
        if (kp_about(in->o->as[i], name, NULL))
            (void)kp_str_cut(kp_str_from(in->o->as[i]), '=', &text);
    return text;
}

static bool is_field(const struct kp_intake *in, const struct kp_cell *c, bool apart)
{
    const struct kp_kernel *rules = in->o->rules;
    for (size_t i = 0; i < in->o->n_as; i++)
        if (kp_about(in->o->as[i], c->name, NULL))
            return true;
    if (c->kind == KP_CELL_ABOUT)
        return false;
    if (rules && find_name(rules->problem, rules->n_problem, c->name) != SIZE_MAX)
        return true;
    if (rules)
        return c->kind == KP_CELL_PROBLEM &&
               find_name(in->derived, in->n_derived, c->name) == SIZE_MAX;
    return c->kind == KP_CELL_PROBLEM || (in->o->n_params > 0 && !apart);
}

static bool is_target(const struct kp_cell *c, bool apart)
{
    return c->kind == KP_CELL_CONFIG || (c->kind == KP_CELL_COLUMN && apart);
}

static kopt_status add_slot(struct kp_intake *in, const char *name, size_t at, bool target)
{
    size_t *n = target ? &in->n_targets : &in->n_fields;
    size_t slot = in->n_fields + in->n_targets;
    if (*n >= (target ? (size_t)KP_TARGETS_MAX : (size_t)KP_FIELDS_MAX))
        return kp_err(in->err, KOPT_ERANGE, "%s: more than %zu %s", in->path, *n,
                      target ? "parameters" : "problem sizes");
    in->names[slot] = kp_arena_strndup(&in->arena, name, strlen(name));
    in->at[slot] = at;
    ++*n;
    return in->names[slot] ? KOPT_OK : memory(in);
}

static kopt_status no_targets(struct kp_intake *in)
{
    kopt_status st =
        kp_err(in->err, KOPT_EINPUT, "%s: which columns are parameters is not known", in->path);
    kp_err_hint(in->err,
                "give the kernel's file, or a file of rules, or the parameters' names");
    return st;
}

/* The wanted parameters in the order in which they are predicted. */
static kopt_status choose_targets(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                                  bool apart)
{
    const struct kp_kernel *rules = in->o->rules;
    size_t n_wanted = rules ? rules->n_params : in->o->n_params;
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < n_wanted; i++) {
        const char *name = rules ? rules->params[i].name : in->o->params[i];
        size_t at = find_cell(cells, n, name, i);
        if (at == SIZE_MAX)
            return lacks(in, cells, n, name,
                         rules ? "a parameter of the rules" : "a parameter");
        if (rules && in->n_targets < KP_TARGETS_MAX)
            in->listed[in->n_targets].param = &rules->params[i];
        st = add_slot(in, name, at, true);
    }
    for (size_t i = 0; st == KOPT_OK && n_wanted == 0 && i < n; i++)
        if (is_target(&cells[i], apart) &&
            find_name(in->names, in->n_fields + in->n_targets, cells[i].name) == SIZE_MAX)
            st = add_slot(in, cells[i].name, i, true);
    return st == KOPT_OK && in->n_targets == 0 ? no_targets(in) : st;
}

static kopt_status choose_fields(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                                 bool apart)
{
    const struct kp_kernel *rules = in->o->rules;
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < n; i++) {
        const char *name = cells[i].name;
        bool wanted = false;
        for (size_t p = 0; rules && p < rules->n_params; p++)
            wanted |= strcmp(rules->params[p].name, name) == 0;
        for (size_t p = 0; !rules && p < in->o->n_params; p++)
            wanted |= strcmp(in->o->params[p], name) == 0;
        if (!wanted && is_field(in, &cells[i], apart) &&
            find_name(in->names, in->n_fields, name) == SIZE_MAX) {
            in->of_rules[in->n_fields < KP_FIELDS_MAX ? in->n_fields : 0] =
                rules ? find_name(rules->problem, rules->n_problem, name) : SIZE_MAX;
            st = add_slot(in, name, i, false);
        }
    }
    if (st == KOPT_OK && in->o->source) {
        if (find_name(in->names, in->n_fields, "source") != SIZE_MAX)
            return kp_err(in->err, KOPT_EINPUT,
                          "%s: its own 'source' is in the way of the one that tells files "
                          "apart",
                          in->path);
        in->source_slot = in->n_fields;
        in->of_rules[in->n_fields < KP_FIELDS_MAX ? in->n_fields : 0] = SIZE_MAX;
        st = add_slot(in, "source", SIZE_MAX, false);
    }
    for (size_t i = 0; st == KOPT_OK && rules && i < rules->n_problem; i++)
        if (!rules->has_problem_default[i] &&
            find_name(in->names, in->n_fields, rules->problem[i]) == SIZE_MAX)
            st = lacks(in, cells, n, rules->problem[i], "which the rules need");
    if (st == KOPT_OK && in->n_fields == 0) {
        st = kp_err(in->err, KOPT_EINPUT, "%s: there are no problem sizes", in->path);
        kp_err_hint(in->err, "each row must say of which problem it is");
    }
    return st;
}

/* The columns that are nothing here. */
static void list_aside(struct kp_intake *in, const struct kp_cell *cells, size_t n)
{
    char aside[sizeof(in->report->aside)] = "";
    kopt_error text = {0};
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        bool wanted =
            cells[i].kind != KP_CELL_COLUMN ||
            find_name(in->names, in->n_fields + in->n_targets, cells[i].name) != SIZE_MAX;
        for (size_t w = 0; w < in->o->n_where; w++)
            wanted |= kp_about(in->o->where[w], cells[i].name, NULL);
        if (wanted)
            continue;
        if (at + strlen(cells[i].name) + sizeof(", , ..") > sizeof(aside)) {
            (void)snprintf(aside + at, sizeof(aside) - at, "%s..", at ? ", " : "");
            break;
        }
        at += (size_t)snprintf(aside + at, sizeof(aside) - at, "%s%s", at ? ", " : "",
                               cells[i].name);
    }
    (void)kp_err(&text, KOPT_EINPUT, "%s", aside); /* makes it printable */
    (void)snprintf(in->report->aside, sizeof(in->report->aside), "%.127s", text.message);
}

static kopt_status begin(struct kp_intake *in, const struct kp_cell *cells, size_t n)
{
    bool apart = false; /* the problem is told from other columns */
    bool config = in->o->rules || in->o->n_params > 0;
    for (size_t i = 0; i < n; i++) {
        apart |= cells[i].kind == KP_CELL_PROBLEM;
        config |= cells[i].kind == KP_CELL_CONFIG;
    }
    if (!apart && !config)
        return no_targets(in);
    for (size_t w = 0; w < in->o->n_where; w++) {
        struct kp_str rest;
        struct kp_str name = kp_str_cut(kp_str_from(in->o->where[w]), '=', &rest);
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", KP_STR_FMT(name));
        if (find_cell(cells, n, text, 0) == SIZE_MAX)
            return lacks(in, cells, n, text, "by which rows are to be chosen");
    }
    kopt_status st = choose_fields(in, cells, n, apart);
    if (st == KOPT_OK)
        st = choose_targets(in, cells, n, apart);
    if (st == KOPT_OK)
        list_aside(in, cells, n);
    return st;
}

/* --- rows ----------------------------------------------------------------------------------
 */

/* Does any of the list say so? */
static bool any_about(const char *const *list, size_t n, const char *name, struct kp_str text)
{
    for (size_t i = 0; i < n; i++)
        if (kp_about(list[i], name, &text))
            return true;
    return false;
}

/* *helps: one that would be left out, were it not among those that help. */
static bool chosen(const struct kp_intake *in, const struct kp_cell *cells, size_t n,
                   bool *helps)
{
    *helps = in->helps;
    for (size_t w = 0; w < in->o->n_where; w++) {
        size_t i = 0;
        while (i < n && !kp_about(in->o->where[w], cells[i].name, NULL))
            i++;
        if (i == n)
            return false;
        if (kp_about(in->o->where[w], cells[i].name, &cells[i].text))
            continue;
        if (!any_about(in->o->also, in->o->n_also, cells[i].name, cells[i].text))
            return false;
        *helps = true;
    }
    return true;
}

/* Where the row has the slot; SIZE_MAX: it has not, or nothing usable, and is skipped. */
static size_t usable_cell(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                          size_t slot, int64_t line)
{
    const char *name = in->names[slot];
    size_t at = find_cell(cells, n, name, in->at[slot]);
    if (at == SIZE_MAX || cells[at].text.len == 0) {
        kp_intake_skip(in, line, "no value of '%.*s'", SHOWN_MAX, name);
        return SIZE_MAX;
    }
    in->at[slot] = at;
    if (cells[at].text.len > KP_LOAD_TEXT_MAX ||
        memchr(cells[at].text.ptr, 0, cells[at].text.len) || !kp_json_is_utf8(cells[at].text)) {
        kp_intake_skip(in, line, "'%.*s' has a text that cannot stand there", SHOWN_MAX, name);
        return SIZE_MAX;
    }
    return at;
}

static enum fit fit_of(const struct kp_param *p, const struct kp_text *t)
{
    bool text = p->values[0].type == KP_STRING;
    bool truth = p->values[0].type == KP_BOOL;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (kp_value_means(p->values[v], t->text))
            return FIT_LISTED;
    if (truth)
        return FIT_NOT;
    return text || t->value.type != KP_STRING ? FIT_EXTRA : FIT_NOT;
}

static kopt_status add_extra(struct kp_intake *in, size_t target, struct kp_value v)
{
    struct kp_listed *l = &in->listed[target];
    for (size_t i = 0; i < l->n_extra; i++) {
        int order = 1;
        if (kp_value_compare(l->extra[i], v, &order) && order == 0)
            return KOPT_OK;
    }
    if (!kp_grow((void **)&l->extra, &l->cap_extra, l->n_extra, sizeof(*l->extra),
                 KP_TARGET_VALUES_MAX))
        return kp_err_nomem(in->err);
    l->extra[l->n_extra++] = v;
    return KOPT_OK;
}

/* A text of a target, seen for the first time. */
static kopt_status see_value(struct kp_intake *in, size_t target, const struct kp_text *t,
                             enum fit *fit)
{
    const struct kp_param *p = in->listed[target].param;
    struct kp_value v = t->value;
    if (++in->n_values[target] > KP_TARGET_VALUES_MAX) {
        kopt_status st =
            kp_err(in->err, KOPT_ERANGE, "%s: more than %d different values of '%.*s'",
                   in->path, KP_TARGET_VALUES_MAX, SHOWN_MAX, in->names[in->n_fields + target]);
        kp_err_hint(in->err, "is it a measurement rather than a parameter?");
        return st;
    }
    *fit = p ? fit_of(p, t) : FIT_LISTED;
    if (*fit != FIT_EXTRA)
        return KOPT_OK;
    if (p->values[0].type == KP_STRING)
        v = kp_string(t->text);
    return add_extra(in, target, v);
}

static kopt_status fit_value(struct kp_intake *in, size_t target, uint32_t text, enum fit *fit)
{
    uint32_t key[2] = {(uint32_t)target, text};
    bool added = false;
    uint64_t *at = kp_map_put(&in->seen, key, sizeof(key), &added);
    if (!at)
        return kp_err_nomem(in->err);
    *fit = (enum fit) * at;
    if (*fit != FIT_NEW)
        return KOPT_OK;
    kopt_status st = see_value(in, target, &in->texts[text], fit);
    *at = *fit;
    return st;
}

/* The rules of a kernel bind to whole sizes of at least 1, those of a rules file to anything.
 */
static bool fits_problem(const struct kp_intake *in, size_t field, uint32_t text)
{
    struct kp_value v = in->texts[text].value;
    if (!in->o->rules || in->o->rules->rules_only || in->of_rules[field] == SIZE_MAX)
        return true;
    return v.type == KP_INT && v.as.i >= 1;
}

/* The row's texts; *fine false: it was skipped. */
static kopt_status take_texts(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                              int64_t line, uint32_t *texts, bool *fine)
{
    bool extra = false;
    *fine = false;
    for (size_t s = 0; s < in->n_fields + in->n_targets; s++) {
        bool source = s == in->source_slot;
        size_t at = source ? 0 : usable_cell(in, cells, n, s, line);
        enum fit fit = FIT_LISTED;
        if (at == SIZE_MAX)
            return KOPT_OK;
        texts[s] = kp_intake_text(in, source ? kp_str_from(in->source) : cells[at].text);
        if (texts[s] == UINT32_MAX)
            return memory(in);
        if (s >= in->n_fields) {
            kopt_status st = fit_value(in, s - in->n_fields, texts[s], &fit);
            if (st != KOPT_OK)
                return st;
            extra |= fit == FIT_EXTRA;
        } else if (!fits_problem(in, s, texts[s])) {
            fit = FIT_NOT;
        }
        if (fit == FIT_NOT) {
            kp_intake_skip(in, line, "%.*s=%.*s does not go with the rules", SHOWN_MAX,
                           in->names[s], SHOWN_MAX, in->texts[texts[s]].text.ptr);
            return KOPT_OK;
        }
    }
    in->report->unlisted += extra;
    *fine = true;
    return KOPT_OK;
}

static kopt_status put_row(struct kp_intake *in, const uint32_t *texts,
                           const struct kp_row_about *about)
{
    size_t n = in->n_rows;
    size_t bytes = (in->n_fields + in->n_targets) * sizeof(*texts);
    uint32_t key = UINT32_MAX;
    if (n >= KP_LOAD_ROWS_MAX)
        return kp_err(in->err, KOPT_ERANGE, "%s: more than %d rows", in->path,
                      KP_LOAD_ROWS_MAX);
    if (about->key) {
        key = kp_intake_text(in, kp_str_from(about->key));
        if (key == UINT32_MAX)
            return memory(in);
    }
    if (!kp_grow((void **)&in->cells, &in->cap_cells, n, bytes, KP_LOAD_ROWS_MAX) ||
        !kp_grow((void **)&in->keys, &in->cap_keys, n, sizeof(*in->keys), KP_LOAD_ROWS_MAX) ||
        !kp_grow((void **)&in->times, &in->cap_times, n, sizeof(*in->times),
                 KP_LOAD_ROWS_MAX) ||
        !kp_grow((void **)&in->lines, &in->cap_lines, n, sizeof(*in->lines), KP_LOAD_ROWS_MAX))
        return kp_err_nomem(in->err);
    memcpy(in->cells + n * (in->n_fields + in->n_targets), texts, bytes);
    in->keys[n] = key;
    in->times[n] = (float)about->time_ns;
    in->lines[n] = about->line;
    in->n_rows++;
    return KOPT_OK;
}

kopt_status kp_intake_row(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                          const struct kp_row_about *about)
{
    uint32_t texts[KP_LOAD_SLOTS_MAX];
    bool fine = false;
    bool helps = false;
    if (in->n_targets == 0) {
        kopt_status st = begin(in, cells, n);
        if (st != KOPT_OK)
            return st;
    }
    in->report->read++;
    if (!chosen(in, cells, n, &helps)) {
        in->report->left_out++;
        return KOPT_OK;
    }
    kopt_status st = take_texts(in, cells, n, about->line, texts, &fine);
    if (st != KOPT_OK || !fine)
        return st;
    in->report->helping += helps;
    return put_row(in, texts, about);
}
