/* SPDX-License-Identifier: MIT */
/* What a measurement can come to, and what is known about one. */
#ifndef KOPT_TYPES_H
#define KOPT_TYPES_H

#include <kopt/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* id, name as stored and printed, meaning */
#define KOPT_OUTCOME_MAP(X)                                                                \
    X(KOPT_OUT_OK, 0, "ok", "ran, and its results are right")                              \
    X(KOPT_OUT_COMPILE_ERROR, 1, "compile_error", "the compiler refused it")               \
    X(KOPT_OUT_COMPILE_TIMEOUT, 2, "compile_timeout", "the compiler did not end in time")  \
    X(KOPT_OUT_LAUNCH_ERROR, 3, "launch_error", "the driver refused to load or launch it") \
    X(KOPT_OUT_DEVICE_LIMIT, 4, "device_limit", "it needs more than the device has")       \
    X(KOPT_OUT_CRASH, 5, "crash", "it ended the process that compiled or ran it")          \
    X(KOPT_OUT_HANG, 6, "hang", "it did not end in time")                                  \
    X(KOPT_OUT_WRONG, 7, "wrong", "its results differ from the reference")                 \
    X(KOPT_OUT_UNSTEADY, 8, "unsteady", "its results differ from launch to launch")        \
    X(KOPT_OUT_BAD_TIME, 9, "bad_time", "the device's clock gave no positive time")        \
    X(KOPT_OUT_INTERRUPTED, 10, "interrupted", "started, and never heard of again")

typedef enum kopt_outcome {
#define X(id, value, name, text) id = (value),
    KOPT_OUTCOME_MAP(X)
#undef X
        KOPT_OUT_COUNT
} kopt_outcome;

/* "compile_error"; never NULL. */
KOPT_API const char *kopt_outcome_name(kopt_outcome o);
/* One line on what it means; never NULL. */
KOPT_API const char *kopt_outcome_text(kopt_outcome o);

/* bit of kopt_result.throttle, name as stored and printed, meaning */
#define KOPT_THROTTLE_MAP(X)                                                                \
    X(KOPT_THROTTLE_APP_CLOCKS, 0x2, "app_clocks", "somebody has set the clocks")           \
    X(KOPT_THROTTLE_POWER_CAP, 0x4, "power_cap", "it was at its limit of power")            \
    X(KOPT_THROTTLE_HW_SLOWDOWN, 0x8, "hw_slowdown", "its hardware slowed it down")         \
    X(KOPT_THROTTLE_SYNC_BOOST, 0x10, "sync_boost", "another device of its group was slow") \
    X(KOPT_THROTTLE_SW_THERMAL, 0x20, "sw_thermal", "it was near its limit of temperature") \
    X(KOPT_THROTTLE_HW_THERMAL, 0x40, "hw_thermal", "it was too hot")                       \
    X(KOPT_THROTTLE_POWER_BRAKE, 0x80, "power_brake", "its supply asked for less power")    \
    X(KOPT_THROTTLE_DISPLAY, 0x100, "display", "a display sets its clocks")

typedef enum kopt_throttle {
#define X(id, value, name, text) id = (value),
    KOPT_THROTTLE_MAP(X)
#undef X
} kopt_throttle;

/* One configuration's measurement. Strings are borrowed from whoever gave the struct and may be
 * "". Times are nanoseconds; NaN = not known. */
typedef struct kopt_result {
    int64_t id;         /* in the store; 0 = not stored */
    const char *config; /* {"BM":64,"BN":32}, the names sorted */
    kopt_outcome outcome;
    const char *message; /* one line: why it is not ok; compiler's first error, numbers.. */
    const char *log;     /* the compiler's or process's output, several lines, cut at 16 KiB */
    const double *times_ns; /* every sample, in the order they were taken */
    uint32_t n_times;
    double median_ns; /* NaN unless ok */
    double low_ns;    /* 95 % confidence interval of the median */
    double high_ns;
    int dropped;       /* 1: clearly worse than the best after few samples */
    int from_store;    /* 1: an earlier run measured it */
    int race;          /* 1: from the final, interleaved race */
    double compile_ns; /* wall time, pauses left out */
    double device_ns;  /* wall time in the runner: copies, launches, checks; of a hang what it
                          was given after its last step that ended */
    int64_t registers; /* of a thread; -1 = not known, as are the next two */
    int64_t shared_bytes;
    int64_t local_bytes;
    double max_error; /* largest |got - reference|; NaN = nothing was compared */
    double power_w;   /* mean while it was timed where the device counts energy, else of the
                         moment after; NaN = not known, as are the next three. Sensors are read
                         once a second at most, and for each configuration in the final race */
    double energy_j; /* of one launch, from the device's counter: over a second of them or more,
                        in a race back to back between two of its steps 0.15 s apart or more */
    double sm_mhz;
    double temp_c;
    int64_t wall_us;  /* when it ended; microseconds since 1970, UTC; 0 = not known */
    int64_t throttle; /* what held the clocks down when the sensors were read: the driver's
                         bits, of which kopt_throttle names some; 0 = nothing, -1 = not known */
} kopt_result;

/* One name and value of a configuration or problem as they are stored: {"BM":64,"BN":32}.
 * Borrowed from the text, not terminated. */
typedef struct kopt_pair {
    const char *name;
    size_t name_bytes;
    const char *value; /* without quotes; escapes are left as they are */
    size_t value_bytes;
    int quoted; /* 1: a string */
} kopt_pair;

/* The next pair. *at: the text at first, then what this function left there. Returns 0 at the
 * end and where the text is no flat object. */
KOPT_API int kopt_pair_next(const char **at, kopt_pair *pair);

/* "BM=64,BN=32" of such a text; truncated to fit, always terminated; returns the length it
 * wants. */
KOPT_API size_t kopt_pairs_text(const char *json, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
