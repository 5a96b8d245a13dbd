/* SPDX-License-Identifier: MIT */
/* Rows of option tables that several commands have. `s` is the type of a command's options,
 * whose field has the name that stands here; help and heading (or NULL) are its own. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "cli/paths.h"
#include "cli/rules.h"

/* const char *device */
#define CLI_ROW_DEVICE(s, text, heading)                                              \
    {                                                                                 \
        .name = "device", .letter = 'd', .kind = CLI_TEXT, .arg = "ID",               \
        .complete = CLI_COMPLETE_DEVICE, .offset = offsetof(s, device), .help = text, \
        .group = heading                                                              \
    }

/* const char *limits */
#define CLI_ROW_LIMITS(s, text, heading)                               \
    {                                                                  \
        .name = "device-limits", .kind = CLI_TEXT, .arg = "NAME=N,..", \
        .offset = offsetof(s, limits), .help = text, .group = heading  \
    }
#define CLI_LIMITS_BY_HAND "max_threads=1024,shared_bytes=49152,cc=90; those that the rules use"

/* int64_t width */
#define CLI_ROW_WIDTH(s, text, heading)                                      \
    {                                                                        \
        .name = "width", .kind = CLI_INT, .arg = "N", .min = 1, .max = 4096, \
        .offset = offsetof(s, width), .help = text, .group = heading         \
    }

/* struct cli_words where */
#define CLI_ROW_WHERE(s, text, heading)                                                        \
    {                                                                                          \
        .name = "where", .kind = CLI_CUSTOM, .arg = "COLUMN=TEXT",                             \
        .offset = offsetof(s, where), .parse = cli_parse_where, .help = text, .group = heading \
    }
#define CLI_WHERE_HELP \
    "use the rows that have this text in that column; again for another column"

/* int64_t threads */
#define CLI_ROW_THREADS(s, text, heading)                                                     \
    {                                                                                         \
        .name = "threads", .letter = 'j', .kind = CLI_INT, .arg = "N", .min = 1, .max = 1024, \
        .offset = offsetof(s, threads), .help = text, .group = heading                        \
    }

/* int64_t seed */
#define CLI_ROW_SEED(s, text, heading)                                      \
    {                                                                       \
        .name = "seed", .kind = CLI_INT, .arg = "S", .min = 1, .max = 9e18, \
        .offset = offsetof(s, seed), .help = text, .group = heading         \
    }

/* bool json */
#define CLI_ROW_JSON(s, text, heading)                                               \
    {                                                                                \
        .name = "json", .kind = CLI_FLAG, .offset = offsetof(s, json), .help = text, \
        .group = heading                                                             \
    }
#define CLI_JSON_HELP "one JSON object a line"

/* const char *store */
#define CLI_ROW_STORE(s, text, heading)                                                  \
    {                                                                                    \
        .name = "store", .kind = CLI_TEXT, .arg = "PATH", .complete = CLI_COMPLETE_FILE, \
        .offset = offsetof(s, store), .help = text " (" CLI_STORE_DEFAULT ")",           \
        .group = heading                                                                 \
    }

#endif
