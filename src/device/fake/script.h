/* SPDX-License-Identifier: MIT */
/* The `// fake:` lines of a source: what the fake driver is told to do. Layer: device. */
#ifndef KP_DEVICE_FAKE_SCRIPT_H
#define KP_DEVICE_FAKE_SCRIPT_H

#include "device/fake/fakedriver.h"

#include <stdbool.h>

/* X(enumerator, word, what follows it: N a number, M two numbers, O a number that may be
 * missing, T a text in double quotes, - nothing) */
#define FK_ACTIONS(X)                         \
    X(FK_TIME, "time", 'N')                   \
    X(FK_NOISE, "noise", 'N')                 \
    X(FK_RAMP, "ramp", 'M')                   \
    X(FK_LUCKY, "lucky", 'O')                 \
    X(FK_COMPILE_ERROR, "compile_error", 'T') \
    X(FK_COMPILE_HANG, "compile_hang", '-')   \
    X(FK_COMPILE_ABORT, "compile_abort", '-') \
    X(FK_COMPILE_SLOW, "compile_slow", 'N')   \
    X(FK_COMPILE_FULL, "compile_full", '-')   \
    X(FK_LAUNCH_ERROR, "launch_error", '-')   \
    X(FK_LIMIT, "limit", 'O')                 \
    X(FK_HOST_FULL, "host_full", '-')         \
    X(FK_CRASH, "crash", '-')                 \
    X(FK_CRASH_AT, "crash_at", 'N')           \
    X(FK_HANG, "hang", '-')                   \
    X(FK_NAN, "nan", '-')                     \
    X(FK_WRONG, "wrong", '-')                 \
    X(FK_WRONG_AT, "wrong_at", 'N')           \
    X(FK_PARTIAL, "partial", '-')             \
    X(FK_UNSTEADY, "unsteady", '-')           \
    X(FK_FIRST_ONLY, "first_only", '-')       \
    X(FK_DIRTY, "dirty", '-')                 \
    X(FK_OOB, "oob", '-')                     \
    X(FK_NEGATIVE_TIME, "negative_time", '-') \
    X(FK_ZERO_TIME, "zero_time", '-')         \
    X(FK_NAN_TIME, "nan_time", '-')           \
    X(FK_GONE, "lost", '-')                   \
    X(FK_LIE, "lie", '-')                     \
    X(FK_REAL, "real", 'N')

enum fk_action {
#define X(id, word, follows) id,
    FK_ACTIONS(X)
#undef X
        FK_ACTION_COUNT
};

enum {
    FK_MAX_RULES = 64,
    FK_MAX_ADDS = 32,
    FK_MAX_OUTS = 8,
    FK_MAX_CONDITIONS = 4,
    FK_MAX_MACROS = 256,
    FK_NAME = 64,    /* bytes of a name or value */
    FK_TEXT = 256,   /* bytes of a text or path */
    FK_MAX_DEPTH = 8 /* of includes */
};

struct fk_condition {
    char name[FK_NAME];
    char value[FK_NAME];
};

struct fk_rule {
    struct fk_condition conditions[FK_MAX_CONDITIONS];
    int n_conditions;
    enum fk_action action;
    double number; /* NaN: none was given */
    double second; /* of two */
    char text[FK_TEXT];
    char file[FK_TEXT];
    int line;
};

struct fk_add {
    char name[FK_NAME];
    double factor;
};

struct fk_out {
    int arg;
    int from; /* -1: the fixed pattern */
};

struct fk_script {
    struct fk_rule rules[FK_MAX_RULES];
    int n_rules;
    struct fk_add adds[FK_MAX_ADDS];
    int n_adds;
    struct fk_out outs[FK_MAX_OUTS];
    int n_outs;
};

/* What holds for one kernel of a source under given macros: for each action the rule that is in
 * force, the last that matches; NULL = none. */
struct fk_effect {
    const struct fk_rule *rule[FK_ACTION_COUNT];
    double time_ns; /* the base time and all that is added to it */
};

/* A text with its place in a file, for messages. */
struct fk_place {
    const char *file;
    int line;
};

/* Read one line of a source. Returns 1 when it is none of ours or was understood, 0 when it is
 * wrong: then the reason is in `why`. */
int fk_script_line(struct fk_script *s, const char *line, size_t n, struct fk_place at,
                   char why[FK_TEXT]);

/* macros: "NAME=VALUE". The script must outlive the effect. */
void fk_script_effect(const struct fk_script *s, const char *const *macros, size_t n_macros,
                      const char *entry, struct fk_effect *out);

#endif
