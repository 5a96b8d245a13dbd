/* SPDX-License-Identifier: MIT */
#include "base/num.h"
#include "space/expr_impl.h"
#include "json/json.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static char at(struct kp_str s, size_t i)
{
    if (i < s.len)
        return s.ptr[i];
    return '\0';
}

static size_t skip_to_line_end(struct kp_str s, size_t i)
{
    while (i < s.len && s.ptr[i] != '\n')
        i++;
    return i;
}

/* Behind one piece of blank at `i`, or `i` itself; SIZE_MAX for a comment without end. */
static size_t skip_one(struct kp_str s, size_t i)
{
    char c = at(s, i);
    if (c == '#')
        return skip_to_line_end(s, i);
    if (c == '/' && at(s, i + 1) == '*') {
        for (size_t k = i + 2; k + 1 < s.len; k++) {
            if (s.ptr[k] == '*' && s.ptr[k + 1] == '/')
                return k + 2;
        }
        return SIZE_MAX;
    }
    if (c == '\\' && at(s, i + 1) == '\n')
        return i + 2;
    if (c == '\\' && at(s, i + 1) == '\r' && at(s, i + 2) == '\n')
        return i + 3;
    bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
    return i < s.len && blank ? i + 1 : i;
}

static struct kp_token bad(struct kp_token t, size_t end, const char *what)
{
    t.kind = KP_TOK_BAD;
    t.end = (uint32_t)end;
    t.bad = what;
    return t;
}

/* Digits of a base with single underscores between them, as Python writes them. */
static size_t scan_digits(struct kp_str s, size_t i, const char *digits)
{
    while (i < s.len && s.ptr[i] &&
           (strchr(digits, s.ptr[i]) ||
            (s.ptr[i] == '_' && at(s, i + 1) && strchr(digits, at(s, i + 1)))))
        i++;
    return i;
}

static bool read_int(struct kp_str s, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '_')
            continue;
        unsigned d = is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return v <= (uint64_t)1 << 63;
}

static struct kp_token lex_based(struct kp_str s, struct kp_token t, unsigned base)
{
    const char *digits = base == 16 ? "0123456789abcdefABCDEF" : base == 8 ? "01234567" : "01";
    size_t from = t.pos + 2;
    size_t i = scan_digits(s, from, digits);
    t.kind = KP_TOK_INT;
    t.end = (uint32_t)i;
    if (i == from || is_letter(at(s, i)) || is_digit(at(s, i)))
        return bad(t, i + 1 < s.len ? i + 1 : s.len, "malformed number");
    if (!read_int((struct kp_str){s.ptr + from, i - from}, base, &t.number))
        return bad(t, i, "the number does not fit into 64 bits");
    return t;
}

static bool read_float(struct kp_str s, double *out)
{
    char text[400];
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '_')
            continue;
        if (n == sizeof(text))
            return false;
        text[n++] = s.ptr[i];
    }
    return kp_f64_from_text((struct kp_str){text, n}, out);
}

static struct kp_token lex_number(struct kp_str s, struct kp_token t)
{
    static const char decimal[] = "0123456789";
    char second = (char)(at(s, t.pos + 1) | 0x20);
    if (s.ptr[t.pos] == '0' && (second == 'x' || second == 'o' || second == 'b'))
        return lex_based(s, t, second == 'x' ? 16 : second == 'o' ? 8 : 2);
    size_t i = scan_digits(s, t.pos, decimal);
    t.kind = KP_TOK_INT;
    if (at(s, i) == '.' && at(s, i + 1) != '.') {
        t.kind = KP_TOK_FLOAT;
        i = scan_digits(s, i + 1, decimal);
    }
    if (at(s, i) == 'e' || at(s, i) == 'E') {
        size_t sign = at(s, i + 1) == '-' || at(s, i + 1) == '+' ? 1 : 0;
        if (is_digit(at(s, i + 1 + sign))) {
            t.kind = KP_TOK_FLOAT;
            i = scan_digits(s, i + 1 + sign, decimal);
        }
    }
    t.end = (uint32_t)i;
    struct kp_str text = {s.ptr + t.pos, i - t.pos};
    if (is_letter(at(s, i)))
        return bad(t, i + 1, "malformed number: a letter follows its digits");
    if (t.kind == KP_TOK_FLOAT)
        return read_float(text, &t.real) ? t : bad(t, i, "the number is out of range");
    if (text.len > 1 && text.ptr[0] == '0')
        return bad(t, i, "malformed number: a leading zero");
    return read_int(text, 10, &t.number) ? t
                                         : bad(t, i, "the number does not fit into 64 bits");
}

