/* SPDX-License-Identifier: MIT */
#include "cli/table.h"
#include "cli/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, SHRUNK_MIN = 12, WRAPPED_MIN = 40 };

struct cell {
    const char *text; /* owned by the table */
    enum cli_style style;
    size_t note_under; /* 0 = an ordinary cell; else a note under column note_under - 1 */
};

struct cli_table {
    struct cli_column *columns;
    size_t n_columns;
    struct cell *cells;
    size_t n;
    size_t cap;
    size_t n_notes;
};

struct cli_table *cli_table_new(const struct cli_column *columns, size_t n)
{
    struct cli_table *t = cli_alloc(1, sizeof(*t));
    t->columns = cli_alloc(n, sizeof(*t->columns));
    memcpy(t->columns, columns, n * sizeof(*columns));
    for (size_t i = 0; i < n; i++)
        t->columns[i].title = cli_strdup(columns[i].title);
    t->n_columns = n;
    return t;
}

void cli_table_free(struct cli_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_columns; i++)
        cli_free(t->columns[i].title);
    for (size_t i = 0; i < t->n; i++)
        cli_free(t->cells[i].text);
    free(t->columns);
    free(t->cells);
    free(t);
}

__attribute__((format(printf, 4, 0))) static void
add(struct cli_table *t, size_t note_under, enum cli_style style, const char *fmt, va_list ap)
{
    char text[1200];
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    t->cells = cli_grow(t->cells, &t->cap, t->n, sizeof(*t->cells));
    t->cells[t->n++] = (struct cell){cli_clean(text, false), style, note_under};
}

void cli_cell(struct cli_table *t, enum cli_style style, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(t, 0, style, fmt, ap);
    va_end(ap);
}

void cli_table_note(struct cli_table *t, size_t column, enum cli_style style, const char *fmt,
                    ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(t, column + 1, style, fmt, ap);
    va_end(ap);
    t->n_notes++;
}

size_t cli_table_rows(const struct cli_table *t)
{
    return (t->n - t->n_notes) / t->n_columns;
}

/* Widths of all columns; returns the line's. */
static size_t measure(const struct cli_table *t, size_t indent, size_t *widths)
{
    for (size_t i = 0; i < t->n_columns; i++)
        widths[i] = cli_columns(t->columns[i].title);
    size_t column = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->cells[i].note_under)
            continue;
        size_t w = cli_columns(t->cells[i].text);
        if (w > widths[column])
            widths[column] = w;
        column = column + 1 < t->n_columns ? column + 1 : 0;
    }
    size_t total = indent;
    for (size_t i = 0; i < t->n_columns; i++)
        total += widths[i] + (i ? GAP : 0);
    return total;
}

size_t cli_table_width(const struct cli_table *t)
{
    size_t *widths = cli_alloc(t->n_columns, sizeof(*widths));
    size_t total = measure(t, 0, widths);
    free(widths);
    return total;
}

size_t cli_table_room(const struct cli_table *t)
{
    size_t *widths = cli_alloc(t->n_columns, sizeof(*widths));
    size_t total = measure(t, 0, widths) - widths[t->n_columns - 1];
    free(widths);
    return total;
}

/* Take columns away from the widest ones that may shrink. */
static void shrink(const struct cli_table *t, size_t total, size_t room, size_t *widths)
{
    const struct cli_column *last = &t->columns[t->n_columns - 1];
    size_t *wrapped = &widths[t->n_columns - 1];
    if (last->fit == CLI_WRAP && *wrapped > WRAPPED_MIN)
        total -= *wrapped - WRAPPED_MIN;
    enum cli_fit_how fit = CLI_CUT_FIRST;
    while (total > room) {
        size_t widest = t->n_columns;
        for (size_t i = 0; i < t->n_columns; i++)
            if (t->columns[i].fit == fit && widths[i] > SHRUNK_MIN &&
                (widest == t->n_columns || widths[i] > widths[widest]))
                widest = i;
        if (widest == t->n_columns && fit == CLI_CUT)
            return;
        if (widest == t->n_columns) {
            fit = CLI_CUT;
            continue;
        }
        widths[widest]--;
        total--;
    }
}

static void add_spaces(struct cli_text *line, size_t n)
{
    while (n--)
        cli_text_add(line, " ", 1);
}

