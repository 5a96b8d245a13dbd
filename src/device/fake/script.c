/* SPDX-License-Identifier: MIT */
/* Part of the fake driver's shared object: stands alone, as a vendor's library would. */
#include "device/fake/script.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is left of a line. */
struct cursor {
    const char *p;
    const char *end;
};

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && isspace((unsigned char)*c->p))
        c->p++;
}

/* The next run of characters that are neither space nor comma, at most FK_NAME - 1 of them;
 * false at the end of the line or when it is longer. */
static bool next_word(struct cursor *c, char out[FK_NAME])
{
    size_t n = 0;
    skip_space(c);
    while (c->p < c->end && !isspace((unsigned char)*c->p) && *c->p != ',') {
        if (n + 1 >= FK_NAME)
            return false;
        out[n++] = *c->p++;
    }
    out[n] = 0;
    return n > 0;
}

static bool next_number(struct cursor *c, double *out)
{
    char word[FK_NAME];
    if (!next_word(c, word))
        return false;
    char *end;
    *out = strtod(word, &end);
    return *end == 0;
}

static bool next_text(struct cursor *c, char out[FK_TEXT])
{
    size_t n = 0;
    skip_space(c);
    if (c->p >= c->end || *c->p != '"')
        return false;
    for (c->p++; c->p < c->end && *c->p != '"'; c->p++) {
        if (n + 1 < FK_TEXT)
            out[n++] = *c->p;
    }
    out[n] = 0;
    if (c->p >= c->end)
        return false;
    c->p++;
    return true;
}

static bool next_conditions(struct cursor *c, struct fk_rule *r)
{
    for (;;) {
        char word[FK_NAME];
        if (r->n_conditions >= FK_MAX_CONDITIONS || !next_word(c, word))
            return false;
        char *value = strchr(word, '=');
        if (!value || value == word)
            return false;
        *value++ = 0;
        struct fk_condition *cond = &r->conditions[r->n_conditions++];
        memcpy(cond->name, word, FK_NAME);
        (void)snprintf(cond->value, sizeof(cond->value), "%s", value);
        if (c->p >= c->end || *c->p != ',')
            return true;
        c->p++;
    }
}

static const struct {
    const char *word;
    char follows;
} actions[FK_ACTION_COUNT] = {
#define X(id, word, follows) {word, follows},
    FK_ACTIONS(X)
#undef X
};

static int add_action(struct fk_script *s, struct cursor *c, const char *word,
                      struct fk_rule *rule, char why[FK_TEXT])
{
    int a = 0;
    while (a < FK_ACTION_COUNT && strcmp(word, actions[a].word) != 0)
        a++;
    if (a == FK_ACTION_COUNT) {
        (void)snprintf(why, FK_TEXT, "unknown fake action '%s'", word);
        return 0;
    }
    rule->action = (enum fk_action)a;
    rule->number = (double)NAN;
    bool good = true;
    skip_space(c);
    if (actions[a].follows == 'N' || (actions[a].follows == 'O' && c->p < c->end))
        good = next_number(c, &rule->number);
    else if (actions[a].follows == 'M')
        good = next_number(c, &rule->number) && next_number(c, &rule->second);
    else if (actions[a].follows == 'T')
        good = next_text(c, rule->text);
    if (!good) {
        (void)snprintf(why, FK_TEXT, "fake action '%s' needs %s", word,
                       actions[a].follows == 'T'   ? "a text in quotes"
                       : actions[a].follows == 'M' ? "two numbers"
                                                   : "a number");
        return 0;
    }
    if (s->n_rules >= FK_MAX_RULES) {
        (void)snprintf(why, FK_TEXT, "more than %d fake actions", FK_MAX_RULES);
        return 0;
    }
    s->rules[s->n_rules++] = *rule;
    return 1;
}

static int add_factor(struct fk_script *s, struct cursor *c, char why[FK_TEXT])
{
    struct fk_add *add = &s->adds[s->n_adds];
    if (s->n_adds >= FK_MAX_ADDS || !next_word(c, add->name) || !next_number(c, &add->factor)) {
        (void)snprintf(why, FK_TEXT, "expected '// fake: add NAME FACTOR'");
        return 0;
    }
    s->n_adds++;
    return 1;
}

