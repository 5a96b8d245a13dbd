/* SPDX-License-Identifier: MIT */
/* Interrupting long work: the first SIGINT, SIGTERM or SIGHUP asks it to end in order, the
 * second ends the program. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "cli/cli.h"

/* `first` (static text) is said at the first signal, unless quiet; `stop` (async-signal-safe,
 * or NULL) is called then. A reader of standard output who goes (SIGPIPE) is no signal. One
 * piece of work in the program at a time. */
void cli_signals_catch(const struct cli *c, const char *first, void (*stop)(void));
/* Has one come since? */
bool cli_signals_seen(void);

#endif
