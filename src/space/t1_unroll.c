/* SPDX-License-Identifier: MIT */
/* Kernel Tuner's special parameters: `#pragma unroll loop_unroll_factor_x` unrolls by the
 * parameter's value, and 0 stands for the source without that line. Compilers do not all expand
 * macros there, so each such line is replaced once by a macro of ours, which kp_bound_macros()
 * defines: _Pragma("unroll 4"), or nothing. Line numbers stay. Layer: space. */
#include "space/t1_impl.h"

#include <string.h>

static const char prefix[] = "loop_unroll_factor";

bool kp_unroll_is_param(const char *name)
{
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0;
}

static size_t skip_blanks(struct kp_str s, size_t i)
{
    while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == '\t'))
        i++;
    return i;
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

static struct kp_str word_at(struct kp_str s, size_t i)
{
    size_t end = i;
    while (end < s.len && is_word(s.ptr[end]))
        end++;
    return (struct kp_str){s.ptr + i, end - i};
}

/* The parameter of such a line; *start and *end are where "#pragma unroll NAME" stands. */
static const struct kp_param *match(struct kp_builder *b, struct kp_str line, size_t *start,
                                    size_t *end)
{
    static const char *const words[] = {"pragma", "unroll"};
    size_t i = skip_blanks(line, 0);
    *start = i;
    if (i == line.len || line.ptr[i] != '#')
        return NULL;
    i = skip_blanks(line, i + 1);
    for (size_t w = 0; w < 2; w++) {
        if (!kp_str_is(word_at(line, i), words[w]))
            return NULL;
        i = skip_blanks(line, i + strlen(words[w]));
    }
    bool bracket = i < line.len && line.ptr[i] == '(';
    i = bracket ? skip_blanks(line, i + 1) : i;
    const struct kp_param *p = kp_builder_find_param(b, word_at(line, i));
    if (!p || !kp_unroll_is_param(p->name))
        return NULL;
    i += strlen(p->name);
    if (bracket) {
        i = skip_blanks(line, i);
        if (i == line.len || line.ptr[i] != ')')
            return NULL;
        i++;
    }
    *end = i;
    return p;
}

kopt_status kp_unroll_rewrite(struct kp_builder *b, struct kp_str source, struct kp_buf *out)
{
    struct kp_str rest = source;
    while (rest.len > 0) {
        size_t start = 0;
        size_t end = 0;
        struct kp_str line = kp_str_cut(rest, '\n', &rest);
        const struct kp_param *p = match(b, line, &start, &end);
        if (p) {
            kp_buf_add(out, line.ptr, start);
            kp_buf_addf(out, "%s%s", KP_UNROLL_MACRO, p->name);
            b->k->unrolls = true;
        }
        kp_buf_add(out, line.ptr + end, line.len - end);
        if (line.ptr + line.len < source.ptr + source.len)
            kp_buf_addc(out, '\n');
    }
    return kp_buf_status(out, b->err);
}

void kp_unroll_macro(const char *name, struct kp_value v, struct kp_buf *out_name,
                     struct kp_buf *out)
{
    double factor = 1;
    kp_buf_addf(out_name, "%s%s", KP_UNROLL_MACRO, name);
    if (kp_value_to_f64(v, &factor) && factor == 0)
        return;
    kp_buf_adds(out, "_Pragma(\"unroll ");
    kp_value_to_macro(v, out);
    kp_buf_adds(out, "\")");
}
