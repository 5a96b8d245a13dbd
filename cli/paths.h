/* SPDX-License-Identifier: MIT */
/* Where the store is. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli/cli.h"

#define CLI_STORE_DEFAULT "default: $KOPT_STORE, else ~/.local/share/kopt/kopt.db"

/* `given` (--store) where it is not NULL, else $KOPT_STORE, else $XDG_DATA_HOME/kopt/kopt.db,
 * else
 * ~/.local/share/kopt/kopt.db. The caller frees it. NULL (after an error message) without any.
 */
char *cli_store_path(struct cli *c, const char *given);

/* Make the folders above `path` that are missing. Errors: KOPT_EIO. */
kopt_status cli_make_folders(const char *path, kopt_error *err);

#endif
