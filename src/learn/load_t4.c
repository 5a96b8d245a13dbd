/* SPDX-License-Identifier: MIT */
/* T4 results as rows: one document, or an array of them, each with its problem in
 * metadata.problem. Layer: learn. */
#include "learn/load_impl.h"

#include "os/file.h"
#include "json/json.h"

#include <math.h>
#include <string.h>

enum { FILE_MAX = 1 << 30 };

/* --- cells ---------------------------------------------------------------------------------
 */

struct members {
    struct kp_cells *cells;
    enum kp_cell_kind kind;
    struct kp_arena *arena;
    kopt_status st;
    kopt_error *err;
};

static bool take_member(void *user, const char *key, const struct kp_json *value)
{
    struct members *m = user;
    struct kp_buf text = KP_BUF_INIT(KP_LOAD_TEXT_MAX + 1);
    struct kp_str s = {0};
    bool truth = false;
    enum kp_json_type type = kp_json_type(value);
    if (type == KP_JSON_NULL || type == KP_JSON_ARRAY || type == KP_JSON_OBJECT)
        return true;
    if (kp_json_as_bool(value, &truth)) {
        s = truth ? KP_STR("true") : KP_STR("false");
    } else if (!kp_json_as_str(value, &s)) {
        kp_json_dump(value, &text);
        s = (struct kp_str){kp_buf_text(&text), text.len};
    }
    const char *copy = kp_arena_strndup(m->arena, s.len ? s.ptr : "", s.len);
    const char *name = kp_arena_strndup(m->arena, key, strlen(key));
    if (text.failed != KOPT_OK || !copy || !name)
        m->st = kp_err_nomem(m->err);
    else
        m->st = kp_cells_add(m->cells, name, (struct kp_str){copy, s.len}, m->kind, m->err);
    kp_buf_deinit(&text);
    return m->st == KOPT_OK;
}

kopt_status kp_cells_from_json(struct kp_cells *c, const struct kp_json *object,
                               enum kp_cell_kind kind, struct kp_arena *arena, kopt_error *err)
{
    struct members m = {c, kind, arena, KOPT_OK, err};
    (void)kp_json_each(object, take_member, &m);
    return m.st;
}

/* --- times ---------------------------------------------------------------------------------
 */

/* Nanoseconds of a unit; 0: unknown. */
static double unit_ns(struct kp_str unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1},   {"nanoseconds", 1},    {"us", 1e3}, {"microseconds", 1e3},
                 {"ms", 1e6}, {"milliseconds", 1e6}, {"s", 1e9},  {"seconds", 1e9},
                 {"sec", 1e9}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (kp_str_is(unit, units[i].name))
            return units[i].ns;
    return 0;
}

static struct kp_str text_of(const struct kp_json *object, const char *key)
{
    struct kp_str s = {0};
    (void)kp_json_as_str(kp_json_get(object, key), &s);
    return s;
}

/* NaN: it has none. */
static double time_of(const struct kp_json *result, struct kp_str unit)
{
    const struct kp_json *list = kp_json_get(result, "measurements");
    for (size_t i = 0; i < kp_json_size(list); i++) {
        const struct kp_json *m = kp_json_at(list, i);
        struct kp_str own = text_of(m, "unit");
        double value = 0;
        double ns = unit_ns(own.len ? own : unit);
        if (kp_str_is(text_of(m, "name"), "time") &&
            kp_json_as_f64(kp_json_get(m, "value"), &value))
            return value > 0 && ns > 0 && isfinite(value * ns) ? value * ns : (double)NAN;
    }
    return (double)NAN;
}

/* --- documents -----------------------------------------------------------------------------
 */

struct document {
    struct kp_intake *in;
    const struct kp_json *metadata;
    struct kp_str unit;
    struct kp_cells cells;
    struct kp_arena arena;
    int64_t n; /* results of all documents so far */
};

