/* SPDX-License-Identifier: MIT */
#include "store/owner.h"

#include "base/buf.h"
#include "os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STAT_BYTES_MAX = 4096, HOST_BYTES = 256 };

static const char format[] = "{\"pid\":%" PRId64 ",\"started\":%" PRIu64 "}";

static const char start_format[] =
    ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
    " %*s %*s %*s %*s %" SCNu64;

/* State and start of a process, by proc(5): "pid (name) state ..", the start is number 22. The
 * name may hold anything. */
static bool look_at(int64_t pid, char *state, uint64_t *started)
{
    struct kp_buf text = KP_BUF_INIT(STAT_BYTES_MAX);
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    bool known = kp_file_read(path, &text, NULL) == KOPT_OK;
    const char *at = known ? strrchr(kp_buf_text(&text), ')') : NULL;
    /* NOLINTNEXTLINE(cert-err34-c): numbers of the system's own */
    known = at && sscanf(at, start_format, state, started) == 2;
    kp_buf_deinit(&text);
    return known;
}

void kp_owner_summary(char out[KP_OWNER_BYTES])
{
    char state = 0;
    uint64_t started = 0;
    int64_t pid = getpid();
    out[0] = '\0';
    if (look_at(pid, &state, &started))
        (void)snprintf(out, KP_OWNER_BYTES, format, pid, started);
}

bool kp_owner_here(const char *host)
{
    char here[HOST_BYTES] = "";
    (void)gethostname(here, sizeof(here) - 1);
    return here[0] && strcmp(here, host) == 0;
}

bool kp_owner_gone(const struct kp_store_run *run)
{
    int64_t pid = 0;
    uint64_t began = 0;
    uint64_t started = 0;
    char state = 0;
    char again[KP_OWNER_BYTES];
    if (strcmp(run->state, "running") != 0 || !kp_owner_here(run->host))
        return false;
    /* NOLINTNEXTLINE(cert-err34-c): what does not come out the same is not ours */
    if (sscanf(run->summary, "{\"pid\":%" SCNd64 ",\"started\":%" SCNu64, &pid, &began) != 2)
        return false;
    (void)snprintf(again, sizeof(again), format, pid, began);
    if (strcmp(again, run->summary) != 0 || pid < 1 || pid != (pid_t)pid)
        return false;
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return true;
    /* A number is given again; what nobody has waited for yet has ended, too. */
    return look_at(pid, &state, &started) && (started != began || state == 'Z' || state == 'X');
}
