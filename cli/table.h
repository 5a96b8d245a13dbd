/* SPDX-License-Identifier: MIT */
/* Tables with aligned columns. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/term.h"

enum cli_align { CLI_LEFT, CLI_RIGHT };

/* What happens to text where the terminal is too narrow. */
enum cli_fit_how {
    CLI_WHOLE,     /* it stays as it is */
    CLI_CUT,       /* its end is left out */
    CLI_CUT_FIRST, /* the same, before CLI_CUT takes anything away */
    CLI_WRAP       /* it goes on below; for the last column */
};

struct cli_column {
    const char *title; /* printed as it is; may be "" */
    enum cli_align align;
    enum cli_fit_how fit;
};

struct cli_table;

/* The columns are copied. Never NULL. */
struct cli_table *cli_table_new(const struct cli_column *columns, size_t n);
void cli_table_free(struct cli_table *t);

/* The next cell, row by row. Control characters are cleaned. */
__attribute__((format(printf, 3, 4))) void cli_cell(struct cli_table *t, enum cli_style style,
                                                    const char *fmt, ...);
/* A line of its own below the row that was just completed, under column `column`. */
__attribute__((format(printf, 4, 5))) void
cli_table_note(struct cli_table *t, size_t column, enum cli_style style, const char *fmt, ...);

size_t cli_table_rows(const struct cli_table *t);
/* How wide it is where nothing is cut. */
size_t cli_table_width(const struct cli_table *t);
/* How wide all but its last column are. */
size_t cli_table_room(const struct cli_table *t);
/* Titles (unless all are "") and rows. */
void cli_table_print(const struct cli_table *t, const struct cli_term *term, size_t indent);

#endif
