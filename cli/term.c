/* SPDX-License-Identifier: MIT */
#include "cli/term.h"
#include "cli/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static bool system_is_tty(int fd)
{
    return isatty(fd) == 1;
}

static int system_columns(int fd)
{
    struct winsize w = {0};
    return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static bool system_foreground(int fd)
{
    return tcgetpgrp(fd) == getpgrp();
}

static const char *system_env(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */
}

static int64_t system_now(void *user)
{
    (void)user;
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const struct cli_probe *cli_probe_system(void)
{
    static const struct cli_probe probe = {.is_tty = system_is_tty,
                                           .columns = system_columns,
                                           .foreground = system_foreground,
                                           .env = system_env,
                                           .now_ns = system_now};
    return &probe;
}

static bool is_set(const char *value)
{
    return value && value[0];
}

/* The first of the three that is set decides, as for setlocale(). */
static bool locale_is_utf8(const struct cli_probe *probe)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *value = probe->env(names[i]);
        if (!is_set(value))
            continue;
        const char *dot = strchr(value, '.');
        return dot &&
               (strncasecmp(dot + 1, "utf-8", 5) == 0 || strncasecmp(dot + 1, "utf8", 4) == 0);
    }
    return false;
}

static int terminal_width(const struct cli_probe *probe, int fd)
{
    const char *columns = probe->env("COLUMNS");
    if (is_set(columns)) {
        char *end = NULL;
        long n = strtol(columns, &end, 10);
        if (*end == '\0' && n > 0 && n < 100000)
            return (int)n;
    }
    return probe->columns(fd);
}

void cli_term_init(struct cli_term *t, FILE *file, int fd, enum cli_colour when,
                   const struct cli_probe *probe)
{
    memset(t, 0, sizeof(*t));
    t->file = file;
    t->fd = fd;
    t->probe = probe;
    t->tty = probe->is_tty(fd);
    t->utf8 = locale_is_utf8(probe);
    t->width = t->tty ? terminal_width(probe, fd) : 0;
    if (when != CLI_COLOUR_AUTO) {
        t->colour = when == CLI_COLOUR_ALWAYS;
        return;
    }
    const char *name = probe->env("TERM");
    t->colour =
        t->tty && !is_set(probe->env("NO_COLOR")) && is_set(name) && strcmp(name, "dumb") != 0;
}

const char *cli_on(const struct cli_term *t, enum cli_style style)
{
    static const char *const codes[CLI_STYLE_COUNT] = {
        "", "\033[1m", "\033[2m", "\033[1;31m", "\033[32m", "\033[33m", "\033[36m"};
    return t->colour ? codes[style] : "";
}

const char *cli_off(const struct cli_term *t, enum cli_style style)
{
    return t->colour && style != CLI_PLAIN ? "\033[0m" : "";
}

const char *cli_sign(const struct cli_term *t, enum cli_sign sign)
{
    static const char *const signs[CLI_SIGN_COUNT][2] = {
        {"+-", "\xc2\xb1"}, {"u", "\xc2\xb5"}, {"~", "\xe2\x80\xa6"},
        {"x", "\xc3\x97"},  {"|", "\xc2\xb7"}, {"-", "\xe2\x94\x80"}};
    return signs[sign][t->utf8 ? 1 : 0];
}

/* --- text --------------------------------------------------------------------------------- */

size_t cli_utf8(const char *text, size_t n, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800,
                                        0x10000}; /* that needs so many bytes */
    const unsigned char *s = (const unsigned char *)text;
    size_t want = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] >= 0x80 && (s[0] < 0xc2 || s[0] > 0xf4))
        want = 0; /* no first byte */
    if (want < 2 || want > n) {
        *code = s[0];
        return want == 1 && n > 0;
    }
    uint32_t c = s[0] & (0xffU >> (want + 1));
    for (size_t i = 1; i < want; i++) {
        if ((s[i] & 0xc0U) != 0x80)
            return 0;
        c = (c << 6) | (s[i] & 0x3fU);
    }
    *code = c;
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return c < smallest[want] || c > 0x10ffff || surrogate ? 0 : want;
}

/* The same; a byte that is no UTF-8 stands for itself. */
static size_t decode(const char *s, size_t n, uint32_t *code)
{
    size_t bytes = cli_utf8(s, n, code);
    if (bytes == 0)
        *code = (unsigned char)s[0];
    return bytes ? bytes : 1;
}

struct range {
    uint32_t first;
    uint32_t last;
};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}

/* The blocks that terminals draw without width or two columns wide, from Unicode's
 * EastAsianWidth and general categories, by block. */
