/* SPDX-License-Identifier: MIT */
/* Options of the commands that learn and judge, and the rules files that come with kopt. */
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include "cli/cli.h"

/* An option that may be given several times; the words are argv's. */
enum { CLI_WORDS_MAX = 64 };
struct cli_words {
    const char *words[CLI_WORDS_MAX];
    size_t n;
};
/* For CLI_CUSTOM: any text; COLUMN=TEXT. */
bool cli_parse_word(const char *value, void *field, char *why, size_t bytes);
bool cli_parse_where(const char *value, void *field, char *why, size_t bytes);
/* NULL where there are none, as the library wants it. */
const char *const *cli_words(const struct cli_words *w);

#define CLI_RULES_PLACES "$KOPT_SHARE, else beside the program"

/* The file of the built-in rules `name`: kernels/NAME.kopt or kernels/miopen/NAME.kopt in
 * $KOPT_SHARE, else in the folder share/kopt beside the program's. The caller frees it. NULL:
 * there is none of that name. */
char *cli_built_in_rules(struct cli *c, const char *name);
/* "ConvAsm1x1U, .." sorted; the caller frees it. */
char *cli_built_in_names(struct cli *c);

/* What --rules names: a file, else built-in rules. The caller frees it. NULL, after a message:
 * neither. */
char *cli_rules_path(struct cli *c, const char *given);

/* A model: the file `given`, else the one of that name that comes with kopt
 * (models/NAME.model, models/DEVICE/NAME.model), else `given`. The caller frees it. */
char *cli_model_path(struct cli *c, const char *given);
/* Where there is no such file: a hint to the models that come with kopt. */
void cli_model_hint(const char *path, kopt_error *err);
/* The model that `given` names, as kopt_model_open(), with that hint. */
kopt_status cli_model_open(struct cli *c, const char *given, kopt_model **out, kopt_error *err);

/* Not both of --device and --device-limits: 0, or the exit code after a usage message. */
int cli_one_device(struct cli *c, const char *device, const char *limits);

#endif
