/* SPDX-License-Identifier: MIT */
/* Shared libraries opened at run time. Layer: os. */
#ifndef KP_OS_DL_H
#define KP_OS_DL_H

#include "base/error.h"

#include <stddef.h>

struct kp_dl;

/* The first of `names` that opens; the environment variable `env` (may be NULL), when set and
 * not empty, replaces them all. Errors: KOPT_EENV: which names were tried and the loader's
 * reason for each, in one line. KOPT_ENOMEM. */
kopt_status kp_dl_open(const char *const *names, size_t n_names, const char *env,
                       struct kp_dl **out, kopt_error *err);
/* The library's name or path as opened. */
const char *kp_dl_name(const struct kp_dl *d);
/* NULL when the symbol is not there. For functions see KP_DL_GET(). */
void *kp_dl_sym(const struct kp_dl *d, const char *symbol);
/* Give the handle back; `d` may be NULL. The code stays mapped until the process ends, since
 * drivers that have started threads do not survive being unloaded. */
void kp_dl_close(struct kp_dl *d);

/* ISO C has no cast from object to function pointer; POSIX promises the bits fit.
 * KP_DL_GET(dl, "cuInit", &table->init) -> bool */
#define KP_DL_GET(dl, symbol, fn) kp_dl_get((dl), (symbol), (void *)(fn))
_Bool kp_dl_get(const struct kp_dl *d, const char *symbol, void *function_pointer);

#endif
