/* SPDX-License-Identifier: MIT */
/* Kernel files and the spaces they describe. docs/language.md has the language. */
#ifndef KOPT_SPACE_H
#define KOPT_SPACE_H

#include <kopt/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kopt_kernel kopt_kernel;
typedef struct kopt_space kopt_space;

/* Read a kernel file (CUDA C, OpenCL C with `#pragma kopt` lines) or a T1 JSON file.
 * Owner: kopt_kernel_free(). Errors: KOPT_EIO, KOPT_EINPUT (the file; line, column and excerpt
 * where it is about a place in it), KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_kernel_load(const char *path, kopt_kernel **out,
                                                    kopt_error *err);
KOPT_API void kopt_kernel_free(kopt_kernel *k);
KOPT_API const char *kopt_kernel_name(const kopt_kernel *k);
/* "opencl" or "cuda". */
KOPT_API const char *kopt_kernel_language(const kopt_kernel *k);
KOPT_API size_t kopt_kernel_n_problem(const kopt_kernel *k);
KOPT_API const char *kopt_kernel_problem_name(const kopt_kernel *k, size_t i);
/* 1 and *value when the file gives this size a default. */
KOPT_API int kopt_kernel_problem_default(const kopt_kernel *k, size_t i, int64_t *value);

/* The space of a kernel for one problem and device.
 * problem: texts "M=512"; "BM=32,64" narrows a parameter. device: an id of kopt_devices(), or
 * NULL for the first that fits the language; rules that use device.* need one.
 * The kernel must outlive the space. Owner: kopt_space_free().
 * Errors: KOPT_EUSAGE (a name missing, unknown or not positive; see hint), KOPT_EENV (no such
 * device), KOPT_ERANGE (too large to represent), KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_space_new(const kopt_kernel *k,
                                                  const char *const *problem, size_t n_problem,
                                                  const char *device, kopt_space **out,
                                                  kopt_error *err);
/* The same without a device: the numbers that its rules use are given by hand,
 * "max_threads=1024,shared_bytes=49152" (the names behind `device.`). All are at least 1 but
 * l2_bytes, clock_khz and cc, where 0 means not known.
 * Errors also: KOPT_EUSAGE (a name unknown, a number too small, or one that a rule uses is
 * missing; see hint). */
KOPT_API KOPT_MUST_USE kopt_status kopt_space_new_limits(const kopt_kernel *k,
                                                         const char *const *problem,
                                                         size_t n_problem, const char *limits,
                                                         kopt_space **out, kopt_error *err);
KOPT_API void kopt_space_free(kopt_space *s);
/* {"K":512,"M":512}; borrowed from the space. */
KOPT_API const char *kopt_space_problem(const kopt_space *s);

/* The product of the value counts, and how many of these satisfy every rule. */
KOPT_API double kopt_space_cartesian(const kopt_space *s);
KOPT_API uint64_t kopt_space_count(const kopt_space *s);

KOPT_API size_t kopt_space_n_params(const kopt_space *s);
KOPT_API const char *kopt_space_param_name(const kopt_space *s, size_t i);
KOPT_API size_t kopt_space_n_values(const kopt_space *s, size_t i);
/* Value `value` of parameter `i` as text, "64"; truncated to fit, always terminated; returns
 * the length it wants. */
KOPT_API size_t kopt_space_value(const kopt_space *s, size_t i, size_t value, char *out,
                                 size_t bytes);

/* A configuration is one value index for each parameter. `config` has room for n_params. */
/* Valid configuration number `rank` (0 .. count-1). Errors: KOPT_ERANGE. */
KOPT_API KOPT_MUST_USE kopt_status kopt_space_at(const kopt_space *s, uint64_t rank,
                                                 uint32_t *config, kopt_error *err);
/* n configurations, uniform over the valid ones, independent of each other;
 * config[n][n_params]. Errors: KOPT_EFAILED (the space is empty). */
KOPT_API KOPT_MUST_USE kopt_status kopt_space_sample(const kopt_space *s, uint64_t seed,
                                                     size_t n, uint32_t *config,
                                                     kopt_error *err);
/* From "BM=64,BN=32" (every parameter, any order, comma or space between).
 * Errors: KOPT_EUSAGE (unknown name or value, one missing). */
KOPT_API KOPT_MUST_USE kopt_status kopt_space_config(const kopt_space *s, const char *text,
                                                     uint32_t *config, kopt_error *err);
/* "BM=64,BN=32"; truncated to fit, always terminated; returns the length it wants; "" where an
 * index is out of range. */
KOPT_API size_t kopt_space_config_text(const kopt_space *s, const uint32_t *config, char *out,
                                       size_t bytes);
/* The same as a JSON object with sorted names. */
KOPT_API size_t kopt_space_config_json(const kopt_space *s, const uint32_t *config, char *out,
                                       size_t bytes);

typedef struct kopt_rule_info {
    const char *text;    /* as written */
    const char *message; /* "" = none */
    int line;
    uint64_t alone;   /* candidates that this rule alone removes; UINT64_MAX = more than fit */
    uint64_t in_turn; /* removed by it after the rules above it */
    int emptied;      /* 1: after this rule nothing was left */
} kopt_rule_info;

/* Every rule in file order. Errors: KOPT_ERANGE (the space is too large for exact numbers). */
KOPT_API KOPT_MUST_USE kopt_status kopt_space_explain(const kopt_space *s,
                                                      void (*visit)(void *user,
                                                                    const kopt_rule_info *r),
                                                      void *user, kopt_error *err);

/* Is this configuration valid? 1 yes; 0 no, and `why` (may be NULL, bytes long) gets the rule
 * and its reason in one line. */
KOPT_API int kopt_space_valid(const kopt_space *s, const uint32_t *config, char *why,
                              size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