/* "2" or "2 = copy 0" */
static int add_out(struct fk_script *s, struct cursor *c, char why[FK_TEXT])
{
    double arg = -1;
    double from = -1;
    char word[FK_NAME];
    bool good = s->n_outs < FK_MAX_OUTS && next_number(c, &arg) && arg >= 0 && arg < 1024;
    skip_space(c);
    if (good && c->p < c->end)
        good = next_word(c, word) && strcmp(word, "=") == 0 && next_word(c, word) &&
               strcmp(word, "copy") == 0 && next_number(c, &from) && from >= 0 && from < 1024;
    if (!good) {
        (void)snprintf(why, FK_TEXT, "expected '// fake: out ARGUMENT [= copy ARGUMENT]'");
        return 0;
    }
    s->outs[s->n_outs++] = (struct fk_out){(int)arg, (int)from};
    return 1;
}

/* The part after "// fake:", false when the line has none. */
static bool find_command(const char *line, size_t n, struct cursor *out)
{
    static const char mark_text[] = "fake:";
    struct cursor c = {line, line + n};
    skip_space(&c);
    if (c.end - c.p < 2 || c.p[0] != '/' || c.p[1] != '/')
        return false;
    c.p += 2;
    skip_space(&c);
    size_t mark = sizeof(mark_text) - 1;
    if ((size_t)(c.end - c.p) < mark || memcmp(c.p, mark_text, mark) != 0)
        return false;
    c.p += mark;
    *out = c;
    return true;
}

int fk_script_line(struct fk_script *s, const char *line, size_t n, struct fk_place at,
                   char why[FK_TEXT])
{
    struct cursor c;
    char word[FK_NAME];
    struct fk_rule rule = {.line = at.line};
    why[0] = 0;
    if (!find_command(line, n, &c))
        return 1;
    (void)snprintf(rule.file, sizeof(rule.file), "%s", at.file);
    if (!next_word(&c, word)) {
        (void)snprintf(why, FK_TEXT, "expected a command behind '// fake:'");
        return 0;
    }
    int good;
    if (strcmp(word, "add") == 0) {
        good = add_factor(s, &c, why);
    } else if (strcmp(word, "out") == 0) {
        good = add_out(s, &c, why);
    } else if (strcmp(word, "when") == 0 &&
               (!next_conditions(&c, &rule) || !next_word(&c, word))) {
        (void)snprintf(why, FK_TEXT,
                       "expected '// fake: when NAME=VALUE[,NAME=VALUE..] ACTION'");
        good = 0;
    } else {
        good = add_action(s, &c, word, &rule, why);
    }
    skip_space(&c);
    if (good && c.p < c.end) {
        (void)snprintf(why, FK_TEXT, "left over behind the fake command: '%.*s'",
                       (int)(c.end - c.p), c.p);
        good = 0;
    }
    return good;
}

/* --- what holds ----------------------------------------------------------------------------
 */

static const char *macro_value(const char *const *macros, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = n; i-- > 0;) { /* the last definition counts */
        if (strncmp(macros[i], name, len) == 0 && macros[i][len] == '=')
            return macros[i] + len + 1;
    }
    return NULL;
}

static bool matches(const struct fk_rule *r, const char *const *macros, size_t n_macros,
                    const char *entry)
{
    for (int i = 0; i < r->n_conditions; i++) {
        const struct fk_condition *c = &r->conditions[i];
        const char *value =
            strcmp(c->name, "entry") == 0 ? entry : macro_value(macros, n_macros, c->name);
        if (!value || strcmp(value, c->value) != 0)
            return false;
    }
    return true;
}

void fk_script_effect(const struct fk_script *s, const char *const *macros, size_t n_macros,
                      const char *entry, struct fk_effect *out)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < s->n_rules; i++) {
        if (matches(&s->rules[i], macros, n_macros, entry))
            out->rule[s->rules[i].action] = &s->rules[i];
    }
    out->time_ns = out->rule[FK_TIME] ? out->rule[FK_TIME]->number : 1000;
    for (int i = 0; i < s->n_adds; i++) {
        const char *value = macro_value(macros, n_macros, s->adds[i].name);
        if (!value)
            continue;
        double v = strcmp(value, "true") == 0 ? 1 : strtod(value, NULL);
        out->time_ns += s->adds[i].factor * v;
    }
}
