/* SPDX-License-Identifier: MIT */
/* T4 results JSON, schema version 1.0.0: the format in which tuners exchange results. The
 * mapping is in docs/store.md. */
#include "base/buf.h"
#include "os/clock.h"
#include "store/store.h"
#include "json/json.h"

#include <math.h>

static const char *invalidity(kopt_outcome o)
{
    switch (o) {
    case KOPT_OUT_OK:
        return "correct";
    case KOPT_OUT_COMPILE_ERROR:
        return "compile";
    case KOPT_OUT_COMPILE_TIMEOUT:
    case KOPT_OUT_HANG:
        return "timeout";
    case KOPT_OUT_DEVICE_LIMIT:
        return "constraints";
    case KOPT_OUT_WRONG:
    case KOPT_OUT_UNSTEADY:
        return "correctness";
    case KOPT_OUT_LAUNCH_ERROR:
    case KOPT_OUT_CRASH:
    case KOPT_OUT_BAD_TIME:
    case KOPT_OUT_INTERRUPTED:
    case KOPT_OUT_COUNT:
        break;
    }
    return "runtime";
}

/* The schema wants numbers, so what is not known is left out. False: out of memory. */
static bool set_ms(struct kp_json *o, const char *name, double ns)
{
    return !isfinite(ns) || kp_json_set_f64(o, name, ns / 1e6);
}

static struct kp_json *times_of(const kopt_result *r)
{
    struct kp_json *times = kp_json_new_object();
    struct kp_json *runtimes = kp_json_new_array();
    bool ok = times && runtimes;
    for (uint32_t i = 0; ok && i < r->n_times; i++) {
        if (isfinite(r->times_ns[i]))
            ok = kp_json_push(runtimes, kp_json_new_f64(r->times_ns[i] / 1e6));
    }
    /* The schema says compilation_time; Kernel Tuner and its data sets write compilation. */
    ok = ok && set_ms(times, "compilation_time", r->compile_ns);
    ok = ok && set_ms(times, "compilation", r->compile_ns);
    ok = ok && set_ms(times, "benchmark", r->device_ns);
    ok = kp_json_set(times, "runtimes", runtimes) && ok;
    if (!ok) {
        kp_json_free(times);
        return NULL;
    }
    return times;
}

static bool add_measurement(struct kp_json *list, const char *name, double value,
                            const char *unit)
{
    if (!isfinite(value))
        return true;
    struct kp_json *m = kp_json_new_object();
    bool ok = kp_json_set_str(m, "name", name);
    ok = kp_json_set_f64(m, "value", value) && ok;
    ok = kp_json_set_str(m, "unit", unit) && ok;
    return kp_json_push(list, m) && ok;
}

static bool add_count(struct kp_json *list, const char *name, int64_t value, const char *unit)
{
    return value < 0 || add_measurement(list, name, (double)value, unit);
}

static struct kp_json *measurements_of(const kopt_result *r)
{
    struct kp_json *list = kp_json_new_array();
    bool ok = list != NULL;
    if (r->outcome == KOPT_OUT_OK) {
        ok = ok && add_measurement(list, "time", r->median_ns / 1e6, "ms");
        ok = ok && add_measurement(list, "time_low", r->low_ns / 1e6, "ms");
        ok = ok && add_measurement(list, "time_high", r->high_ns / 1e6, "ms");
    }
    ok = ok && add_measurement(list, "max_error", r->max_error, "");
    ok = ok && add_count(list, "registers", r->registers, "");
    ok = ok && add_count(list, "shared_memory", r->shared_bytes, "B");
    ok = ok && add_count(list, "local_memory", r->local_bytes, "B");
    ok = ok && add_measurement(list, "power", r->power_w, "W");
    ok = ok && add_measurement(list, "energy", r->energy_j, "J");
    ok = ok && add_measurement(list, "core_clock", r->sm_mhz, "MHz");
    ok = ok && add_measurement(list, "temperature", r->temp_c, "degC");
    if (!ok) {
        kp_json_free(list);
        return NULL;
    }
    return list;
}

