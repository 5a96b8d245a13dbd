/* SPDX-License-Identifier: MIT */
#include "cli/opt.h"
#include "cli/mem.h"
#include "cli/term.h"
#include "cli/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const colours[] = {"auto", "always", "never", NULL};

const struct cli_opt cli_common_opts[] = {
    {.name = "quiet",
     .letter = 'q',
     .kind = CLI_FLAG,
     .offset = offsetof(struct cli_common, quiet),
     .help = "no progress and no notes; results and errors only",
     .group = "Everywhere"},
    {.name = "verbose",
     .letter = 'v',
     .kind = CLI_COUNT,
     .offset = offsetof(struct cli_common, verbose),
     .help = "say more; twice for details of the work"},
    {.name = "color",
     .kind = CLI_CHOICE,
     .arg = "WHEN",
     .choices = colours,
     .offset = offsetof(struct cli_common, colour),
     .help = "auto (on a terminal, unless NO_COLOR is set), always or never"},
    {.name = "help",
     .letter = 'h',
     .kind = CLI_FLAG,
     .offset = offsetof(struct cli_common, help),
     .help = "show this help"},
    {.name = "version",
     .letter = 'V',
     .kind = CLI_FLAG,
     .offset = offsetof(struct cli_common, version),
     .help = "print the version"},
};
const size_t cli_n_common_opts = sizeof(cli_common_opts) / sizeof(cli_common_opts[0]);

__attribute__((format(printf, 2, 3))) static kopt_status usage(kopt_error *err, const char *fmt,
                                                               ...)
{
    va_list ap;
    va_start(ap, fmt);
    memset(err, 0, sizeof(*err));
    err->code = KOPT_EUSAGE;
    (void)vsnprintf(err->message, sizeof(err->message), fmt, ap);
    va_end(ap);
    return KOPT_EUSAGE;
}

/* Two tables searched as one: the command's options, then the common ones. */
struct table {
    const struct cli_opt *opts[2];
    size_t n[2];
    void *base[2];
};

static const struct cli_opt *table_at(const struct table *t, size_t i, void **base)
{
    for (size_t k = 0; k < 2; k++) {
        if (i < t->n[k]) {
            if (base)
                *base = t->base[k];
            return &t->opts[k][i];
        }
        i -= t->n[k];
    }
    return NULL;
}

static const char *next_name(const void *user, size_t i)
{
    const struct cli_opt *o = table_at(user, i, NULL);
    return o ? o->name : NULL;
}

/* The option called `name` (n bytes); *negated for its --no- form. */
static const struct cli_opt *find_long(const struct table *t, const char *name, size_t n,
                                       void **base, bool *negated)
{
    const struct cli_opt *o;
    for (size_t i = 0; (o = table_at(t, i, base)) != NULL; i++) {
        size_t len = strlen(o->name);
        *negated = false;
        if (len == n && memcmp(o->name, name, n) == 0)
            return o;
        *negated = true;
        if (o->negatable && n == len + 3 && memcmp(name, "no-", 3) == 0 &&
            memcmp(name + 3, o->name, len) == 0)
            return o;
    }
    return NULL;
}

static const struct cli_opt *find_letter(const struct table *t, char letter, void **base)
{
    const struct cli_opt *o;
    for (size_t i = 0; (o = table_at(t, i, base)) != NULL; i++)
        if (o->letter && o->letter == letter)
            return o;
    return NULL;
}

static bool takes_value(const struct cli_opt *o)
{
    return o->kind != CLI_FLAG && o->kind != CLI_COUNT;
}

static kopt_status set_choice(const struct cli_opt *o, const char *spelling, const char *value,
                              int *field, kopt_error *err)
{
    for (int i = 0; o->choices[i]; i++) {
        if (strcmp(o->choices[i], value) == 0) {
            *field = i;
            return KOPT_OK;
        }
    }
    (void)usage(err, "%s: '%s' is none of its values", spelling, value);
    size_t used = 0;
    for (int i = 0; o->choices[i] && used < sizeof(err->hint); i++) {
        int n = snprintf(err->hint + used, sizeof(err->hint) - used, "%s%s",
                         i ? ", " : "one of: ", o->choices[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return KOPT_EUSAGE;
}

static kopt_status set_number(const struct cli_opt *o, const char *spelling, const char *value,
                              void *field, kopt_error *err)
{
    int64_t whole = 0;
    double v = 0;
    bool ok = false;
    const char *what = "a number";
    if (o->kind == CLI_INT) {
        ok = cli_parse_int(value, &whole);
        what = "a whole number";
        v = (double)whole;
    } else if (o->kind == CLI_SECONDS) {
        ok = cli_parse_seconds(value, &v);
        what = "a time such as 30s, 200ms, 2m or 1h";
    } else {
        ok = cli_parse_number(value, &v);
    }
    if (!ok)
        return usage(err, "%s: '%s' is not %s", spelling, value, what);
    if (v < o->min || v > o->max)
        return usage(err, "%s: %s is out of range, it must be %.10g to %.10g%s", spelling,
                     value, o->min, o->max, o->kind == CLI_SECONDS ? " seconds" : "");
    if (o->kind == CLI_INT)
        *(int64_t *)field = whole;
    else
        *(double *)field = v;
    return KOPT_OK;
}

/* `spelling` is how the user wrote the option, for messages. */
static kopt_status set(const struct cli_opt *o, void *base, const char *spelling,
                       const char *value, bool negated, kopt_error *err)
{
    void *field = (char *)base + o->offset;
    char why[256];
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)field = !negated;
        return KOPT_OK;
    case CLI_COUNT:
        *(int *)field += 1;
        return KOPT_OK;
    case CLI_TEXT:
        if (!value[0])
            return usage(err, "%s: the value is empty", spelling);
        *(const char **)field = value;
        return KOPT_OK;
    case CLI_INT:
    case CLI_NUMBER:
    case CLI_SECONDS:
        return set_number(o, spelling, value, field, err);
    case CLI_CHOICE:
        return set_choice(o, spelling, value, field, err);
    case CLI_CUSTOM:
        if (o->parse(value, field, why, sizeof(why)))
            return KOPT_OK;
        return usage(err, "%s: %s", spelling, why);
    }
    return KOPT_EUSAGE;
}

static kopt_status unknown_long(const struct table *t, const char *word, size_t n,
                                kopt_error *err)
{
    (void)usage(err, "unknown option --%.*s", (int)n, word);
    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), word);
    const char *near = cli_nearest(name, next_name, t);
    if (near)
        (void)snprintf(err->hint, sizeof(err->hint), "did you mean --%s?", near);
    return KOPT_EUSAGE;
}

