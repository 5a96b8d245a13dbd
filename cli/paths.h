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

#define CLI_CACHE_DEFAULT "kept in ~/.cache/kopt/images"

/* $XDG_CACHE_HOME/kopt/images, else ~/.cache/kopt/images. The caller frees it. NULL, without a
 * message: there is no place. */
char *cli_compile_cache_path(struct cli *c);

/* Make the folders above `path` that are missing. Errors: KOPT_EIO. */
kopt_status cli_make_folders(const char *path, kopt_error *err);

#endif
