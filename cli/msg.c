/* SPDX-License-Identifier: MIT */
/* Messages on stderr, and what they mean for the exit code. */
#include "cli/cli.h"
#include "cli/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_exit_of(kopt_status status)
{
    switch (status) {
    case KOPT_OK:
        return CLI_EXIT_DONE;
    case KOPT_EUSAGE:
        return CLI_EXIT_USAGE;
    case KOPT_EENV:
    case KOPT_EDEVICE:
    case KOPT_EBUSY:
    case KOPT_EFULL:
    case KOPT_ENOMEM:
        return CLI_EXIT_ENVIRONMENT;
    case KOPT_EINPUT:
    case KOPT_EIO:
    case KOPT_ECORRUPT:
        return CLI_EXIT_INPUT;
    case KOPT_EINTR:
        return CLI_EXIT_INTERRUPTED;
    case KOPT_ERANGE:
    case KOPT_ENOTFOUND:
    case KOPT_ETIMEOUT:
    case KOPT_ECRASH:
    case KOPT_EFAILED:
        return CLI_EXIT_FAILED;
    }
    return CLI_EXIT_FAILED;
}

static void print_label(struct cli *c, enum cli_style style, const char *label)
{
    struct cli_term *t = &c->err;
    (void)fprintf(t->file, "kopt: %s%s:%s ", cli_on(t, style), label, cli_off(t, style));
}

/* Tabs become four spaces, so that the caret below stands where it should. */
static void add_expanded(struct cli_text *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\t')
            cli_text_adds(out, "    ");
        else
            cli_text_add(out, s + i, 1);
    }
}

/* Bytes of the first `points` code points. */
static size_t point_offset(const char *s, size_t points)
{
    size_t at = 0;
    while (s[at] && points) {
        at++;
        while (((unsigned char)s[at] & 0xc0U) == 0x80)
            at++;
        points--;
    }
    return at;
}

/*   12 | #pragma kopt param BM {16,32
 *      |                       ^        */
static void print_excerpt(struct cli *c, const kopt_error *err)
{
    struct cli_term *t = &c->err;
    int first = err->excerpt_column > 1 ? err->excerpt_column : 1; /* a part of a long line */
    size_t at =
        point_offset(err->excerpt, err->column > first ? (size_t)(err->column - first) : 0);
    struct cli_text before = {0};
    struct cli_text after = {0};
    add_expanded(&before, err->excerpt, at);
    add_expanded(&after, err->excerpt + at, strlen(err->excerpt + at));
    char number[16];
    (void)snprintf(number, sizeof(number), "%4d", err->line);
    const char *left = before.ptr ? before.ptr : "";
    const char *right = after.ptr ? after.ptr : "";
    /* A long line is shown around the place. */
    size_t room = t->width > 20 ? (size_t)t->width - 8 : 112;
    const char *cut = first > 1 ? cli_sign(t, CLI_ELLIPSIS) : "";
    size_t columns = cli_columns(left) + (first > 1);
    if (columns + 12 > room && columns > room / 2) {
        size_t skip = columns - room / 2;
        left += cli_fit(left, skip);
        cut = cli_sign(t, CLI_ELLIPSIS);
        columns = cli_columns(left) + 1;
    }
    size_t fits = cli_fit(right, room > columns ? room - columns : 0);
    (void)fprintf(t->file, "%s | %s%s%.*s\n", number, cut, left, (int)fits, right);
    if (err->column > 0)
        (void)fprintf(t->file, "%*s | %*s%s^%s\n", (int)strlen(number), "", (int)columns, "",
                      cli_on(t, CLI_GREEN), cli_off(t, CLI_GREEN));
    free(before.ptr);
    free(after.ptr);
}

bool cli_flush(struct cli *c)
{
    errno = 0;
    bool ok = fflush(stdout) == 0;
    if (!ok && !c->write_error)
        c->write_error = errno;
    return ok;
}

int cli_fail(struct cli *c, const kopt_error *err)
{
    struct cli_term *t = &c->err;
    (void)cli_flush(c);
    print_label(c, CLI_RED, "error");
    const char *text = err->message[0] ? err->message : kopt_status_text(err->code);
    (void)fprintf(t->file, "%s\n", text);
    if (err->file[0] && err->line > 0) {
        (void)fprintf(t->file, "%s:%d", err->file, err->line);
        if (err->column > 0)
            (void)fprintf(t->file, ":%d", err->column);
        (void)fputc('\n', t->file);
        if (err->excerpt[0])
            print_excerpt(c, err);
    }
    if (err->hint[0])
        (void)fprintf(t->file, "%shint:%s %s\n", cli_on(t, CLI_BOLD), cli_off(t, CLI_BOLD),
                      err->hint);
    return cli_exit_of(err->code);
}

int cli_failf(struct cli *c, kopt_status status, const char *hint, const char *fmt, ...)
{
    kopt_error err = {.code = status};
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(err.message, sizeof(err.message), fmt, ap);
    va_end(ap);
    if (hint)
        (void)snprintf(err.hint, sizeof(err.hint), "%s", hint);
    return cli_fail(c, &err);
}

int cli_usage(struct cli *c, const char *fmt, ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    int code = cli_failf(c, KOPT_EUSAGE, NULL, "%s", message);
    char line[256];
    cli_usage_line(c->path, c->command, line, sizeof(line));
    (void)fprintf(c->err.file, "%s\n%shint:%s %s --help has the options and examples\n", line,
                  cli_on(&c->err, CLI_BOLD), cli_off(&c->err, CLI_BOLD), c->path);
    return code;
}

const char *cli_store_words(const struct cli *c)
{
    return c->store_words ? c->store_words : "";
}

const char *cli_see(const struct cli *c, const char *words, const char *does,
                    char out[CLI_HINT])
{
    int n = snprintf(out, CLI_HINT, "kopt store %s%s %s", words, cli_store_words(c), does);
    if (n >= CLI_HINT) /* half a path is of no use */
        (void)snprintf(out, CLI_HINT, "kopt store %s --store .. %s", words, does);
    return out;
}

void cli_warn(struct cli *c, const char *fmt, ...)
{
    va_list ap;
    print_label(c, CLI_YELLOW, "warning");
    va_start(ap, fmt);
    (void)vfprintf(c->err.file, fmt, ap);
    va_end(ap);
    (void)fputc('\n', c->err.file);
}

void cli_note(struct cli *c, const char *fmt, ...)
{
    if (c->verbosity < 0)
        return;
    va_list ap;
    (void)fputs("kopt: ", c->err.file);
    va_start(ap, fmt);
    (void)vfprintf(c->err.file, fmt, ap);
    va_end(ap);
    (void)fputc('\n', c->err.file);
}

void cli_print(struct cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vfprintf(c->out.file, fmt, ap);
    va_end(ap);
}