static struct kp_token lex_string_token(struct kp_str s, struct kp_token t)
{
    char quote = s.ptr[t.pos];
    size_t i = t.pos + 1;
    while (i < s.len && s.ptr[i] != quote && !is_control(s.ptr[i]))
        i += s.ptr[i] == '\\' && i + 1 < s.len && !is_control(s.ptr[i + 1]) ? 2 : 1;
    if (i >= s.len || s.ptr[i] != quote)
        return bad(t, i < s.len ? i : s.len, "a string without end on its line");
    if (!kp_json_is_utf8((struct kp_str){s.ptr + t.pos, i - t.pos}))
        return bad(t, i, "a string that is not UTF-8");
    t.kind = KP_TOK_STRING;
    t.end = (uint32_t)i + 1;
    return t;
}

static struct kp_token lex_name(struct kp_str s, struct kp_token t)
{
    static const struct {
        const char *text;
        enum kp_tok kind;
    } words[] = {{"and", KP_TOK_AND},     {"or", KP_TOK_OR},      {"not", KP_TOK_NOT},
                 {"in", KP_TOK_IN},       {"if", KP_TOK_IF},      {"else", KP_TOK_ELSE},
                 {"for", KP_TOK_FOR},     {"true", KP_TOK_TRUE},  {"True", KP_TOK_TRUE},
                 {"false", KP_TOK_FALSE}, {"False", KP_TOK_FALSE}};
    size_t i = t.pos;
    while (is_letter(at(s, i)) || is_digit(at(s, i)) ||
           (at(s, i) == '.' && is_letter(at(s, i + 1))))
        i++;
    t.kind = KP_TOK_NAME;
    t.end = (uint32_t)i;
    struct kp_str text = {s.ptr + t.pos, i - t.pos};
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (kp_str_is(text, words[w].text))
            t.kind = words[w].kind;
    }
    return t;
}

static const struct {
    char text[3];
    enum kp_tok kind;
} signs[] = {
    {"**", KP_TOK_STAR2}, {"//", KP_TOK_SLASH2},  {"<=", KP_TOK_LE},      {">=", KP_TOK_GE},
    {"==", KP_TOK_EQ},    {"!=", KP_TOK_NE},      {"&&", KP_TOK_AND2},    {"||", KP_TOK_OR2},
    {"..", KP_TOK_DOTS},  {"<<", KP_TOK_BAD},     {">>", KP_TOK_BAD},     {"+", KP_TOK_PLUS},
    {"-", KP_TOK_MINUS},  {"*", KP_TOK_STAR},     {"/", KP_TOK_SLASH},    {"%", KP_TOK_PERCENT},
    {"<", KP_TOK_LT},     {">", KP_TOK_GT},       {"!", KP_TOK_BANG},     {"(", KP_TOK_LPAREN},
    {")", KP_TOK_RPAREN}, {"[", KP_TOK_LBRACKET}, {"]", KP_TOK_RBRACKET}, {"{", KP_TOK_LBRACE},
    {"}", KP_TOK_RBRACE}, {",", KP_TOK_COMMA},    {"?", KP_TOK_QUESTION}, {":", KP_TOK_COLON},
    {"=", KP_TOK_ASSIGN}, {"&", KP_TOK_BAD},      {"|", KP_TOK_BAD},      {"^", KP_TOK_BAD},
    {"~", KP_TOK_BAD},
};

