/* SPDX-License-Identifier: MIT */
#include "cli/target.h"
#include "cli/mem.h"

#include <stdlib.h>
#include <string.h>

int cli_target_of(struct cli *c, const struct cli_args *args, const char *missing,
                  struct cli_target *t)
{
    memset(t, 0, sizeof(*t));
    t->problem = cli_alloc(args->n + 1, sizeof(*t->problem));
    for (size_t i = 0; i < args->n; i++) {
        const char *word = args->words[i];
        if (strchr(word, '=')) {
            t->problem[t->n_problem++] = word;
        } else if (!t->file) {
            t->file = word;
        } else {
            return cli_usage(c, "'%s' is neither an option nor NAME=VALUE", word);
        }
    }
    if (!t->file)
        return cli_usage(c, "%s", missing);
    return 0;
}

int cli_target_get(struct cli *c, const struct cli_args *args, struct cli_target *t)
{
    return cli_target_of(c, args, "the kernel file is missing", t);
}
