/* SPDX-License-Identifier: MIT */
/* A libcuda and a libnvidia-ml for tests: device memory is host memory, launches compute
 * nothing, and any call can be told to fail. Tests reach the controls through the library
 * itself. */
#ifndef KOPT_TESTS_CUDA_STUB_H
#define KOPT_TESTS_CUDA_STUB_H

#include <stddef.h>

enum { CUDA_STUB_TRACE = 1 << 16, CUDA_STUB_PARAMS = 8 };

struct cuda_stub {
    int init_rc;
    int version;
    int n_devices;
    size_t memory_bytes; /* of the device; what is allocated goes off it */
    size_t used_bytes;
    int n_alive; /* contexts, streams, events, modules and buffers not given back */

    /* the `fail_at`-th call of the function by this name returns `fail_rc`; 0: none does */
    const char *fail_call;
    int fail_at;
    int fail_rc;
    int fault_rc; /* what waiting returns after a launch, once and for all; 0 = success */

    int max_dynamic; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    int static_shared;
    size_t n_params;
    size_t param_bytes[CUDA_STUB_PARAMS];
    unsigned char args[CUDA_STUB_PARAMS][16]; /* of the last launch, as far as known by size */

    unsigned long long found[4]; /* what a launch of kp_compare writes to its last argument */
    const char *pci_id;          /* the only one that NVML knows */

    char trace[CUDA_STUB_TRACE]; /* names of the calls that enqueue something or wait */
    size_t trace_len;
};

/* Exported as "cuda_stub". */
typedef struct cuda_stub *cuda_stub_fn(void);

#endif
