/* SPDX-License-Identifier: MIT */
/* kopt-worker: the process that may crash, hang or be ended in place of the session. */
#include "measure/worker/worker.h"

#include "os/proc.h"

#include <stdio.h>
#include <string.h>

bool kp_worker_no_memory(void)
{
    char text[96];
    int n = snprintf(text, sizeof(text),
                     "{\"is\":\"error\",\"code\":%d,\"message\":\"out of memory\"}",
                     (int)KOPT_ENOMEM);
    (void)kp_frame_write(KP_PROC_FD, text, (size_t)n + 1, NULL);
    return false;
}

bool kp_worker_send(struct kp_json *head, const void *blob, size_t blob_bytes)
{
    kopt_status st = kp_message_send(KP_PROC_FD, head, blob, blob_bytes, NULL);
    return st == KOPT_ENOMEM ? kp_worker_no_memory() : st == KOPT_OK;
}

bool kp_worker_fail(int64_t id, const kopt_error *err)
{
    if (err->code == KOPT_ENOMEM)
        return kp_worker_no_memory();
    struct kp_json *j = kp_message_new("is", "error", id);
    if (j)
        kp_message_put_error(j, err);
    return kp_worker_send(j, NULL, 0);
}

bool kp_worker_reply(int64_t id, const char *what)
{
    return kp_worker_send(kp_message_new("is", what, id), NULL, 0);
}

bool kp_worker_next(struct kp_buf *frame, struct kp_message *m)
{
    *m = (struct kp_message){0};
    kopt_status st = kp_frame_read(KP_PROC_FD, frame, NULL);
    if (st == KOPT_OK)
        st = kp_message_parse(frame, m, NULL);
    return st == KOPT_ENOMEM ? kp_worker_no_memory() : st == KOPT_OK;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "compile") == 0)
        return kp_worker_compile();
    if (argc == 2 && strcmp(argv[1], "run") == 0)
        return kp_worker_run();
    if (argc == 2 && strcmp(argv[1], "reference") == 0)
        return kp_worker_reference();
    if (argc == 3 && strcmp(argv[1], "probe") == 0)
        return kp_worker_probe(argv[2]);
    (void)fprintf(stderr, "kopt-worker is started by kopt; it has no use of its own\n");
    return 2;
}
