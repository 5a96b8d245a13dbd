/* SPDX-License-Identifier: MIT */
/* The commands, each with its table. */
#ifndef CLI_CMDS_H
#define CLI_CMDS_H

#include "cli/cli.h"

extern const struct cli_command cli_cmd_devices;
extern const struct cli_command cli_cmd_space;
extern const struct cli_command cli_cmd_tune;
extern const struct cli_command cli_cmd_compare;
extern const struct cli_command cli_cmd_train;
extern const struct cli_command cli_cmd_eval;
extern const struct cli_command cli_cmd_predict;
extern const struct cli_command cli_cmd_export;
extern const struct cli_command cli_cmd_store;
extern const struct cli_command cli_cmd_completion;
extern const struct cli_command cli_cmd_help;
extern const struct cli_command cli_cmd_version;
extern const struct cli_command cli_cmd_man;
extern const struct cli_command cli_cmd_complete;

/* of store */
extern const struct cli_command cli_cmd_store_list;
extern const struct cli_command cli_cmd_store_show;
extern const struct cli_command cli_cmd_store_result;
extern const struct cli_command cli_cmd_store_best;
extern const struct cli_command cli_cmd_store_failures;
extern const struct cli_command cli_cmd_store_runs;
extern const struct cli_command cli_cmd_store_compare;
extern const struct cli_command cli_cmd_store_export;
extern const struct cli_command cli_cmd_store_import;

#define CLI_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
