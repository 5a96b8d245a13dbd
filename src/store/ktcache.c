/* SPDX-License-Identifier: MIT */
/* Import of Kernel Tuner's cache files. What each member becomes is in docs/store.md. */
#include "base/alloc.h"
#include "os/clock.h"
#include "store/ktread.h"
#include "store/ops.h"
#include "json/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    VALUE_BYTES_MAX = 1 << 20, /* one header member or entry */
    PARAMS_MAX = 1000,
    SAMPLES_MAX = 1 << 20,
    BATCH = 500 /* entries of one transaction */
};

/* Older versions wrote this as the time of whatever failed. */
#define FAILED_TIME 1e20

struct header {
    struct kp_json *kernel;
    struct kp_json *device;
    struct kp_json *problem;
    struct kp_json *params; /* tune_params_keys */
};

struct import {
    struct kp_store *st;
    struct kp_ktread *in;
    const char *path;
    struct header head;
    struct kp_buf text;   /* the entry at hand */
    struct kp_buf config; /* its configuration */
    double *times;
    size_t times_cap;
    int64_t subject; /* 0 = not made yet, as the run */
    int64_t run;
    bool new_run;                   /* it was made in the transaction at work */
    int in_batch;                   /* entries of the transaction at work; 0 = none is open */
    struct kp_import_count pending; /* counted in it */
    struct kp_import_count *count;
};

/* --- the header ----------------------------------------------------------------------------
 */

static void header_free(struct header *h)
{
    kp_json_free(h->kernel);
    kp_json_free(h->device);
    kp_json_free(h->problem);
    kp_json_free(h->params);
}

static struct kp_json **header_slot(struct header *h, const char *quoted_name)
{
    if (strcmp(quoted_name, "\"kernel_name\"") == 0)
        return &h->kernel;
    if (strcmp(quoted_name, "\"device_name\"") == 0)
        return &h->device;
    if (strcmp(quoted_name, "\"problem_size\"") == 0)
        return &h->problem;
    if (strcmp(quoted_name, "\"tune_params_keys\"") == 0)
        return &h->params;
    return NULL;
}

static bool header_complete(const struct header *h)
{
    return h->kernel && h->device && h->problem && h->params;
}

static kopt_status header_check(struct import *x, kopt_error *err)
{
    struct kp_str name;
    const struct header *h = &x->head;
    bool ok = kp_json_as_str(h->kernel, &name) && name.len > 0;
    if (ok)
        ok = h->params && kp_json_type(h->params) == KP_JSON_ARRAY &&
             kp_json_size(h->params) > 0 && kp_json_size(h->params) <= PARAMS_MAX;
    for (size_t i = 0; ok && i < kp_json_size(h->params); i++)
        ok = kp_json_as_str(kp_json_at(h->params, i), &name) && name.len > 0;
    if (ok)
        return KOPT_OK;
    (void)kp_ktread_error(x->in, err, "no kernel_name or tune_params_keys in the header");
    kp_err_hint(err, "is this a cache file of Kernel Tuner?");
    return KOPT_EINPUT;
}

static kopt_status ended_in_header(struct import *x, kopt_error *err)
{
    (void)kp_ktread_error(x->in, err,
                          kp_ktread_peek(x->in) < 0 ? "the file ends before its \"cache\""
                                                    : "not a cache file of Kernel Tuner");
    kp_err_hint(err, "expected one JSON object with a member \"cache\"");
    return KOPT_EINPUT;
}

/* The text of the value that stands next becomes *out. */
static kopt_status header_value(struct import *x, struct kp_json **out, kopt_error *err)
{
    kp_buf_clear(&x->text);
    kp_json_free(*out);
    *out = NULL;
    if (!kp_ktread_value(x->in, &x->text))
        return ended_in_header(x, err);
    kopt_status st = kp_buf_status(&x->text, err);
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&x->text), x->text.len}, x->path, out,
                           err);
    return st;
}

/* Reads members up to and including the one called "cache" (*at_cache: it stands next now), or
 * the end of the object. */
