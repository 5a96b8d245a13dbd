/* SPDX-License-Identifier: MIT */
/* Status codes of libkopt and the error object that goes with them. */
#ifndef KOPT_STATUS_H
#define KOPT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define KOPT_API      __attribute__((visibility("default")))
#define KOPT_MUST_USE __attribute__((warn_unused_result))

/* name, value, text. The values are stable; new ones are added at the end. */
#define KOPT_STATUS_MAP(X)                                \
    X(KOPT_OK, 0, "success")                              \
    X(KOPT_ENOMEM, -1, "out of memory")                   \
    X(KOPT_EIO, -2, "input/output error")                 \
    X(KOPT_ERANGE, -3, "value out of range")              \
    X(KOPT_EDEVICE, -4, "device or driver error")         \
    X(KOPT_EINPUT, -5, "invalid input file")              \
    X(KOPT_EUSAGE, -6, "invalid argument")                \
    X(KOPT_EENV, -7, "missing device, driver or program") \
    X(KOPT_ENOTFOUND, -8, "not found")                    \
    X(KOPT_EBUSY, -9, "locked by another process")        \
    X(KOPT_ECORRUPT, -10, "corrupt data")                 \
    X(KOPT_ETIMEOUT, -11, "time limit reached")           \
    X(KOPT_EINTR, -12, "interrupted")                     \
    X(KOPT_EFULL, -13, "no space left")                   \
    X(KOPT_ECRASH, -14, "a worker process died")          \
    X(KOPT_EFAILED, -15, "the work failed")

typedef enum kopt_status {
#define X(name, value, text) name = (value),
    KOPT_STATUS_MAP(X)
#undef X
} kopt_status;

/* Filled by the function that fails; never allocated, so it cannot fail itself. */
typedef struct kopt_error {
    kopt_status code;
    int line;           /* 1-based position in the user's input; 0 when there is none */
    int column;         /* 1-based, in code points; 0 when there is none */
    char file[256];     /* the input the position is in; "" when there is none */
    char message[1024]; /* UTF-8, one line, no trailing newline, never empty on error */
    char hint[256];     /* what the user can do about it; "" when nothing is known */
    char excerpt[256];  /* the source line at `line`, or a part of it; "" when there is none */
    int excerpt_column; /* 1-based column of the excerpt's first character */
} kopt_error;

/* The constant English text of a status code; never NULL. */
KOPT_API const char *kopt_status_text(kopt_status code);

/* The library's version, "major.minor.patch". */
KOPT_API const char *kopt_version(void);

#ifdef __cplusplus
}
#endif
#endif
