/* SPDX-License-Identifier: MIT */
/* Recorded spaces from kopt's store: of each configuration of a subject the newest result. A
 * race's row does not say what finding it out took: that of the search before it does. Nor does
 * one whose image another subject had compiled: the row of that one does. */
#include "base/alloc.h"
#include "base/buf.h"
#include "replay/recorder.h"
#include "store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BUSY_MS = 5000,
    SUBJECTS_MAX = 1 << 20,
    TEXT_MAX = 1 << 20,
    HINTED_MAX = 12 /* subjects */
};

/* --- subjects ------------------------------------------------------------------------------
 */

struct listing {
    int64_t *ids; /* newest first */
    size_t n;
    size_t cap;
    bool failed;
};

static bool list_subject(void *user, const struct kp_subject *s)
{
    struct listing *l = user;
    if (s->n_results == 0)
        return true;
    l->failed = !kp_grow((void **)&l->ids, &l->cap, l->n, sizeof(*l->ids), SUBJECTS_MAX);
    if (!l->failed)
        l->ids[l->n++] = s->id;
    return !l->failed;
}

static kopt_status list_all(struct kp_store *st, struct listing *l, kopt_error *err)
{
    kopt_status code = kp_store_subjects(st, NULL, list_subject, l, err);
    if (code == KOPT_OK && l->failed)
        code = l->n >= SUBJECTS_MAX
                   ? kp_err(err, KOPT_ERANGE, "more than %d subjects", SUBJECTS_MAX)
                   : kp_err_nomem(err);
    return code;
}

