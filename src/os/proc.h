/* SPDX-License-Identifier: MIT */
/* Child processes that can be ended, and messages to and from them. Layer: os.
 *
 * A child leads a process group of its own, so that ending it ends what it started (`ld`,
 * `cicc`); it is told to die with its parent. It talks over one socket on descriptor 3, in
 * frames; its stdout and stderr go to a file that the parent may read. */
#ifndef KP_OS_PROC_H
#define KP_OS_PROC_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { KP_PROC_FD = 3 }; /* the child's end of the socket */

struct kp_proc {
    pid_t pid;        /* 0 = none */
    int fd;           /* the parent's end; -1 = none */
    bool stopped;     /* by kp_proc_pause() */
    struct kp_buf in; /* bytes received, not yet a whole frame */
};

struct kp_proc_options {
    const char *path;        /* the program */
    const char *const *argv; /* NULL-terminated, argv[0] included */
    const char *const
        *env; /* "NAME=value" added to the parent's, NULL-terminated; may be NULL */
    const char *output_path; /* where stdout and stderr go; NULL = /dev/null */
    const char *cwd;         /* NULL = the parent's */
    uint64_t max_bytes;      /* address space limit; 0 = none */
};

/* Errors: KOPT_EENV (cannot be executed: the system's reason), KOPT_EIO and KOPT_EFULL (the
 * output file, a socket), KOPT_ENOMEM. */
kopt_status kp_proc_start(const struct kp_proc_options *o, struct kp_proc *p, kopt_error *err);

/* End the whole group with SIGKILL and reap it; zeroes `p`. Safe on a zeroed one. */
void kp_proc_kill(struct kp_proc *p);
/* Stop and continue the whole group. */
void kp_proc_pause(struct kp_proc *p, bool stop);

/* Has it ended? Then *how is a text such as "signal 11 (SIGSEGV)" or "exit status 3", the group
 * is ended too, and `p` is zeroed. `how` has at least 64 bytes. In a program that ignores
 * SIGCHLD, or reaps all its children, the status is lost: *how says so. */
bool kp_proc_ended(struct kp_proc *p, char *how, size_t how_bytes);

/* Frames: a 4-byte little-endian length, then the bytes. */
enum { KP_FRAME_MAX = 256 << 20 };

/* Blocks. Errors: KOPT_EIO (the other side is gone), KOPT_ERANGE. */
kopt_status kp_frame_write(int fd, const void *bytes, size_t n, kopt_error *err);
/* Blocks until one whole frame is there; `out` is cleared first.
 * Errors: KOPT_EIO (closed), KOPT_ECORRUPT (length over KP_FRAME_MAX), KOPT_ENOMEM. */
kopt_status kp_frame_read(int fd, struct kp_buf *out, kopt_error *err);

/* Take what has arrived without blocking, then one whole frame if there is one (1), none yet
 * (0), the other side is gone (-1), or there is no memory for it here and the other side lives
 * on (KP_FRAME_NO_MEMORY). */
enum { KP_FRAME_NO_MEMORY = -3 };
int kp_proc_frame(struct kp_proc *p, struct kp_buf *out);

/* Wait until one of the processes has something to read or has closed its socket, a byte
 * arrives at `wake_fd` (-1: none), or `timeout_ms` (-1: for ever) is over. */
void kp_proc_wait(struct kp_proc *const *procs, size_t n, int wake_fd, int timeout_ms);

/* Is there something to read right now? False for -1. */
bool kp_readable(int fd);

/* The path of a helper program of ours: the environment variable KOPT_LIBEXEC, beside the
 * running library or program, or where it was installed. *out is the caller's. Errors:
 * KOPT_EENV (where it was looked for last), KOPT_ENOMEM. */
kopt_status kp_proc_find(const char *program, char **out, kopt_error *err);

/* Threads that can run at the same time here (the affinity mask counts). */
int kp_cpu_count(void);

#endif