static kopt_status header_member(struct import *x, bool *at_cache, bool *end, kopt_error *err)
{
    *at_cache = false;
    *end = kp_ktread_take(x->in, '}');
    if (*end)
        return KOPT_OK;
    kp_buf_clear(&x->text);
    if (kp_ktread_peek(x->in) != '"' || !kp_ktread_value(x->in, &x->text) ||
        !kp_ktread_take(x->in, ':'))
        return ended_in_header(x, err);
    if (x->text.failed == KOPT_ENOMEM)
        return kp_err_nomem(err);
    *at_cache = strcmp(kp_buf_text(&x->text), "\"cache\"") == 0;
    if (*at_cache)
        return KOPT_OK;
    kopt_status st = KOPT_OK;
    struct kp_json **slot = header_slot(&x->head, kp_buf_text(&x->text));
    if (slot)
        st = header_value(x, slot, err);
    else if (!kp_ktread_value(x->in, NULL))
        st = ended_in_header(x, err);
    if (st == KOPT_OK && !kp_ktread_take(x->in, ',') && kp_ktread_peek(x->in) != '}')
        st = ended_in_header(x, err);
    return st;
}

/* Leaves the reader in front of the entries. Kernel Tuner writes "cache" last; in a file that
 * something else has sorted, the header's other members are looked for behind it. */
static kopt_status read_header(struct import *x, kopt_error *err)
{
    struct kp_ktread_place cache = {.at = -1};
    bool at_cache = false;
    bool end = false;
    if (!kp_ktread_take(x->in, '{'))
        return ended_in_header(x, err);
    while (!end && !header_complete(&x->head)) {
        kopt_status st = header_member(x, &at_cache, &end, err);
        if (st != KOPT_OK)
            return st;
        if (!at_cache)
            continue;
        cache = kp_ktread_tell(x->in);
        if (header_complete(&x->head) || !kp_ktread_value(x->in, NULL))
            break;
        (void)kp_ktread_take(x->in, ',');
    }
    while (!end && cache.at < 0) {
        kopt_status st = header_member(x, &at_cache, &end, err);
        if (st != KOPT_OK)
            return st;
        if (at_cache)
            cache = kp_ktread_tell(x->in);
    }
    kopt_status st = header_check(x, err);
    if (st != KOPT_OK)
        return st;
    if (cache.at < 0)
        return ended_in_header(x, err);
    st = kp_ktread_seek(x->in, cache, err);
    return st == KOPT_OK && !kp_ktread_take(x->in, '{') ? ended_in_header(x, err) : st;
}

/* --- one entry -----------------------------------------------------------------------------
 */

static int64_t parse_two(const char *s, int n)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        v = 10 * v + (s[i] - '0');
    }
    return v;
}

/* "2023-12-22 13:21:15.012489+00:00" as Python writes it; the fraction and the offset may be
 * missing. 0 when it is anything else. */
static int64_t parse_timestamp(const char *s)
{
    int64_t fraction = 0;
    int64_t scale = 1000000;
    int64_t offset = 0;
    size_t n = strlen(s);
    if (n < 19 || s[4] != '-' || s[7] != '-' || (s[10] != ' ' && s[10] != 'T') ||
        s[13] != ':' || s[16] != ':')
        return 0;
    struct tm tm = {.tm_year = (int)parse_two(s, 4) - 1900,
                    .tm_mon = (int)parse_two(s + 5, 2) - 1,
                    .tm_mday = (int)parse_two(s + 8, 2),
                    .tm_hour = (int)parse_two(s + 11, 2),
                    .tm_min = (int)parse_two(s + 14, 2),
                    .tm_sec = (int)parse_two(s + 17, 2)};
    if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 ||
        tm.tm_mday > 31 || tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 ||
        tm.tm_min > 59 || tm.tm_sec < 0 || tm.tm_sec > 60)
        return 0;
    const char *p = s + 19;
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++) {
            scale /= 10;
            fraction += (*p - '0') * scale;
        }
    }
    if ((*p == '+' || *p == '-') && strlen(p) >= 6 && parse_two(p + 1, 2) >= 0 &&
        parse_two(p + 4, 2) >= 0)
        offset = (*p == '-' ? -60 : 60) * (60 * parse_two(p + 1, 2) + parse_two(p + 4, 2));
    return ((int64_t)timegm(&tm) - offset) * 1000000 + fraction;
}

static double member_scaled(const struct kp_json *o, const char *name, double factor)
{
    double v = (double)NAN;
    return kp_json_as_f64(kp_json_get(o, name), &v) ? v * factor : (double)NAN;
}

/* {"BX":64,..} from the entry's members, into x->config. KOPT_EINPUT (without a message) when
 * one is missing or no plain value. */
