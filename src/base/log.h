/* SPDX-License-Identifier: MIT */
/* Where messages go: the caller's sink, never a stream of our own. Layer: base. */
#ifndef KP_BASE_LOG_H
#define KP_BASE_LOG_H

enum kp_log_level { KP_LOG_ERROR, KP_LOG_WARN, KP_LOG_INFO, KP_LOG_DEBUG };

struct kp_log {
    void (*write)(void *user, enum kp_log_level level, const char *line); /* NULL = discard */
    void *user;
};

/* One line, without newline; `log` may be NULL. */
__attribute__((format(printf, 3, 4))) void
kp_log(const struct kp_log *log, enum kp_log_level level, const char *fmt, ...);

#endif
