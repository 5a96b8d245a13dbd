/* SPDX-License-Identifier: MIT */
/* Recorded spaces from T4 results JSON, one document: kopt's own (docs/store.md) and those of
 * other tuners. The parameters are those of the first result, in its order. */
#include "base/alloc.h"
#include "replay/recorder.h"
#include "store/ktread.h"

#include <math.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 1 << 20 }; /* the metadata, or one result */

struct document {
    struct kp_ktread *in;
    const char *path;
    struct kp_recorder *r;
    struct kp_buf text; /* the value at hand */
    double unit_ns;     /* of times; of measurements that do not name their own */
};

/* --- one result ----------------------------------------------------------------------------
 */

/* Nanoseconds of a unit; 0: unknown. */
static double unit_ns(struct kp_str unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {
        {"ns", 1},
        {"nanoseconds", 1},
        {"us", 1e3},
        {"microseconds", 1e3},
        {"ms", 1e6},
        {"milliseconds", 1e6},
        {"mili"
         "seconds",
         1e6}, /* as published data have it
                */
        {"s", 1e9},
        {"sec", 1e9},
        {"seconds", 1e9},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (kp_str_is(unit, units[i].name))
            return units[i].ns;
    return 0;
}

static struct kp_str text_of(const struct kp_json *object, const char *key)
{
    struct kp_str s = {"", 0};
    (void)kp_json_as_str(kp_json_get(object, key), &s);
    return s;
}

/* In nanoseconds; NaN: it is not there. Nothing takes no time: 0 is what a tuner writes that
 * had the result of the step already. */
static double cost_of(const struct document *d, const struct kp_json *times, const char *key)
{
    double v = 0;
    bool there = kp_json_as_f64(kp_json_get(times, key), &v);
    return there && isfinite(v) && v > 0 ? v * d->unit_ns : (double)NAN;
}

static double plus(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* All launches, where it is not said what measuring took as a whole. */
static double launches_ns(const struct document *d, const struct kp_json *times)
{
    const struct kp_json *list = kp_json_get(times, "runtimes");
    double sum = (double)NAN;
    for (size_t i = 0; i < kp_json_size(list); i++) {
        double v = 0;
        if (kp_json_as_f64(kp_json_at(list, i), &v) && v >= 0)
            sum = plus(sum, v * d->unit_ns);
    }
    return sum;
}

/* The measurement called "time"; NaN: there is none. */
static double time_ns(const struct document *d, const struct kp_json *result)
{
    const struct kp_json *list = kp_json_get(result, "measurements");
    for (size_t i = 0; i < kp_json_size(list); i++) {
        const struct kp_json *m = kp_json_at(list, i);
        struct kp_str own = text_of(m, "unit");
        double value = 0;
        double ns = own.len ? unit_ns(own) : d->unit_ns;
        if (kp_str_is(text_of(m, "name"), "time") &&
            kp_json_as_f64(kp_json_get(m, "value"), &value))
            return value > 0 && ns > 0 ? value * ns : (double)NAN;
    }
    return (double)NAN;
}

/* By kopt's own word where it is there. */
static kopt_outcome outcome_of(const struct kp_json *result)
{
    static const struct {
        const char *invalidity;
        kopt_outcome outcome;
    } known[] = {
        {"", KOPT_OUT_OK},
        {"correct", KOPT_OUT_OK},
        {"compile", KOPT_OUT_COMPILE_ERROR},
        {"timeout", KOPT_OUT_HANG},
        {"constraints", KOPT_OUT_DEVICE_LIMIT},
        {"correctness", KOPT_OUT_WRONG},
    };
    struct kp_str own = text_of(result, "outcome");
    struct kp_str invalidity = text_of(result, "invalidity");
    for (int o = 0; own.len && o < KOPT_OUT_COUNT; o++)
        if (kp_str_is(own, kopt_outcome_name((kopt_outcome)o)))
            return (kopt_outcome)o;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (kp_str_is(invalidity, known[i].invalidity))
            return known[i].outcome;
    return KOPT_OUT_LAUNCH_ERROR;
}

static kopt_status add_result(struct document *d, const struct kp_json *result, kopt_error *err)
{
    const struct kp_json *times = kp_json_get(result, "times");
    double compile = cost_of(d, times, "compilation_time");
    double measure = cost_of(d, times, "benchmark");
    struct kp_recorded e = {.outcome = outcome_of(result)};
    e.compile_ns = isnan(compile) ? cost_of(d, times, "compilation") : compile;
    e.measure_ns = isnan(measure) ? launches_ns(d, times) : measure;
    e.measure_ns = plus(e.measure_ns, cost_of(d, times, "framework"));
    e.measure_ns = plus(e.measure_ns, cost_of(d, times, "validation"));
    e.time_ns = e.outcome == KOPT_OUT_OK ? time_ns(d, result) : (double)NAN;
    return kp_recorder_add_exactly(d->r, &e, kp_json_get(result, "configuration"), err);
}

/* --- the document --------------------------------------------------------------------------
 */

static kopt_status bad_place(struct document *d, kopt_error *err)
{
    kopt_status st = kp_ktread_status(d->in, err);
    if (st != KOPT_OK)
        return st;
    (void)kp_ktread_error(d->in, err, "no T4 results");
    kp_err_hint(err, "expected one JSON object with an array \"results\"");
    return KOPT_EINPUT;
}

/* The value whose text stands in d->text; *out NULL: it is no JSON, or too long. */
static kopt_status parse(struct document *d, struct kp_json **out, kopt_error *err)
{
    *out = NULL;
    kopt_status st = d->text.failed;
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&d->text), d->text.len}, d->path, out,
                           NULL);
    return st == KOPT_ENOMEM ? kp_err_nomem(err) : KOPT_OK;
}

