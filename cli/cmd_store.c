/* SPDX-License-Identifier: MIT */
/* kopt store: the parent of its commands. */
#include "cli/cmds.h"

static const struct cli_command *const subs[] = {&cli_cmd_store_list,     &cli_cmd_store_show,
                                                 &cli_cmd_store_result,   &cli_cmd_store_best,
                                                 &cli_cmd_store_failures, &cli_cmd_store_runs,
                                                 &cli_cmd_store_compare,  &cli_cmd_store_export,
                                                 &cli_cmd_store_import,   NULL};

const struct cli_command cli_cmd_store = {
    .name = "store",
    .summary = "look at what was measured; compare, export, import",
    .args = "COMMAND",
    .about =
        "The store is one SQLite file: --store PATH, else $KOPT_STORE, else "
        "$XDG_DATA_HOME/kopt/kopt.db, else ~/.local/share/kopt/kopt.db. Only import writes "
        "to it.",
    .subs = subs,
};
