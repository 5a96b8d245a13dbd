/* SPDX-License-Identifier: MIT */
/* Store files: whatever the bytes are, opening, reading and writing them ends with a status. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "os/file.h"
#include "store/store.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *dir;

static void end(void)
{
    kp_dir_remove(dir);
    kp_free(dir);
}

static bool see_subject(void *user, const struct kp_subject *s)
{
    KP_CHECK(s->kernel && s->kernel_path && s->kernel_hash && s->backend && s->device &&
             s->arch && s->driver && s->compiler && s->problem && s->data);
    *(int64_t *)user = s->id;
    return true;
}

static bool see_run(void *user, const struct kp_store_run *r)
{
    (void)user;
    KP_CHECK(r->command && r->strategy && r->version && r->host && r->state && r->summary);
    return true;
}

static bool see_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    double *sum = user;
    (void)subject;
    (void)run;
    KP_CHECK(r->config && r->message && r->log);
    KP_CHECK((int)r->outcome >= 0 && r->outcome < KOPT_OUT_COUNT);
    for (uint32_t i = 0; i < r->n_times; i++)
        *sum += r->times_ns[i];
    return true;
}

static void read_all(struct kp_store *st)
{
    int64_t subject = 0;
    double sum = 0;
    kopt_error err;
    struct kp_select *sel = NULL;
    struct kp_selected found;
    struct kp_buf t4 = KP_BUF_INIT(1 << 20);
    struct kp_result_filter f = {.outcome = -1};
    (void)kp_store_subjects(st, NULL, see_subject, &subject, &err);
    (void)kp_store_runs(st, 0, see_run, NULL, &err);
    (void)kp_store_results(st, &f, see_result, &sum, &err);
    f.newest = f.by_time = true;
    (void)kp_store_results(st, &f, see_result, &sum, &err);
    (void)kp_store_best(st, subject, see_result, &sum, &err);
    (void)kp_store_export_t4(st, subject, &t4, &err);
    kp_buf_deinit(&t4);
    if (kp_select_load(st, "", &sel, &err) == KOPT_OK)
        kp_select_find(sel, "gemm", NULL, NULL, 0, &found);
    kp_select_free(sel);
    (void)kp_store_check(st, &err);
}

static void write_some(struct kp_store *st)
{
    int64_t id = 0;
    kopt_error err;
    struct kp_subject s = {.kernel = "k",
                           .kernel_path = "",
                           .kernel_hash = "",
                           .backend = "",
                           .device = "",
                           .arch = "",
                           .driver = "",
                           .compiler = "",
                           .problem = "{}",
                           .data = ""};
    kopt_result r = {.config = "{}", .message = "", .log = "", .median_ns = 1};
    (void)kp_store_subject(st, &s, &err);
    if (kp_store_begin(st, 0, s.id, "{}", false, &id, &err) == KOPT_OK)
        (void)kp_store_finish(st, id, &r, &err);
}

static void open_as(const char *path, enum kp_store_mode mode)
{
    kopt_error err;
    struct kp_store *st = NULL;
    kopt_status code = kp_store_open(path, mode, 100, &st, &err);
    KP_CHECK((code == KOPT_OK) == (st != NULL));
    KP_CHECK(code == KOPT_OK || err.message[0]);
    if (!st)
        return;
    if (mode == KP_STORE_WRITE)
        write_some(st);
    read_all(st);
    kp_store_close(st);
}

/* Taken into a store that is whole, which stays so. */
static void import_from(const char *path)
{
    char to[4300];
    kopt_error err;
    struct kp_import_count n;
    struct kp_store *st = NULL;
    (void)snprintf(to, sizeof(to), "%s/to.db", dir);
    KP_CHECK(kp_store_open(to, KP_STORE_WRITE, 100, &st, &err) == KOPT_OK);
    kopt_status code = kp_store_import(st, path, &n, &err);
    KP_CHECK(code == KOPT_OK || err.message[0]);
    KP_CHECK(kp_store_check(st, &err) == KOPT_OK);
    kp_store_close(st);
    (void)unlink(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[4200];
    char beside[4300];
    if (!dir) {
        KP_CHECK(kp_dir_temp("kopt-fuzz", &dir, NULL) == KOPT_OK);
        KP_CHECK(atexit(end) == 0);
    }
    (void)snprintf(path, sizeof(path), "%s/kopt.db", dir);
    FILE *f = fopen(path, "wbe");
    KP_CHECK(f);
    (void)fwrite(data, 1, size, f);
    (void)fclose(f);
    open_as(path, KP_STORE_READ);
    import_from(path);
    open_as(path, KP_STORE_WRITE);
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        (void)snprintf(beside, sizeof(beside), "%s%s", path, ends[i]);
        (void)unlink(beside);
    }
    return 0;
}