static size_t char_columns(uint32_t c)
{
    static const struct range none[] = {{0x0300, 0x036f}, {0x0483, 0x0489},  {0x0591, 0x05bd},
                                        {0x0610, 0x061a}, {0x064b, 0x065f},  {0x0e31, 0x0e31},
                                        {0x0e34, 0x0e3a}, {0x1ab0, 0x1aff},  {0x1dc0, 0x1dff},
                                        {0x200b, 0x200f}, {0x202a, 0x202e},  {0x2060, 0x2064},
                                        {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},  {0xfe20, 0xfe2f},
                                        {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};
    static const struct range wide[] = {
        {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},  {0x23e9, 0x23ec},
        {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},  {0x4e00, 0x9fff},
        {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
        {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
        {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (c < 0x300)
        return 1;
    if (in_ranges(c, none, sizeof(none) / sizeof(none[0])))
        return 0;
    return in_ranges(c, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

size_t cli_columns_n(const char *s, size_t n)
{
    size_t columns = 0;
    uint32_t c;
    for (size_t i = 0; i < n;) {
        i += decode(s + i, n - i, &c);
        columns += char_columns(c);
    }
    return columns;
}

size_t cli_columns(const char *s)
{
    return cli_columns_n(s, strlen(s));
}

size_t cli_fit(const char *s, size_t columns)
{
    size_t n = strlen(s);
    size_t at = 0;
    size_t used = 0;
    while (at < n) {
        uint32_t c;
        size_t bytes = decode(s + at, n - at, &c);
        used += char_columns(c);
        if (used > columns)
            break;
        at += bytes;
    }
    return at;
}

char *cli_clean(const char *s, bool lines)
{
    char *copy = cli_strdup(s);
    for (char *p = copy; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c >= 0x20 && c != 0x7f) || (lines && (c == '\n' || c == '\t')))
            continue;
        *p = c == '\n' || c == '\t' || c == '\r' ? ' ' : '?';
    }
    return copy;
}

/* --- progress ----------------------------------------------------------------------------- */

static const int64_t first_ns = 1000000000;
static const int64_t between_ns = 200000000;
static const int64_t line_ns = 10000000000;

void cli_progress_init(struct cli_progress *p, struct cli_term *term, bool off)
{
    memset(p, 0, sizeof(*p));
    p->term = term;
    p->off = off;
    p->begun_ns = term->probe->now_ns(term->probe->user);
    p->drawn_ns = p->begun_ns;
}

static bool live(const struct cli_progress *p)
{
    return p->term->tty && p->term->probe->foreground(p->term->fd);
}

bool cli_progress_due(const struct cli_progress *p)
{
    if (p->off)
        return false;
    int64_t now = p->term->probe->now_ns(p->term->probe->user);
    if (!live(p))
        return now - p->drawn_ns >= line_ns;
    if (now - p->begun_ns < first_ns)
        return false;
    return now - p->drawn_ns >= between_ns;
}

static size_t line_columns(const struct cli_field *fields, size_t n, const bool *in)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        if (in[i])
            columns += (columns ? 2 : 0) + cli_columns(fields[i].text);
    return columns;
}

/* Leave out the least wanted fields until the rest fits; the last one is cut when it must be.
 */
static void choose(const struct cli_field *fields, size_t n, size_t room, bool *in)
{
    for (size_t i = 0; i < n; i++)
        in[i] = fields[i].text[0] != '\0';
    while (room && line_columns(fields, n, in) > room) {
        size_t worst = n;
        size_t left = 0;
        for (size_t i = 0; i < n; i++) {
            if (!in[i])
                continue;
            left++;
            if (worst == n || fields[i].keep <= fields[worst].keep)
                worst = i;
        }
        if (left <= 1)
            return;
        in[worst] = false;
    }
}

void cli_progress_draw(struct cli_progress *p, const struct cli_field *fields, size_t n)
{
    if (p->off)
        return;
    struct cli_term *t = p->term;
    bool on_line = live(p);
    size_t room = 0;
    if (on_line) {
        int width = terminal_width(t->probe, t->fd);
        room = width > 1 ? (size_t)width - 1 : 79;
    }
    bool in[CLI_FIELDS_MAX];
    if (n > CLI_FIELDS_MAX)
        n = CLI_FIELDS_MAX;
    choose(fields, n, room, in);
    if (!on_line)
        (void)fputs("kopt: ", t->file);
    else
        (void)fputs("\r\033[K", t->file);
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (!in[i])
            continue;
        size_t bytes = room ? cli_fit(fields[i].text, room) : strlen(fields[i].text);
        enum cli_style style = on_line ? fields[i].style : CLI_PLAIN;
        (void)fprintf(t->file, "%s%s%.*s%s", first ? "" : "  ", cli_on(t, style), (int)bytes,
                      fields[i].text, cli_off(t, style));
        first = false;
    }
    if (!on_line)
        (void)fputc('\n', t->file);
    (void)fflush(t->file);
    p->shown = on_line;
    p->drawn_ns = t->probe->now_ns(t->probe->user);
}

void cli_progress_clear(struct cli_progress *p)
{
    if (!p->shown)
        return;
    (void)fputs("\r\033[K", p->term->file);
    (void)fflush(p->term->file);
    p->shown = false;
}
