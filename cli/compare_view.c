/* SPDX-License-Identifier: MIT */
#include "cli/compare_view.h"
#include "cli/cmds.h"
#include "cli/mem.h"
#include "cli/recordings.h"
#include "cli/table.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of so many spaces the scores fit side by side. */
enum { MATRIX_SPACES = 12 };

/* --- order and the control ---------------------------------------------------------------- */

size_t *cli_compare_order(const kopt_compare_report *r)
{
    size_t *order = cli_alloc(r->n_methods + 1, sizeof(*order));
    for (size_t i = 0; i < r->n_methods; i++) {
        size_t at = i;
        double score = r->total[i].score;
        while (at > 0 && (score > r->total[order[at - 1]].score ||
                          (!isnan(score) && isnan(r->total[order[at - 1]].score)))) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return order;
}

double *cli_compare_random(const kopt_compare_report *r)
{
    double *random = cli_alloc(r->n_spaces + 1, sizeof(*random));
    for (size_t m = 0; m < r->n_methods; m++) {
        if (r->foreign[m] || strcmp(r->methods[m], "random") != 0)
            continue;
        for (size_t s = 0; s < r->n_spaces; s++) {
            const kopt_compare_cell *cell = &r->cells[m * r->n_spaces + s];
            random[s] = cell->runs ? cell->score : 0;
        }
    }
    return random;
}

bool cli_compare_below(const kopt_compare_report *r, const double *random, size_t m, size_t s)
{
    return r->cells[m * r->n_spaces + s].score < random[s];
}

/* --- one table of figures ----------------------------------------------------------------- */

struct figure {
    const char *title;
    size_t offset; /* of a double in kopt_compare_cell */
    enum { SHARE, SCORE, COUNT, MICROSECONDS } kind;
    int better; /* 1: larger, -1: smaller, 0: neither */
    size_t error;
};

#define AT(m) offsetof(kopt_compare_cell, m)

static const struct figure figures[] = {
    {"SCORE", AT(score), SCORE, 1, AT(score_error)},
    {"OVER TIME", AT(time_score), SCORE, 1, AT(time_score_error)},
    {"IN 1 %", AT(hits), SHARE, 1, 0},
    {"AT CUTOFF", AT(cutoff_hits), SHARE, 1, 0},
    {"GAP", AT(gap), SHARE, -1, 0},
    {"WORST", AT(worst_gap), SHARE, -1, 0},
    {"TO 1 %", AT(near), COUNT, -1, 0},
    {"/EVAL", AT(search_s), MICROSECONDS, 0, 0},
};

static double value_at(const kopt_compare_cell *cell, size_t offset)
{
    return *(const double *)(const void *)((const char *)cell + offset);
}

static const char *figure_text(const struct cli_term *t, const struct figure *f,
                               const kopt_compare_cell *cell, char out[CLI_NUM])
{
    double v = value_at(cell, f->offset);
    if (!isfinite(v))
        (void)snprintf(out, CLI_NUM, "-");
    else if (f->kind == SHARE)
        return cli_percent(v, out);
    else if (f->kind == COUNT)
        (void)snprintf(out, CLI_NUM, "%.1f", v);
    else if (f->kind == MICROSECONDS)
        return cli_figure(v * 1e6, out);
    else if (isfinite(value_at(cell, f->error)))
        (void)snprintf(out, CLI_NUM, "%.3f %s %.3f", v, cli_sign(t, CLI_PLUS_MINUS),
                       value_at(cell, f->error));
    else
        (void)snprintf(out, CLI_NUM, "%.3f", v);
    return out;
}

/* The cells of one table: of a space, or of all. */
struct part {
    const struct cli_compare_view *v;
    const kopt_compare_report *r;
    const kopt_compare_cell *cells; /* of the first method */
    size_t stride;                  /* to that of the next */
    size_t space;                   /* n_spaces: all of them */
    bool last;                      /* there is a last column: PRIOR, or BELOW RANDOM */
};

static struct part part_of(const struct cli_compare_view *v, const kopt_compare_report *r,
                           size_t space)
{
    if (space == r->n_spaces)
        return (struct part){v, r, r->total, 1, space, true};
    struct part p = {v, r, &r->cells[space], r->n_spaces, space, false};
    for (size_t m = 0; m < r->n_methods; m++)
        p.last = p.last || p.cells[m * p.stride].prior > 0;
    return p;
}

static const kopt_compare_cell *cell_of(const struct part *p, size_t m)
{
    return &p->cells[m * p->stride];
}

/* Those that look alike in the table are all marked. */
static bool is_best(const struct part *p, const struct figure *f, size_t m)
{
    const struct cli_term *t = &p->v->c->out;
    const kopt_compare_cell *mine = cell_of(p, m);
    double v = value_at(mine, f->offset);
    char a[CLI_NUM];
    char b[CLI_NUM];
    if (!f->better || isnan(v) || p->r->n_methods < 2)
        return false;
    for (size_t i = 0; i < p->r->n_methods; i++) {
        double other = value_at(cell_of(p, i), f->offset);
        if (isnan(other) || !((other - v) * f->better > 0))
            continue;
        if (f->kind == SCORE ||
            strcmp(figure_text(t, f, mine, a), figure_text(t, f, cell_of(p, i), b)) != 0)
            return false;
    }
    return true;
}

static unsigned count_below(const struct part *p, size_t m)
{
    unsigned n = 0;
    for (size_t s = 0; s < p->r->n_spaces; s++)
        n += cli_compare_below(p->r, p->v->random, m, s);
    return n;
}

/* A figure with its marks. */
static void add_marked(struct cli_table *t, const char *text, bool best, bool below)
{
    cli_cell(t,
             below  ? CLI_RED
             : best ? CLI_GREEN
                    : CLI_PLAIN,
             "%s%s", text,
             best && below ? "*!"
             : best        ? " *"
             : below       ? " !"
                           : "  ");
}

static void add_figures(struct cli_table *t, const struct part *p, size_t m)
{
    const struct cli_term *term = &p->v->c->out;
    const kopt_compare_cell *cell = cell_of(p, m);
    char text[CLI_NUM];
    bool one = p->space < p->r->n_spaces;
    bool below = one && cli_compare_below(p->r, p->v->random, m, p->space);
    cli_cell(t, CLI_PLAIN, "%s", p->r->methods[m]);
    for (size_t i = 0; i < CLI_LEN(figures); i++) {
        const struct figure *f = &figures[i];
        (void)figure_text(term, f, cell, text);
        if (f->better)
            add_marked(t, text, is_best(p, f, m), below && i == 0);
        else
            cli_cell(t, CLI_PLAIN, "%s", text);
    }
    if (one && p->last)
        cli_cell(t, CLI_PLAIN, "%s", cell->prior ? cli_count((double)cell->prior, text) : "");
    else if (!one)
        cli_cell(t, count_below(p, m) ? CLI_RED : CLI_PLAIN, "%u of %zu", count_below(p, m),
                 p->r->n_spaces);
}

static void print_part(const struct part *p)
{
    struct cli_column columns[2 + CLI_LEN(figures)] = {{"METHOD", CLI_LEFT, CLI_WHOLE}};
    const struct cli_term *term = &p->v->c->out;
    char unit[16];
    char titles[CLI_LEN(figures)][16];
    bool one = p->space < p->r->n_spaces;
    (void)snprintf(unit, sizeof(unit), "%ss/EVAL", cli_sign(term, CLI_MICRO));
    for (size_t i = 0; i < CLI_LEN(figures); i++) /* over the figures, not over their marks */
        (void)snprintf(titles[i], sizeof(titles[i]), "%s  ", figures[i].title);
    for (size_t i = 0; i < CLI_LEN(figures); i++)
        columns[1 + i] = (struct cli_column){figures[i].kind == MICROSECONDS ? unit : titles[i],
                                             CLI_RIGHT, CLI_WHOLE};
    columns[1 + CLI_LEN(figures)] =
        (struct cli_column){one ? "PRIOR" : "BELOW RANDOM", CLI_RIGHT, CLI_WHOLE};
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns) - !p->last);
    for (size_t i = 0; i < p->r->n_methods; i++)
        add_figures(t, p, p->v->order[i]);
    cli_table_print(t, term, 0);
    cli_table_free(t);
}

