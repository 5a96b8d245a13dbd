/* SPDX-License-Identifier: MIT */
/* Time. Layer: os. */
#ifndef KP_OS_CLOCK_H
#define KP_OS_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds since some fixed moment. */
int64_t kp_clock_ns(void);
/* Nanoseconds of processor time that this thread has used. */
int64_t kp_clock_thread_ns(void);
/* Microseconds since 1970, UTC. */
int64_t kp_clock_wall_us(void);
/* "2026-01-31T12:00:00.123Z" of such a time; `out` holds at least 32 bytes. */
void kp_clock_iso(int64_t wall_us, char out[32]);
void kp_clock_sleep_ns(int64_t ns);

#endif
