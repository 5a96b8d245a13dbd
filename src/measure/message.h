/* SPDX-License-Identifier: MIT */
/* Messages between a session and its workers: a JSON object, a NUL, raw bytes. Layer: measure.
 *
 *   session -> compiler   open, source, compile
 *   compiler -> session   opened, compiled (nothing of the kernel has run yet), image, error
 *   session -> runner     open, buffer, check, reference, measure, go, slot,
 *                         refresh, race, energy
 *   runner -> session     opened, done, phase, result, raced, sensed, error
 * Every request carries "id"; every reply repeats it. */
#ifndef KP_MEASURE_MESSAGE_H
#define KP_MEASURE_MESSAGE_H

#include "base/buf.h"
#include "base/error.h"
#include "device/device.h"
#include "space/kernel.h"
#include "json/json.h"

struct kp_message {
    struct kp_json *head;      /* owned */
    const unsigned char *blob; /* borrowed from the buffer that was parsed */
    size_t blob_bytes;
};

/* Takes `head` over (NULL = out of memory while it was built).
 * Errors: KOPT_EIO (the other side is gone), KOPT_ENOMEM, KOPT_ERANGE. */
kopt_status kp_message_send(int fd, struct kp_json *head, const void *blob, size_t blob_bytes,
                            kopt_error *err);
/* `frame` must outlive the message. Errors: KOPT_ECORRUPT, KOPT_ENOMEM. */
kopt_status kp_message_parse(const struct kp_buf *frame, struct kp_message *out,
                             kopt_error *err);
void kp_message_deinit(struct kp_message *m);

/* {"do": what, "id": id} or {"is": what, "id": id}. */
struct kp_json *kp_message_new(const char *key, const char *what, int64_t id);
/* The text of "do" or "is"; "" when it has none. */
const char *kp_message_what(const struct kp_message *m, const char *key);
int64_t kp_message_i64(const struct kp_message *m, const char *key, int64_t otherwise);
double kp_message_f64(const struct kp_message *m, const char *key, double otherwise);
/* Borrowed from the message; "" when it is not there. */
const char *kp_message_str(const struct kp_message *m, const char *key);

/* A kopt_error as members code, message, hint, line, column, and back. */
void kp_message_put_error(struct kp_json *head, const kopt_error *err);
void kp_message_get_error(const struct kp_message *m, kopt_error *err);

/* A launch as members grid, block, shared, args. Values travel as bytes in hex, buffers as
 * {"b": index}, local memory as {"l": bytes}. `index_of` maps a buffer argument's place to its
 * index. */
struct kp_job_arg {
    enum kp_arg_space space;
    unsigned char value[16 * 16]; /* KP_SPACE_VALUE */
    size_t bytes;                 /* of the value, of the buffer or of the local memory */
    uint32_t buffer;              /* KP_SPACE_GLOBAL: index */
};
enum { KP_JOB_ARGS_MAX = KP_ARGS_MAX };
struct kp_job_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    struct kp_job_arg *args;
    size_t n_args;
};
bool kp_message_put_launch(struct kp_json *head, const struct kp_job_launch *l);
/* l->args is allocated (kp_free). Errors: KOPT_ECORRUPT, KOPT_ENOMEM. */
kopt_status kp_message_get_launch(const struct kp_message *m, struct kp_job_launch *l,
                                  kopt_error *err);

/* What a device is, as members. */
bool kp_message_put_info(struct kp_json *head, const struct kp_device_info *info);
void kp_message_get_info(const struct kp_message *m, struct kp_device_info *info);

#endif