/* --- spaces ------------------------------------------------------------------------------- */

static void print_space(const struct cli_compare_view *v, const kopt_compare_report *r,
                        size_t s)
{
    struct cli *c = v->c;
    const kopt_recording_info *info = r->spaces[s];
    char n[CLI_NUM];
    char ok[CLI_NUM];
    char budget[CLI_NUM];
    char time[CLI_NUM];
    cli_print(c, "%s%s%s", cli_on(&c->out, CLI_BOLD), info->name, cli_off(&c->out, CLI_BOLD));
    if (r->n_spaces > 1)
        cli_print(c, " (%zu)", s + 1);
    cli_print(c, "  %s configurations, %s ok; budget %s evaluation%s, %s\n",
              cli_count((double)info->n, n),
              cli_count((double)info->by_outcome[KOPT_OUT_OK], ok),
              cli_count((double)r->budget[s], budget), r->budget[s] == 1 ? "" : "s",
              cli_duration(r->budget_s[s], time));
    const struct part p = part_of(v, r, s);
    print_part(&p);
    cli_print(c, "\n");
}

static void score_cell(struct cli_table *t, double score, bool best, bool below)
{
    char text[CLI_NUM] = "-";
    if (!isnan(score))
        (void)snprintf(text, sizeof(text), "%.2f", score);
    add_marked(t, text, best, below);
}