static kopt_status read_config(struct import *x, const struct kp_json *entry)
{
    kopt_status st = KOPT_OK;
    struct kp_json *config = kp_json_new_object();
    if (!config)
        return KOPT_ENOMEM;
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(x->head.params); i++) {
        struct kp_str name = {0};
        (void)kp_json_as_str(kp_json_at(x->head.params, i), &name);
        const struct kp_json *v = kp_json_get(entry, name.ptr);
        enum kp_json_type type = v ? kp_json_type(v) : KP_JSON_NULL;
        if (type == KP_JSON_NULL || type == KP_JSON_ARRAY || type == KP_JSON_OBJECT)
            st = KOPT_EINPUT;
        else if (!kp_json_set(config, name.ptr, kp_json_dup(v)))
            st = KOPT_ENOMEM;
    }
    kp_buf_clear(&x->config);
    if (st == KOPT_OK)
        kp_json_dump(config, &x->config);
    kp_json_free(config);
    if (st == KOPT_OK && x->config.failed != KOPT_OK)
        st = x->config.failed == KOPT_ENOMEM ? KOPT_ENOMEM : KOPT_EINPUT;
    return st;
}

static kopt_outcome failure_outcome(struct kp_str what)
{
    if (kp_str_is(what, "InvalidConfig"))
        return KOPT_OUT_DEVICE_LIMIT;
    if (kp_str_is(what, "CompilationFailedConfig"))
        return KOPT_OUT_COMPILE_ERROR;
    return KOPT_OUT_LAUNCH_ERROR;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Into x->times, in nanoseconds; *n = 0 when there are none or one is no time. */
static kopt_status read_samples(struct import *x, const struct kp_json *entry, size_t *n,
                                kopt_error *err)
{
    const struct kp_json *list = kp_json_get(entry, "times");
    size_t size = list && kp_json_type(list) == KP_JSON_ARRAY ? kp_json_size(list) : 0;
    *n = 0;
    if (size > SAMPLES_MAX)
        return KOPT_OK;
    if (2 * size > x->times_cap) { /* the second half is for sorting */
        double *p = kp_reallocarray(x->times, 2 * size, sizeof(*p));
        if (!p)
            return kp_err_nomem(err);
        x->times = p;
        x->times_cap = 2 * size;
    }
    for (size_t i = 0; i < size; i++) {
        double ms = 0;
        if (!kp_json_as_f64(kp_json_at(list, i), &ms) || !(ms > 0) || ms >= FAILED_TIME)
            return KOPT_OK;
        x->times[i] = ms * 1e6;
    }
    *n = size;
    return KOPT_OK;
}

/* "time" is the mean of "times" in most files, and the median of these is the better figure. In
 * some of the published data it is not: there `time` is what was tuned for, and it is kept. */
static double typical_ns(const struct import *x, size_t n, double time_ns)
{
    double sum = 0;
    if (n == 0)
        return time_ns;
    double *sorted = x->times + n;
    memcpy(sorted, x->times, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    if (fabs(sum / (double)n - time_ns) > 0.05 * time_ns)
        return time_ns;
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

/* The name of what failed: in "__error__" (newer files) or in the place of the time. */
static bool failure_name(const struct kp_json *entry, struct kp_str *out)
{
    return kp_json_as_str(kp_json_get(entry, "__error__"), out) ||
           kp_json_as_str(kp_json_get(entry, "time"), out);
}

static kopt_status read_outcome(struct import *x, const struct kp_json *entry, kopt_result *r,
                                kopt_error *err)
{
    struct kp_str what = {0};
    double ms = (double)NAN;
    size_t n = 0;
    bool number = kp_json_as_f64(kp_json_get(entry, "time"), &ms);
    if (failure_name(entry, &what)) {
        r->outcome = failure_outcome(what);
        r->message = what.ptr;
    } else if (!number || ms >= FAILED_TIME) {
        r->outcome = KOPT_OUT_LAUNCH_ERROR;
        r->message = "it failed; the file does not say how";
    } else if (ms <= 0) {
        r->outcome = KOPT_OUT_BAD_TIME;
        r->message = "the file's time is not positive";
    } else {
        kopt_status st = read_samples(x, entry, &n, err);
        if (st != KOPT_OK)
            return st;
        r->outcome = KOPT_OUT_OK;
        r->median_ns = typical_ns(x, n, ms * 1e6);
        r->times_ns = x->times;
        r->n_times = (uint32_t)n;
    }
    return KOPT_OK;
}

static kopt_status read_entry(struct import *x, const struct kp_json *entry, kopt_result *r,
                              kopt_error *err)
{
    struct kp_str when = {0};
    double verify_ns = member_scaled(entry, "verification_time", 1e6);
    double bench_ns = member_scaled(entry, "benchmark_time", 1e6);
    *r = (kopt_result){
        .config = kp_buf_text(&x->config),
        .message = "",
        .log = "",
        .median_ns = (double)NAN,
        .low_ns = (double)NAN,
        .high_ns = (double)NAN,
        .compile_ns = member_scaled(entry, "compile_time", 1e6),
        .device_ns = isfinite(verify_ns) ? bench_ns + verify_ns : bench_ns,
        .registers = -1,
        .shared_bytes = -1,
        .local_bytes = -1,
        .throttle = -1,
        .max_error = (double)NAN,
        .power_w = member_scaled(entry, "nvml_power", 1),
        .energy_j = member_scaled(entry, "nvml_energy", 1),
        .sm_mhz = member_scaled(entry, "core_freq", 1),
        .temp_c = member_scaled(entry, "temperature", 1),
    };
    if (kp_json_as_str(kp_json_get(entry, "timestamp"), &when))
        r->wall_us = parse_timestamp(when.ptr);
    return read_outcome(x, entry, r, err);
}

/* --- storing -------------------------------------------------------------------------------
 */

/* {"x":4096,"y":4096} from a number or a list. */
static kopt_status problem_text(const struct import *x, struct kp_buf *out, kopt_error *err)
{
    static const char *const axes[] = {"x", "y", "z"};
    const struct kp_json *p = x->head.problem;
    bool list = p && kp_json_type(p) == KP_JSON_ARRAY;
    size_t n = list ? kp_json_size(p) : p && kp_json_type(p) != KP_JSON_NULL;
    struct kp_json *o = kp_json_new_object();
    bool ok = o != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "x%zu", i);
        ok = kp_json_set(o, i < 3 ? axes[i] : name, kp_json_dup(list ? kp_json_at(p, i) : p));
    }
    if (ok)
        kp_json_dump(o, out);
    kp_json_free(o);
    return ok ? kp_buf_status(out, err) : kp_err_nomem(err);
}

static kopt_status make_subject(struct import *x, kopt_error *err)
{
    struct kp_str kernel = {0};
    struct kp_str device = {0};
    struct kp_buf problem = KP_BUF_INIT(VALUE_BYTES_MAX);
    struct kp_buf params = KP_BUF_INIT(VALUE_BYTES_MAX);
    (void)kp_json_as_str(x->head.kernel, &kernel);
    kopt_status st = problem_text(x, &problem, err);
    kp_json_dump(x->head.params, &params);
    if (st == KOPT_OK)
        st = kp_buf_status(&params, err);
    if (st == KOPT_OK) {
        struct kp_subject s = {
            .kernel = kernel.ptr,
            .kernel_path = "",
            .kernel_hash = "",
            .backend = "kernel_tuner",
            .device = kp_json_as_str(x->head.device, &device) ? device.ptr : "",
            .arch = "",
            .driver = "",
            .compiler = "",
            .problem = kp_buf_text(&problem),
            .data = "",
            .params = kp_buf_text(&params),
        };
        st = kp_store_subject(x->st, &s, err);
        x->subject = s.id;
    }
    kp_buf_deinit(&problem);
    kp_buf_deinit(&params);
    return st;
}

static kopt_status make_run(struct import *x, kopt_error *err)
{
    struct kp_buf command = KP_BUF_INIT(VALUE_BYTES_MAX);
    kp_buf_addf(&command, "import %s", x->path);
    struct kp_store_run run = {
        .subject = x->subject,
        .command = kp_buf_text(&command),
        .strategy = "import",
        .version = KOPT_VERSION,
        .host = "",
        .state = "running",
        .summary = "",
        .begun_us = kp_clock_wall_us(),
    };
    kopt_status st = kp_buf_status(&command, err);
    if (st == KOPT_OK)
        st = kp_store_run_begin(x->st, &run, err);
    x->run = run.id;
    x->new_run = true;
    kp_buf_deinit(&command);
    return st;
}

static kopt_status end_batch(struct import *x, bool keep, kopt_error *err)
{
    if (x->in_batch == 0)
        return KOPT_OK;
    kopt_status st = x->st->ops->batch_end(x->st, keep, err);
    if (keep && st == KOPT_OK) {
        x->count->added += x->pending.added;
        x->count->present += x->pending.present;
    } else if (x->new_run) {
        x->run = 0; /* undone; its number may be another process's next */
    }
    x->new_run = false;
    x->pending = (struct kp_import_count){0};
    x->in_batch = 0;
    return st;
}

static kopt_status store_entry(struct import *x, const kopt_result *r, kopt_error *err)
{
    bool found = false;
    int64_t id = 0;
    kopt_status st = KOPT_OK;
    if (x->in_batch == 0)
        st = x->st->ops->batch_begin(x->st, err);
    if (st != KOPT_OK)
        return st;
    x->in_batch++;
    if (!x->subject)
        st = make_subject(x, err);
    if (st == KOPT_OK)
        st = x->st->ops->has(x->st, x->subject, r, &found, err);
    if (st == KOPT_OK && !found && !x->run)
        st = make_run(x, err);
    if (st == KOPT_OK && !found)
        st = kp_store_add(x->st, x->run, x->subject, r, &id, err);
    if (st != KOPT_OK)
        return st;
    x->pending.added += !found;
    x->pending.present += found;
    return x->in_batch >= BATCH ? end_batch(x, true, err) : KOPT_OK;
}

/* The entry whose text is in x->text. One that cannot be read is counted and passed over. */
static kopt_status import_entry(struct import *x, kopt_error *err)
{
    kopt_result r;
    struct kp_json *entry = NULL;
    kopt_status st = x->text.failed; /* KOPT_ERANGE: too long */
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&x->text), x->text.len}, x->path, &entry,
                           NULL);
    if (st == KOPT_OK)
        st = read_config(x, entry);
    if (st == KOPT_ENOMEM) {
        st = kp_err_nomem(err);
    } else if (st != KOPT_OK) {
        x->count->bad++;
        st = KOPT_OK;
    } else {
        st = read_entry(x, entry, &r, err);
        if (st == KOPT_OK)
            st = store_entry(x, &r, err);
    }
    kp_json_free(entry);
    return st;
}

