/* SPDX-License-Identifier: MIT */
#include "cli/plot.h"
#include "cli/term.h"

#include <math.h>
#include <string.h>

/* Pixels. */
enum {
    PANEL_W = 420,
    PANEL_H = 290,
    LEFT = 64,
    RIGHT = 14,
    TOP = 30,
    BOTTOM = 44,
    MARGIN = 12,
    HEAD = 30,
    LEGEND_ROW = 20,
    LEGEND_MIN = 110, /* of an entry */
    CHARACTER = 7,    /* about, of the legend's letters */
    COLUMNS_MAX = 3,
    COLOURS = 8
};

/* Gaps below a thousandth are all alike: measurements are no more exact. */
static const double gap_floor = 1e-3;

/* One step of colours that tell apart also without red or green, for each background. */
static const char *const on_light[COLOURS] = {"#0b62a4", "#c8460a", "#11845b", "#9a3d8f",
                                              "#8a6d00", "#3a86c8", "#5b5b5b", "#b3003c"};
static const char *const on_dark[COLOURS] = {"#5bb0f0", "#ff9152", "#46d19d", "#e48ad8",
                                             "#e6c84a", "#9fd3ff", "#c0c0c0", "#ff7096"};
static const char *const dashes[] = {"none", "6 3", "2 3", "8 3 2 3"};
enum { DASHES = sizeof(dashes) / sizeof(dashes[0]) };

struct panel {
    FILE *f;
    const kopt_compare_report *r;
    size_t space;
    double left; /* of the plotting area */
    double top;
    double width;
    double height;
    double seconds; /* the right end */
    struct cli_plot_scale scale;
};

/* --- text and scales ---------------------------------------------------------------------- */

/* Text that XML allows. */
static void put_text(FILE *f, const char *s)
{
    uint32_t code = 0;
    while (*s) {
        size_t n = cli_utf8(s, strnlen(s, 4), &code);
        if (*s == '<')
            (void)fputs("&lt;", f);
        else if (*s == '>')
            (void)fputs("&gt;", f);
        else if (*s == '&')
            (void)fputs("&amp;", f);
        else if (*s == '"')
            (void)fputs("&quot;", f);
        else if (n == 0 || code < 0x20 || code == 0x7f || code == 0xfffe || code == 0xffff)
            (void)fputc('?', f);
        else
            (void)fwrite(s, 1, n, f);
        s += n ? n : 1;
    }
}

double cli_plot_step(double high, unsigned max)
{
    if (!(high > 0) || !isfinite(high) || max == 0)
        return 1;
    double power = pow(10, floor(log10(high / max)));
    static const double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (high / (steps[i] * power) <= max * (1 + 1e-9))
            return steps[i] * power;
    return 10 * power;
}

struct cli_plot_scale cli_plot_scale_for(double largest)
{
    struct cli_plot_scale s = {.log = largest > 20 * gap_floor};
    if (s.log) {
        s.low = gap_floor;
        s.high = pow(10, ceil(log10(largest) - 1e-9));
        /* Half a decade that would stay empty is left out. */
        if (largest <= s.high / 3)
            s.high /= 3;
        return s;
    }
    s.high = largest > gap_floor ? largest : gap_floor;
    return s;
}

static double x_of(const struct panel *p, double share)
{
    return p->left + share * p->width;
}

static double y_of(const struct panel *p, double gap)
{
    const struct cli_plot_scale *s = &p->scale;
    double at = gap / s->high;
    if (s->log)
        at = gap <= s->low ? 0 : log(gap / s->low) / log(s->high / s->low);
    at = !(at < 1) ? 1 : at < 0 ? 0 : at; /* not known: at the top */
    return p->top + (1 - at) * p->height;
}

/* --- one panel ---------------------------------------------------------------------------- */

static const kopt_curve *curve_of(const struct panel *p, size_t m)
{
    size_t at = m * p->r->n_spaces + p->space;
    return p->r->cells[at].runs ? &p->r->by_time[at] : NULL;
}

static void set_scale(struct panel *p)
{
    double largest = 0;
    for (size_t m = 0; m < p->r->n_methods; m++) {
        const kopt_curve *k = curve_of(p, m);
        for (size_t i = 0; k && i < KOPT_CURVE_POINTS; i++)
            if (isfinite(k->high[i]) && k->high[i] > largest)
                largest = k->high[i];
    }
    p->scale = cli_plot_scale_for(largest);
}

