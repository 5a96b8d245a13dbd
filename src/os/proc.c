/* SPDX-License-Identifier: MIT */
/* Own code rather than libuv: a child here needs a parent-death signal, a process group, limits
 * and pausing, which libuv's spawn does not offer, and a caller with an event loop of its own
 * should not have to run ours. */
#include "os/proc.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEND_TIMEOUT_S = 60, FREE_FD = 10 };

/* --- starting --------------------------------------------------------------------------------
 */

struct child {
    const struct kp_proc_options *o;
    char **envp;
    int socket;
    int report; /* errno of a failed exec goes here; closed by a good one */
    int output;
    pid_t parent;
};

/* Only async-signal-safe calls: the parent may have threads. */
static _Noreturn void run_child(const struct child *c)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C is the parent's business */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->parent)
        _exit(127);
    if (c->o->max_bytes) {
        struct rlimit lim = {c->o->max_bytes, c->o->max_bytes};
        (void)setrlimit(RLIMIT_AS, &lim);
    }
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_RDONLY);
    /* Out of the way of 0 to 3 first: a parent without stdin may have been given those. */
    int sock = fcntl(c->socket, F_DUPFD_CLOEXEC, FREE_FD);
    int report = fcntl(c->report, F_DUPFD_CLOEXEC, FREE_FD);
    int output = fcntl(c->output, F_DUPFD_CLOEXEC, FREE_FD);
    int ok = null >= 0 && sock >= 0 && report >= 0 && output >= 0 && dup2(null, 0) == 0 &&
             dup2(output, 1) == 1 && dup2(output, 2) == 2 &&
             dup2(sock, KP_PROC_FD) == KP_PROC_FD;
    int e = ok ? 0 : errno == EINVAL ? EMFILE : errno; /* fcntl's word for too many */
    /* What the parent's other parts left open is none of the child's business. */
    (void)close_range(KP_PROC_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    if (ok) {
        /* execve promises not to change them */
        if (!c->o->cwd || chdir(c->o->cwd) == 0)
            /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
            (void)execve(c->o->path, (char *const *)(uintptr_t)c->o->argv, c->envp);
        e = errno;
    }
    (void)!write(report >= 0 ? report : c->report, &e, sizeof(e));
    _exit(127);
}

static bool name_is(const char *entry, const char *setting)
{
    size_t n = strcspn(setting, "=");
    return strncmp(entry, setting, n) == 0 && entry[n] == '=';
}

/* The parent's environment with the settings of `add` in place of those of the same name. */
static char **merge_env(const char *const *add)
{
    size_t n = 0;
    size_t n_add = 0;
    while (environ[n])
        n++;
    while (add && add[n_add])
        n_add++;
    char **all = kp_calloc(n + n_add + 1, sizeof(*all));
    if (!all)
        return NULL;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (size_t j = 0; j < n_add; j++)
            replaced = replaced || name_is(environ[i], add[j]);
        if (!replaced)
            all[k++] = environ[i];
    }
    for (size_t j = 0; j < n_add; j++)
        all[k++] = (char *)(uintptr_t)add[j]; /* NOLINT(performance-no-int-to-ptr): read only */
    return all;
}

/* What the parent needs before there is a child. */
static kopt_status open_channels(const char *output_path, int *output, int sockets[2],
                                 int report[2], kopt_error *err)
{
    const char *what = output_path;
    *output = open(output_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (*output >= 0) {
        what = "a connection to a process";
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0 &&
            pipe2(report, O_CLOEXEC) == 0)
            return KOPT_OK;
    }
    int e = errno;
    return kp_err(err, e == ENOSPC || e == EDQUOT ? KOPT_EFULL : KOPT_EIO, "cannot open %s: %s",
                  what, strerrordesc_np(e));
}

static kopt_status start_failed(const char *path, int e, kopt_error *err)
{
    return kp_err(err, KOPT_EENV, "cannot run %s: %s", path, strerrordesc_np(e));
}