static kopt_status bad_place(struct import *x, kopt_error *err)
{
    (void)kp_ktread_error(x->in, err,
                          "not as Kernel Tuner writes it; the entries before it "
                          "were imported");
    kp_err_hint(err, "cut the file here and import it again for the rest of what is whole");
    return KOPT_EINPUT;
}

/* Entries up to the end, wherever that is. */
static kopt_status import_entries(struct import *x, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    bool more = true;
    while (more && st == KOPT_OK) {
        int c = kp_ktread_peek(x->in);
        if (c < 0 || c == '}')
            break;
        if (c != '"')
            return bad_place(x, err);
        kp_buf_clear(&x->text);
        bool whole = kp_ktread_value(x->in, NULL) && kp_ktread_take(x->in, ':') &&
                     kp_ktread_value(x->in, &x->text);
        if (!whole) {
            x->count->cut = kp_ktread_peek(x->in) < 0;
            return x->count->cut ? KOPT_OK : bad_place(x, err);
        }
        st = import_entry(x, err);
        more = kp_ktread_take(x->in, ',');
    }
    if (st != KOPT_OK || kp_ktread_peek(x->in) < 0)
        return st;
    return kp_ktread_take(x->in, '}') ? KOPT_OK : bad_place(x, err);
}

kopt_status kp_store_import_kt(struct kp_store *st, const char *path,
                               struct kp_import_count *count, kopt_error *err)
{
    kopt_error undone;
    struct import x = {.st = st,
                       .path = path,
                       .text = KP_BUF_INIT(VALUE_BYTES_MAX),
                       .config = KP_BUF_INIT(VALUE_BYTES_MAX),
                       .count = count};
    *count = (struct kp_import_count){0};
    kopt_status code = kp_store_may_write(st, err);
    if (code != KOPT_OK)
        return code;
    code = kp_ktread_open(path, &x.in, err);
    if (code == KOPT_OK)
        code = read_header(&x, err);
    if (code == KOPT_OK) {
        code = import_entries(&x, err);
        /* What stands before a bad place is kept; after any other failure the last batch is
         * not. */
        kopt_status end = end_batch(&x, code == KOPT_OK || code == KOPT_EINPUT,
                                    code == KOPT_OK ? err : &undone);
        code = code == KOPT_OK ? end : code;
    }
    if (x.run)
        (void)kp_store_run_end(st, x.run, code == KOPT_OK ? "done" : "failed", "", &undone);
    if (code == KOPT_OK)
        code = kp_ktread_status(x.in, err);
    kp_ktread_close(x.in);
    kp_buf_deinit(&x.text);
    kp_buf_deinit(&x.config);
    kp_free(x.times);
    header_free(&x.head);
    return code;
}
