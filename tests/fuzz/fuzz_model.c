/* SPDX-License-Identifier: MIT */
/* Files of models: whatever the bytes are, loading ends with a status, and what was loaded
 * answers. */
#include "model/model.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fields of words get a word of their own or one that nobody has seen. */
static void ask(const struct kp_model *m, int64_t number, bool unconstrained)
{
    struct kp_given given[KP_FIELDS_MAX];
    struct kp_prediction got;
    kopt_error err = {0};
    const struct kp_predict_options o = {.k = 3, .width = 4, .unconstrained = unconstrained};
    for (size_t i = 0; i < m->n_raw; i++) {
        const struct kp_field *f = kp_encoder_field(m->encoder, i);
        given[i] = (struct kp_given){f->name, kp_int(number)};
        if (f->is_word && f->n_words > 0)
            given[i].value = kp_string(kp_str_from(f->words[0]));
    }
    kopt_status st = kp_model_predict(m, given, m->n_raw, &o, &got, &err);
    KP_CHECK(st == KOPT_OK || err.message[0]);
    KP_CHECK(got.n <= o.k && (st == KOPT_OK || got.n == 0));
    for (size_t i = 0; i < got.n; i++)
        for (size_t p = 0; p < m->n_targets; p++)
            KP_CHECK(got.configs[i * m->n_targets + p] < m->targets[p].n_values);
    kp_prediction_deinit(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    kopt_error err = {0};
    struct kp_model *m;
    int fd = memfd_create("model", MFD_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size) {
        kopt_status st = kp_model_load(path, &m, &err);
        KP_CHECK(st == KOPT_OK || (st == KOPT_EINPUT && err.message[0] && !m));
        if (st == KOPT_OK) {
            ask(m, 96, false);
            ask(m, 0, false);
            ask(m, 1, true);
        }
        kp_model_free(m);
    }
    (void)close(fd);
    return 0;
}
