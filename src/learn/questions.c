/* SPDX-License-Identifier: MIT */
#include "learn/questions.h"

#include "learn/csv.h"
#include "learn/load_impl.h"
#include "store/miopen.h"

struct walk {
    kp_question_visit visit;
    void *user;
};

static kopt_status take_row(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    const struct walk *w = user;
    const struct kp_question q = {
        .names = row->columns, .values = row->problem, .n = row->n_columns, .line = row->line};
    return w->visit(w->user, &q, err);
}

static kopt_status take_csv_row(const struct walk *w, struct kp_csv *c, kopt_error *err)
{
    const char *names[KP_CSV_COLUMNS_MAX];
    const char *values[KP_CSV_COLUMNS_MAX];
    struct kp_question q = {
        .names = names, .values = values, .line = kp_csv_line(c), .broken = kp_csv_broken(c)};
    if (!q.broken && kp_csv_n_values(c) != kp_csv_n_columns(c))
        q.broken = "not as many values as the header has columns";
    for (size_t i = 0; !q.broken && i < kp_csv_n_columns(c); i++) {
        names[q.n] = kp_csv_column(c, i);
        values[q.n++] = kp_csv_value(c, i);
    }
    return w->visit(w->user, &q, err);
}

static kopt_status walk_csv(const char *path, const struct walk *w, kopt_error *err)
{
    struct kp_csv *c = NULL;
    bool more = true;
    kopt_status st = kp_csv_open(path, &c, err);
    while (st == KOPT_OK) {
        st = kp_csv_next(c, &more, err);
        if (st != KOPT_OK || !more)
            break;
        st = take_csv_row(w, c, err);
    }
    kp_csv_close(c);
    return st;
}

kopt_status kp_questions(const char *path, kp_question_visit visit, void *user, kopt_error *err)
{
    struct walk w = {visit, user};
    struct kp_miopen_count count;
    bool miopen = false;
    kopt_status st = kp_load_is_miopen(path, &miopen, err);
    if (st != KOPT_OK)
        return st;
    return miopen ? kp_miopen_read(path, NULL, take_row, &w, &count, err)
                  : walk_csv(path, &w, err);
}
