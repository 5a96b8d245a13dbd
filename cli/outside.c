/* SPDX-License-Identifier: MIT */
#include "cli/outside.h"

#include "cli/mem.h"

#include <stdlib.h>

enum { WORDS_SHOWN = 8 };

static void note(struct cli *c, const kopt_outside *x)
{
    struct cli_text words = {0};
    if (!x->words && x->low == x->high) {
        cli_note(c, "%s=%s is not what the model learned from (%.15g alone)", x->field,
                 x->value, x->low);
        return;
    }
    if (!x->words) {
        cli_note(c, "%s=%s is outside of what the model learned from (%.15g to %.15g)",
                 x->field, x->value, x->low, x->high);
        return;
    }
    for (size_t i = 0; i < x->n_words && i < WORDS_SHOWN; i++)
        cli_text_addf(&words, "%s%s", i ? ", " : "", x->words[i]);
    cli_note(c, "%s=%s is none of the words that the model learned from (%s%s)", x->field,
             x->value, words.ptr ? words.ptr : "", x->n_words > WORDS_SHOWN ? ", .." : "");
    free(words.ptr);
}

void cli_note_outside(struct cli *c, const kopt_outside *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        note(c, &x[i]);
}
