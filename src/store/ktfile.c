/* SPDX-License-Identifier: MIT */
#include "store/ktfile.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    VALUE_BYTES_MAX = 1 << 20, /* one header member or entry */
    SAMPLES_MAX = 1 << 20
};

/* Older versions wrote this as the time of whatever failed. */
#define FAILED_TIME 1e20

/* --- the header ----------------------------------------------------------------------------
 */

static struct kp_json **header_slot(struct kp_ktfile *f, const char *quoted_name)
{
    if (strcmp(quoted_name, "\"kernel_name\"") == 0)
        return &f->kernel;
    if (strcmp(quoted_name, "\"device_name\"") == 0)
        return &f->device;
    if (strcmp(quoted_name, "\"problem_size\"") == 0)
        return &f->problem;
    if (strcmp(quoted_name, "\"tune_params_keys\"") == 0)
        return &f->params;
    return NULL;
}

static bool header_complete(const struct kp_ktfile *f)
{
    return f->kernel && f->device && f->problem && f->params;
}

static kopt_status refuse(struct kp_ktfile *f, const char *what, const char *hint,
                          kopt_error *err)
{
    kopt_status st = kp_ktread_status(f->in, err);
    if (st != KOPT_OK)
        return st;
    (void)kp_ktread_error(f->in, err, "%s", what);
    kp_err_hint(err, "%s", hint);
    return KOPT_EINPUT;
}

static kopt_status header_check(struct kp_ktfile *f, kopt_error *err)
{
    struct kp_str name;
    bool ok = kp_json_as_str(f->kernel, &name) && name.len > 0;
    if (ok)
        ok = f->params && kp_json_type(f->params) == KP_JSON_ARRAY &&
             kp_json_size(f->params) > 0 && kp_json_size(f->params) <= KP_KTFILE_PARAMS_MAX;
    for (size_t i = 0; ok && i < kp_json_size(f->params); i++)
        ok = kp_json_as_str(kp_json_at(f->params, i), &name) && name.len > 0;
    if (ok)
        return KOPT_OK;
    return refuse(f, "no kernel_name or tune_params_keys in the header",
                  "is this a cache file of Kernel Tuner?", err);
}

static kopt_status ended_in_header(struct kp_ktfile *f, kopt_error *err)
{
    return refuse(f,
                  kp_ktread_peek(f->in) < 0 ? "the file ends before its \"cache\""
                                            : "not a cache file of Kernel Tuner",
                  "expected one JSON object with a member \"cache\"", err);
}

/* The text of the value that stands next becomes *out. */
static kopt_status header_value(struct kp_ktfile *f, struct kp_json **out, kopt_error *err)
{
    kp_buf_clear(&f->text);
    kp_json_free(*out);
    *out = NULL;
    if (!kp_ktread_value(f->in, &f->text))
        return ended_in_header(f, err);
    kopt_status st = kp_buf_status(&f->text, err);
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&f->text), f->text.len}, f->path, out,
                           err);
    return st;
}

/* Reads members up to and including the one called "cache" (*at_cache: it stands next now), or
 * the end of the object. */
static kopt_status header_member(struct kp_ktfile *f, bool *at_cache, bool *end,
                                 kopt_error *err)
{
    *at_cache = false;
    *end = kp_ktread_take(f->in, '}');
    if (*end)
        return KOPT_OK;
    kp_buf_clear(&f->text);
    if (kp_ktread_peek(f->in) != '"' || !kp_ktread_value(f->in, &f->text) ||
        !kp_ktread_take(f->in, ':'))
        return ended_in_header(f, err);
    if (f->text.failed == KOPT_ENOMEM)
        return kp_err_nomem(err);
    *at_cache = strcmp(kp_buf_text(&f->text), "\"cache\"") == 0;
    if (*at_cache)
        return KOPT_OK;
    kopt_status st = KOPT_OK;
    struct kp_json **slot = header_slot(f, kp_buf_text(&f->text));
    if (slot)
        st = header_value(f, slot, err);
    else if (!kp_ktread_value(f->in, NULL))
        st = ended_in_header(f, err);
    if (st == KOPT_OK && !kp_ktread_take(f->in, ',') && kp_ktread_peek(f->in) != '}')
        st = ended_in_header(f, err);
    return st;
}

