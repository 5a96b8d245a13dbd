/* SPDX-License-Identifier: MIT */
/* Own writer: Jansson's prints 0.1 with 17 digits. Layer: json. */
#include "base/alloc.h"
#include "base/num.h"
#include "json/impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool kp_json_is_utf8(struct kp_str s)
{
    for (size_t i = 0; i < s.len;) {
        size_t n = kp_utf8_len(s.ptr + i, s.len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

static void quote_ascii(char c, struct kp_buf *out)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letter[] = "\"\\bfnrt";
    const char *at = c ? strchr(plain, c) : NULL;
    if (at) {
        kp_buf_addc(out, '\\');
        kp_buf_addc(out, letter[at - plain]);
    } else if ((unsigned char)c < 0x20 || c == 0x7f) {
        kp_buf_addf(out, "\\u%04x", (unsigned)c);
    } else {
        kp_buf_addc(out, c);
    }
}

void kp_json_quote(struct kp_str s, struct kp_buf *out)
{
    kp_buf_addc(out, '"');
    for (size_t i = 0; i < s.len;) {
        size_t n = kp_utf8_len(s.ptr + i, s.len - i);
        if (n == 0)
            kp_buf_adds(out, "\xef\xbf\xbd");
        else if (n == 1)
            quote_ascii(s.ptr[i], out);
        else
            kp_buf_add(out, s.ptr + i, n);
        i += n ? n : 1;
    }
    kp_buf_addc(out, '"');
}

static void write_value(json_t *j, int depth, struct kp_buf *out);

/* NOLINTNEXTLINE(misc-no-recursion): see write_value() */
static void write_array(json_t *j, int depth, struct kp_buf *out)
{
    size_t n = json_array_size(j);
    kp_buf_addc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            kp_buf_addc(out, ',');
        write_value(json_array_get(j, i), depth + 1, out);
    }
    kp_buf_addc(out, ']');
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* NOLINTNEXTLINE(misc-no-recursion): see write_value() */
static void write_object(json_t *j, int depth, struct kp_buf *out)
{
    size_t n = json_object_size(j);
    size_t i = 0;
    const char **keys = kp_calloc(n ? n : 1, sizeof(*keys));
    if (!keys) {
        out->failed = KOPT_ENOMEM;
        return;
    }
    for (void *it = json_object_iter(j); it && i < n; it = json_object_iter_next(j, it))
        keys[i++] = json_object_iter_key(it);
    qsort(keys, n, sizeof(*keys), compare_keys);
    kp_buf_addc(out, '{');
    for (i = 0; i < n; i++) {
        if (i)
            kp_buf_addc(out, ',');
        kp_json_quote(kp_str_from(keys[i]), out);
        kp_buf_addc(out, ':');
        write_value(json_object_get(j, keys[i]), depth + 1, out);
    }
    kp_buf_addc(out, '}');
    kp_free(keys);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_JSON_DEPTH_MAX levels */
static void write_value(json_t *j, int depth, struct kp_buf *out)
{
    char text[KP_F64_TEXT];
    if (depth > KP_JSON_DEPTH_MAX && out->failed == KOPT_OK)
        out->failed = KOPT_ERANGE;
    if (out->failed != KOPT_OK)
        return;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        write_object(j, depth, out);
        break;
    case JSON_ARRAY:
        write_array(j, depth, out);
        break;
    case JSON_STRING:
        kp_json_quote((struct kp_str){json_string_value(j), json_string_length(j)}, out);
        break;
    case JSON_INTEGER:
        kp_buf_addf(out, "%" PRId64, (int64_t)json_integer_value(j));
        break;
    case JSON_REAL:
        kp_buf_add(out, text, kp_f64_to_text(json_real_value(j), text));
        break;
    case JSON_TRUE:
        kp_buf_adds(out, "true");
        break;
    case JSON_FALSE:
        kp_buf_adds(out, "false");
        break;
    case JSON_NULL:
        kp_buf_adds(out, "null");
        break;
    }
}

void kp_json_dump(const struct kp_json *j, struct kp_buf *out)
{
    write_value(kp_json_plain(j), 0, out);
}