static void tick_y(const struct panel *p, double gap, const char *prefix)
{
    double y = y_of(p, gap);
    (void)fprintf(p->f, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/>", p->left, y, p->width);
    (void)fprintf(p->f,
                  "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s%.10g%%"
                  "</text>\n",
                  p->left - 6, y + 4, prefix, gap * 100);
}

static void put_axis_y(const struct panel *p)
{
    const struct cli_plot_scale *s = &p->scale;
    if (s->log) {
        tick_y(p, s->low, "\xe2\x89\xa4 ");
        int decades = (int)floor(log10(s->high / s->low) + 1e-9);
        for (int i = 1; i <= decades; i++)
            tick_y(p, s->low * pow(10, i), "");
    } else {
        double step = cli_plot_step(s->high, 5);
        for (unsigned i = 0; i * step <= s->high * (1 + 1e-9); i++)
            tick_y(p, i * step, "");
    }
    (void)fprintf(p->f,
                  "<text class=\"axis\" transform=\"translate(%.1f %.1f) rotate(-90)\" "
                  "text-anchor=\"middle\">slower than the optimum by</text>\n",
                  p->left - 50, p->top + p->height / 2);
}

static void put_axis_x(const struct panel *p)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    size_t u = p->seconds < 1 ? 0 : 1;
    while (u > 0 && u + 1 < sizeof(units) / sizeof(units[0]) &&
           p->seconds >= 2 * units[u + 1].seconds)
        u++;
    double high = isfinite(p->seconds) ? p->seconds / units[u].seconds : 0;
    double step = cli_plot_step(high, 8);
    double bottom = p->top + p->height;
    for (unsigned i = 0; high > 0 && i * step <= high * (1 + 1e-9); i++) {
        double x = x_of(p, i * step / high);
        (void)fprintf(p->f, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/>", x, p->top,
                      p->height);
        (void)fprintf(p->f,
                      "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.10g"
                      "</text>\n",
                      x, bottom + 16, i * step);
    }
    (void)fprintf(p->f,
                  "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">simulated "
                  "time, %s</text>\n",
                  x_of(p, 0.5), bottom + 34, units[u].name);
}

static void put_point(const struct panel *p, size_t i, double gap)
{
    (void)fprintf(p->f, " %.1f,%.1f", x_of(p, (double)(i + 1) / KOPT_CURVE_POINTS),
                  y_of(p, gap));
}

static void put_band(const struct panel *p, size_t m, const kopt_curve *k)
{
    (void)fprintf(p->f, "<polygon class=\"b m%zu\" points=\"", m % COLOURS);
    for (size_t i = 0; i < KOPT_CURVE_POINTS; i++)
        put_point(p, i, k->high[i]);
    for (size_t i = KOPT_CURVE_POINTS; i-- > 0;)
        put_point(p, i, k->low[i]);
    (void)fputs("\"/>\n", p->f);
}

static void put_line(const struct panel *p, size_t m, const kopt_curve *k)
{
    (void)fprintf(p->f, "<polyline class=\"l m%zu\" stroke-dasharray=\"%s\" points=\"",
                  m % COLOURS, dashes[m / COLOURS % DASHES]);
    for (size_t i = 0; i < KOPT_CURVE_POINTS; i++)
        put_point(p, i, k->median[i]);
    (void)fputs("\"><title>", p->f);
    put_text(p->f, p->r->methods[m]);
    double last = k->median[KOPT_CURVE_POINTS - 1];
    if (isfinite(last))
        (void)fprintf(p->f, ": %.2g%% in the end", last * 100);
    (void)fputs("</title></polyline>\n", p->f);
}

static void put_panel(struct panel *p)
{
    const kopt_recording_info *info = p->r->spaces[p->space];
    set_scale(p);
    (void)fprintf(p->f, "<g>\n<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", p->left,
                  p->top - 10);
    put_text(p->f, info->name);
    (void)fputs("</text>\n", p->f);
    put_axis_y(p);
    put_axis_x(p);
    for (size_t m = 0; m < p->r->n_methods; m++)
        if (curve_of(p, m))
            put_band(p, m, curve_of(p, m));
    for (size_t m = 0; m < p->r->n_methods; m++)
        if (curve_of(p, m))
            put_line(p, m, curve_of(p, m));
    (void)fprintf(p->f,
                  "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
                  "\n</g>\n",
                  p->left, p->top, p->width, p->height);
}

/* --- the picture -------------------------------------------------------------------------- */

static void put_colours(FILE *f, const char *const *colours)
{
    for (int i = 0; i < COLOURS; i++)
        (void)fprintf(f, ".l.m%d{stroke:%s}.b.m%d{fill:%s}\n", i, colours[i], i, colours[i]);
}

