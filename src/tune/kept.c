/* SPDX-License-Identifier: MIT */
#include "tune/internal.h"

#include "base/alloc.h"

#include <string.h>

void kp_kept_deinit(struct kept *k)
{
    kp_free(k->config);
    kp_free(k->text);
    kp_free(k->json);
    if (k->config || k->json) {
        kp_free((char *)(uintptr_t)k->r.message);
        kp_free((char *)(uintptr_t)k->r.log);
        kp_free((double *)(uintptr_t)k->r.times_ns);
    }
    memset(k, 0, sizeof(*k));
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters, each of them plain */
kopt_status kp_kept_set(struct kept *k, const kopt_result *r, const uint32_t *config,
                        size_t n_params, const char *text, const char *json, kopt_error *err)
{
    struct kept n = {.r = *r};
    n.config = kp_calloc(n_params ? n_params : 1, sizeof(*n.config));
    n.text = kp_strdup(text);
    n.json = kp_strdup(json);
    n.r.message = kp_strdup(r->message ? r->message : "");
    n.r.log = kp_strdup(r->log ? r->log : "");
    double *times = kp_calloc(r->n_times ? r->n_times : 1, sizeof(*times));
    n.r.times_ns = times;
    if (!n.config || !n.text || !n.json || !n.r.message || !n.r.log || !times) {
        kp_kept_deinit(&n);
        return kp_err_nomem(err);
    }
    if (config && n_params)
        memcpy(n.config, config, n_params * sizeof(*n.config));
    if (r->n_times && r->times_ns)
        memcpy(times, r->times_ns, r->n_times * sizeof(*times));
    else
        n.r.n_times = 0;
    n.r.config = n.json;
    kp_kept_deinit(k);
    *k = n;
    return KOPT_OK;
}

kopt_status kp_kept_copy(struct kept *to, const struct kept *from, size_t n_params,
                         kopt_error *err)
{
    return kp_kept_set(to, &from->r, from->config, n_params, from->text, from->json, err);
}
