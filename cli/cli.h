/* SPDX-License-Identifier: MIT */
/* What every command of the program gets, its messages and its exit codes. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/opt.h"
#include "cli/term.h"

#include <kopt/kopt.h>

/* docs/exit-codes.md */
enum cli_exit {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_FAILED = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_ENVIRONMENT = 3,
    CLI_EXIT_INPUT = 4,
    CLI_EXIT_INTERRUPTED = 130
};

struct cli {
    struct cli_term out; /* stdout: results */
    struct cli_term err; /* stderr: messages and progress */
    int verbosity;       /* -1 quiet, 0, 1, 2 */
    const char *line;    /* the command line, for the store */
    const char *path;    /* "kopt store show", for messages */
    char *store_words;   /* " --store PATH" where it was given, to go behind the commands that
                            messages name; else NULL */
    int write_error;     /* errno of the first result that could not be written; 0 = none */
    const struct cli_command *root;
    const struct cli_command *command;
};

/* The exit code of a status. */
int cli_exit_of(kopt_status status);

/* Print an error (message, position with excerpt and caret, hint) and return its exit code. */
int cli_fail(struct cli *c, const kopt_error *err);
/* The same for an error of the command's own; `hint` may be NULL. */
__attribute__((format(printf, 4, 5))) int cli_failf(struct cli *c, kopt_status status,
                                                    const char *hint, const char *fmt, ...);
/* A usage error: adds the usage line of the command. */
__attribute__((format(printf, 2, 3))) int cli_usage(struct cli *c, const char *fmt, ...);

__attribute__((format(printf, 2, 3))) void cli_warn(struct cli *c, const char *fmt, ...);
/* "kopt: ..." unless -q. */
__attribute__((format(printf, 2, 3))) void cli_note(struct cli *c, const char *fmt, ...);

/* "kopt store list --store my.db shows what there is": a hint that names a command (`words`,
 * "list", with the command's arguments) of the store in use, and what it `does`. */
enum { CLI_HINT = 256 };
const char *cli_see(const struct cli *c, const char *words, const char *does,
                    char out[CLI_HINT]);
/* " --store PATH", or "" for the store that commands find by themselves. */
const char *cli_store_words(const struct cli *c);

/* Results that were printed leave the program. False: they cannot be written. */
bool cli_flush(struct cli *c);

/* printf on stdout. */
__attribute__((format(printf, 2, 3))) void cli_print(struct cli *c, const char *fmt, ...);

/* The tables of commands (commands.c). */
extern const struct cli_command cli_root;

/* Run the program: argv[0] is its name. */
int cli_main(int argc, char **argv, const struct cli_probe *probe);

#endif
