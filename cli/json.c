/* SPDX-License-Identifier: MIT */
#include "cli/json.h"
#include "cli/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void quote(FILE *f, const char *s)
{
    uint32_t code;
    (void)fputc('"', f);
    while (*s) {
        unsigned char c = (unsigned char)*s;
        size_t n = cli_utf8(s, strnlen(s, 4), &code);
        if (n == 0) {
            (void)fputs("\\ufffd", f);
            n = 1;
        } else if (c == '"' || c == '\\') {
            (void)fprintf(f, "\\%c", c);
        } else if (c == '\n') {
            (void)fputs("\\n", f);
        } else if (c < 0x20 || c == 0x7f) {
            (void)fprintf(f, "\\u%04x", c);
        } else {
            (void)fwrite(s, 1, n, f);
        }
        s += n;
    }
    (void)fputc('"', f);
}

static void item(struct cli_json *j, const char *key)
{
    if (j->comma)
        (void)fputc(',', j->file);
    if (key) {
        quote(j->file, key);
        (void)fputc(':', j->file);
    }
    j->comma = true;
}

struct cli_json cli_json_begin(FILE *file, const char *type)
{
    struct cli_json j = {.file = file};
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "type", type);
    return j;
}

void cli_json_end(struct cli_json *j)
{
    cli_json_close(j, '}');
    (void)fputc('\n', j->file);
}

void cli_json_str(struct cli_json *j, const char *key, const char *value)
{
    item(j, key);
    if (value)
        quote(j->file, value);
    else
        (void)fputs("null", j->file);
}

void cli_json_int(struct cli_json *j, const char *key, int64_t value)
{
    item(j, key);
    (void)fprintf(j->file, "%lld", (long long)value);
}

void cli_json_u64(struct cli_json *j, const char *key, uint64_t value)
{
    item(j, key);
    (void)fprintf(j->file, "%llu", (unsigned long long)value);
}

/* The shortest text that reads back as the same number. */
void cli_json_num(struct cli_json *j, const char *key, double value)
{
    item(j, key);
    if (!isfinite(value)) {
        (void)fputs("null", j->file);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    (void)fputs(text, j->file);
}

void cli_json_bool(struct cli_json *j, const char *key, bool value)
{
    item(j, key);
    (void)fputs(value ? "true" : "false", j->file);
}

void cli_json_raw(struct cli_json *j, const char *key, const char *json)
{
    item(j, key);
    (void)fputs(json && json[0] ? json : "null", j->file);
}

void cli_json_known(struct cli_json *j, const char *key, int64_t value)
{
    if (value < 0)
        cli_json_raw(j, key, NULL);
    else
        cli_json_int(j, key, value);
}

void cli_json_open(struct cli_json *j, const char *key, char bracket)
{
    item(j, key);
    (void)fputc(bracket, j->file);
    j->comma = false;
}

void cli_json_close(struct cli_json *j, char bracket)
{
    (void)fputc(bracket, j->file);
    j->comma = true;
}
