/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <signal.h>

int main(int argc, char **argv)
{
    /* Whoever started us may ignore it, which is inherited: ended workers leave no status then.
     */
    (void)signal(SIGCHLD, SIG_DFL); /* NOLINT(cert-err33-c): cannot fail for this signal */
    /* A file over its size limit is then an error of writing, as on a full disk. */
    (void)signal(SIGXFSZ, SIG_IGN); /* NOLINT(cert-err33-c): as above */
    return cli_main(argc, argv, cli_probe_system());
}