/* The scores alone, methods by spaces. */
static void print_matrix(const struct cli_compare_view *v, const kopt_compare_report *r)
{
    struct cli_column columns[2 + MATRIX_SPACES] = {{"SCORE", CLI_LEFT, CLI_WHOLE}};
    char titles[MATRIX_SPACES][8];
    for (size_t s = 0; s < r->n_spaces; s++) {
        (void)snprintf(titles[s], sizeof(titles[s]), "(%zu)  ", s + 1);
        columns[1 + s] = (struct cli_column){titles[s], CLI_RIGHT, CLI_WHOLE};
    }
    columns[1 + r->n_spaces] = (struct cli_column){"MEAN  ", CLI_RIGHT, CLI_WHOLE};
    struct cli_table *t = cli_table_new(columns, 2 + r->n_spaces);
    for (size_t i = 0; i < r->n_methods; i++) {
        size_t m = v->order[i];
        cli_cell(t, CLI_PLAIN, "%s", r->methods[m]);
        for (size_t s = 0; s < r->n_spaces; s++) {
            const struct part p = part_of(v, r, s);
            score_cell(t, cell_of(&p, m)->score, is_best(&p, &figures[0], m),
                       cli_compare_below(r, v->random, m, s));
        }
        const struct part all = part_of(v, r, r->n_spaces);
        score_cell(t, r->total[m].score, is_best(&all, &figures[0], m), false);
    }
    cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
    cli_print(v->c, "\n");
}

static void print_all(const struct cli_compare_view *v, const kopt_compare_report *r)
{
    struct cli *c = v->c;
    const struct part all = part_of(v, r, r->n_spaces);
    cli_print(c, "%sall %zu spaces%s  means over them\n", cli_on(&c->out, CLI_BOLD),
              r->n_spaces, cli_off(&c->out, CLI_BOLD));
    print_part(&all);
    cli_print(c, "\n");
}

/* --- stopping early ----------------------------------------------------------------------- */