static int by_id(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool is_store(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && kp_store_is_database(path);
}

kopt_status kp_recording_list_store(const char *path, int64_t **ids, size_t *n, kopt_error *err)
{
    struct listing l = {.n = 0};
    struct kp_store *st = NULL;
    *ids = NULL;
    *n = 0;
    if (!is_store(path))
        return KOPT_OK;
    kopt_status code = kp_store_open(path, KP_STORE_READ, BUSY_MS, &st, err);
    if (code == KOPT_OK)
        code = list_all(st, &l, err);
    kp_store_close(st);
    if (code != KOPT_OK || l.n == 0) {
        kp_free(l.ids);
        return code;
    }
    qsort(l.ids, l.n, sizeof(*l.ids), by_id);
    *ids = l.ids;
    *n = l.n;
    return KOPT_OK;
}

/* The only one with results. */
static kopt_status only_subject(struct kp_store *st, const char *path, int64_t *subject,
                                kopt_error *err)
{
    struct listing l = {.n = 0};
    struct kp_buf hint = KP_BUF_INIT(TEXT_MAX);
    kopt_status code = list_all(st, &l, err);
    if (code == KOPT_OK && l.n == 0) {
        code = kp_err(err, KOPT_EINPUT, "%s: no configuration is recorded in it", path);
    } else if (code == KOPT_OK && l.n > 1) {
        qsort(l.ids, l.n, sizeof(*l.ids), by_id);
        for (size_t i = 0; i < l.n && i < HINTED_MAX; i++)
            kp_buf_addf(&hint, "%s%lld", i ? ", " : "", (long long)l.ids[i]);
        code = kp_err(err, KOPT_EUSAGE, "%s has %zu subjects with results", path, l.n);
        kp_err_hint(err, "name one: %s#N, where N is one of %s%s", path, kp_buf_text(&hint),
                    l.n > HINTED_MAX ? ", .." : "");
    } else if (code == KOPT_OK) {
        *subject = l.ids[0];
    }
    kp_free(l.ids);
    kp_buf_deinit(&hint);
    return code;
}

/* --- one subject ---------------------------------------------------------------------------
 */

struct reading {
    struct kp_recorder *r;
    struct kp_store *store;
    int64_t subject;
    struct kp_buf tools;    /* what compiles it, see tools_of() */
    struct kp_map compiled; /* configuration -> compile time, of other subjects */
    bool looked;            /* for those */
    kopt_status st;
    kopt_error *err;
};

static bool add_size(void *user, const char *key, const struct kp_json *value)
{
    struct kp_buf *out = user;
    kp_buf_addf(out, "%s%s=", out->len && out->ptr[out->len - 1] != ' ' ? "," : "", key);
    kp_json_dump(value, out);
    return true;
}

/* "gemm K=512,M=512 NVIDIA H200" */
static kopt_status name_of(const struct kp_subject *s, struct kp_buf *out, kopt_error *err)
{
    struct kp_json *problem = NULL;
    if (kp_json_parse(kp_str_from(s->problem), NULL, &problem, NULL) == KOPT_ENOMEM)
        return kp_err_nomem(err);
    kp_buf_adds(out, s->kernel);
    if (kp_json_size(problem) > 0) {
        kp_buf_addc(out, ' ');
        (void)kp_json_each(problem, add_size, out);
    }
    kp_json_free(problem);
    kp_buf_addf(out, "%s%s", s->device[0] ? " " : "", s->device);
    return kp_buf_status(out, err);
}

/* Two subjects of which this is the same compile their configurations alike. Nothing: the
 * kernel is not known. */
static void tools_of(const struct kp_subject *s, struct kp_buf *out)
{
    const char *const texts[] = {s->kernel, s->kernel_hash, s->backend, s->device,
                                 s->arch,   s->driver,      s->compiler};
    for (size_t i = 0; s->kernel_hash[0] && i < sizeof(texts) / sizeof(texts[0]); i++)
        kp_buf_add(out, texts[i], strlen(texts[i]) + 1);
}

/* ["BM","BN"]; nothing happens where there is no such list. */
static kopt_status take_names(struct kp_recorder *r, const char *params, kopt_error *err)
{
    const char *names[KP_PARAMS_MAX];
    struct kp_json *list = NULL;
    struct kp_str name;
    kopt_status st = kp_json_parse(kp_str_from(params), NULL, &list, NULL);
    size_t n = st == KOPT_OK && kp_json_type(list) == KP_JSON_ARRAY ? kp_json_size(list) : 0;
    bool whole = n > 0 && n <= KP_PARAMS_MAX;
    for (size_t i = 0; whole && i < n; i++) {
        whole = kp_json_as_str(kp_json_at(list, i), &name);
        names[i] = whole ? name.ptr : NULL;
    }
    if (whole)
        st = kp_recorder_params(r, names, n, err);
    else
        st = st == KOPT_ENOMEM ? kp_err_nomem(err) : KOPT_OK;
    kp_json_free(list);
    return st;
}

static bool take_subject(void *user, const struct kp_subject *s)
{
    struct reading *x = user;
    struct kp_buf name = KP_BUF_INIT(TEXT_MAX);
    tools_of(s, &x->tools);
    x->st = name_of(s, &name, x->err);
    if (x->st == KOPT_OK)
        x->st = kp_buf_status(&x->tools, x->err);
    const kopt_recording_info texts = {.format = "kopt",
                                       .name = kp_buf_text(&name),
                                       .kernel = s->kernel,
                                       .device = s->device,
                                       .problem = s->problem};
    if (x->st == KOPT_OK)
        x->st = kp_recorder_say(x->r, &texts, x->err);
    if (x->st == KOPT_OK)
        x->st = take_names(x->r, s->params, x->err);
    kp_buf_deinit(&name);
    return false;
}

/* --- results -------------------------------------------------------------------------------
 */

static bool learn_compiled(void *user, const kopt_result *result, int64_t subject, int64_t run)
{
    struct reading *x = user;
    (void)subject;
    (void)run;
    if (!(result->compile_ns > 0))
        return true;
    uint64_t *place = kp_map_put(&x->compiled, result->config, strlen(result->config), NULL);
    if (!place) {
        x->st = kp_err_nomem(x->err);
        return false;
    }
    memcpy(place, &result->compile_ns, sizeof(*place));
    return true;
}

static bool learn_subject(void *user, const struct kp_subject *s)
{
    struct reading *x = user;
    struct kp_buf tools = KP_BUF_INIT(TEXT_MAX);
    const struct kp_result_filter f = {
        .subject = s->id, .outcome = -1, .newest = true, .no_samples = true};
    tools_of(s, &tools);
    bool twin = s->id != x->subject && tools.failed == KOPT_OK && tools.len == x->tools.len &&
                memcmp(tools.ptr, x->tools.ptr, tools.len) == 0;
    if (tools.failed != KOPT_OK)
        x->st = kp_buf_status(&tools, x->err);
    kp_buf_deinit(&tools);
    if (twin) {
        kopt_status st = kp_store_results(x->store, &f, learn_compiled, x, x->err);
        x->st = x->st == KOPT_OK ? st : x->st;
    }
    return x->st == KOPT_OK;
}

/* What compiling took, also where it took nothing because another subject had the image
 * already: what it took there. NaN: not known. */
static double compile_ns(struct reading *x, const kopt_result *result)
{
    double ns = (double)NAN;
    if (result->compile_ns > 0 || result->race)
        return result->compile_ns > 0 ? result->compile_ns : ns;
    if (!x->looked && x->tools.len > 0) {
        kopt_status st = kp_store_subjects(x->store, NULL, learn_subject, x, x->err);
        x->st = x->st == KOPT_OK ? st : x->st;
    }
    x->looked = true;
    const uint64_t *known = kp_map_get(&x->compiled, result->config, strlen(result->config));
    if (known)
        memcpy(&ns, known, sizeof(ns));
    return ns;
}

static bool take_result(void *user, const kopt_result *result, int64_t subject, int64_t run)
{
    struct reading *x = user;
    struct kp_json *config = NULL;
    const struct kp_recorded e = {.outcome = result->outcome,
                                  .time_ns = result->median_ns,
                                  .compile_ns = compile_ns(x, result),
                                  .measure_ns = result->device_ns};
    (void)subject;
    (void)run;
    if (x->st != KOPT_OK)
        return false;
    x->st = kp_json_parse(kp_str_from(result->config), NULL, &config, NULL);
    if (x->st == KOPT_ENOMEM)
        (void)kp_err_nomem(x->err);
    else
        x->st = kp_recorder_add_exactly(x->r, &e, config, x->err);
    kp_json_free(config);
    return x->st == KOPT_OK;
}

static kopt_status read_subject(struct kp_store *st, int64_t subject, struct kp_recorder *r,
                                kopt_error *err)
{
    struct reading x = {
        .r = r, .store = st, .subject = subject, .tools = KP_BUF_INIT(TEXT_MAX), .err = err};
    /* In the order of their numbers: what is newer comes later. */
    const struct kp_result_filter f = {
        .subject = subject, .outcome = -1, .newest = true, .no_samples = true};
    kopt_status code = kp_store_subject_get(st, subject, take_subject, &x, err);
    if (code == KOPT_OK && x.st == KOPT_OK)
        code = kp_store_results(st, &f, take_result, &x, err);
    kp_buf_deinit(&x.tools);
    kp_map_deinit(&x.compiled);
    return code == KOPT_OK ? x.st : code;
}

kopt_status kp_recording_read_store(const char *path, int64_t subject, bool *fits,
                                    struct kp_recorder *r, kopt_error *err)
{
    struct kp_store *st = NULL;
    *fits = is_store(path);
    if (!*fits)
        return KOPT_OK;
    kopt_status code = kp_store_open(path, KP_STORE_READ, BUSY_MS, &st, err);
    if (code == KOPT_OK && subject == 0)
        code = only_subject(st, path, &subject, err);
    if (code == KOPT_OK)
        code = read_subject(st, subject, r, err);
    kp_store_close(st);
    return code;
}
