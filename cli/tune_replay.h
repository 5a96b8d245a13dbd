/* SPDX-License-Identifier: MIT */
/* kopt tune --replay: search a recorded space. */
#ifndef CLI_TUNE_REPLAY_H
#define CLI_TUNE_REPLAY_H

#include "cli/cli.h"
#include "cli/tune_opts.h"

/* The command with --replay; returns the exit code. */
int cli_tune_replay(struct cli *c, const struct cli_args *args,
                    const struct cli_tune_options *o);

#endif
