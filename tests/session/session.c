/* SPDX-License-Identifier: MIT */
#include "session/session.h"

const char *write_kernel(const char *name, const char *text)
{
    FILE *f = fopen(name, "wbe");
    if (!f)
        fail_msg("cannot create %s", name);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    return name;
}

static void on_result(void *user, const kopt_result *r, const char *config)
{
    struct session *s = user;
    assert_true(s->n_seen < SEEN_MAX);
    struct seen *x = &s->seen[s->n_seen++];
    (void)snprintf(x->config, sizeof(x->config), "%s", config);
    (void)snprintf(x->message, sizeof(x->message), "%s", r->message);
    x->outcome = r->outcome;
    x->median_ns = r->median_ns;
    x->from_store = r->from_store;
    x->dropped = r->dropped;
    if (s->stop_after && s->n_seen == s->stop_after)
        kopt_tuner_stop(s->tuner);
}

static void on_log(void *user, kopt_log_level level, const char *line)
{
    struct session *s = user;
    if (level <= KOPT_LOG_WARN) {
        s->warnings++;
        (void)snprintf(s->last_warning, sizeof(s->last_warning), "%s", line);
    }
}

void session_init(struct session *s, const char *kernel, const char *store)
{
    memset(s, 0, sizeof(*s));
    kopt_tune_options_init(&s->o);
    s->o.kernel = kernel;
    s->o.store = store;
    s->o.device = "fake:0";
    s->o.compilers = 2;
    s->o.compile_timeout_s = 4;
    s->o.launch_timeout_s = 4;
    s->o.callbacks.result = on_result;
    s->o.callbacks.log = on_log;
    s->o.callbacks.user = s;
}

void session_run(struct session *s)
{
    const kopt_tune_report *report = NULL;
    s->status = kopt_tuner_new(&s->o, &s->tuner, &s->err);
    if (s->status != KOPT_OK)
        return;
    s->status = kopt_tuner_run(s->tuner, &report, &s->err);
    if (report) {
        s->report = *report;
        s->has_report = 1;
    }
}

void session_end(struct session *s)
{
    kopt_tuner_free(s->tuner);
    s->tuner = NULL;
}

const struct seen *session_find(const struct session *s, const char *config)
{
    for (size_t i = 0; i < s->n_seen; i++)
        if (strcmp(s->seen[i].config, config) == 0)
            return &s->seen[i];
    fail_msg("%s was never measured", config);
    return NULL;
}

size_t session_measured(const struct session *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_seen; i++)
        n += !s->seen[i].from_store;
    return n;
}
