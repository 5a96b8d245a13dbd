/* SPDX-License-Identifier: MIT */
/* --help, made from the tables. */
#include "cli/cli.h"
#include "cli/mem.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, TEXT_INDENT = 6, OPTION_COLUMN = 28, WIDTH = 80, WIDTH_MAX = 100 };

static size_t help_width(const struct cli *c)
{
    if (c->out.width <= 0)
        return WIDTH;
    return c->out.width > WIDTH_MAX ? WIDTH_MAX : c->out.width < 40 ? 40 : (size_t)c->out.width;
}

/* Words of one paragraph, filled to `width`; the first line stands at column `at` already. */
static void print_filled(FILE *f, const char *s, size_t n, size_t at, size_t indent,
                         size_t width)
{
    const char *end = s + n;
    bool first = true;
    while (s < end) {
        while (s < end && (*s == ' ' || *s == '\n'))
            s++;
        const char *word = s;
        while (s < end && *s != ' ' && *s != '\n')
            s++;
        if (s == word)
            break;
        size_t columns = cli_columns_n(word, (size_t)(s - word));
        if (!first && at + 1 + columns > width) {
            (void)fprintf(f, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        (void)fprintf(f, "%s%.*s", first ? "" : " ", (int)(s - word), word);
        at += columns + (first ? 0 : 1);
        first = false;
    }
    (void)fputc('\n', f);
}

/* Paragraphs are parted by an empty line; one that begins with a space is printed as it is. */
static void print_paragraphs(FILE *f, const char *text, size_t width)
{
    while (*text) {
        const char *gap = strstr(text, "\n\n");
        size_t n = gap ? (size_t)(gap - text) : strlen(text);
        if (text[0] == ' ')
            (void)fprintf(f, "%.*s\n", (int)n, text);
        else
            print_filled(f, text, n, 0, 0, width);
        (void)fputc('\n', f);
        text += n + (gap ? 2 : 0);
    }
}

static void print_heading(struct cli *c, const char *heading)
{
    (void)fprintf(c->out.file, "%s%s:%s\n", cli_on(&c->out, CLI_BOLD), heading,
                  cli_off(&c->out, CLI_BOLD));
}

static void print_option(struct cli *c, const struct cli_opt *o, size_t width)
{
    char spelling[128];
    cli_opt_spelling(o, spelling, sizeof(spelling));
    size_t columns = INDENT + cli_columns(spelling);
    (void)fprintf(c->out.file, "%*s%s", INDENT, "", spelling);
    if (columns + 2 > OPTION_COLUMN) {
        (void)fputc('\n', c->out.file);
        columns = 0;
    }
    (void)fprintf(c->out.file, "%*s", (int)(OPTION_COLUMN - columns), "");
    print_filled(c->out.file, o->help, strlen(o->help), OPTION_COLUMN, OPTION_COLUMN, width);
}

static void print_options(struct cli *c, const struct cli_opt *opts, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++) {
        if (opts[i].group || i == 0) {
            if (i)
                (void)fputc('\n', c->out.file);
            print_heading(c, opts[i].group ? opts[i].group : "Options");
        }
        print_option(c, &opts[i], width);
    }
    if (n)
        (void)fputc('\n', c->out.file);
}

static void print_commands(struct cli *c, const struct cli_command *const *subs, size_t width)
{
    size_t widest = 0;
    for (size_t i = 0; subs[i]; i++)
        if (!subs[i]->hidden && strlen(subs[i]->name) > widest)
            widest = strlen(subs[i]->name);
    print_heading(c, "Commands");
    for (size_t i = 0; subs[i]; i++) {
        if (subs[i]->hidden)
            continue;
        (void)fprintf(c->out.file, "%*s%s%-*s%s  ", INDENT, "", cli_on(&c->out, CLI_BOLD),
                      (int)widest, subs[i]->name, cli_off(&c->out, CLI_BOLD));
        print_filled(c->out.file, subs[i]->summary, strlen(subs[i]->summary), widest + 4,
                     widest + 4, width);
    }
    (void)fputc('\n', c->out.file);
}

static void print_examples(struct cli *c, const struct cli_command *cmd, size_t width)
{
    if (!cmd->n_examples)
        return;
    print_heading(c, "Examples");
    for (size_t i = 0; i < cmd->n_examples; i++) {
        const struct cli_example *e = &cmd->examples[i];
        (void)fprintf(c->out.file, "%*skopt %s\n%*s", INDENT, "", e->command, TEXT_INDENT, "");
        print_filled(c->out.file, e->text, strlen(e->text), TEXT_INDENT, TEXT_INDENT, width);
    }
}

void cli_usage_line(const char *path, const struct cli_command *cmd, char *out, size_t bytes)
{
    const char *args = cmd->args ? cmd->args : "";
    (void)snprintf(out, bytes, "usage: %s%s%s%s", path, args[0] ? " " : "", args,
                   cmd->n_opts ? " [options]" : "");
}

void cli_help(struct cli *c, const char *path, const struct cli_command *cmd)
{
    size_t width = help_width(c);
    char usage[256];
    cli_usage_line(path, cmd, usage, sizeof(usage));
    cli_print(c, "%s\n\n", usage);
    if (cmd->about)
        print_paragraphs(c->out.file, cmd->about, width);
    if (cmd->subs)
        print_commands(c, cmd->subs, width);
    print_options(c, cmd->opts, cmd->n_opts, width);
    if (cmd->more)
        cmd->more(c);
    /* --version belongs to the program alone. */
    size_t n_common = cli_n_common_opts - (cmd == c->root ? 0 : 1);
    print_options(c, cli_common_opts, n_common, width);
    print_examples(c, cmd, width);
}