/* Leaves the reader in front of the entries. Kernel Tuner writes "cache" last; in a file that
 * something else has sorted, the header's other members are looked for behind it. */
static kopt_status read_header(struct kp_ktfile *f, kopt_error *err)
{
    struct kp_ktread_place cache = {.at = -1};
    bool at_cache = false;
    bool end = false;
    if (!kp_ktread_take(f->in, '{'))
        return ended_in_header(f, err);
    while (!end && !header_complete(f)) {
        kopt_status st = header_member(f, &at_cache, &end, err);
        if (st != KOPT_OK)
            return st;
        if (!at_cache)
            continue;
        cache = kp_ktread_tell(f->in);
        if (header_complete(f) || !kp_ktread_value(f->in, NULL))
            break;
        (void)kp_ktread_take(f->in, ',');
    }
    while (!end && cache.at < 0) {
        kopt_status st = header_member(f, &at_cache, &end, err);
        if (st != KOPT_OK)
            return st;
        if (at_cache)
            cache = kp_ktread_tell(f->in);
    }
    kopt_status st = header_check(f, err);
    if (st != KOPT_OK)
        return st;
    if (cache.at < 0)
        return ended_in_header(f, err);
    st = kp_ktread_seek(f->in, cache, err);
    return st == KOPT_OK && !kp_ktread_take(f->in, '{') ? ended_in_header(f, err) : st;
}

kopt_status kp_ktfile_open(struct kp_ktfile *f, const char *path, kopt_error *err)
{
    *f = (struct kp_ktfile){.path = path, .text = KP_BUF_INIT(VALUE_BYTES_MAX), .more = true};
    kopt_status st = kp_ktread_open(path, &f->in, err);
    return st == KOPT_OK ? read_header(f, err) : st;
}

