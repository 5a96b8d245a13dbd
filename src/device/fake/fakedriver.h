/* SPDX-License-Identifier: MIT */
/* The interface of a driver that does not exist: what `libkopt_fakedriver.so` exports. Layer:
 * device.
 *
 * It stands for a vendor's library: the back end knows it by its symbols and its version alone.
 * What the driver does with a kernel is written in the kernel's source; README.md lists it.
 * Every function may be called from one thread at a time and returns an fk_status unless it
 * says otherwise. */
#ifndef KP_DEVICE_FAKE_FAKEDRIVER_H
#define KP_DEVICE_FAKE_FAKEDRIVER_H

#include <stddef.h>
#include <stdint.h>

/* Raised when a signature changes; the back end refuses older ones. */
enum { FK_VERSION = 2 };

enum fk_status {
    FK_OK,
    FK_NO_MEMORY,  /* of the host */
    FK_FULL,       /* of the device */
    FK_BAD_SOURCE, /* the compiler's messages say why */
    FK_BAD_IMAGE,
    FK_NO_KERNEL, /* the image has no such entry */
    FK_BAD_ARGUMENT,
    FK_LAUNCH, /* the launch was refused */
    FK_LOST,   /* the device is gone */
    FK_FAILED  /* because KOPT_FAKE_FAIL asked for it */
};

struct fk_driver;
struct fk_device;
struct fk_memory;
struct fk_module;

struct fk_info {
    char name[64];
    int is_cpu;
    int64_t max_threads;
    int64_t max_block[3];
    int64_t shared_bytes;
    int64_t registers;
    int64_t warp;
    int64_t compute_units;
    int64_t l2_bytes;
    int64_t global_bytes;
    int64_t clock_khz;
};

struct fk_source {
    const char *text; /* `bytes` of them */
    size_t bytes;
    const char *path; /* for messages and as the folder of includes */
    const char *entry;
    const char *const *macros; /* "NAME=VALUE" */
    size_t n_macros;
};

/* Called with pieces of a text; returns 0 when it has no more room. */
struct fk_sink {
    int (*put)(void *user, const char *bytes, size_t n);
    void *user;
};

enum fk_arg_kind { FK_ARG_VALUE, FK_ARG_MEMORY, FK_ARG_SHARED };

struct fk_arg {
    enum fk_arg_kind kind;
    const void *value;
    size_t bytes;
    struct fk_memory *memory;
};

struct fk_module_info {
    int64_t registers;
    int64_t shared_bytes;
    int64_t local_bytes;
    int64_t max_threads;
};

struct fk_sensors {
    double power_w;
    double energy_j;
    double temp_c;
    double core_mhz;
    double memory_mhz;
    uint64_t throttle;
};

/* The table of symbols: X(result, name, arguments). A driver without a required one is refused.
 */
#define FK_REQUIRED(X)                                                                       \
    X(int, fk_open, (struct fk_driver * *out))                                               \
    X(void, fk_close, (struct fk_driver * d))                                                \
    X(int, fk_device_count, (const struct fk_driver *d))                                     \
    X(int, fk_device_info, (const struct fk_driver *d, int index, struct fk_info *out))      \
    X(int, fk_compile,                                                                       \
      (const struct fk_source *source, const struct fk_sink *image,                          \
       const struct fk_sink *log))                                                           \
    X(int, fk_device_open, (struct fk_driver * d, int index, struct fk_device **out))        \
    X(void, fk_device_close, (struct fk_device * d))                                         \
    X(int, fk_alloc, (struct fk_device * d, size_t bytes, struct fk_memory * *out))          \
    X(void, fk_free, (struct fk_device * d, struct fk_memory * m))                           \
    X(int, fk_write,                                                                         \
      (struct fk_device * d, struct fk_memory * m, size_t at, const void *src, size_t n))    \
    X(int, fk_read,                                                                          \
      (struct fk_device * d, const struct fk_memory *m, size_t at, void *dst, size_t n))     \
    X(int, fk_fill, (struct fk_device * d, struct fk_memory * m, unsigned char byte))        \
    X(int, fk_copy,                                                                          \
      (struct fk_device * d, struct fk_memory * dst, const struct fk_memory *src))           \
    X(int, fk_load,                                                                          \
      (struct fk_device * d, const void *image, size_t bytes, const char *entry,             \
       struct fk_module **out))                                                              \
    X(void, fk_unload, (struct fk_device * d, struct fk_module * m))                         \
    X(int, fk_module_info, (const struct fk_module *m, struct fk_module_info *out))          \
    X(int, fk_launch,                                                                        \
      (struct fk_device * d, struct fk_module * m, const struct fk_arg *args, size_t n_args, \
       double *time_ns))

/* May be missing: then the back end reports what it would have said as unknown. */
#define FK_OPTIONAL(X)                                                       \
    X(int, fk_memory_info,                                                   \
      (struct fk_device * d, uint64_t * free_bytes, uint64_t * total_bytes)) \
    X(int, fk_read_sensors, (struct fk_device * d, struct fk_sensors * out)) \
    X(int, fk_flush, (struct fk_device * d, size_t bytes))                   \
    X(int, fk_compiler_version, (const struct fk_driver *d))                 \
    X(const char *, fk_status_text, (int status))

/* Not in the tables, since it decides how they are to be read. */
__attribute__((visibility("default"))) int fk_version(void);

#endif
