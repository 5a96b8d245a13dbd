/* SPDX-License-Identifier: MIT */
#include "api/data.h"
#include "api/limits.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>

enum { RULES_MAX = 4 << 20, ARENA_MAX = 16 << 20, TEXTS_MAX = 256 };

#define SOURCE "source"

const char *kp_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static kopt_status read_rules(const char *path, struct kp_data *d, kopt_error *err)
{
    kopt_status st = kp_file_read(path, &d->text, err);
    const struct kp_str text = {kp_buf_text(&d->text), d->text.len};
    if (st == KOPT_OK)
        st = kp_kernel_parse(path, text, &d->own, err);
    d->rules = d->own;
    return st;
}

static kopt_status read_limits(const char *text, struct kp_data *d, kopt_error *err)
{
    if (!d->rules)
        return kp_err(err, KOPT_EUSAGE,
                      "limits of a device are about rules, of which there "
                      "are none");
    d->limits = &d->numbers;
    return kp_limits_by_hand(d->rules, text, &d->numbers, err);
}

/* --- names ------------------------------------------------------------------------------- */

/* The length of NAME in "NAME=FILE"; 0: there is none. */
static size_t name_length(const char *given)
{
    const char *equals = strchr(given, '=');
    size_t n = equals ? (size_t)(equals - given) : 0;
    return n > 0 && !memchr(given, '/', n) && !kp_file_exists(given) ? n : 0;
}

const char *kp_data_path(const char *given)
{
    size_t n = name_length(given);
    return n ? given + n + 1 : given;
}

/* Its name: the one that is given, else the file's up to the first point. */
static const char *name_of(struct kp_data *d, const char *given)
{
    size_t n = name_length(given);
    const char *base = n ? given : kp_base_name(given);
    if (n == 0)
        n = base[0] == '.' ? strlen(base) : strcspn(base, ".");
    return kp_arena_strndup(&d->arena, base, n);
}

static kopt_status name_files(const kopt_data_options *o, const char *source, struct kp_data *d,
                              kopt_error *err)
{
    d->more = kp_arena_alloc(&d->arena, o->n_more + 1, sizeof(*d->more));
    for (size_t i = 0; d->more && i < o->n_more; i++) {
        struct kp_load_more *m = &d->more[i];
        m->path = kp_data_path(o->more[i]);
        m->name = name_of(d, o->more[i]);
        if (!m->name)
            break;
        bool taken = strcmp(m->name, source) == 0;
        for (size_t k = 0; k < i; k++)
            taken |= strcmp(m->name, d->more[k].name) == 0;
        if (taken) {
            kopt_status st = kp_err(err, KOPT_EUSAGE, "two files have the name '%s'", m->name);
            kp_err_hint(err, "NAME=%s gives one another name", m->path);
            return st;
        }
    }
    return d->arena.failed ? kp_err_nomem(err) : KOPT_OK;
}

/* --- what was pooled -----------------------------------------------------------------------
 */

/* The text that `where` chooses of the column that `also` is about. */
static const char *chosen_text(const kopt_data_options *o, const char *also)
{
    size_t n = strcspn(also, "=");
    for (size_t i = 0; i < o->n_where; i++)
        if (strncmp(o->where[i], also, n) == 0 && o->where[i][n] == '=')
            return o->where[i] + n + 1;
    return NULL;
}

static kopt_status pool_columns(const kopt_data_options *o, struct kp_data *d, kopt_error *err)
{
    for (size_t i = 0; i < o->n_also; i++) {
        const char *text = chosen_text(o, o->also[i]);
        size_t n = strcspn(o->also[i], "=");
        if (!text) {
            kopt_status st =
                kp_err(err, KOPT_EUSAGE,
                       "rows of '%s' are to help, but which are to be predicted?", o->also[i]);
            kp_err_hint(err, "choose those by the same column: %.*s=TEXT", (int)n, o->also[i]);
            return st;
        }
        const char *name = kp_arena_strndup(&d->arena, o->also[i], n);
        if (!name || !kp_json_set_str(d->pooled, name, text))
            return kp_err_nomem(err);
    }
    return KOPT_OK;
}

