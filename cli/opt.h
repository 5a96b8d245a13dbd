/* SPDX-License-Identifier: MIT */
/* Commands and their options as tables. One table gives parsing, --help (help.c), completion
 * (complete.c) and the man page (man.c). */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <kopt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_kind {
    CLI_FLAG,    /* bool: --x sets it; with .negatable --no-x clears it */
    CLI_COUNT,   /* int: one more each time */
    CLI_TEXT,    /* const char *: borrowed from argv */
    CLI_INT,     /* int64_t in [min, max] */
    CLI_NUMBER,  /* double in [min, max]; "1%" is 0.01 */
    CLI_SECONDS, /* double in [min, max]: "90", "1.5s", "200ms", "2m", "1h" */
    CLI_CHOICE,  /* int: the index in .choices */
    CLI_CUSTOM   /* .parse */
};

/* What stands behind an option or in a place of the command line, for completion. */
enum cli_complete {
    CLI_COMPLETE_NONE,
    CLI_COMPLETE_FILE,
    CLI_COMPLETE_KERNEL,   /* a kernel file, then NAME= of its problem */
    CLI_COMPLETE_DEVICE,   /* ids of kopt_devices() */
    CLI_COMPLETE_STRATEGY, /* names of kopt_strategy() */
    CLI_COMPLETE_METHOD,   /* the same and what can stand behind them, a list with commas */
    CLI_COMPLETE_NETWORK,  /* names of kopt_network() */
    CLI_COMPLETE_SUBJECT,  /* ids and kernels in the store */
    CLI_COMPLETE_OUTCOME,
    CLI_COMPLETE_COMMAND,
    CLI_COMPLETE_SHELL
};

struct cli_opt {
    const char *name; /* long form without dashes */
    char letter;      /* 0 = none */
    enum cli_kind kind;
    const char *arg;   /* what stands behind it in help: "PATH"; NULL for flags and counts */
    const char *help;  /* a phrase, without full stop */
    const char *group; /* heading in front of it, on the first of each group; may be NULL */
    size_t offset;     /* of its field in the command's options */
    double min;
    double max;
    const char *const *choices; /* NULL-terminated */
    /* Set the field; false: `why` (bytes long) says what is wrong with the value. */
    bool (*parse)(const char *value, void *field, char *why, size_t bytes);
    enum cli_complete complete;
    bool negatable;
    bool shown_negated; /* help shows --no-x, since x is the default */
};

struct cli_example {
    const char *command; /* without "kopt " */
    const char *text;
};

struct cli;
struct cli_args;

struct cli_command {
    const char *name;
    const char *summary; /* one line, lower case, no full stop */
    const char *args;    /* "FILE NAME=VALUE.." */
    const char *about;   /* paragraphs, parted by an empty line; for --help and the man page */
    const struct cli_opt *opts;
    size_t n_opts;
    const struct cli_example *examples;
    size_t n_examples;
    const void *defaults; /* of its options struct */
    size_t options_bytes;
    enum cli_complete complete; /* its words */
    int (*run)(struct cli *c, const struct cli_args *args, const void *options);
    const struct cli_command *const *subs; /* NULL-terminated; then there is no run */
    /* More paragraphs that only the running program knows, for --help; may be NULL. */
    void (*more)(struct cli *c);
    bool hidden;
};

/* Options that every command has. */
struct cli_common {
    int verbose;
    bool quiet;
    int colour; /* enum cli_colour */
    bool help;
    bool version; /* of the program alone */
};
extern const struct cli_opt cli_common_opts[];
extern const size_t cli_n_common_opts;

/* The words that are no options. */
struct cli_args {
    const char **words;
    size_t n;
};

/* Options up to the first word: for commands that have sub-commands. *used gets the number of
 * entries of argv that were taken. */
kopt_status cli_opt_common(int argc, char **argv, struct cli_common *common, int *used,
                           kopt_error *err);

struct cli_parsed {
    struct cli_common *common;
    void *options;        /* the command's; holds the defaults */
    struct cli_args args; /* .words has room for argc entries */
};

/* All of argv (the words behind the command's name). Errors: KOPT_EUSAGE. */
kopt_status cli_opt_parse(const struct cli_command *cmd, int argc, char **argv,
                          struct cli_parsed *p, kopt_error *err);

/* "-d, --device ID", "    --no-flush"; the parts that help, man and completion share. */
void cli_opt_spelling(const struct cli_opt *o, char *out, size_t bytes);

/* --help (help.c). path: "kopt store show". */
void cli_help(struct cli *c, const char *path, const struct cli_command *cmd);
/* The first lines of it, for usage errors: "usage: kopt tune FILE NAME=VALUE.. [options]". */
void cli_usage_line(const char *path, const struct cli_command *cmd, char *out, size_t bytes);
/* kopt.1 (man.c) and the completion scripts (complete.c) on stdout. */
void cli_man(const struct cli_command *root);
void cli_complete_bash(const struct cli_command *root);
void cli_complete_zsh(const struct cli_command *root);

#endif
