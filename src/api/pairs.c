/* SPDX-License-Identifier: MIT */
/* Configurations and problems as they are stored: flat JSON objects, read without allocating,
 * so that kopt_selection_int() can stand in a dispatch path. Layer: api. */
#include "api/pairs.h"

#include <string.h>

static const char *skip_space(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
        s++;
    return s;
}

/* From behind the opening quote to the closing one; NULL when there is none. */
static const char *string_end(const char *s)
{
    while (*s && *s != '"')
        s += s[0] == '\\' && s[1] ? 2 : 1;
    return *s == '"' ? s : NULL;
}

int kopt_pair_next(const char **at, kopt_pair *pair)
{
    const char *s = *at;
    memset(pair, 0, sizeof(*pair));
    if (!s)
        return 0;
    s = skip_space(s);
    if (*s == '{' || *s == ',')
        s = skip_space(s + 1);
    if (*s != '"')
        return 0;
    const char *name = s + 1;
    const char *end = string_end(name);
    if (!end)
        return 0;
    pair->name = name;
    pair->name_bytes = (size_t)(end - name);
    s = skip_space(end + 1);
    if (*s != ':')
        return 0;
    s = skip_space(s + 1);
    if (*s == '"') {
        pair->quoted = 1;
        pair->value = s + 1;
        end = string_end(s + 1);
        if (!end)
            return 0;
        pair->value_bytes = (size_t)(end - pair->value);
        *at = end + 1;
        return 1;
    }
    size_t n = strcspn(s, ",} \t\r\n");
    if (n == 0 || *s == '{' || *s == '[')
        return 0;
    pair->value = s;
    pair->value_bytes = n;
    *at = s + n;
    return 1;
}

static void append(char *out, size_t bytes, size_t *len, const char *s, size_t n)
{
    if (*len + 1 < bytes) {
        size_t room = bytes - 1 - *len;
        memcpy(out + *len, s, n < room ? n : room);
    }
    *len += n;
}

size_t kopt_pairs_text(const char *json, char *out, size_t bytes)
{
    size_t len = 0;
    kopt_pair pair;
    while (kopt_pair_next(&json, &pair)) {
        if (len)
            append(out, bytes, &len, ",", 1);
        append(out, bytes, &len, pair.name, pair.name_bytes);
        append(out, bytes, &len, "=", 1);
        append(out, bytes, &len, pair.value, pair.value_bytes);
    }
    if (bytes)
        out[len < bytes ? len : bytes - 1] = '\0';
    return len;
}

bool kp_pairs_int(const char *json, const char *name, int64_t *out)
{
    size_t n = strlen(name);
    kopt_pair pair;
    while (kopt_pair_next(&json, &pair)) {
        struct kp_str value = {pair.value, pair.value_bytes};
        if (pair.name_bytes != n || memcmp(pair.name, name, n) != 0)
            continue;
        if (!pair.quoted && kp_str_is(value, "true"))
            *out = 1;
        else if (!pair.quoted && kp_str_is(value, "false"))
            *out = 0;
        else if (pair.quoted || !kp_str_to_i64(value, out))
            return false;
        return true;
    }
    return false;
}
