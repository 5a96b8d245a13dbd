/* SPDX-License-Identifier: MIT */
/* Inside the fake driver's shared object. Layer: device. */
#ifndef KP_DEVICE_FAKE_DRIVER_H
#define KP_DEVICE_FAKE_DRIVER_H

#include "device/fake/script.h"

#define FK_EXPORT __attribute__((visibility("default")))

#define X(result, name, args) FK_EXPORT result name args;
FK_REQUIRED(X)
FK_OPTIONAL(X)
#undef X

enum { FK_MAX_DEVICES = 16 };

struct fk_driver {
    int n_devices;
    bool is_cpu;
    int64_t global_bytes;
    char fail[FK_TEXT];  /* KOPT_FAKE_FAIL: names of functions that fail */
    char state[FK_TEXT]; /* KOPT_FAKE_STATE: the file that says a device is gone; "" = none */
    char trace[FK_TEXT]; /* KOPT_FAKE_TRACE: the file that gets a line for each launch */
    bool lost[FK_MAX_DEVICES];
};

struct fk_device {
    struct fk_driver *driver;
    int index;
    struct fk_memory *first; /* allocations, the oldest first */
    struct fk_memory *last;
    uint64_t used_bytes;
    uint64_t n_launches;
    size_t flushed; /* bytes of cache emptied since the last launch */
    double energy_j;
};

struct fk_memory {
    struct fk_memory *next;
    struct fk_memory *prev;
    size_t bytes;
    unsigned char data[];
};

struct fk_module {
    struct fk_script *script;
    struct fk_effect effect;
    uint64_t n_launches;
    uint64_t first_content; /* hash of the outputs before the first launch */
    char **macros;
    size_t n_macros;
};

/* Has the user asked for this function to fail? */
bool fk_must_fail(const struct fk_driver *d, const char *function);
/* Is the device gone? Looks at the state file, too. */
bool fk_is_lost(struct fk_driver *d, int index);
void fk_lose(struct fk_driver *d, int index);
void fk_sleep_ns(double ns);

#endif
