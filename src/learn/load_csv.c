/* SPDX-License-Identifier: MIT */
/* CSV files as rows. Layer: learn. */
#include "learn/csv.h"
#include "learn/load_impl.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NONE = -1 };

struct csv {
    struct kp_intake *in;
    struct kp_csv *file;
    const char **names; /* of its columns, in the intake's arena: they may become fields */
    int problem;
    int outcome;
    int time;
    double unit_ns;
};

static const char *value_at(const struct csv *c, int i)
{
    return kp_csv_value(c->file, (size_t)i);
}

/* --- the header ----------------------------------------------------------------------------
 */

static bool is_parameter_or_size(const struct kp_intake *in, const char *name)
{
    const struct kp_kernel *rules = in->o->rules;
    for (size_t i = 0; rules && i < rules->n_params; i++)
        if (strcmp(rules->params[i].name, name) == 0)
            return true;
    for (size_t i = 0; rules && i < rules->n_problem; i++)
        if (strcmp(rules->problem[i], name) == 0)
            return true;
    for (size_t i = 0; i < in->o->n_params; i++)
        if (strcmp(in->o->params[i], name) == 0)
            return true;
    return false;
}

/* A column that has a meaning of its own, or NONE. */
static int special(const struct csv *c, const char *name)
{
    for (size_t i = 0; i < kp_csv_n_columns(c->file); i++)
        if (strcmp(c->names[i], name) == 0 && !is_parameter_or_size(c->in, name))
            return (int)i;
    return NONE;
}

static void find_special(struct csv *c)
{
    static const struct {
        const char *name;
        double ns;
    } times[] = {{"time_ns", 1}, {"time_us", 1e3}, {"us", 1e3}, {"time_ms", 1e6}, {"ms", 1e6}};
    c->problem = special(c, "problem");
    c->outcome = special(c, "outcome");
    c->time = NONE;
    for (size_t i = 0; c->time == NONE && i < sizeof(times) / sizeof(times[0]); i++) {
        c->time = special(c, times[i].name);
        c->unit_ns = times[i].ns;
    }
}

static kopt_status look_at_header(struct csv *c)
{
    struct kp_arena *arena = &c->in->arena;
    size_t n = kp_csv_n_columns(c->file);
    c->names = kp_arena_alloc(arena, n, sizeof(*c->names));
    for (size_t i = 0; c->names && i < n; i++)
        c->names[i] = kp_arena_strndup(arena, kp_csv_column(c->file, i),
                                       strlen(kp_csv_column(c->file, i)));
    if (arena->failed)
        return kp_err_nomem(c->in->err);
    find_special(c);
    if (n >= 2)
        return KOPT_OK;
    int64_t line = kp_csv_header_line(c->file);
    kopt_status st =
        kp_err(c->in->err, KOPT_EINPUT,
               "%s: no file of results: its first line names no columns", c->in->path);
    kp_err_at(c->in->err, c->in->path, (int)(line > INT32_MAX ? INT32_MAX : line), 1, NULL, 0);
    kp_err_hint(c->in->err, KP_LOAD_KINDS);
    return st;
}

/* --- values --------------------------------------------------------------------------------
 */

/* "M=64 N=32", which is cut into pieces. *fine false: it is something else. */
static kopt_status take_problem(struct csv *c, struct kp_cells *cells, bool *fine)
{
    char *p = kp_csv_value(c->file, (size_t)c->problem);
    kopt_status st = KOPT_OK;
    *fine = true;
    for (p += strspn(p, " \t"); st == KOPT_OK && *p; p += strspn(p, " \t")) {
        char *name = p;
        p += strcspn(p, " \t");
        if (*p)
            *p++ = '\0';
        char *equals = strchr(name, '=');
        if (!equals || equals == name || equals[1] == '\0') {
            *fine = false;
            break;
        }
        *equals = '\0';
        st = kp_cells_add(cells, name, kp_str_from(equals + 1), KP_CELL_PROBLEM, c->in->err);
    }
    return st;
}

/* False: it is no time. */
static bool take_time(struct csv *c, double *ns)
{
    const char *outcome = c->outcome == NONE ? "ok" : value_at(c, c->outcome);
    const char *text = c->time == NONE ? "" : value_at(c, c->time);
    *ns = (double)(strcmp(outcome, "ok") == 0 ? NAN : INFINITY);
    if (strcmp(outcome, "ok") != 0 || text[0] == '\0')
        return true;
    bool fine = kp_f64_from_text(kp_str_from(text), ns);
    *ns *= c->unit_ns;
    return fine && isfinite(*ns) && *ns > 0;
}

static kopt_status take_values(struct csv *c, struct kp_cells *cells)
{
    struct kp_intake *in = c->in;
    struct kp_row_about about = {.line = kp_csv_line(c->file)};
    kopt_status st = KOPT_OK;
    bool fine = true;
    if (!take_time(c, &about.time_ns)) {
        in->report->read++;
        kp_intake_skip(in, kp_csv_line(c->file), "the time '%.80s' is no positive number",
                       value_at(c, c->time));
        return KOPT_OK;
    }
    if (c->problem != NONE)
        st = take_problem(c, cells, &fine);
    if (st == KOPT_OK && !fine) {
        in->report->read++;
        kp_intake_skip(in, kp_csv_line(c->file), "the problem is not written as \"M=64 N=32\"");
        return KOPT_OK;
    }
    for (size_t i = 0; st == KOPT_OK && i < kp_csv_n_columns(c->file); i++) {
        bool about_it = (int)i == c->time || (int)i == c->outcome;
        if ((int)i != c->problem)
            st = kp_cells_add(cells, c->names[i], kp_str_from(value_at(c, (int)i)),
                              about_it ? KP_CELL_ABOUT : KP_CELL_COLUMN, in->err);
    }
    return st == KOPT_OK ? kp_intake_row(in, cells->cells, cells->n, &about) : st;
}

static kopt_status take_row(struct csv *c, struct kp_cells *cells)
{
    struct kp_intake *in = c->in;
    const char *broken = kp_csv_broken(c->file);
    size_t n_values = kp_csv_n_values(c->file);
    if (!broken && n_values == kp_csv_n_columns(c->file)) {
        cells->n = 0;
        return take_values(c, cells);
    }
    in->report->read++;
    if (broken)
        kp_intake_skip(in, kp_csv_line(c->file), "%s", broken);
    else
        kp_intake_skip(in, kp_csv_line(c->file), "%zu values, but the header has %zu columns",
                       n_values, kp_csv_n_columns(c->file));
    return KOPT_OK;
}

static kopt_status read_rows(struct csv *c)
{
    struct kp_cells cells = {0};
    bool more = true;
    kopt_status st = look_at_header(c);
    while (st == KOPT_OK) {
        st = kp_csv_next(c->file, &more, c->in->err);
        if (st != KOPT_OK || !more)
            break;
        if (c->in->report->read >= KP_LOAD_ROWS_MAX)
            st = kp_err(c->in->err, KOPT_ERANGE, "%s: more than %d rows", c->in->path,
                        KP_LOAD_ROWS_MAX);
        if (st == KOPT_OK)
            st = take_row(c, &cells);
    }
    kp_cells_deinit(&cells);
    return st;
}

kopt_status kp_load_csv(struct kp_intake *in)
{
    struct csv c = {.in = in};
    in->report->source = KP_SOURCE_CSV;
    kopt_status st = kp_intake_name(in);
    if (st == KOPT_OK)
        st = kp_csv_open(in->path, &c.file, in->err);
    if (st == KOPT_OK)
        st = read_rows(&c);
    kp_csv_close(c.file);
    return st;
}