/* Takes over `configuration`. NULL when out of memory. */
static struct kp_json *result_json(const kopt_result *r, struct kp_json *configuration)
{
    char when[32];
    struct kp_json *o = kp_json_new_object();
    struct kp_json *objectives = kp_json_new_array();
    bool ok = kp_json_push(objectives, kp_json_new_str(KP_STR("time")));
    ok = kp_json_set(o, "configuration", configuration) && ok;
    ok = kp_json_set(o, "objectives", objectives) && ok;
    ok = kp_json_set(o, "times", times_of(r)) && ok;
    ok = kp_json_set(o, "measurements", measurements_of(r)) && ok;
    ok = kp_json_set_str(o, "invalidity", invalidity(r->outcome)) && ok;
    /* 1 only for what ran, was compared and was found right; what was not compared has no
     * error. The schema has no word for "not known". */
    bool checked = isfinite(r->max_error);
    ok = kp_json_set_i64(o, "correctness", r->outcome == KOPT_OUT_OK && checked) && ok;
    if (r->outcome == KOPT_OUT_OK)
        ok = kp_json_set_bool(o, "checked", checked) && ok;
    ok = kp_json_set_str(o, "outcome", kopt_outcome_name(r->outcome)) && ok;
    if (r->message[0])
        ok = kp_json_set_str(o, "message", r->message) && ok;
    if (r->wall_us) {
        kp_clock_iso(r->wall_us, when);
        ok = kp_json_set_str(o, "timestamp", when) && ok;
    }
    if (!ok) {
        kp_json_free(o);
        return NULL;
    }
    return o;
}

/* --- the walk ------------------------------------------------------------------------------
 */

struct writer {
    struct kp_buf *out;
    size_t n;
    kopt_status st;
    kopt_error *err;
};

static bool write_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct writer *x = user;
    struct kp_json *configuration = NULL;
    (void)subject;
    (void)run;
    x->st = kp_json_parse(kp_str_from(r->config), NULL, &configuration, x->err);
    if (x->st == KOPT_OK && kp_json_type(configuration) != KP_JSON_OBJECT)
        x->st = KOPT_EINPUT;
    if (x->st != KOPT_OK) {
        kp_json_free(configuration);
        if (x->st != KOPT_ENOMEM)
            x->st = kp_err(x->err, KOPT_ECORRUPT, "result %lld: its configuration is no JSON",
                           (long long)r->id);
        return false;
    }
    struct kp_json *o = result_json(r, configuration);
    if (!o) {
        x->st = kp_err_nomem(x->err);
        return false;
    }
    kp_buf_adds(x->out, x->n++ ? ",\n" : "\n");
    kp_json_dump(o, x->out);
    kp_json_free(o);
    return x->out->failed == KOPT_OK;
}

static bool write_metadata(void *user, const struct kp_subject *s)
{
    struct writer *x = user;
    struct kp_json *o = kp_json_new_object();
    struct kp_json *problem = NULL;
    bool ok = kp_json_set_str(o, "timeunit", "milliseconds");
    ok = kp_json_set_str(o, "kernel", s->kernel) && ok;
    ok = kp_json_set_str(o, "device", s->device) && ok;
    ok = kp_json_set_str(o, "arch", s->arch) && ok;
    ok = kp_json_set_str(o, "driver", s->driver) && ok;
    ok = kp_json_set_str(o, "compiler", s->compiler) && ok;
    if (kp_json_parse(kp_str_from(s->problem), NULL, &problem, NULL) == KOPT_OK)
        ok = kp_json_set(o, "problem", problem) && ok;
    kp_buf_adds(x->out, "{\"metadata\":");
    if (ok)
        kp_json_dump(o, x->out);
    else
        x->st = kp_err_nomem(x->err);
    kp_json_free(o);
    return false;
}

/* One walk gives them all: it sees the store as it was at its start, whoever writes meanwhile.
 */
kopt_status kp_store_export_t4(struct kp_store *st, int64_t subject, struct kp_buf *out,
                               kopt_error *err)
{
    struct writer x = {.out = out, .err = err};
    const struct kp_result_filter f = {.subject = subject, .outcome = -1, .once = true};
    kopt_status code = kp_store_subject_get(st, subject, write_metadata, &x, err);
    kp_buf_adds(out, ",\"results\":[");
    if (code == KOPT_OK && x.st == KOPT_OK)
        code = kp_store_results(st, &f, write_result, &x, err);
    kp_buf_adds(out, "],\"schema_version\":\"1.0.0\"}\n");
    if (code == KOPT_OK)
        code = x.st;
    return code == KOPT_OK ? kp_buf_status(out, err) : code;
}
