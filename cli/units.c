/* SPDX-License-Identifier: MIT */
#include "cli/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool cli_parse_int(const char *s, int64_t *out)
{
    char *end = NULL;
    if (!((s[0] >= '0' && s[0] <= '9') || ((s[0] == '-' || s[0] == '+') && s[1] >= '0')))
        return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (end == s || *end || errno)
        return false;
    *out = v;
    return true;
}

/* A decimal number at the start of `s`; the rest is *end. No "inf", "nan" or hexadecimal. */
static bool number(const char *s, double *out, char **end)
{
    size_t n = strspn(s, "0123456789.eE+-");
    if (n == 0 || !(s[0] == '.' || s[0] == '-' || s[0] == '+' || (s[0] >= '0' && s[0] <= '9')))
        return false;
    errno = 0;
    double v = strtod(s, end);
    if (*end == s || *end > s + n || !isfinite(v)) /* strtod() reads hexadecimal, too */
        return false;
    *out = v;
    return true;
}

bool cli_parse_number(const char *s, double *out)
{
    char *end = NULL;
    double v = 0;
    if (!number(s, &v, &end))
        return false;
    if (strcmp(end, "%") == 0)
        v /= 100;
    else if (*end)
        return false;
    *out = v;
    return true;
}

bool cli_parse_seconds(const char *s, double *out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1},   {"s", 1},    {"sec", 1},  {"ms", 1e-3},
                 {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    char *end = NULL;
    double v = 0;
    if (!number(s, &v, &end))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0) {
            *out = v * units[i].seconds;
            return true;
        }
    }
    return false;
}

const char *cli_count(double v, char out[CLI_NUM])
{
    if (isnan(v)) {
        (void)snprintf(out, CLI_NUM, "-");
        return out;
    }
    if (fabs(v) >= 1e15) {
        (void)snprintf(out, CLI_NUM, "%.3g", v);
        return out;
    }
    char digits[CLI_NUM];
    int n = snprintf(digits, sizeof(digits), "%.0f", v);
    int to = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
            out[to++] = ',';
        out[to++] = digits[i];
    }
    out[to] = '\0';
    return out;
}

const char *cli_bytes(int64_t v, char out[CLI_NUM])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)v;
    int unit = 0;
    while (unit < 4 && x >= 1024) {
        x /= 1024;
        unit++;
    }
    bool whole = x == floor(x);
    (void)snprintf(out, CLI_NUM, whole ? "%.0f %s" : "%.1f %s", x, names[unit]);
    return out;
}

const char *cli_duration(double seconds, char out[CLI_NUM])
{
    if (isnan(seconds))
        (void)snprintf(out, CLI_NUM, "-");
    else if (seconds < 0.000995)
        (void)snprintf(out, CLI_NUM, "%.2f ms", seconds * 1e3);
    else if (seconds < 0.0995)
        (void)snprintf(out, CLI_NUM, "%.1f ms", seconds * 1e3);
    else if (seconds < 9.995)
        (void)snprintf(out, CLI_NUM, "%.2f s", seconds);
    else if (seconds < 99.95)
        (void)snprintf(out, CLI_NUM, "%.1f s", seconds);
    else if (seconds < 3600)
        (void)snprintf(out, CLI_NUM, "%.0f min %02.0f s", floor(seconds / 60),
                       floor(fmod(seconds, 60)));
    else
        (void)snprintf(out, CLI_NUM, "%.0f h %02.0f min", floor(seconds / 3600),
                       floor(fmod(seconds, 3600) / 60));
    return out;
}

const char *cli_clock(double seconds, char out[CLI_NUM])
{
    if (isnan(seconds) || seconds < 0 || seconds > 1e9) {
        (void)snprintf(out, CLI_NUM, "-");
        return out;
    }
    long s = (long)(seconds + 0.5);
    if (s < 3600)
        (void)snprintf(out, CLI_NUM, "%ld:%02ld", s / 60, s % 60);
    else
        (void)snprintf(out, CLI_NUM, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return out;
}

/* Decimals that show `v` with four significant digits, none for integers of four and more. */
static int decimals(double v)
{
    double a = fabs(v);
    if (a == 0 || !isfinite(a))
        return 0;
    int d = 3 - (int)floor(log10(a) + 1e-9);
    return d < 0 ? 0 : d > 9 ? 9 : d;
}

const char *cli_figure(double v, char out[CLI_NUM])
{
    if (!isfinite(v))
        (void)snprintf(out, CLI_NUM, "-");
    else if (fabs(v) >= 999.95)
        return cli_count(v, out);
    else if (v != 0 && fabs(v) < 1e-4)
        (void)snprintf(out, CLI_NUM, "%.3g", v);
    else
        (void)snprintf(out, CLI_NUM, "%.*f", decimals(v), v);
    return out;
}

const char *cli_percent(double fraction, char out[CLI_NUM])
{
    double p = fraction * 100;
    if (!isfinite(p))
        (void)snprintf(out, CLI_NUM, "-");
    else if (p != 0 && fabs(p) < 0.1)
        (void)snprintf(out, CLI_NUM, "%.2g %%", p);
    else if (fabs(p - 100) < 1e-9)
        (void)snprintf(out, CLI_NUM, "100 %%");
    else
        (void)snprintf(out, CLI_NUM, "%.1f %%", p);
    return out;
}

struct cli_unit cli_unit_for(const struct cli_term *t, double ns)
{
    if (!(ns < 1e9))
        return (struct cli_unit){"s", 1e9};
    if (ns >= 1e6)
        return (struct cli_unit){"ms", 1e6};
    if (ns >= 1e3)
        return (struct cli_unit){t->utf8 ? "\xc2\xb5s" : "us", 1e3};
    return (struct cli_unit){"ns", 1};
}

const char *cli_time(const struct cli_term *t, double ns, char out[CLI_NUM])
{
    if (!isfinite(ns)) {
        (void)snprintf(out, CLI_NUM, "-");
        return out;
    }
    struct cli_unit u = cli_unit_for(t, ns);
    char digits[CLI_NUM];
    (void)snprintf(out, CLI_NUM, "%.24s %s", cli_figure(ns / u.ns, digits), u.name);
    return out;
}

const char *cli_time_in(struct cli_unit unit, double smallest_ns, double ns, char out[CLI_NUM])
{
    if (!isfinite(ns))
        (void)snprintf(out, CLI_NUM, "-");
    else
        (void)snprintf(out, CLI_NUM, "%.*f", decimals(smallest_ns / unit.ns), ns / unit.ns);
    return out;
}

const char *cli_date(int64_t wall_us, char out[CLI_NUM])
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;
    if (wall_us <= 0 || !localtime_r(&seconds, &tm) ||
        strftime(out, CLI_NUM, "%Y-%m-%d %H:%M", &tm) == 0)
        (void)snprintf(out, CLI_NUM, "-");
    return out;
}

const char *cli_date_iso(int64_t wall_us, char out[CLI_NUM])
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;
    if (wall_us <= 0 || !gmtime_r(&seconds, &tm) ||
        strftime(out, CLI_NUM, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        (void)snprintf(out, CLI_NUM, "-");
    return out;
}