static struct kp_token lex_sign(struct kp_str s, struct kp_token t)
{
    for (size_t k = 0; k < sizeof(signs) / sizeof(signs[0]); k++) {
        size_t n = strlen(signs[k].text);
        if (s.len - t.pos < n || memcmp(s.ptr + t.pos, signs[k].text, n) != 0)
            continue;
        t.kind = signs[k].kind;
        t.end = t.pos + (uint32_t)n;
        if (t.kind == KP_TOK_BAD)
            t.bad = "no bitwise operators here; logic is && || ! or and, or, not";
        return t;
    }
    size_t n = 1; /* a whole UTF-8 sequence, so that messages show the character */
    while ((at(s, t.pos + n) & 0xc0) == 0x80 && (s.ptr[t.pos] & 0x80))
        n++;
    return bad(t, t.pos + n, "no such character in an expression");
}

struct kp_token kp_lex(struct kp_str text, size_t pos)
{
    size_t i = pos;
    for (size_t to = skip_one(text, i); to != i; to = skip_one(text, i)) {
        if (to == SIZE_MAX)
            return bad((struct kp_token){.pos = (uint32_t)i}, text.len,
                       "a comment without end");
        i = to;
    }
    struct kp_token t = {.space_before = i != pos || pos == 0, .pos = (uint32_t)i};
    if (i >= text.len) {
        t.pos = (uint32_t)text.len;
        t.end = t.pos;
        return t;
    }
    char c = text.ptr[i];
    if (is_digit(c) || (c == '.' && is_digit(at(text, i + 1))))
        return lex_number(text, t);
    if (is_letter(c))
        return lex_name(text, t);
    if (c == '"' || c == '\'')
        return lex_string_token(text, t);
    return lex_sign(text, t);
}

bool kp_lex_string(struct kp_str quoted, struct kp_arena *arena, struct kp_str *out)
{
    char *copy = kp_arena_alloc(arena, quoted.len, 1);
    size_t n = 0;
    *out = (struct kp_str){"", 0};
    if (!copy)
        return false;
    for (size_t i = 1; i + 1 < quoted.len; i++) {
        char c = quoted.ptr[i];
        if (c == '\\') {
            c = quoted.ptr[++i];
            if (c != '\\' && c != '\'' && c != '"')
                return false;
        }
        copy[n++] = c;
    }
    *out = (struct kp_str){copy, n};
    return true;
}

static int code_points(const char *s, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += (s[i] & 0xc0) != 0x80;
    return count;
}

struct kp_source_pos kp_source_at(const struct kp_source_pos *where, struct kp_str text,
                                  size_t off)
{
    struct kp_source_pos at_off = {NULL, NULL, 0, 1, 1};
    size_t line_start = 0;
    if (!text.ptr)
        text.ptr = "";
    if (off > text.len)
        off = text.len;
    if (where)
        at_off = *where;
    for (size_t i = 0; i < off; i++) {
        if (text.ptr[i] == '\n') {
            at_off.line++;
            line_start = i + 1;
        }
    }
    bool moved = line_start > 0;
    at_off.column =
        (moved ? 1 : at_off.column) + code_points(text.ptr + line_start, off - line_start);
    if (moved || !at_off.src_line) {
        const char *end = memchr(text.ptr + off, '\n', text.len - off);
        at_off.src_line = text.ptr + line_start;
        at_off.src_line_len = (int)((end ? (size_t)(end - text.ptr) : text.len) - line_start);
    }
    return at_off;
}

void kp_source_error(const struct kp_source_pos *where, struct kp_str text, size_t off,
                     kopt_error *err)
{
    struct kp_source_pos at_off = kp_source_at(where, text, off);
    kp_err_at(err, at_off.file, at_off.line, at_off.column, at_off.src_line,
              at_off.src_line_len);
}
