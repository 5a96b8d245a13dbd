/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void kp_log(const struct kp_log *log, enum kp_log_level level, const char *fmt, ...)
{
    if (!log || !log->write)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    log->write(log->user, level, line);
}