/* d->pooled, by the options or as the model has it. */
static kopt_status find_pooled(const kopt_data_options *o, const struct kp_json *pooled,
                               struct kp_data *d, kopt_error *err)
{
    bool named = name_length(o->path) > 0;
    d->path = kp_data_path(o->path);
    if (!pooled && o->n_also == 0 && o->n_more == 0)
        return KOPT_OK;
    d->pooled = pooled ? kp_json_dup(pooled) : kp_json_new_object();
    bool source = o->n_more > 0 || kp_json_get(pooled, SOURCE) != NULL;
    bool ok = d->pooled != NULL;
    if (ok && source && (named || !kp_json_get(pooled, SOURCE))) {
        const char *name = name_of(d, o->path);
        ok = name && kp_json_set_str(d->pooled, SOURCE, name);
    }
    return ok ? pool_columns(o, d, err) : kp_err_nomem(err);
}

struct listing {
    struct kp_arena *arena;
    const char *source;
    const char *as[TEXTS_MAX];
    size_t n;
    bool failed;
};

/* A member of d->pooled for the reader. */
static bool list_member(void *user, const char *key, const struct kp_json *value)
{
    struct listing *l = user;
    struct kp_str text;
    if (!kp_json_as_str(value, &text))
        return true;
    if (strcmp(key, SOURCE) == 0) {
        l->source = text.ptr;
        return true;
    }
    size_t bytes = strlen(key) + text.len + 2;
    char *entry = kp_arena_alloc(l->arena, bytes, 1);
    if (entry && l->n < TEXTS_MAX) {
        (void)snprintf(entry, bytes, "%s=%.*s", key, KP_STR_FMT(text));
        l->as[l->n++] = entry;
    }
    l->failed |= !entry;
    return true;
}

static kopt_status load(const kopt_data_options *o, struct kp_data *d, kopt_error *err)
{
    struct listing l = {.arena = &d->arena};
    if (d->pooled)
        (void)kp_json_each(d->pooled, list_member, &l);
    kopt_status st =
        l.failed ? kp_err_nomem(err) : name_files(o, l.source ? l.source : "", d, err);
    const struct kp_load_options load = {.kernel = o->kernel,
                                         .rules = d->rules,
                                         .where = o->where,
                                         .n_where = o->n_where,
                                         .params = o->params,
                                         .n_params = o->n_params,
                                         .also = o->also,
                                         .n_also = o->n_also,
                                         .more = d->more,
                                         .n_more = o->n_more,
                                         .source = l.source,
                                         .as = l.as,
                                         .n_as = l.n};
    return st == KOPT_OK ? kp_load(d->path, &load, &d->set, &d->report, err) : st;
}

kopt_status kp_data_open(const kopt_data_options *o, const struct kp_kernel *rules,
                         const struct kp_json *pooled, struct kp_data *out, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    *out = (struct kp_data){
        .text = KP_BUF_INIT(RULES_MAX), .rules = rules, .arena = KP_ARENA_INIT(ARENA_MAX)};
    if (!o->path)
        return kp_err(err, KOPT_EUSAGE, "no data is named");
    if (o->fold > 9)
        return kp_err(err, KOPT_EUSAGE, "fold %u: there are 0 to 9", o->fold);
    if (o->rules)
        st = read_rules(o->rules, out, err);
    if (st == KOPT_OK && o->limits)
        st = read_limits(o->limits, out, err);
    if (st == KOPT_OK)
        st = find_pooled(o, pooled, out, err);
    return st == KOPT_OK ? load(o, out, err) : st;
}

void kp_data_close(struct kp_data *d)
{
    kp_dataset_free(d->set);
    kp_json_free(d->pooled);
    kp_arena_deinit(&d->arena);
    kp_kernel_free(d->own);
    kp_buf_deinit(&d->text);
}
