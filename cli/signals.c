/* SPDX-License-Identifier: MIT */
#include "cli/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* What the handler needs. */
static const char *volatile said;
static void (*volatile stops)(void);
static volatile sig_atomic_t seen;
static volatile sig_atomic_t silent;

static void on_signal(int number)
{
    (void)number;
    if (seen) {
        (void)!write(STDERR_FILENO, "\n", 1);
        _exit(CLI_EXIT_INTERRUPTED);
    }
    seen = 1;
    if (stops)
        stops();
    if (!silent)
        (void)!write(STDERR_FILENO, said, strlen(said));
}

void cli_signals_catch(const struct cli *c, const char *first, void (*stop)(void))
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    said = first;
    stops = stop;
    silent = c->verbosity < 0;
    seen = 0;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* NOLINT(cert-err33-c): cannot fail for this signal */
}

bool cli_signals_seen(void)
{
    return seen;
}