struct words {
    int argc;
    char **argv;
    int at; /* the next one */
};

/* The value of `o`: `attached` (behind = or the letter), or the next word. */
static kopt_status value_of(const struct cli_opt *o, const char *spelling, const char *attached,
                            struct words *w, const char **value, kopt_error *err)
{
    *value = attached;
    if (attached)
        return KOPT_OK;
    const char *next = w->at < w->argc ? w->argv[w->at] : NULL;
    if (!next || (next[0] == '-' && next[1] == '-')) {
        (void)usage(err, "%s needs a value", spelling);
        int phrase = (int)strcspn(o->help, ";:(");
        (void)snprintf(err->hint, sizeof(err->hint), "%s %s: %.*s", spelling, o->arg, phrase,
                       o->help);
        return KOPT_EUSAGE;
    }
    w->at++;
    *value = next;
    return KOPT_OK;
}

static kopt_status parse_long(const struct table *t, const char *word, struct words *w,
                              kopt_error *err)
{
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    void *base = NULL;
    bool negated = false;
    const struct cli_opt *o = find_long(t, word, n, &base, &negated);
    if (!o)
        return unknown_long(t, word, n, err);
    char spelling[96];
    (void)snprintf(spelling, sizeof(spelling), "--%.*s", (int)n, word);
    const char *value = NULL;
    if (takes_value(o)) {
        kopt_status st = value_of(o, spelling, equals ? equals + 1 : NULL, w, &value, err);
        if (st != KOPT_OK)
            return st;
    } else if (equals) {
        return usage(err, "%s takes no value", spelling);
    }
    return set(o, base, spelling, value, negated, err);
}

/* "-qv", "-d cuda:0", "-dcuda:0" */
static kopt_status parse_letters(const struct table *t, const char *letters, struct words *w,
                                 kopt_error *err)
{
    for (; *letters; letters++) {
        void *base = NULL;
        const struct cli_opt *o = find_letter(t, *letters, &base);
        if (!o)
            return usage(err, "unknown option -%c", *letters);
        char spelling[] = {'-', *letters, '\0'};
        const char *value = NULL;
        if (takes_value(o)) {
            kopt_status st =
                value_of(o, spelling, letters[1] ? letters + 1 : NULL, w, &value, err);
            if (st != KOPT_OK)
                return st;
        }
        kopt_status st = set(o, base, spelling, value, false, err);
        if (st != KOPT_OK || takes_value(o))
            return st;
    }
    return KOPT_OK;
}

/* A lone "-" is a word. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static kopt_status parse_option(const struct table *t, const char *word, struct words *w,
                                kopt_error *err)
{
    return word[1] == '-' ? parse_long(t, word + 2, w, err)
                          : parse_letters(t, word + 1, w, err);
}

kopt_status cli_opt_common(int argc, char **argv, struct cli_common *common, int *used,
                           kopt_error *err)
{
    struct table t = {.opts = {cli_common_opts, NULL}, .n = {cli_n_common_opts, 0}};
    t.base[0] = common;
    struct words w = {argc, argv, 0};
    while (w.at < argc && is_option(argv[w.at])) {
        const char *word = argv[w.at++];
        kopt_status st = parse_option(&t, word, &w, err);
        if (st != KOPT_OK)
            return st;
    }
    *used = w.at;
    return KOPT_OK;
}

kopt_status cli_opt_parse(const struct cli_command *cmd, int argc, char **argv,
                          struct cli_parsed *p, kopt_error *err)
{
    /* The last common option, --version, is the program's own. */
    struct table t = {.opts = {cmd->opts, cli_common_opts},
                      .n = {cmd->n_opts, cli_n_common_opts - 1}};
    t.base[0] = p->options;
    t.base[1] = p->common;
    struct words w = {argc, argv, 0};
    bool only_words = false;
    p->args.n = 0;
    while (w.at < argc) {
        const char *word = argv[w.at++];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (only_words || !is_option(word)) {
            p->args.words[p->args.n++] = word;
        } else {
            kopt_status st = parse_option(&t, word, &w, err);
            if (st != KOPT_OK)
                return st;
        }
    }
    return KOPT_OK;
}

void cli_opt_spelling(const struct cli_opt *o, char *out, size_t bytes)
{
    char letter[8] = "    ";
    if (o->letter)
        (void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    (void)snprintf(out, bytes, "%s--%s%s%s%s", letter, o->shown_negated ? "no-" : "", o->name,
                   o->arg ? " " : "", o->arg ? o->arg : "");
}