static void add_cell(struct cli_text *line, const struct cli_term *term,
                     const struct cli_column *column, const struct cell *cell, size_t width)
{
    size_t columns = cli_columns(cell->text);
    size_t bytes = strlen(cell->text);
    const char *cut = "";
    if (columns > width && (column->fit == CLI_CUT || column->fit == CLI_CUT_FIRST)) {
        bytes = cli_fit(cell->text, width - 1);
        cut = cli_sign(term, CLI_ELLIPSIS);
        columns = cli_columns_n(cell->text, bytes) + 1;
    }
    if (column->align == CLI_RIGHT)
        add_spaces(line, width - columns);
    if (bytes)
        cli_text_addf(line, "%s%.*s%s%s", cli_on(term, cell->style), (int)bytes, cell->text,
                      cut, cli_off(term, cell->style));
    if (column->align == CLI_LEFT && width > columns)
        add_spaces(line, width - columns);
}

static void end_line(struct cli_text *line, const struct cli_term *term)
{
    while (line->len && line->ptr[line->len - 1] == ' ')
        line->len--;
    if (line->len)
        (void)fwrite(line->ptr, 1, line->len, term->file);
    (void)fputc('\n', term->file);
    line->len = 0;
}

/* `text` from column `at` on, going on below where it does not fit; the line ends. */
static void add_wrapped(struct cli_text *line, const struct cli_term *term, const char *text,
                        enum cli_style style, size_t at)
{
    size_t room = term->width > 0 && (size_t)term->width > at + SHRUNK_MIN
                      ? (size_t)term->width - at
                      : SIZE_MAX;
    while (cli_columns(text) > room) {
        size_t n = cli_fit(text, room);
        size_t space = n;
        while (space && text[space] != ' ')
            space--;
        n = space ? space : n;
        cli_text_addf(line, "%s%.*s%s", cli_on(term, style), (int)n, text,
                      cli_off(term, style));
        end_line(line, term);
        add_spaces(line, at);
        text += n;
        text += strspn(text, " ");
    }
    if (text[0])
        cli_text_addf(line, "%s%s%s", cli_on(term, style), text, cli_off(term, style));
    end_line(line, term);
}

static void print_titles(const struct cli_table *t, const struct cli_term *term, size_t indent,
                         const size_t *widths, struct cli_text *line)
{
    bool titled = false;
    for (size_t i = 0; i < t->n_columns; i++)
        titled = titled || t->columns[i].title[0];
    if (!titled)
        return;
    for (size_t i = 0; i < t->n_columns; i++) {
        struct cell cell = {t->columns[i].title, CLI_DIM, 0};
        add_spaces(line, i ? GAP : indent);
        add_cell(line, term, &t->columns[i], &cell, widths[i]);
    }
    end_line(line, term);
}

static size_t note_place(const struct cell *cell, size_t indent, const size_t *widths)
{
    size_t at = indent;
    for (size_t k = 0; k + 1 < cell->note_under; k++)
        at += widths[k] + GAP;
    return at;
}

void cli_table_print(const struct cli_table *t, const struct cli_term *term, size_t indent)
{
    size_t *widths = cli_alloc(t->n_columns, sizeof(*widths));
    size_t total = measure(t, indent, widths);
    if (term->width > 0)
        shrink(t, total, (size_t)term->width, widths);
    struct cli_text line = {0};
    print_titles(t, term, indent, widths, &line);
    size_t column = 0;
    size_t at = indent; /* where the next cell begins */
    for (size_t i = 0; i < t->n; i++) {
        const struct cell *cell = &t->cells[i];
        if (cell->note_under) {
            at = note_place(cell, indent, widths);
            add_spaces(&line, at);
            add_wrapped(&line, term, cell->text, cell->style, at);
            at = indent;
            continue;
        }
        add_spaces(&line, column ? GAP : indent);
        at += column ? GAP : 0;
        if (t->columns[column].fit == CLI_WRAP)
            add_wrapped(&line, term, cell->text, cell->style, at);
        else
            add_cell(&line, term, &t->columns[column], cell, widths[column]);
        at += widths[column];
        column = column + 1 < t->n_columns ? column + 1 : 0;
        if (column == 0) {
            if (t->columns[t->n_columns - 1].fit != CLI_WRAP)
                end_line(&line, term);
            at = indent;
        }
    }
    free(line.ptr);
    free(widths);
}