static void put_style(FILE *f)
{
    (void)fputs("<style>\n"
                "text{font:12px system-ui,sans-serif;fill:#222}.name{font-weight:600}"
                ".tick,.axis{font-size:11px;fill:#555}\n"
                ".page{fill:#fff}.grid{stroke:#ddd;stroke-width:1;fill:none}"
                ".frame{fill:none;stroke:#888}\n"
                ".l{fill:none;stroke-width:1.8;stroke-linejoin:round}"
                ".b{fill-opacity:.13;stroke:none}\n",
                f);
    put_colours(f, on_light);
    (void)fputs("@media (prefers-color-scheme:dark){\n"
                "text{fill:#eee}.tick,.axis{fill:#aaa}.page{fill:#16181c}.grid{stroke:#33373d}"
                ".frame{stroke:#777}\n",
                f);
    put_colours(f, on_dark);
    (void)fputs("}\n</style>\n", f);
}

struct layout {
    size_t columns;
    size_t rows;
    double width;
    double entry; /* of the legend */
    size_t per_row;
    size_t legend_rows;
    double height;
};

static struct layout layout_of(const kopt_compare_report *r)
{
    struct layout l = {.columns = r->n_spaces};
    size_t longest = 0;
    if (r->n_spaces > COLUMNS_MAX)
        l.columns = r->n_spaces == 4 ? 2 : COLUMNS_MAX;
    l.rows = (r->n_spaces + l.columns - 1) / l.columns;
    l.width = 2.0 * MARGIN + (double)l.columns * PANEL_W;
    for (size_t m = 0; m < r->n_methods; m++)
        if (cli_columns(r->methods[m]) > longest)
            longest = cli_columns(r->methods[m]);
    l.entry = (double)longest * CHARACTER + 50;
    l.entry = l.entry < LEGEND_MIN ? LEGEND_MIN : l.entry;
    double room = l.width - 2 * MARGIN;
    l.per_row = room > l.entry ? (size_t)(room / l.entry) : 1;
    l.legend_rows = (r->n_methods + l.per_row - 1) / l.per_row;
    l.height =
        2.0 * MARGIN + HEAD + (double)l.legend_rows * LEGEND_ROW + (double)l.rows * PANEL_H;
    return l;
}

static void put_legend(FILE *f, const kopt_compare_report *r, const struct layout *l)
{
    for (size_t m = 0; m < r->n_methods; m++) {
        size_t row = m / l->per_row;
        double x = MARGIN + (double)(m % l->per_row) * l->entry;
        double y = MARGIN + HEAD + (double)row * LEGEND_ROW;
        (void)fprintf(f,
                      "<rect class=\"b m%zu\" x=\"%.1f\" y=\"%.1f\" width=\"28\" "
                      "height=\"10\"/><polyline class=\"l m%zu\" stroke-dasharray=\"%s\" "
                      "points=\"%.1f,%.1f %.1f,%.1f\"/><text x=\"%.1f\" y=\"%.1f\">",
                      m % COLOURS, x, y - 1, m % COLOURS, dashes[m / COLOURS % DASHES], x,
                      y + 4, x + 28, y + 4, x + 34, y + 8);
        put_text(f, r->methods[m]);
        (void)fputs("</text>\n", f);
    }
}

bool cli_plot(FILE *f, const kopt_compare_report *r)
{
    struct layout l = layout_of(r);
    (void)fprintf(
        f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\">\n<title>Best so far over simulated time</title>\n",
        l.width, l.height, l.width, l.height);
    put_style(f);
    (void)fprintf(
        f,
        "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n<text x=\"%d\" "
        "y=\"%d\">Best so far: the median of %llu runs, and the range from their 10th "
        "to their 90th percentile</text>\n",
        MARGIN, MARGIN + 14, (unsigned long long)r->repeats);
    put_legend(f, r, &l);
    double top = MARGIN + HEAD + (double)l.legend_rows * LEGEND_ROW;
    for (size_t s = 0; s < r->n_spaces; s++) {
        size_t row = s / l.columns;
        struct panel p = {.f = f,
                          .r = r,
                          .space = s,
                          .left = MARGIN + (double)(s % l.columns) * PANEL_W + LEFT,
                          .top = top + (double)row * PANEL_H + TOP,
                          .width = PANEL_W - LEFT - RIGHT,
                          .height = PANEL_H - TOP - BOTTOM,
                          .seconds = r->budget_s[s]};
        put_panel(&p);
    }
    (void)fputs("</svg>\n", f);
    return fflush(f) == 0 && !ferror(f);
}