/* Results up to the end of the array, or of the file. */
static kopt_status read_results(struct document *d, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    bool more = true;
    if (!kp_ktread_take(d->in, '['))
        return bad_place(d, err);
    while (st == KOPT_OK && more && kp_ktread_peek(d->in) != ']') {
        struct kp_json *result = NULL;
        kp_buf_clear(&d->text);
        if (!kp_ktread_value(d->in, &d->text)) {
            if (kp_ktread_peek(d->in) >= 0)
                return bad_place(d, err);
            kp_recorder_left_out(d->r, 0, true);
            return kp_ktread_status(d->in, err);
        }
        st = parse(d, &result, err);
        if (st == KOPT_OK && result)
            st = add_result(d, result, err);
        else if (st == KOPT_OK)
            kp_recorder_left_out(d->r, 1, false);
        kp_json_free(result);
        more = kp_ktread_take(d->in, ',');
    }
    if (st != KOPT_OK)
        return st;
    if (kp_ktread_take(d->in, ']'))
        return KOPT_OK;
    if (kp_ktread_peek(d->in) >= 0)
        return bad_place(d, err);
    kp_recorder_left_out(d->r, 0, true);
    return kp_ktread_status(d->in, err);
}

/* {"K":512,..} or a text. */
static kopt_status say_metadata(struct document *d, const struct kp_json *metadata,
                                kopt_error *err)
{
    struct kp_buf problem = KP_BUF_INIT(VALUE_BYTES_MAX);
    const struct kp_json *p = kp_json_get(metadata, "problem");
    struct kp_str unit = text_of(metadata, "timeunit");
    if (unit.len && unit_ns(unit) > 0)
        d->unit_ns = unit_ns(unit);
    if (p && kp_json_type(p) != KP_JSON_STRING)
        kp_json_dump(p, &problem);
    else
        kp_buf_adds(&problem, text_of(metadata, "problem").ptr);
    const kopt_recording_info texts = {.kernel = text_of(metadata, "kernel").ptr,
                                       .device = text_of(metadata, "device").ptr,
                                       .problem = kp_buf_text(&problem)};
    kopt_status st = kp_buf_status(&problem, err);
    if (st == KOPT_OK)
        st = kp_recorder_say(d->r, &texts, err);
    kp_buf_deinit(&problem);
    return st;
}