static void print_stops(const struct cli_compare_view *v, const kopt_compare_report *r)
{
    static const struct cli_column columns[] = {
        {"METHOD", CLI_LEFT, CLI_WHOLE},       {"STOPPED", CLI_RIGHT, CLI_WHOLE},
        {"EVALUATIONS", CLI_RIGHT, CLI_WHOLE}, {"OF", CLI_RIGHT, CLI_WHOLE},
        {"LEFT THEN", CLI_RIGHT, CLI_WHOLE},   {"KEPT", CLI_RIGHT, CLI_WHOLE}};
    struct cli *c = v->c;
    char text[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    for (size_t i = 0; i < r->n_methods; i++) {
        const kopt_compare_cell *cell = &r->total[v->order[i]];
        if (r->foreign[v->order[i]] || !cell->runs)
            continue;
        cli_cell(t, CLI_PLAIN, "%s", r->methods[v->order[i]]);
        cli_cell(t, CLI_PLAIN, "%s", cli_percent(cell->stop.stopped, text));
        cli_cell(t, CLI_PLAIN, "%.1f", cell->stop.evaluations);
        cli_cell(t, CLI_PLAIN, "%.1f", cell->evaluations);
        cli_cell(t, CLI_PLAIN, "%s", cli_percent(cell->stop.gap, text));
        cli_cell(t, CLI_PLAIN, "%s", cli_percent(cell->stop.kept, text));
    }
    if (cli_table_rows(t)) {
        cli_print(c,
                  "%sstopping at %s%s  share of runs that stopped before the budget, after "
                  "how many evaluations,\nwhat was then left to gain, and in what share of "
                  "them that was less\n",
                  cli_on(&c->out, CLI_BOLD), cli_percent(v->until, text),
                  cli_off(&c->out, CLI_BOLD));
        cli_table_print(t, &c->out, 0);
        cli_print(c, "\n");
    }
    cli_table_free(t);
}

static const char *const bins[KOPT_CALIBRATION_BINS] = {
    "under 0.5 %", "0.5 to 1 %", "1 to 2 %", "2 to 5 %",
    "5 to 10 %",   "10 to 20 %", "over 20 %"};

static void print_calibration(const struct cli_compare_view *v, const kopt_compare_report *r)
{
    static const struct cli_column columns[] = {{"METHOD", CLI_LEFT, CLI_WHOLE},
                                                {"ESTIMATE", CLI_LEFT, CLI_WHOLE},
                                                {"TIMES", CLI_RIGHT, CLI_WHOLE},
                                                {"MEAN", CLI_RIGHT, CLI_WHOLE},
                                                {"IN TRUTH", CLI_RIGHT, CLI_WHOLE}};
    struct cli *c = v->c;
    char text[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    for (size_t i = 0; i < r->n_methods; i++) {
        const kopt_calibration *k = &r->calibration[v->order[i]];
        bool named = false;
        for (size_t b = 0; b < KOPT_CALIBRATION_BINS; b++) {
            if (!k->n[b])
                continue;
            cli_cell(t, CLI_PLAIN, "%s", named ? "" : r->methods[v->order[i]]);
            cli_cell(t, CLI_PLAIN, "%s", bins[b]);
            cli_cell(t, CLI_PLAIN, "%s", cli_count((double)k->n[b], text));
            cli_cell(t, CLI_PLAIN, "%s", cli_percent(k->estimate[b], text));
            cli_cell(t, CLI_PLAIN, "%s", cli_percent(k->actual[b], text));
            named = true;
        }
    }
    if (cli_table_rows(t)) {
        cli_print(c,
                  "%sestimates%s  of what was left to gain, made at each tenth of the "
                  "budget, and what was\n",
                  cli_on(&c->out, CLI_BOLD), cli_off(&c->out, CLI_BOLD));
        cli_table_print(t, &c->out, 0);
        cli_print(c, "\n");
    }
    cli_table_free(t);
}

/* --- all of it ---------------------------------------------------------------------------- */

void cli_compare_tables(const struct cli_compare_view *v, const kopt_compare_report *r)
{
    char time[CLI_NUM];
    char text[CLI_NUM];
    uint64_t runs = 0;
    for (size_t i = 0; i < r->n_methods * r->n_spaces; i++)
        runs += r->cells[i].runs;
    for (size_t s = 0; s < r->n_spaces; s++)
        print_space(v, r, s);
    if (r->n_spaces > 1 && r->n_spaces <= MATRIX_SPACES)
        print_matrix(v, r);
    if (r->n_spaces > 1)
        print_all(v, r);
    if (v->until > 0) {
        print_stops(v, r);
        print_calibration(v, r);
    }
    cli_print(v->c, "* best of its column   ! below random search\n");
    cli_note(v->c, "%s runs in %s", cli_count((double)runs, text),
             cli_duration(r->wall_s, time));
}
