/* SPDX-License-Identifier: MIT */
/* Notes of what a model never saw. */
#ifndef CLI_OUTSIDE_H
#define CLI_OUTSIDE_H

#include "cli/cli.h"

#include <kopt/predict.h>

/* One for each value of the problem that the model cannot know (kopt_model_outside()). */
void cli_note_outside(struct cli *c, const kopt_outside *x, size_t n);

#endif
