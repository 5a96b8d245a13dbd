/* SPDX-License-Identifier: MIT */
#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* strtod() and printf() use the locale's decimal point. Neither is needed: a number with its
 * point moved into the exponent ("1.5e3" as "15e2") has the same value, and strtod() rounds
 * that correctly in any locale. */

enum { DIGITS_MAX = 400 }; /* longer mantissas are refused */

/* digits * 10^exp10 */
static double from_digits(const char *digits, int exp10)
{
    char text[DIGITS_MAX + 16];
    (void)snprintf(text, sizeof(text), "%se%d", digits, exp10);
    return strtod(text, NULL);
}

/* The exponent behind "e"; false unless all of `s` is one. */
static bool read_exponent(struct kp_str s, int *out)
{
    size_t i = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+') ? 1 : 0;
    int v = 0;
    if (i == s.len)
        return false;
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        if (v < 100000)
            v = v * 10 + (s.ptr[i] - '0');
    }
    *out = s.ptr[0] == '-' ? -v : v;
    return true;
}

bool kp_f64_from_text(struct kp_str s, double *out)
{
    char digits[DIGITS_MAX + 1];
    size_t n = 0;
    int after_point = 0;
    bool point = false;
    int exp10 = 0;
    size_t i = 0;
    bool negative = s.len && s.ptr[0] == '-';
    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'))
        i++;
    for (; i < s.len && s.ptr[i] != 'e' && s.ptr[i] != 'E'; i++) {
        if (s.ptr[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || n == DIGITS_MAX)
            return false;
        digits[n++] = s.ptr[i];
        after_point += point;
    }
    if (n == 0 ||
        (i < s.len && !read_exponent((struct kp_str){s.ptr + i + 1, s.len - i - 1}, &exp10)))
        return false;
    digits[n] = 0;
    double v = from_digits(digits, exp10 - after_point);
    if (!isfinite(v))
        return false;
    *out = negative ? -v : v;
    return true;
}

/* The fewest significant digits (at most 17) that give `v` (finite, not negative) back, without
 * trailing zeros; *exp10 is the power of ten of the first one. */
static size_t shortest_digits(double v, char digits[20], int *exp10)
{
    for (int precision = 0; precision < 17; precision++) {
        char text[40];
        size_t n = 0;
        (void)snprintf(text, sizeof(text), "%.*e", precision, v);
        char *p = text;
        for (; *p && *p != 'e'; p++) {
            if (*p >= '0' && *p <= '9')
                digits[n++] = *p; /* skips the decimal point, whatever it looks like */
        }
        digits[n] = 0;
        *exp10 = *p ? (int)strtol(p + 1, NULL, 10) : 0;
        if (precision == 16 || from_digits(digits, *exp10 - precision) == v) {
            while (n > 1 && digits[n - 1] == '0')
                digits[--n] = 0;
            return n;
        }
    }
    return 0;
}

size_t kp_f64_to_text(double v, char out[KP_F64_TEXT])
{
    char digits[20];
    int exp10 = 0;
    const char *sign = signbit(v) ? "-" : "";
    if (!isfinite(v))
        return (size_t)snprintf(out, KP_F64_TEXT, "%s",
                                isnan(v) ? "nan"
                                : v > 0  ? "inf"
                                         : "-inf");
    int n = (int)shortest_digits(fabs(v), digits, &exp10);
    int len;
    if (exp10 < -4 || exp10 >= 16)
        len = snprintf(out, KP_F64_TEXT, "%s%c%s%se%+03d", sign, digits[0], n > 1 ? "." : "",
                       digits + 1, exp10);
    else if (exp10 < 0)
        len = snprintf(out, KP_F64_TEXT, "%s0.%.*s%s", sign, -exp10 - 1, "000", digits);
    else if (n <= exp10 + 1)
        len = snprintf(out, KP_F64_TEXT, "%s%s%.*s.0", sign, digits, exp10 + 1 - n,
                       "0000000000000000");
    else
        len = snprintf(out, KP_F64_TEXT, "%s%.*s.%s", sign, exp10 + 1, digits,
                       digits + exp10 + 1);
    return (size_t)len;
}
