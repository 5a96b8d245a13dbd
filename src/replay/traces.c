/* SPDX-License-Identifier: MIT */
#include "replay/traces.h"

#include "base/alloc.h"
#include "os/file.h"
#include "json/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FILE_MAX = 1 << 30,
    RUNS_MAX = 1 << 20,
    EVALUATIONS_MAX = 10 * 1000 * 1000,
    TEXTS_MAX = 64 << 20
};

static kopt_status wrong(const char *path, int line, kopt_error *err, const char *what)
{
    kopt_status st = kp_err(err, KOPT_EINPUT, "%s", what);
    if (err) {
        err->line = line;
        (void)snprintf(err->file, sizeof(err->file), "%s", path);
    }
    return st;
}

/* null, where `may_fail`, is a failure. */
static bool read_numbers(const struct kp_json *list, bool may_fail, double *out)
{
    for (size_t i = 0; i < kp_json_size(list); i++) {
        const struct kp_json *j = kp_json_at(list, i);
        if (may_fail && kp_json_type(j) == KP_JSON_NULL)
            out[i] = (double)INFINITY;
        else if (!kp_json_as_f64(j, &out[i]) || !isfinite(out[i]) || out[i] < 0 ||
                 (may_fail && out[i] == 0))
            return false;
    }
    return true;
}

static const char *text(struct kp_traces *t, const struct kp_json *j)
{
    struct kp_str s = {NULL, 0};
    return kp_json_as_str(j, &s) && s.len ? kp_arena_strndup(&t->arena, s.ptr, s.len) : NULL;
}

static kopt_status add(struct kp_traces *t, const struct kp_json *j, const char *path, int line,
                       kopt_error *err)
{
    void *items = t->items;
    const struct kp_json *times = kp_json_get(j, "times_ns");
    const struct kp_json *costs = kp_json_get(j, "costs_s");
    size_t n = kp_json_size(times);
    struct kp_trace trace = {.space = text(t, kp_json_get(j, "space")),
                             .method = text(t, kp_json_get(j, "method")),
                             .n = n};
    if (t->arena.failed)
        return kp_err_nomem(err);
    if (!trace.space || !trace.method || !times || kp_json_type(times) != KP_JSON_ARRAY)
        return wrong(path, line, err, "no \"space\", \"method\" or \"times_ns\"");
    if (costs && kp_json_size(costs) != n)
        return wrong(path, line, err, "\"costs_s\" is not as long as \"times_ns\"");
    if (t->n >= RUNS_MAX || n > EVALUATIONS_MAX)
        return kp_err(err, KOPT_ERANGE, "%s: too many runs, or evaluations in one", path);
    if (!kp_grow(&items, &t->cap, t->n, sizeof(*t->items), RUNS_MAX))
        return kp_err_nomem(err);
    t->items = items;
    struct kp_trace *to = &t->items[t->n++];
    *to = trace;
    to->times_ns = kp_calloc(n + 1, sizeof(*to->times_ns));
    to->costs_s = costs ? kp_calloc(n + 1, sizeof(*to->costs_s)) : NULL;
    if (!to->times_ns || (costs && !to->costs_s))
        return kp_err_nomem(err);
    if (!read_numbers(times, true, to->times_ns) ||
        (costs && !read_numbers(costs, false, to->costs_s)))
        return wrong(path, line, err, "a time or cost is no positive number");
    return KOPT_OK;
}

static kopt_status add_line(struct kp_traces *t, struct kp_str line, const char *path,
                            int number, kopt_error *err)
{
    struct kp_json *j = NULL;
    if (kp_str_trim(line).len == 0)
        return KOPT_OK;
    kopt_status st = kp_json_parse(line, path, &j, err);
    if (st == KOPT_OK)
        st = add(t, j, path, number, err);
    else if (st == KOPT_EINPUT && err)
        err->line = number;
    kp_json_free(j);
    return st;
}

static kopt_status add_all(struct kp_traces *t, struct kp_str rest, const char *path,
                           kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (int number = 1; st == KOPT_OK && rest.len > 0; number++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t n = end ? (size_t)(end - rest.ptr) : rest.len;
        st = add_line(t, (struct kp_str){rest.ptr, n}, path, number, err);
        n += end != NULL;
        rest = (struct kp_str){rest.ptr + n, rest.len - n};
    }
    if (st == KOPT_OK && t->n == 0)
        st = kp_err(err, KOPT_EINPUT, "%s has no runs", path);
    return st;
}

kopt_status kp_traces_open(const char *path, struct kp_traces **out, kopt_error *err)
{
    struct kp_buf file = KP_BUF_INIT(FILE_MAX);
    *out = NULL;
    struct kp_traces *t = kp_calloc(1, sizeof(*t));
    if (!t)
        return kp_err_nomem(err);
    t->arena = KP_ARENA_INIT(TEXTS_MAX);
    kopt_status st = kp_file_read(path, &file, err);
    if (st == KOPT_OK)
        st = add_all(t, (struct kp_str){kp_buf_text(&file), file.len}, path, err);
    kp_buf_deinit(&file);
    if (st == KOPT_OK)
        *out = t;
    else
        kp_traces_close(t);
    return st;
}

void kp_traces_close(struct kp_traces *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++) {
        kp_free(t->items[i].times_ns);
        kp_free(t->items[i].costs_s);
    }
    kp_free(t->items);
    kp_arena_deinit(&t->arena);
    kp_free(t);
}