void kp_ktfile_close(struct kp_ktfile *f)
{
    kp_ktread_close(f->in);
    kp_json_free(f->kernel);
    kp_json_free(f->device);
    kp_json_free(f->problem);
    kp_json_free(f->params);
    kp_buf_deinit(&f->text);
    kp_free(f->times);
    *f = (struct kp_ktfile){0};
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

/* Into f->times, in nanoseconds; *n = 0 when there are none or one is no time. */
static kopt_status read_samples(struct kp_ktfile *f, const struct kp_json *entry, size_t *n,
                                kopt_error *err)
{
    const struct kp_json *list = kp_json_get(entry, "times");
    size_t size = list && kp_json_type(list) == KP_JSON_ARRAY ? kp_json_size(list) : 0;
    *n = 0;
    if (size > SAMPLES_MAX)
        return KOPT_OK;
    if (2 * size > f->times_cap) { /* the second half is for sorting */
        double *p = kp_reallocarray(f->times, 2 * size, sizeof(*p));
        if (!p)
            return kp_err_nomem(err);
        f->times = p;
        f->times_cap = 2 * size;
    }
    for (size_t i = 0; i < size; i++) {
        double ms = 0;
        if (!kp_json_as_f64(kp_json_at(list, i), &ms) || !(ms > 0) || ms >= FAILED_TIME)
            return KOPT_OK;
        f->times[i] = ms * 1e6;
    }
    *n = size;
    return KOPT_OK;
}

/* "time" is the mean of "times" in most files, and the median of these is the better figure. In
 * some of the published data it is not: there `time` is what was tuned for, and it is kept. */
static double typical_ns(const struct kp_ktfile *f, size_t n, double time_ns)
{
    double sum = 0;
    if (n == 0)
        return time_ns;
    double *sorted = f->times + n;
    memcpy(sorted, f->times, n * sizeof(*sorted));
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

kopt_outcome kp_ktfile_outcome(const struct kp_json *entry, double *time_ns,
                               const char **message)
{
    struct kp_str what = {0};
    double ms = 0;
    bool number = kp_json_as_f64(kp_json_get(entry, "time"), &ms);
    *time_ns = (double)NAN;
    if (failure_name(entry, &what)) {
        *message = what.ptr;
        return failure_outcome(what);
    }
    if (!number || ms >= FAILED_TIME) {
        *message = "it failed; the file does not say how";
        return KOPT_OUT_LAUNCH_ERROR;
    }
    if (ms <= 0) {
        *message = "the file's time is not positive";
        return KOPT_OUT_BAD_TIME;
    }
    *message = "";
    *time_ns = ms * 1e6;
    return KOPT_OUT_OK;
}

kopt_status kp_ktfile_result(struct kp_ktfile *f, const struct kp_json *entry, kopt_result *r,
                             kopt_error *err)
{
    struct kp_str when = {0};
    double verify_ns = member_scaled(entry, "verification_time", 1e6);
    double bench_ns = member_scaled(entry, "benchmark_time", 1e6);
    double time_ns = (double)NAN;
    size_t n = 0;
    *r = (kopt_result){
        .config = "",
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
    r->outcome = kp_ktfile_outcome(entry, &time_ns, &r->message);
    if (r->outcome != KOPT_OUT_OK)
        return KOPT_OK;
    kopt_status st = read_samples(f, entry, &n, err);
    if (st != KOPT_OK)
        return st;
    r->median_ns = typical_ns(f, n, time_ns);
    r->times_ns = f->times;
    r->n_times = (uint32_t)n;
    return KOPT_OK;
}

/* {"x":4096,"y":4096} from a number or a list. */
kopt_status kp_ktfile_problem(const struct kp_ktfile *f, struct kp_buf *out, kopt_error *err)
{
    static const char *const axes[] = {"x", "y", "z"};
    const struct kp_json *p = f->problem;
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

/* --- entry by entry ------------------------------------------------------------------------
 */

static kopt_status bad_place(struct kp_ktfile *f, kopt_error *err)
{
    return kp_ktread_error(f->in, err, "not as Kernel Tuner writes it");
}

/* The entry whose text stands in f->text. */
static kopt_status parse_entry(struct kp_ktfile *f, enum kp_ktfile_next *what,
                               struct kp_json **entry, kopt_error *err)
{
    kopt_status st = f->text.failed; /* KOPT_ERANGE: too long */
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&f->text), f->text.len}, f->path, entry,
                           NULL);
    if (st == KOPT_ENOMEM)
        return kp_err_nomem(err);
    *what = st == KOPT_OK ? KP_KTFILE_ENTRY : KP_KTFILE_BAD;
    return KOPT_OK;
}

kopt_status kp_ktfile_next(struct kp_ktfile *f, enum kp_ktfile_next *what,
                           struct kp_json **entry, kopt_error *err)
{
    int c = kp_ktread_peek(f->in);
    *entry = NULL;
    *what = KP_KTFILE_END;
    if (c < 0) { /* as Kernel Tuner leaves it while it is at work */
        *what = kp_ktread_cut(f->in) ? KP_KTFILE_CUT : KP_KTFILE_END;
        return kp_ktread_status(f->in, err);
    }
    if (c == '}' || !f->more)
        return kp_ktread_take(f->in, '}') ? KOPT_OK : bad_place(f, err);
    if (c != '"')
        return bad_place(f, err);
    kp_buf_clear(&f->text);
    bool whole = kp_ktread_value(f->in, NULL) && kp_ktread_take(f->in, ':') &&
                 kp_ktread_value(f->in, &f->text);
    if (whole) {
        f->more = kp_ktread_take(f->in, ',');
        return parse_entry(f, what, entry, err);
    }
    if (kp_ktread_peek(f->in) >= 0)
        return bad_place(f, err);
    *what = KP_KTFILE_CUT;
    return kp_ktread_status(f->in, err);
}
