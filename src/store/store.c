/* SPDX-License-Identifier: MIT */
/* What every back end shares: arguments, limits and texts. */
#include "store/store.h"

#include "base/buf.h"
#include "base/str.h"
#include "os/clock.h"
#include "store/ops.h"
#include "store/owner.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum {
    NAME_BYTES_MAX = 1 << 20,   /* a text of a subject or run */
    CONFIG_BYTES_MAX = 1 << 16, /* a configuration */
    MESSAGE_BYTES_MAX = 4096,
    LOG_BYTES_MAX = 16 << 10,
    TIMES_MAX = 1 << 20, /* samples of one result */
    UTF8_BYTES_MAX = 4   /* of one character */
};

/* --- texts ---------------------------------------------------------------------------------
 */

/* Compilers and crashed processes write what they like: bytes that are no UTF-8 become U+FFFD,
 * and what is longer than out->max is cut between characters. */
static void clean_text(const char *text, struct kp_buf *out)
{
    const char *s = text ? text : "";
    while (*s) {
        size_t n = kp_utf8_len(s, strnlen(s, UTF8_BYTES_MAX));
        const void *from = n ? (const void *)s : (const void *)"\xEF\xBF\xBD";
        size_t add = n ? n : 3;
        if (add > out->max - out->len)
            return;
        kp_buf_add(out, from, add);
        s += n ? n : 1;
    }
}

struct clean {
    struct kp_buf message;
    struct kp_buf log;
};

static void clean_deinit(struct clean *c)
{
    kp_buf_deinit(&c->message);
    kp_buf_deinit(&c->log);
}

/* The checks that no back end need repeat. *out is r with its texts made storable; they live in
 * `c`. */
static kopt_status sane_result(const kopt_result *r, struct clean *c, kopt_result *out,
                               kopt_error *err)
{
    *c = (struct clean){KP_BUF_INIT(MESSAGE_BYTES_MAX), KP_BUF_INIT(LOG_BYTES_MAX)};
    *out = *r;
    if ((int)r->outcome < 0 || r->outcome >= KOPT_OUT_COUNT)
        return kp_err(err, KOPT_EUSAGE, "%d is not an outcome", (int)r->outcome);
    if (r->outcome == KOPT_OUT_OK && !(isfinite(r->median_ns) && r->median_ns > 0))
        return kp_err(err, KOPT_EUSAGE, "a result that is ok needs a time, not %g",
                      r->median_ns);
    if (r->n_times > TIMES_MAX)
        return kp_err(err, KOPT_ERANGE, "%u samples of one result, more than %d", r->n_times,
                      (int)TIMES_MAX);
    if (!r->times_ns)
        out->n_times = 0; /* a count alone, from a reading without samples */
    clean_text(r->message, &c->message);
    clean_text(r->log, &c->log);
    out->message = kp_buf_text(&c->message);
    out->log = kp_buf_text(&c->log);
    kopt_status st = kp_buf_status(&c->message, err);
    return st == KOPT_OK ? kp_buf_status(&c->log, err) : st;
}

static kopt_status sane_config(const char *config, kopt_error *err)
{
    if (!config[0])
        return kp_err(err, KOPT_EUSAGE, "a result without a configuration");
    if (strlen(config) > CONFIG_BYTES_MAX)
        return kp_err(err, KOPT_ERANGE, "a configuration longer than %d bytes",
                      (int)CONFIG_BYTES_MAX);
    return KOPT_OK;
}

static kopt_status sane_names(const char *const *texts, size_t n, kopt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        KP_CHECK(texts[i]);
        if (strlen(texts[i]) > NAME_BYTES_MAX)
            return kp_err(err, KOPT_ERANGE, "a text longer than %d bytes: %.40s..",
                          (int)NAME_BYTES_MAX, texts[i]);
    }
    return KOPT_OK;
}

