/* SPDX-License-Identifier: MIT */
/* Configurations from their JSON texts, without memory of their own: strings are compared as
 * they stand, escapes and all. */
#include "base/num.h"
#include "space/diagram_space.h"

#include <string.h>

struct reading {
    const char *at;
};

static char next(struct reading *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
        r->at++;
    return *r->at;
}

static bool take(struct reading *r, char c)
{
    if (next(r) != c)
        return false;
    r->at++;
    return true;
}

/* What stands between the quotes. */
static bool read_string(struct reading *r, struct kp_str *out)
{
    if (!take(r, '"'))
        return false;
    out->ptr = r->at;
    for (; *r->at != '"'; r->at++) {
        if (*r->at == '\\')
            r->at++;
        if ((unsigned char)*r->at < ' ')
            return false;
    }
    out->len = (size_t)(r->at++ - out->ptr);
    return true;
}

/* Four hexadecimal digits; -1 when they are not there. */
static int32_t hex4(const char *s, size_t n)
{
    int32_t v = 0;
    if (n < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        char c = s[i];
        if (c >= '0' && c <= '9')
            v = 16 * v + (c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            v = 16 * v + (c | 0x20) - 'a' + 10;
        else
            return -1;
    }
    return v;
}

static size_t utf8(int32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const int lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(lead[n] | code);
    return n;
}

/* The character behind "\u": takes its digits, and the second half of a pair. -1: none. */
static int32_t unicode(struct kp_str *raw)
{
    int32_t code = hex4(raw->ptr, raw->len);
    if (code < 0)
        return -1;
    *raw = (struct kp_str){raw->ptr + 4, raw->len - 4};
    if (code < 0xD800 || code > 0xDFFF)
        return code;
    if (code > 0xDBFF || raw->len < 6 || raw->ptr[0] != '\\' || raw->ptr[1] != 'u')
        return -1;
    int32_t low = hex4(raw->ptr + 2, raw->len - 2);
    *raw = (struct kp_str){raw->ptr + 6, raw->len - 6};
    return low < 0xDC00 || low > 0xDFFF ? -1
                                        : 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

/* The bytes of the next character of what stands between quotes; 0: a bad escape. */
static size_t unescape(struct kp_str *raw, char out[4])
{
    static const char names[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    char c = *raw->ptr;
    *raw = (struct kp_str){raw->ptr + 1, raw->len - 1};
    out[0] = c;
    if (c != '\\')
        return 1;
    c = *raw->ptr; /* read_string() saw to it that one follows */
    *raw = (struct kp_str){raw->ptr + 1, raw->len - 1};
    if (c == 'u') {
        int32_t code = unicode(raw);
        return code < 0 ? 0 : utf8(code, out);
    }
    const char *name = strchr(names, c);
    if (!name)
        return 0;
    out[0] = meant[name - names];
    return 1;
}

static bool string_is(struct kp_str raw, struct kp_str want)
{
    char bytes[4];
    while (raw.len > 0) {
        size_t n = unescape(&raw, bytes);
        if (n == 0 || n > want.len || memcmp(bytes, want.ptr, n) != 0)
            return false;
        want = (struct kp_str){want.ptr + n, want.len - n};
    }
    return want.len == 0;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '+' || c == '-' || c == '.';
}

/* Index of the value that a number or a boolean means: one of the same type, else a number that
 * is equal. */
static uint32_t find_word(const struct kp_param *p, struct kp_str word)
{
    struct kp_value v;
    int64_t i = 0;
    double f = 0;
    int order = 1;
    if (kp_str_is(word, "true") || kp_str_is(word, "false"))
        return kp_value_find(p->values, p->n_values, kp_bool(word.ptr[0] == 't'));
    if (kp_str_to_i64(word, &i))
        v = kp_int(i);
    else if (kp_f64_from_text(word, &f))
        v = kp_float(f);
    else
        return p->n_values;
    uint32_t at = kp_value_find(p->values, p->n_values, v);
    if (at < p->n_values)
        return at;
    for (at = 0; at < p->n_values; at++)
        if (p->values[at].type != KP_BOOL && kp_value_compare(v, p->values[at], &order) &&
            order == 0)
            break;
    return at;
}

static uint32_t find_string(const struct kp_param *p, struct kp_str raw)
{
    uint32_t at = 0;
    while (at < p->n_values &&
           !(p->values[at].type == KP_STRING && string_is(raw, p->values[at].as.s)))
        at++;
    return at;
}

static bool read_value(struct reading *r, const struct kp_param *p, uint32_t *index)
{
    struct kp_str text;
    if (next(r) == '"') {
        if (!read_string(r, &text))
            return false;
        *index = find_string(p, text);
    } else {
        text = (struct kp_str){r->at, 0};
        while (is_word(*r->at))
            r->at++;
        text.len = (size_t)(r->at - text.ptr);
        *index = find_word(p, text);
    }
    return *index < p->n_values;
}

static bool read_member(struct reading *r, const struct kp_space *s, struct kp_varset *seen,
                        uint32_t *config)
{
    const struct kp_space_desc *d = s->desc;
    struct kp_str name;
    size_t i = 0;
    if (!read_string(r, &name) || !take(r, ':'))
        return false;
    while (i < d->n_params && !string_is(name, kp_str_from(d->params[i].name)))
        i++;
    if (i == d->n_params || kp_varset_has(seen, i))
        return false;
    kp_varset_add(seen, i);
    return read_value(r, &d->params[i], &config[i]);
}

bool kp_space_config_read(const struct kp_space *s, const char *json, uint32_t *config)
{
    struct reading r = {json};
    struct kp_varset seen = {{0}};
    size_t n = 0;
    if (!take(&r, '{'))
        return false;
    if (next(&r) != '}') {
        do {
            if (!read_member(&r, s, &seen, config))
                return false;
            n++;
        } while (take(&r, ','));
    }
    return take(&r, '}') && next(&r) == '\0' && n == s->desc->n_params;
}
