/* SPDX-License-Identifier: MIT */
/* The terminal: is there one, how wide, in colour or not; the width of text in columns; the
 * progress line. The system is asked through struct cli_probe, so that tests need neither a
 * terminal nor a clock. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_probe {
    bool (*is_tty)(int fd);
    int (*columns)(int fd);     /* 0 = not known */
    bool (*foreground)(int fd); /* does this process own the terminal? */
    const char *(*env)(const char *name);
    int64_t (*now_ns)(void *user); /* monotonic */
    void *user;
};
/* The real one. */
const struct cli_probe *cli_probe_system(void);

enum cli_colour { CLI_COLOUR_AUTO, CLI_COLOUR_ALWAYS, CLI_COLOUR_NEVER };

enum cli_style {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_BLUE,
    CLI_STYLE_COUNT
};

struct cli_term {
    FILE *file;
    int fd;
    bool tty;
    bool colour;
    bool utf8; /* may characters outside ASCII be printed? The user's own text always is */
    int width; /* columns; 0 = no limit */
    const struct cli_probe *probe;
};

/* Colour: `when`, then NO_COLOR (any text but the empty one) and TERM=dumb, then whether it is
 * a terminal. Width: COLUMNS when it is a terminal and that is set, else what the terminal
 * says. */
void cli_term_init(struct cli_term *t, FILE *file, int fd, enum cli_colour when,
                   const struct cli_probe *probe);

/* Escape sequences, "" without colour. */
const char *cli_on(const struct cli_term *t, enum cli_style style);
const char *cli_off(const struct cli_term *t, enum cli_style style);

/* Signs with a plain spelling for terminals that are not UTF-8. */
enum cli_sign {
    CLI_PLUS_MINUS,
    CLI_MICRO,
    CLI_ELLIPSIS,
    CLI_TIMES,
    CLI_MIDDOT,
    CLI_RULE,
    CLI_SIGN_COUNT
};
const char *cli_sign(const struct cli_term *t, enum cli_sign sign);

/* Bytes of the UTF-8 character (RFC 3629) that `n` bytes begin with, and which it is; 0 when it
 * is none. */
size_t cli_utf8(const char *text, size_t n, uint32_t *code);

/* Columns that UTF-8 text takes: wide characters two, combining ones none, bytes that are not
 * UTF-8 one each. */
size_t cli_columns(const char *s);
size_t cli_columns_n(const char *s, size_t n);

/* The longest start of `s` (whole characters) that takes at most `columns`; returns its bytes.
 */
size_t cli_fit(const char *s, size_t columns);

/* A copy in which control characters (escape sequences of somebody's compiler) are '?', except
 * newline and tab where `lines` is true. The caller frees it. */
char *cli_clean(const char *s, bool lines);

/* --- the progress line -------------------------------------------------------------------- */

enum { CLI_FIELDS_MAX = 16 };

/* One piece of the line; `keep` 0 goes first when there is not enough room. */
struct cli_field {
    char text[160];
    enum cli_style style;
    int keep;
};

struct cli_progress {
    struct cli_term *term;
    bool off; /* -q */
    int64_t begun_ns;
    int64_t drawn_ns; /* when something was last printed; begun_ns before */
    bool shown;       /* a line stands on the terminal */
};

void cli_progress_init(struct cli_progress *p, struct cli_term *term, bool off);
/* Is it time to print? On a terminal in the foreground after 1 s and then five times a second,
 * elsewhere every 10 s. */
bool cli_progress_due(const struct cli_progress *p);
/* On a terminal a line that replaces the last one, elsewhere a line of its own. */
void cli_progress_draw(struct cli_progress *p, const struct cli_field *fields, size_t n);
/* Wipe the line, before anything else is printed and at the end. */
void cli_progress_clear(struct cli_progress *p);

#endif
