/* SPDX-License-Identifier: MIT */
/* MIOpen's databases as rows. A solver is a kernel; a find database is one kernel with one
 * parameter, the algorithm. Layer: learn. */
#include "learn/load_impl.h"

#include "store/miopen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALGORITHM "algorithm"

struct walk {
    struct kp_intake *in;
    size_t n_values; /* of a vector; 0: not known yet */
    size_t other;    /* vectors of another length .. */
    size_t other_n;  /* .. the first one's */
    char names[KP_TARGETS_MAX][16];
    struct kp_names solvers;
};

static kopt_status take_vector(struct walk *w, struct kp_cells *c,
                               const struct kp_miopen_row *row)
{
    const struct kp_kernel *rules = w->in->o->rules;
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < row->n_values; i++)
        st = kp_cells_add(c, rules ? rules->params[i].name : w->names[i],
                          kp_str_from(row->values[i]), KP_CELL_CONFIG, w->in->err);
    return st;
}

/* Has the vector as many values as the rules have parameters, or as the first one had? */
static bool fits(struct walk *w, const struct kp_miopen_row *row)
{
    const struct kp_kernel *rules = w->in->o->rules;
    if (w->n_values == 0)
        w->n_values = rules ? rules->n_params : row->n_values;
    if (row->n_values == w->n_values && w->n_values <= KP_TARGETS_MAX)
        return true;
    if (w->other++ == 0)
        w->other_n = row->n_values;
    w->in->report->read++;
    kp_intake_skip(w->in, row->line, "a vector of %zu values, not %zu", row->n_values,
                   w->n_values <= KP_TARGETS_MAX ? w->n_values : (size_t)KP_TARGETS_MAX);
    return false;
}

/* A part of a text key as keys have it: that of a column whose text no other one has. */
static struct kp_str part_as(const struct kp_intake *in, const struct kp_miopen_row *row,
                             struct kp_str part)
{
    struct kp_str as = part;
    size_t same = 0;
    for (size_t i = 0; i < row->n_columns; i++) {
        if (!kp_str_is(part, row->problem[i]))
            continue;
        as = kp_intake_as(in, row->columns[i], part);
        same++;
    }
    return same == 1 ? as : part;
}

/* The row's key with the texts that keys have (kp_load_options' `as`) instead of its own: the
 * columns joined by commas, or a text key's parts between dashes. */
static void make_key(const struct kp_intake *in, const struct kp_miopen_row *row,
                     struct kp_buf *key)
{
    bool text = strchr(row->key, ',') == NULL;
    struct kp_str rest = kp_str_from(row->key);
    for (size_t i = 0; !text && i < row->n_columns; i++) {
        struct kp_str own = kp_str_from(row->problem[i]);
        kp_buf_addf(key, "%s%.*s", i ? "," : "",
                    KP_STR_FMT(kp_intake_as(in, row->columns[i], own)));
    }
    while (text && rest.len > 0) {
        struct kp_str part = kp_str_cut(rest, '-', &rest);
        kp_buf_addf(key, "%s%.*s", key->len ? "-" : "", KP_STR_FMT(part_as(in, row, part)));
    }
}

static kopt_status take_row(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct walk *w = user;
    struct kp_cells c = {0};
    struct kp_buf key = KP_BUF_INIT(KP_LOAD_TEXT_MAX);
    struct kp_row_about about = {.key = row->key, .time_ns = (double)NAN, .line = row->line};
    kopt_status st = KOPT_OK;
    if (!row->algorithm && !fits(w, row))
        return KOPT_OK;
    if (w->in->o->n_as > 0) {
        make_key(w->in, row, &key);
        about.key = kp_buf_text(&key);
        st = kp_buf_status(&key, err);
    }
    for (size_t i = 0; st == KOPT_OK && i < row->n_columns; i++)
        st = kp_cells_add(&c, row->columns[i], kp_str_from(row->problem[i]), KP_CELL_PROBLEM,
                          err);
    if (st == KOPT_OK && row->algorithm) {
        about.time_ns = row->time_ms * 1e6;
        st = kp_cells_add(&c, ALGORITHM, kp_str_from(row->algorithm), KP_CELL_CONFIG, err);
    } else if (st == KOPT_OK) {
        st = take_vector(w, &c, row);
    }
    if (st == KOPT_OK)
        st = kp_intake_row(w->in, c.cells, c.n, &about);
    kp_buf_deinit(&key);
    kp_cells_deinit(&c);
    return st;
}

