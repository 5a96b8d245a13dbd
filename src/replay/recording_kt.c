/* SPDX-License-Identifier: MIT */
/* Recorded spaces from Kernel Tuner's cache files. The time is the one that was tuned for
 * ("time"), as whoever searches the same file with Kernel Tuner sees it. */
#include "base/alloc.h"
#include "replay/recorder.h"
#include "store/ktfile.h"

#include <math.h>

enum { TEXT_MAX = 1 << 20 };

static double member(const struct kp_json *entry, const char *name)
{
    double v = 0;
    bool there = kp_json_as_f64(kp_json_get(entry, name), &v);
    return there && isfinite(v) && v >= 0 ? v : (double)NAN;
}

/* Nanoseconds of all that was neither compiling nor the strategy; NaN: none of it is known. */
static double measure_ns(const struct kp_json *entry)
{
    static const char *const parts[] = {"benchmark_time", "verification_time",
                                        "framework_time"};
    double sum = 0;
    bool known = false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        double ms = member(entry, parts[i]);
        known |= !isnan(ms);
        sum += isnan(ms) ? 0 : ms;
    }
    return known ? sum * 1e6 : (double)NAN;
}

static kopt_status add_entry(struct kp_recorder *r, const struct kp_json *entry,
                             kopt_error *err)
{
    const char *message = NULL;
    struct kp_recorded e = {.compile_ns = member(entry, "compile_time") * 1e6,
                            .measure_ns = measure_ns(entry)};
    e.outcome = kp_ktfile_outcome(entry, &e.time_ns, &message);
    return kp_recorder_add_among(r, &e, entry, err);
}

static kopt_status add_entries(struct kp_recorder *r, struct kp_ktfile *f, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    enum kp_ktfile_next what = KP_KTFILE_BAD;
    while (st == KOPT_OK && what != KP_KTFILE_END && what != KP_KTFILE_CUT) {
        struct kp_json *entry = NULL;
        st = kp_ktfile_next(f, &what, &entry, err);
        if (st == KOPT_OK && what == KP_KTFILE_ENTRY)
            st = add_entry(r, entry, err);
        else if (st == KOPT_OK)
            kp_recorder_left_out(r, what == KP_KTFILE_BAD, what == KP_KTFILE_CUT);
        kp_json_free(entry);
    }
    return st;
}

static kopt_status take_header(struct kp_recorder *r, const struct kp_ktfile *f,
                               kopt_error *err)
{
    const char *names[KP_KTFILE_PARAMS_MAX];
    struct kp_str text = {0};
    struct kp_str device = {0};
    struct kp_str kernel = {0};
    struct kp_buf problem = KP_BUF_INIT(TEXT_MAX);
    size_t n = kp_json_size(f->params);
    (void)kp_json_as_str(f->kernel, &kernel);
    (void)kp_json_as_str(f->device, &device);
    for (size_t i = 0; i < n; i++) {
        (void)kp_json_as_str(kp_json_at(f->params, i), &text);
        names[i] = text.ptr;
    }
    kopt_status st = kp_ktfile_problem(f, &problem, err);
    const kopt_recording_info texts = {.format = "Kernel Tuner",
                                       .kernel = kernel.ptr,
                                       .device = device.ptr,
                                       .problem = kp_buf_text(&problem)};
    if (st == KOPT_OK)
        st = kp_recorder_say(r, &texts, err);
    if (st == KOPT_OK)
        st = kp_recorder_params(r, names, n, err);
    if (st == KOPT_EINPUT)
        kp_err_wrap(err, "%s", f->path);
    kp_buf_deinit(&problem);
    return st;
}

/* Whatever begins as an object may be one. */
static kopt_status looks_like_one(const char *path, bool *fits, kopt_error *err)
{
    struct kp_ktread *in = NULL;
    kopt_status st = kp_ktread_open(path, &in, err);
    if (st != KOPT_OK)
        return st;
    *fits = kp_ktread_peek(in) == '{';
    st = kp_ktread_status(in, err);
    kp_ktread_close(in);
    return st;
}

kopt_status kp_recording_read_kt(const char *path, bool *fits, struct kp_recorder *r,
                                 kopt_error *err)
{
    struct kp_ktfile f;
    *fits = false;
    kopt_status st = looks_like_one(path, fits, err);
    if (st != KOPT_OK || !*fits)
        return st;
    st = kp_ktfile_open(&f, path, err);
    if (st == KOPT_OK)
        st = take_header(r, &f, err);
    if (st == KOPT_OK)
        st = add_entries(r, &f, err);
    kp_ktfile_close(&f);
    return st;
}