kopt_status kp_store_may_write(const struct kp_store *st, kopt_error *err)
{
    if (st->mode != KP_STORE_WRITE)
        return kp_err(err, KOPT_EUSAGE, "the store is opened for reading only");
    if (st->walking)
        return kp_err(err, KOPT_EUSAGE, "a visitor must not write to the store it visits");
    return KOPT_OK;
}

/* --- opening -------------------------------------------------------------------------------
 */

kopt_status kp_store_open(const char *path, enum kp_store_mode mode, int busy_ms,
                          struct kp_store **out, kopt_error *err)
{
    const struct kp_store_ops *ops = kp_sqlite_ops();
    struct stat info;
    *out = NULL;
    if (!path || !path[0]) {
        (void)kp_err(err, KOPT_EUSAGE, "no path of a store given");
        kp_err_hint(err, "give the path of a file, for example kopt.db");
        return KOPT_EUSAGE;
    }
    kopt_status st = ops->open(path, mode, busy_ms < 0 ? 0 : busy_ms, out, err);
    if (st == KOPT_OK) {
        (*out)->ops = ops;
        (*out)->mode = mode;
        if (stat(path, &info) == 0) {
            (*out)->dev = info.st_dev;
            (*out)->ino = info.st_ino;
        }
    }
    return st;
}

void kp_store_close(struct kp_store *s)
{
    if (s)
        s->ops->close(s);
}

kopt_status kp_store_check(struct kp_store *st, kopt_error *err)
{
    return st->ops->check(st, err);
}

/* --- writing -------------------------------------------------------------------------------
 */

kopt_status kp_store_subject(struct kp_store *st, struct kp_subject *s, kopt_error *err)
{
    s->params = s->params ? s->params : "";
    const char *const texts[] = {s->kernel,  s->kernel_path, s->kernel_hash, s->backend,
                                 s->device,  s->arch,        s->driver,      s->compiler,
                                 s->problem, s->data,        s->params};
    s->id = 0;
    if (st->walking && st->mode == KP_STORE_WRITE)
        return kp_store_may_write(st, err);
    kopt_status code = sane_names(texts, sizeof(texts) / sizeof(texts[0]), err);
    return code == KOPT_OK ? st->ops->subject(st, s, err) : code;
}

kopt_status kp_store_run_begin(struct kp_store *st, struct kp_store_run *run, kopt_error *err)
{
    const char *const texts[] = {run->command, run->strategy, run->version,
                                 run->host,    run->state,    run->summary};
    run->id = 0;
    kopt_status code = kp_store_may_write(st, err);
    if (code == KOPT_OK)
        code = sane_names(texts, sizeof(texts) / sizeof(texts[0]), err);
    if (code != KOPT_OK)
        return code;
    char owner[KP_OWNER_BYTES] = "";
    struct kp_store_run own = *run;
    if (!own.summary[0] && strcmp(own.state, "running") == 0 && kp_owner_here(own.host)) {
        kp_owner_summary(owner);
        own.summary = owner;
    }
    code = st->ops->run_begin(st, &own, err);
    run->id = own.id;
    return code;
}

kopt_status kp_store_run_end(struct kp_store *st, int64_t run, const char *state,
                             const char *summary, kopt_error *err)
{
    const char *const texts[] = {state, summary};
    const struct kp_store_run end = {
        .id = run, .state = state, .summary = summary, .ended_us = kp_clock_wall_us()};
    kopt_status code = kp_store_may_write(st, err);
    if (code == KOPT_OK)
        code = sane_names(texts, 2, err);
    return code == KOPT_OK ? st->ops->run_end(st, &end, err) : code;
}

kopt_status kp_store_batch_begin(struct kp_store *st, kopt_error *err)
{
    kopt_status code = kp_store_may_write(st, err);
    return code == KOPT_OK ? st->ops->batch_begin(st, err) : code;
}