static kopt_status see_solver(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct walk *w = user;
    return kp_names_add(&w->solvers, &w->in->arena, row->solver) ? KOPT_OK : kp_err_nomem(err);
}

static kopt_status read_rows(struct walk *w, const char *solver, struct kp_miopen_count *count)
{
    struct kp_intake *in = w->in;
    kopt_status st = kp_miopen_read(in->path, solver, take_row, w, count, in->err);
    if (st != KOPT_OK)
        return st;
    if (count->skipped > 0 && in->report->skipped == 0) {
        kp_intake_skip(in, count->first_line, "%s", count->reason);
        in->report->skipped--;
    }
    in->report->skipped += (size_t)count->skipped;
    if (w->other == 0 || in->n_rows > 0 || in->report->left_out > 0)
        return KOPT_OK;
    if (w->n_values <= KP_TARGETS_MAX && in->o->rules)
        return kp_err(in->err, KOPT_EINPUT,
                      "%s: the vectors of '%s' have %zu values, the rules in %s have %zu "
                      "parameters",
                      in->path, in->kernel, w->other_n, in->o->rules->path,
                      in->o->rules->n_params);
    return kp_err(in->err, KOPT_ERANGE, "%s: the vectors of '%s' have more than %d values",
                  in->path, in->kernel, KP_TARGETS_MAX);
}

static kopt_status read_times(struct walk *w, struct kp_miopen_count *count)
{
    struct kp_intake *in = w->in;
    if (in->kernel && strcmp(in->kernel, ALGORITHM) != 0) {
        kopt_status st =
            kp_err(in->err, KOPT_EINPUT, "%s: a find database has no parameters of '%s'",
                   in->path, in->kernel);
        kp_err_hint(in->err,
                    "its rows are those of the kernel '%s', whose parameter is the "
                    "algorithm",
                    ALGORITHM);
        return st;
    }
    in->kernel = ALGORITHM;
    return read_rows(w, NULL, count);
}

static kopt_status unknown(struct walk *w)
{
    struct kp_intake *in = w->in;
    kopt_status st =
        in->kernel
            ? kp_err(in->err, KOPT_EINPUT, "%s: there is no solver '%s'", in->path, in->kernel)
            : kp_err(in->err, KOPT_EINPUT, "%s: which of %zu solvers?", in->path, w->solvers.n);
    kp_intake_hint(in, "there are", w->solvers.names, w->solvers.n);
    return st;
}

kopt_status kp_load_miopen(struct kp_intake *in)
{
    struct walk w = {.in = in};
    struct kp_miopen_count count;
    size_t skipped = in->report->skipped; /* in files before this one */
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < KP_TARGETS_MAX; i++)
        (void)snprintf(w.names[i], sizeof(w.names[i]), "p%zu", i + 1);
    if (in->kernel) {
        st = read_rows(&w, in->kernel, &count);
        if (st != KOPT_OK || count.rows > 0)
            return st;
        in->report->skipped = skipped;
    }
    st = kp_miopen_read(in->path, NULL, see_solver, &w, &count, in->err);
    if (st != KOPT_OK)
        return st;
    if (count.kind == KP_MIOPEN_FIND)
        return read_times(&w, &count);
    if (in->kernel || w.solvers.n != 1)
        return unknown(&w);
    in->kernel = w.solvers.names[0];
    return read_rows(&w, in->kernel, &count);
}