static kopt_status take_result(struct document *d, const struct kp_json *result)
{
    struct kp_intake *in = d->in;
    struct kp_str invalid = text_of(result, "invalidity");
    struct kp_str outcome = text_of(result, "outcome");
    bool failed = (invalid.len && !kp_str_is(invalid, "correct")) ||
                  (outcome.len && !kp_str_is(outcome, "ok"));
    const struct kp_json *configuration = kp_json_get(result, "configuration");
    struct kp_row_about about = {.time_ns = (double)INFINITY, .line = ++d->n};
    if (!failed)
        about.time_ns = time_of(result, d->unit);
    if (!configuration || (!failed && isnan(about.time_ns))) {
        in->report->read++;
        kp_intake_skip(in, about.line,
                       configuration
                           ? "it has no time (a measurement 'time' in ns, us, ms or s)"
                           : "no configuration");
        return KOPT_OK;
    }
    d->cells.n = 0;
    kopt_status st = kp_cells_from_json(&d->cells, kp_json_get(d->metadata, "problem"),
                                        KP_CELL_PROBLEM, &d->arena, in->err);
    if (st == KOPT_OK)
        st = kp_cells_from_json(&d->cells, configuration, KP_CELL_CONFIG, &d->arena, in->err);
    if (st == KOPT_OK)
        st = kp_cells_from_json(&d->cells, d->metadata, KP_CELL_ABOUT, &d->arena, in->err);
    if (st == KOPT_OK)
        st = kp_intake_row(in, d->cells.cells, d->cells.n, &about);
    kp_arena_deinit(&d->arena);
    return st;
}

static kopt_status take_document(struct kp_intake *in, const struct kp_json *j, int64_t *n)
{
    const struct kp_json *metadata = kp_json_get(j, "metadata");
    const struct kp_json *results = kp_json_get(j, "results");
    struct kp_str kernel = text_of(metadata, "kernel");
    kopt_status st = KOPT_OK;
    if (kernel.len && in->kernel && !kp_str_is(kernel, in->kernel))
        return KOPT_OK;
    struct document d = {.in = in,
                         .metadata = metadata,
                         .unit = text_of(metadata, "timeunit"),
                         .arena = KP_ARENA_INIT((size_t)64 << 20),
                         .n = *n};
    if (d.unit.len == 0)
        d.unit = KP_STR("ms");
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(results); i++)
        st = take_result(&d, kp_json_at(results, i));
    *n = d.n;
    kp_cells_deinit(&d.cells);
    kp_arena_deinit(&d.arena);
    return st;
}

/* --- the file ------------------------------------------------------------------------------
 */

static size_t n_documents(const struct kp_json *root)
{
    return kp_json_type(root) == KP_JSON_ARRAY ? kp_json_size(root) : 1;
}

static const struct kp_json *document_at(const struct kp_json *root, size_t i)
{
    return kp_json_type(root) == KP_JSON_ARRAY ? kp_json_at(root, i) : root;
}

/* Each must be one, and they are of one kernel, or one is asked for. */
static kopt_status choose_kernel(struct kp_intake *in, const struct kp_json *root)
{
    struct kp_names kernels = {0};
    bool wanted = in->kernel == NULL;
    for (size_t i = 0; i < n_documents(root); i++) {
        const struct kp_json *d = document_at(root, i);
        struct kp_str kernel = text_of(kp_json_get(d, "metadata"), "kernel");
        const struct kp_json *results = kp_json_get(d, "results");
        if (!results || kp_json_type(results) != KP_JSON_ARRAY)
            return kp_err(in->err, KOPT_EINPUT,
                          "%s: no T4 results: an object with an array 'results' is expected",
                          in->path);
        if (kernel.len && !kp_names_add(&kernels, &in->arena, kernel.ptr))
            return kp_err_nomem(in->err);
        wanted |= kernel.len == 0 || kp_str_is(kernel, in->kernel);
    }
    if (in->kernel ? wanted : kernels.n <= 1) {
        in->kernel = in->kernel ? in->kernel : kernels.n == 1 ? kernels.names[0] : NULL;
        return in->kernel && kernels.n > 0 ? KOPT_OK : kp_intake_name(in);
    }
    if (in->kernel)
        (void)kp_err(in->err, KOPT_EINPUT, "%s: there is no kernel '%s'", in->path, in->kernel);
    else
        (void)kp_err(in->err, KOPT_EINPUT, "%s: which of %zu kernels?", in->path, kernels.n);
    kp_intake_hint(in, "there are", kernels.names, kernels.n);
    return KOPT_EINPUT;
}

kopt_status kp_load_t4(struct kp_intake *in)
{
    struct kp_buf text = KP_BUF_INIT(FILE_MAX);
    struct kp_json *root = NULL;
    int64_t n = 0;
    in->report->source = KP_SOURCE_T4;
    kopt_status st = kp_file_read(in->path, &text, in->err);
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&text), text.len}, in->path, &root,
                           in->err);
    kp_buf_deinit(&text);
    if (st == KOPT_OK)
        st = choose_kernel(in, root);
    for (size_t i = 0; st == KOPT_OK && i < n_documents(root); i++)
        st = take_document(in, document_at(root, i), &n);
    kp_json_free(root);
    return st;
}
