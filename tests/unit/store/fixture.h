/* SPDX-License-Identifier: MIT */
/* What the tests of the store share: an empty store in a folder of its own. */
#ifndef KP_TEST_STORE_FIXTURE_H
#define KP_TEST_STORE_FIXTURE_H

#include "base/alloc.h"
#include "base/error.h"
#include "os/file.h"
#include "store/store.h"

#include <stdarg.h>
#include <stddef.h>
/* the order that cmocka.h wants */
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    char *dir;
    char path[512];
    struct kp_store *st;
    kopt_error err;
};

#define ASSERT_OK(f, call)                                               \
    do {                                                                 \
        kopt_status code_ = (call);                                      \
        if (code_ != KOPT_OK)                                            \
            fail_msg("%s: %d: %s", #call, (int)code_, (f)->err.message); \
    } while (0)

/* The call fails with `code`, and says so in one line that names `what`. */
#define ASSERT_FAILS(f, status, what, call)                              \
    do {                                                                 \
        memset(&(f)->err, 0, sizeof((f)->err));                          \
        kopt_status code_ = (call);                                      \
        if (code_ != (status) || (f)->err.code != (status) ||            \
            !strstr((f)->err.message, (what)))                           \
            fail_msg("%s: %d: %s", #call, (int)code_, (f)->err.message); \
    } while (0)

static inline int fixture_folder(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    ASSERT_OK(f, kp_dir_temp("kopt-store", &f->dir, &f->err));
    (void)snprintf(f->path, sizeof(f->path), "%s/kopt.db", f->dir);
    *state = f;
    return 0;
}

static inline void fixture_open(struct fixture *f)
{
    ASSERT_OK(f, kp_store_open(f->path, KP_STORE_WRITE, 5000, &f->st, &f->err));
}

static inline void fixture_reopen(struct fixture *f, enum kp_store_mode mode)
{
    kp_store_close(f->st);
    f->st = NULL;
    ASSERT_OK(f, kp_store_open(f->path, mode, 5000, &f->st, &f->err));
}

static inline int fixture_store(void **state)
{
    int rc = fixture_folder(state);
    fixture_open(*state);
    return rc;
}

static inline int fixture_end(void **state)
{
    struct fixture *f = *state;
    kp_store_close(f->st);
    kp_dir_remove(f->dir);
    kp_free(f->dir);
    free(f);
    return 0;
}

static inline struct kp_subject a_subject(void)
{
    return (struct kp_subject){
        .kernel = "gemm",
        .kernel_path = "kernels/gemm.cl",
        .kernel_hash = "00ff",
        .backend = "fake",
        .device = "Fake 1",
        .arch = "fake_1",
        .driver = "1.0",
        .compiler = "cc 1.0",
        .problem = "{\"K\":512,\"M\":512,\"N\":512}",
        .data = "{\"seed\":1}",
        .params = "[\"X\",\"BM\"]",
    };
}

static inline struct kp_store_run a_run(int64_t subject)
{
    return (struct kp_store_run){
        .subject = subject,
        .command = "kopt tune gemm.cl M=512",
        .strategy = "random",
        .version = "0.1.0",
        .host = "here",
        .state = "running",
        .summary = "",
        .seed = 7,
        .begun_us = 1000,
    };
}

static inline kopt_result a_failure(const char *config, kopt_outcome outcome)
{
    return (kopt_result){
        .config = config,
        .outcome = outcome,
        .message = outcome == KOPT_OUT_OK ? "" : "it failed",
        .log = "",
        .median_ns = (double)NAN,
        .low_ns = (double)NAN,
        .high_ns = (double)NAN,
        .compile_ns = 5e8,
        .device_ns = 2e6,
        .registers = -1,
        .shared_bytes = -1,
        .local_bytes = -1,
        .max_error = (double)NAN,
        .power_w = (double)NAN,
        .energy_j = (double)NAN,
        .sm_mhz = (double)NAN,
        .temp_c = (double)NAN,
        .throttle = -1,
        .wall_us = 1700000000000000,
    };
}

static inline kopt_result a_result(const char *config, double median_ns)
{
    kopt_result r = a_failure(config, KOPT_OUT_OK);
    r.median_ns = median_ns;
    r.low_ns = 0.9 * median_ns;
    r.high_ns = 1.1 * median_ns;
    return r;
}

static inline int64_t make_subject(struct fixture *f, struct kp_subject s)
{
    ASSERT_OK(f, kp_store_subject(f->st, &s, &f->err));
    assert_true(s.id > 0);
    return s.id;
}

static inline int64_t make_run(struct fixture *f, int64_t subject)
{
    struct kp_store_run run = a_run(subject);
    ASSERT_OK(f, kp_store_run_begin(f->st, &run, &f->err));
    assert_true(run.id > 0);
    return run.id;
}

static inline int64_t add(struct fixture *f, int64_t run, int64_t subject, kopt_result r)
{
    int64_t id = 0;
    ASSERT_OK(f, kp_store_add(f->st, run, subject, &r, &id, &f->err));
    assert_true(id > 0);
    return id;
}

/* A visitor's notes. */
struct seen {
    int n;
    int64_t ids[64];
    char config[64][128];
    kopt_outcome outcome[64];
    int64_t run[64];
    double median[64];
};

static inline bool see_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct seen *s = user;
    assert_true(s->n < 64);
    assert_true(subject > 0);
    s->ids[s->n] = r->id;
    (void)snprintf(s->config[s->n], sizeof(s->config[0]), "%s", r->config);
    s->outcome[s->n] = r->outcome;
    s->run[s->n] = run;
    s->median[s->n] = r->median_ns;
    s->n++;
    return true;
}

static inline bool count_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)r;
    (void)subject;
    (void)run;
    (*(int64_t *)user)++;
    return true;
}

static inline struct kp_result_filter all_of(int64_t subject)
{
    return (struct kp_result_filter){.subject = subject, .outcome = -1};
}

static inline int64_t count_results(struct fixture *f, struct kp_result_filter filter)
{
    int64_t n = 0;
    ASSERT_OK(f, kp_store_results(f->st, &filter, count_result, &n, &f->err));
    return n;
}

static inline void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *out = fopen(path, "wbe");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

/* Overwrite part of a file. */
static inline void patch_file(const char *path, long at, const void *bytes, size_t n)
{
    FILE *out = fopen(path, "r+be");
    assert_non_null(out);
    assert_int_equal(fseek(out, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

#endif