kopt_status kp_store_batch_end(struct kp_store *st, bool keep, kopt_error *err)
{
    return st->ops->batch_end(st, keep, err);
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters, each of them plain */
kopt_status kp_store_begin(struct kp_store *st, int64_t run, int64_t subject,
                           const char *config, bool race, int64_t *result_id, kopt_error *err)
{
    const kopt_result r = {.config = config, .race = race};
    *result_id = 0;
    kopt_status code = kp_store_may_write(st, err);
    if (code == KOPT_OK)
        code = sane_config(config, err);
    return code == KOPT_OK ? st->ops->begin(st, run, subject, &r, result_id, err) : code;
}

kopt_status kp_store_finish(struct kp_store *st, int64_t result_id, const kopt_result *r,
                            kopt_error *err)
{
    struct clean c;
    kopt_result sane;
    kopt_status code = kp_store_may_write(st, err);
    if (code != KOPT_OK)
        return code;
    code = sane_result(r, &c, &sane, err);
    if (code == KOPT_OK)
        code = st->ops->finish(st, result_id, &sane, err);
    clean_deinit(&c);
    return code;
}

kopt_status kp_store_withdraw(struct kp_store *st, int64_t result_id, kopt_error *err)
{
    kopt_status code = kp_store_may_write(st, err);
    return code == KOPT_OK ? st->ops->withdraw(st, result_id, err) : code;
}

kopt_status kp_store_add(struct kp_store *st, int64_t run, int64_t subject,
                         const kopt_result *r, int64_t *result_id, kopt_error *err)
{
    struct clean c;
    kopt_result sane;
    *result_id = 0;
    kopt_status code = kp_store_may_write(st, err);
    if (code == KOPT_OK)
        code = sane_config(r->config, err);
    if (code != KOPT_OK)
        return code;
    code = sane_result(r, &c, &sane, err);
    if (code == KOPT_OK)
        code = st->ops->add(st, run, subject, &sane, result_id, err);
    clean_deinit(&c);
    return code;
}

/* --- reading -------------------------------------------------------------------------------
 */

kopt_status kp_store_subjects(struct kp_store *st, const char *kernel, kp_subject_visit visit,
                              void *user, kopt_error *err)
{
    const struct kp_subject_filter f = {.kernel = kernel};
    st->walking++;
    kopt_status code = st->ops->subjects(st, &f, visit, user, err);
    st->walking--;
    return code;
}

kopt_status kp_store_subject_get(struct kp_store *st, int64_t id, kp_subject_visit visit,
                                 void *user, kopt_error *err)
{
    const struct kp_subject_filter f = {.id = id ? id : -1};
    st->walking++;
    kopt_status code = st->ops->subjects(st, &f, visit, user, err);
    st->walking--;
    return code;
}

struct run_call {
    kp_run_visit visit;
    void *user;
};

static bool give_run(void *user, const struct kp_store_run *r)
{
    const struct run_call *call = user;
    struct kp_store_run run = *r;
    if (kp_owner_gone(&run))
        run.state = "killed";
    return call->visit(call->user, &run);
}

kopt_status kp_store_runs(struct kp_store *st, int64_t subject, kp_run_visit visit, void *user,
                          kopt_error *err)
{
    struct run_call call = {visit, user};
    st->walking++;
    kopt_status code = st->ops->runs(st, subject, give_run, &call, err);
    st->walking--;
    return code;
}

kopt_status kp_store_results(struct kp_store *st, const struct kp_result_filter *f,
                             kp_result_visit visit, void *user, kopt_error *err)
{
    st->walking++;
    kopt_status code = st->ops->results(st, f, visit, user, err);
    st->walking--;
    return code;
}

kopt_status kp_store_best(struct kp_store *st, int64_t subject, kp_result_visit visit,
                          void *user, kopt_error *err)
{
    st->walking++;
    kopt_status code = st->ops->best(st, subject, visit, user, err);
    st->walking--;
    return code;
}
