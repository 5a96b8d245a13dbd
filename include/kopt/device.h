/* SPDX-License-Identifier: MIT */
/* The devices kopt can use here, and what is missing for the others. */
#ifndef KOPT_DEVICE_H
#define KOPT_DEVICE_H

#include <kopt/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are borrowed, valid during the call that hands the struct over. Sizes in bytes,
 * 0 = not known. */
typedef struct kopt_device_info {
    const char *id;      /* what --device takes: "cuda:0", "opencl:1" */
    const char *backend; /* "cuda", "opencl", "fake" */
    const char *name;    /* "NVIDIA H200" */
    const char *arch;    /* "sm_90" */
    const char *driver;
    const char *compiler;
    int is_cpu;
    int64_t max_threads;  /* work-items of a group */
    int64_t shared_bytes; /* local memory of a group */
    int64_t compute_units;
    int64_t l2_bytes;
    int64_t global_bytes;
    int64_t clock_khz;
} kopt_device_info;

typedef struct kopt_device_missing {
    const char *backend;
    const char *reason; /* one line: which library, and the loader's word on it */
    const char *hint;   /* one line: what to install */
} kopt_device_missing;

typedef struct kopt_device_visitor {
    void (*found)(void *user, const kopt_device_info *info);
    void (*missing)(void *user, const kopt_device_missing *missing); /* may be NULL */
    void *user;
} kopt_device_visitor;

/* Every device of every backend (the fake one only with KOPT_FAKE_LIBRARY set). The drivers are
 * opened in a process of their own, so that one that crashes or hangs is reported as missing.
 * Errors: KOPT_EENV (the helper program is not there: then nothing is handed over),
 * KOPT_ENOMEM. Blocks: up to 30 s for each backend. */
KOPT_API KOPT_MUST_USE kopt_status kopt_devices(const kopt_device_visitor *visitor,
                                                kopt_error *err);

#ifdef __cplusplus
}
#endif
#endif