static kopt_status read_metadata(struct document *d, kopt_error *err)
{
    struct kp_json *metadata = NULL;
    kp_buf_clear(&d->text);
    if (!kp_ktread_value(d->in, &d->text))
        return bad_place(d, err);
    kopt_status st = parse(d, &metadata, err);
    if (st == KOPT_OK && metadata)
        st = say_metadata(d, metadata, err);
    kp_json_free(metadata);
    return st;
}

/* Members up to "results" (*there: its value stands next), or to the end. */
static kopt_status read_members(struct document *d, bool *there, kopt_error *err)
{
    *there = false;
    for (;;) {
        kp_buf_clear(&d->text);
        if (kp_ktread_take(d->in, '}'))
            return KOPT_OK;
        if (kp_ktread_peek(d->in) != '"' || !kp_ktread_value(d->in, &d->text) ||
            !kp_ktread_take(d->in, ':'))
            return bad_place(d, err);
        if (d->text.failed == KOPT_ENOMEM)
            return kp_err_nomem(err);
        *there = strcmp(kp_buf_text(&d->text), "\"results\"") == 0;
        if (*there)
            return KOPT_OK;
        kopt_status st = KOPT_OK;
        if (strcmp(kp_buf_text(&d->text), "\"metadata\"") == 0)
            st = read_metadata(d, err);
        else if (!kp_ktread_value(d->in, NULL))
            st = bad_place(d, err);
        if (st == KOPT_OK && !kp_ktread_take(d->in, ',') && kp_ktread_peek(d->in) != '}')
            st = bad_place(d, err);
        if (st != KOPT_OK)
            return st;
    }
}

/* Metadata that stand behind the results are looked for first, as far as the file goes: they
 * name the unit. */
static kopt_status read_document(struct document *d, bool metadata_first, kopt_error *err)
{
    bool there = false;
    bool more = false;
    if (!kp_ktread_take(d->in, '{'))
        return bad_place(d, err);
    kopt_status st = read_members(d, &there, err);
    if (st == KOPT_OK && !there)
        st = bad_place(d, err);
    if (st != KOPT_OK || metadata_first)
        return st == KOPT_OK ? read_results(d, err) : st;
    struct kp_ktread_place results = kp_ktread_tell(d->in);
    if (kp_ktread_value(d->in, NULL) && kp_ktread_take(d->in, ','))
        st = read_members(d, &more, err);
    if (st == KOPT_OK)
        st = kp_ktread_seek(d->in, results, err);
    return st == KOPT_OK ? read_results(d, err) : st;
}

/* Which member an object begins with tells. */
static kopt_status first_member(struct document *d, bool *fits, bool *metadata_first,
                                kopt_error *err)
{
    static const char *const members[] = {"\"metadata\"", "\"results\"", "\"schema_version\""};
    *fits = false;
    if (kp_ktread_take(d->in, '{') && kp_ktread_peek(d->in) == '"' &&
        kp_ktread_value(d->in, &d->text)) {
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            *fits |= strcmp(kp_buf_text(&d->text), members[i]) == 0;
        *metadata_first = strcmp(kp_buf_text(&d->text), members[0]) == 0;
    }
    if (d->text.failed == KOPT_ENOMEM)
        return kp_err_nomem(err);
    return kp_ktread_status(d->in, err);
}

kopt_status kp_recording_read_t4(const char *path, bool *fits, struct kp_recorder *r,
                                 kopt_error *err)
{
    struct document d = {
        .path = path, .r = r, .text = KP_BUF_INIT(VALUE_BYTES_MAX), .unit_ns = 1e6};
    bool metadata_first = false;
    const kopt_recording_info texts = {.format = "T4"};
    *fits = false;
    kopt_status st = kp_ktread_open(path, &d.in, err);
    if (st != KOPT_OK)
        return st;
    struct kp_ktread_place begin = kp_ktread_tell(d.in);
    st = first_member(&d, fits, &metadata_first, err);
    if (st == KOPT_OK && *fits) {
        st = kp_ktread_seek(d.in, begin, err);
        if (st == KOPT_OK)
            st = kp_recorder_say(r, &texts, err);
        if (st == KOPT_OK)
            st = read_document(&d, metadata_first, err);
    }
    kp_ktread_close(d.in);
    kp_buf_deinit(&d.text);
    return st;
}
