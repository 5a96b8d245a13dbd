/* SPDX-License-Identifier: MIT */
/* Data sets from CSV (and T4, which begins with a bracket): whatever the bytes are, loading
 * ends with a status, and every row counts once; the data set's numbers are in range. */
#include "base/error.h"
#include "learn/load.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct kp_dataset *d, const struct kp_load_report *r)
{
    KP_CHECK(d->n_rows > 0 && d->n_problems > 0 && d->n_problems <= d->n_rows);
    KP_CHECK(r->n_raw > 0 && r->n_raw <= d->n_fields && strlen(r->hash) == 64);
    KP_CHECK(d->n_rows + r->left_out <= r->read);
    for (size_t i = 0; i < d->n_problems * d->n_fields; i++) {
        const struct kp_field *f = &d->fields[i % d->n_fields];
        double x = d->problems[i];
        KP_CHECK(isfinite(x) && (!f->is_word || (x >= 0 && x < (double)f->n_words)));
    }
    for (size_t i = 0; i < d->n_rows * d->n_targets; i++)
        KP_CHECK(d->configs[i] < d->targets[i % d->n_targets].n_values);
    for (size_t i = 0; i < d->n_rows; i++)
        KP_CHECK(d->of[i] < d->n_problems && !(d->times_ns[i] <= 0));
}

static void load(const char *path, const struct kp_load_options *o)
{
    struct kp_dataset *d = NULL;
    struct kp_load_report r;
    kopt_error err = {0};
    kopt_status st = kp_load(path, o, &d, &r, &err);
    KP_CHECK(st == KOPT_OK || st == KOPT_EINPUT || st == KOPT_EIO || st == KOPT_ERANGE);
    KP_CHECK((st == KOPT_OK) == (d != NULL) && (st == KOPT_OK || err.message[0]));
    KP_CHECK((r.skipped == 0) == (r.reason[0] == '\0'));
    if (d)
        look_at(d, &r);
    kp_dataset_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char rules[] = "kernel k\nproblem M N=1 w=\"a\"\nparam B {4, 8}\n"
                                "param T {1, 2}\nlet tiles = ceildiv(M, 16)\n";
    static const char *const params[] = {"B"};
    const struct kp_load_options plain = {0};
    const struct kp_load_options named = {.params = params, .n_params = 1};
    struct kp_load_options ruled = {0};
    struct kp_kernel *k = NULL;
    char path[64];
    int fd = memfd_create("csv", MFD_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size &&
        kp_kernel_parse("k.kopt", kp_str_from(rules), &k, NULL) == KOPT_OK) {
        ruled.rules = k;
        load(path, &plain);
        load(path, &named);
        load(path, &ruled);
    }
    kp_kernel_free(k);
    (void)close(fd);
    return 0;
}
