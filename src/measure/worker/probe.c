/* SPDX-License-Identifier: MIT */
#include "measure/worker/worker.h"

#include "os/proc.h"

static bool send_device(struct kp_runtime *rt, int i)
{
    kopt_error err;
    struct kp_device_info info;
    if (kp_runtime_info(rt, i, &info, &err) != KOPT_OK)
        return kp_worker_fail(i, &err);
    struct kp_json *j = kp_message_new("is", "device", i);
    if (j && !kp_message_put_info(j, &info)) {
        kp_json_free(j);
        j = NULL;
    }
    return kp_worker_send(j, NULL, 0);
}

int kp_worker_probe(const char *backend)
{
    kopt_error err;
    enum kp_backend b;
    struct kp_runtime *rt = NULL;
    if (!kp_backend_from_name(backend, &b))
        return 2;
    if (kp_runtime_open(b, NULL, &rt, &err) != KOPT_OK)
        return kp_worker_fail(-1, &err) ? 0 : 1;
    bool ok = true;
    for (int i = 0; i < kp_runtime_n_devices(rt) && ok; i++)
        ok = send_device(rt, i);
    ok = ok && kp_worker_reply(-1, "done");
    kp_runtime_close(rt);
    return ok ? 0 : 1;
}
