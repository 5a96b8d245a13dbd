/* SPDX-License-Identifier: MIT */
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

int64_t kp_clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t kp_clock_thread_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t kp_clock_wall_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void kp_clock_iso(int64_t wall_us, char out[32])
{
    int64_t second = wall_us / 1000000;
    int64_t rest = wall_us % 1000000;
    if (rest < 0) {
        rest += 1000000;
        second--;
    }
    time_t t = (time_t)second;
    struct tm tm;
    if (!gmtime_r(&t, &tm)) {
        (void)snprintf(out, 32, "?");
        return;
    }
    size_t n = strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + n, 32 - n, ".%03dZ", (int)(rest / 1000));
}

void kp_clock_sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
                         .tv_nsec = (long)(ns % 1000000000)};
    while (ns > 0 && nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}
