/* SPDX-License-Identifier: MIT */
#include "cli/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at `s`; 0 when it is none. */
static size_t utf8_bytes(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (n < 2)
        return n;
    if (s[0] > 0xf4 || (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0U) != 0x80)
            return 0;
    return n;
}

static void quote(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    (void)fputc('"', f);
    while (*s) {
        size_t n = utf8_bytes(s);
        if (n == 0) {
            (void)fputs("\\ufffd", f);
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            (void)fprintf(f, "\\%c", *s);
        } else if (*s == '\n') {
            (void)fputs("\\n", f);
        } else if (*s < 0x20 || *s == 0x7f) {
            (void)fprintf(f, "\\u%04x", *s);
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
