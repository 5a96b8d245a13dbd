/* SPDX-License-Identifier: MIT */
#include "os/dl.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct kp_dl {
    void *handle;
    char *name;
};

enum { REASONS_MAX = 8192 };

/* RTLD_NODELETE: a driver that has started threads or registered exit handlers does not survive
 * being unmapped, so kp_dl_close() must not unmap it. */
static void *try_open(const char *name, struct kp_buf *reasons)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle)
        return handle;
    /* glibc keeps the text for each thread apart */
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe) */
    if (!why)
        why = "unknown reason";
    if (reasons->len)
        kp_buf_adds(reasons, "; ");
    /* The loader usually begins with the name itself. */
    size_t n = strlen(name);
    if (strncmp(why, name, n) == 0 && why[n] == ':')
        kp_buf_adds(reasons, why);
    else
        kp_buf_addf(reasons, "%s: %s", name, why);
    return NULL;
}

static kopt_status keep(void *handle, const char *name, struct kp_dl **out, kopt_error *err)
{
    struct kp_dl *d = kp_calloc(1, sizeof(*d));
    char *copy = kp_strdup(name);
    if (!d || !copy) {
        kp_free(d);
        kp_free(copy);
        (void)dlclose(handle);
        return kp_err_nomem(err);
    }
    d->handle = handle;
    d->name = copy;
    *out = d;
    return KOPT_OK;
}

kopt_status kp_dl_open(const char *const *names, size_t n_names, const char *env,
                       struct kp_dl **out, kopt_error *err)
{
    struct kp_buf reasons = KP_BUF_INIT(REASONS_MAX);
    *out = NULL;
    /* nothing in libkopt changes the environment */
    const char *forced = env ? getenv(env) : NULL; /* NOLINT(concurrency-mt-unsafe) */
    if (forced && forced[0]) {
        names = &forced;
        n_names = 1;
    } else {
        forced = NULL;
    }
    kopt_status st = KOPT_EENV;
    for (size_t i = 0; i < n_names; i++) {
        void *handle = try_open(names[i], &reasons);
        if (handle) {
            st = keep(handle, names[i], out, err);
            goto done;
        }
    }
    if (reasons.failed == KOPT_ENOMEM)
        st = kp_err_nomem(err);
    else
        (void)kp_err(err, st, "cannot open a shared library: %s%s%s%s", kp_buf_text(&reasons),
                     forced ? " (named by " : "", forced ? env : "", forced ? ")" : "");
done:
    kp_buf_deinit(&reasons);
    return st;
}

const char *kp_dl_name(const struct kp_dl *d)
{
    return d->name;
}

void *kp_dl_sym(const struct kp_dl *d, const char *symbol)
{
    return dlsym(d->handle, symbol);
}

_Bool kp_dl_get(const struct kp_dl *d, const char *symbol, void *function_pointer)
{
    void *p = kp_dl_sym(d, symbol);
    memcpy(function_pointer, &p, sizeof(p));
    return p != NULL;
}

void kp_dl_close(struct kp_dl *d)
{
    if (!d)
        return;
    (void)dlclose(d->handle);
    kp_free(d->name);
    kp_free(d);
}