/* The errno of a failed exec, 0 when it went well. */
static int exec_report(int fd)
{
    int e = 0;
    ssize_t n;
    do {
        n = read(fd, &e, sizeof(e));
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(e) ? e : 0;
}

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            (void)close(pair[i]);
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

kopt_status kp_proc_start(const struct kp_proc_options *o, struct kp_proc *p, kopt_error *err)
{
    *p = (struct kp_proc){.fd = -1, .in = KP_BUF_INIT((size_t)KP_FRAME_MAX + 4)};
    int sockets[2] = {-1, -1};
    int report[2] = {-1, -1};
    int output = -1;
    char **envp = merge_env(o->env);
    kopt_status st = envp ? open_channels(o->output_path ? o->output_path : "/dev/null",
                                          &output, sockets, report, err)
                          : kp_err_nomem(err);
    if (st != KOPT_OK)
        goto done;
    /* A child that does not read must not hold its parent up for ever. */
    struct timeval limit = {.tv_sec = SEND_TIMEOUT_S};
    (void)setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    struct child c = {o, envp, sockets[1], report[1], output, getpid()};
    pid_t pid = fork();
    if (pid < 0) {
        st = start_failed(o->path, errno, err);
        goto done;
    }
    if (pid == 0)
        run_child(&c);
    (void)setpgid(pid, pid); /* both sides do it: whoever is first */
    (void)close(report[1]);
    report[1] = -1;
    int e = exec_report(report[0]);
    if (e != 0) {
        reap(pid);
        st = start_failed(o->path, e, err);
        goto done;
    }
    p->pid = pid;
    p->fd = sockets[0];
    sockets[0] = -1;
done:
    if (output >= 0)
        (void)close(output);
    close_pair(sockets);
    close_pair(report);
    kp_free(envp);
    return st;
}

/* --- ending ----------------------------------------------------------------------------------
 */

static void forget(struct kp_proc *p)
{
    if (p->fd >= 0 && p->pid)
        (void)close(p->fd);
    kp_buf_deinit(&p->in);
    *p = (struct kp_proc){.fd = -1};
}

void kp_proc_kill(struct kp_proc *p)
{
    if (p->pid > 0) {
        (void)kill(-p->pid, SIGKILL);
        reap(p->pid);
        forget(p);
    }
}

void kp_proc_pause(struct kp_proc *p, bool stop)
{
    if (p->pid > 0 && p->stopped != stop) {
        (void)kill(-p->pid, stop ? SIGSTOP : SIGCONT);
        p->stopped = stop;
    }
}

bool kp_proc_ended(struct kp_proc *p, char *how, size_t how_bytes)
{
    if (p->pid <= 0)
        return true;
    siginfo_t info = {0};
    int rc = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (rc != 0 && errno == ECHILD) {
        (void)snprintf(how, how_bytes, "ended, its status was taken by somebody else");
        forget(p); /* its number may be another process's by now */
        return true;
    }
    if (rc != 0 || info.si_pid == 0)
        return false;
    if (info.si_code == CLD_EXITED) {
        (void)snprintf(how, how_bytes, "exit status %d", info.si_status);
    } else {
        const char *name = sigabbrev_np(info.si_status);
        (void)snprintf(how, how_bytes, "signal %d (SIG%s)", info.si_status, name ? name : "?");
    }
    kp_proc_kill(p); /* what it started ends, too; reaps it */
    return true;
}

/* --- frames ----------------------------------------------------------------------------------
 */

static kopt_status send_all(int fd, const unsigned char *b, size_t n, kopt_error *err)
{
    while (n) {
        ssize_t k = send(fd, b, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return kp_err(err, KOPT_EIO, "worker process is gone: %s", strerrordesc_np(errno));
        b += k;
        n -= (size_t)k;
    }
    return KOPT_OK;
}

kopt_status kp_frame_write(int fd, const void *bytes, size_t n, kopt_error *err)
{
    if (n > KP_FRAME_MAX)
        return kp_err(err, KOPT_ERANGE, "message of %zu bytes", n);
    unsigned char head[4];
    for (int i = 0; i < 4; i++)
        head[i] = (unsigned char)(n >> (8 * i));
    kopt_status st = send_all(fd, head, sizeof(head), err);
    return st == KOPT_OK ? send_all(fd, bytes, n, err) : st;
}

static size_t frame_length(const unsigned char *head)
{
    return (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 |
           (size_t)head[3] << 24;
}

static kopt_status recv_all(int fd, unsigned char *b, size_t n, kopt_error *err)
{
    while (n) {
        ssize_t k = recv(fd, b, n, 0);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return kp_err(err, KOPT_EIO, "the other process is gone");
        b += k;
        n -= (size_t)k;
    }
    return KOPT_OK;
}

kopt_status kp_frame_read(int fd, struct kp_buf *out, kopt_error *err)
{
    kp_buf_clear(out);
    unsigned char head[4];
    kopt_status st = recv_all(fd, head, sizeof(head), err);
    if (st != KOPT_OK)
        return st;
    size_t n = frame_length(head);
    if (n > KP_FRAME_MAX)
        return kp_err(err, KOPT_ECORRUPT, "message of %zu bytes announced", n);
    if (!kp_buf_reserve(out, n))
        return kp_buf_status(out, err);
    st = recv_all(fd, out->ptr, n, err);
    if (st == KOPT_OK) {
        out->len = n;
        out->ptr[n] = 0;
    }
    return st;
}

/* Whatever has arrived and has room goes into p->in: 0, -1 when the other side is gone, or
 * KP_FRAME_NO_MEMORY. */
static int receive(struct kp_proc *p)
{
    p->in.failed = KOPT_OK; /* there may be memory again */
    for (;;) {
        size_t room = p->in.max - p->in.len;
        if (room == 0)
            return 0; /* a whole frame is there */
        if (!kp_buf_reserve(&p->in, room < 65536 ? room : 65536))
            return KP_FRAME_NO_MEMORY;
        size_t take = p->in.cap - p->in.len - 1;
        ssize_t k = recv(p->fd, p->in.ptr + p->in.len, take < room ? take : room, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        if (k == 0)
            return -1;
        p->in.len += (size_t)k;
    }
}

int kp_proc_frame(struct kp_proc *p, struct kp_buf *out)
{
    if (p->pid <= 0)
        return -1;
    kp_buf_clear(out);
    int none = receive(p);
    if (p->in.len < 4)
        return none;
    size_t n = frame_length(p->in.ptr);
    if (n > KP_FRAME_MAX)
        return -1;
    if (p->in.len - 4 < n)
        return none;
    kp_buf_add(out, p->in.ptr + 4, n);
    if (out->failed != KOPT_OK)
        return KP_FRAME_NO_MEMORY; /* it is kept for the next call */
    memmove(p->in.ptr, p->in.ptr + 4 + n, p->in.len - 4 - n);
    p->in.len -= 4 + n;
    return 1;
}

static bool has_whole_frame(const struct kp_proc *p)
{
    return p->in.len >= 4 && p->in.len - 4 >= frame_length(p->in.ptr);
}

void kp_proc_wait(struct kp_proc *const *procs, size_t n, int wake_fd, int timeout_ms)
{
    enum { MAX = 512 };
    struct pollfd fds[MAX];
    nfds_t k = 0;
    for (size_t i = 0; i < n && k < MAX - 1; i++) {
        if (procs[i]->pid <= 0)
            continue;
        if (has_whole_frame(procs[i]))
            return;
        fds[k++] = (struct pollfd){.fd = procs[i]->fd, .events = POLLIN};
    }
    if (wake_fd >= 0)
        fds[k++] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    (void)poll(fds, k, timeout_ms); /* EINTR: the caller looks again */
}

bool kp_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* --- finding ---------------------------------------------------------------------------------
 */

#ifndef KOPT_LIBEXECDIR
#    define KOPT_LIBEXECDIR "/usr/local/libexec/kopt"
#endif

static char *candidate(const char *dir, const char *sub, const char *program)
{
    char *a = kp_path_join(dir, sub);
    char *b = a ? kp_path_join(a, program) : NULL;
    kp_free(a);
    return b;
}

static bool runnable(const char *path)
{
    return path && access(path, X_OK) == 0;
}

/* Looks in and around the folder of `file` (a program or library of ours). */
static char *find_near(const char *file, const char *program)
{
    static const char *const subs[] = {"../libexec/kopt", "libexec/kopt", "../../libexec/kopt",
                                       "."};
    char *dir = kp_path_dir(file);
    char *found = NULL;
    for (size_t i = 0; dir && i < sizeof(subs) / sizeof(subs[0]) && !found; i++) {
        char *path = candidate(dir, subs[i], program);
        if (runnable(path))
            found = path;
        else
            kp_free(path);
    }
    kp_free(dir);
    return found;
}

static char *find_beside_us(const char *program)
{
    static const int here = 0; /* an address inside this library or program */
    Dl_info info;
    char *found = NULL;
    char *self = NULL;
    if (dladdr(&here, &info) != 0 && info.dli_fname)
        self = realpath(info.dli_fname, NULL);
    if (self)
        found = find_near(self, program);
    free(self); /* realpath's own malloc */
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (!found && n > 0) {
        exe[n] = 0;
        found = find_near(exe, program);
    }
    return found;
}

kopt_status kp_proc_find(const char *program, char **out, kopt_error *err)
{
    const char *env =
        getenv("KOPT_LIBEXEC"); /* NOLINT(concurrency-mt-unsafe): never set by us */
    char *found = NULL;
    *out = NULL;
    if (env && env[0])
        found = kp_path_join(env, program);
    else
        found = find_beside_us(program);
    if (!found && !(env && env[0]))
        found = kp_path_join(KOPT_LIBEXECDIR, program);
    if (!found)
        return kp_err_nomem(err);
    if (!runnable(found)) {
        kopt_status st = kp_err(err, KOPT_EENV, "cannot find the helper program %s: %s: %s",
                                program, found, strerrordesc_np(errno));
        if (env && env[0])
            kp_err_hint(err, "KOPT_LIBEXEC names that folder: correct it, or unset it");
        else
            kp_err_hint(err, "set KOPT_LIBEXEC to the folder it is in");
        kp_free(found);
        return st;
    }
    *out = found;
    return KOPT_OK;
}

int kp_cpu_count(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}
