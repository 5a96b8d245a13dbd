/* SPDX-License-Identifier: MIT */
/* "FILE NAME=VALUE.." on the command line. */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include "cli/cli.h"

struct cli_target {
    const char *file;
    const char **problem; /* borrowed words */
    size_t n_problem;
};

/* Exactly one word without '='. Returns 0, or the exit code after a usage message. The caller
 * frees t->problem. */
int cli_target_get(struct cli *c, const struct cli_args *args, struct cli_target *t);
/* The same for a file that is no kernel; `missing` says that it is not there. */
int cli_target_of(struct cli *c, const struct cli_args *args, const char *missing,
                  struct cli_target *t);

#endif
