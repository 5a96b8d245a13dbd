/* SPDX-License-Identifier: MIT */
/* From argv to a command and its options. */
#include "cli/cli.h"
#include "cli/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_terms(struct cli *c, const struct cli_common *common,
                      const struct cli_probe *probe)
{
    enum cli_colour when = (enum cli_colour)common->colour;
    cli_term_init(&c->out, stdout, STDOUT_FILENO, when, probe);
    cli_term_init(&c->err, stderr, STDERR_FILENO, when, probe);
    c->verbosity = common->quiet ? -1 : common->verbose;
}

static const char *next_command(const void *user, size_t i)
{
    const struct cli_command *cmd = user;
    size_t at = 0;
    for (size_t k = 0; cmd->subs[k]; k++)
        if (!cmd->subs[k]->hidden && at++ == i)
            return cmd->subs[k]->name;
    return NULL;
}

static const struct cli_command *find_sub(const struct cli_command *cmd, const char *name)
{
    for (size_t i = 0; cmd->subs[i]; i++)
        if (strcmp(cmd->subs[i]->name, name) == 0)
            return cmd->subs[i];
    return NULL;
}

static int unknown_command(struct cli *c, const char *name)
{
    char hint[128];
    const char *near = cli_nearest(name, next_command, c->command);
    if (near)
        (void)snprintf(hint, sizeof(hint), "did you mean '%s %s'?", c->path, near);
    else
        (void)snprintf(hint, sizeof(hint), "%s --help lists the commands", c->path);
    return cli_failf(c, KOPT_EUSAGE, hint, "there is no command '%s %s'", c->path, name);
}

/* The command line as one text, quoted so that a shell reads it back. */
static char *join(int argc, char **argv)
{
    struct cli_text t = {0};
    for (int i = 0; i < argc; i++) {
        if (i)
            cli_text_adds(&t, " ");
        cli_text_quote(&t, i ? argv[i] : "kopt");
    }
    return t.ptr;
}

/* A full disk or a closed pipe behind stdout is a failure of ours. */
static int finish(struct cli *c, int code)
{
    if (cli_flush(c) && !ferror(stdout))
        return code;
    int e = c->write_error; /* 0: it was stdio that wrote, and nothing was left to try again */
    const char *why = e ? strerror(e) : ""; /* NOLINT(concurrency-mt-unsafe) */
    int failed = cli_failf(c, e == ENOSPC || e == EDQUOT ? KOPT_EFULL : KOPT_EIO, NULL,
                           "cannot write the results%s%s", why[0] ? ": " : "", why);
    return code ? code : failed;
}

static int run_leaf(struct cli *c, int argc, char **argv, struct cli_common *common,
                    const struct cli_probe *probe)
{
    const struct cli_command *cmd = c->command;
    struct cli_parsed p = {common,
                           cli_alloc(1, cmd->options_bytes),
                           {cli_alloc((size_t)argc + 1, sizeof(char *)), 0}};
    kopt_error err;
    if (cmd->defaults)
        memcpy(p.options, cmd->defaults, cmd->options_bytes);
    kopt_status st = cli_opt_parse(cmd, argc, argv, &p, &err);
    set_terms(c, common, probe);
    int code = CLI_EXIT_DONE;
    if (st != KOPT_OK)
        code = cli_fail(c, &err);
    else if (common->help)
        cli_help(c, c->path, cmd);
    else
        code = cmd->run(c, &p.args, p.options);
    cli_free(p.args.words);
    free(p.options);
    return code;
}

static int dispatch(struct cli *c, int argc, char **argv, const struct cli_probe *probe)
{
    struct cli_common common = {0};
    char path[128] = "kopt";
    c->path = path;
    int at = 1;
    while (c->command->subs) {
        kopt_error err;
        int used = 0;
        kopt_status st = cli_opt_common(argc - at, argv + at, &common, &used, &err);
        set_terms(c, &common, probe);
        if (st != KOPT_OK)
            return cli_fail(c, &err);
        at += used;
        if (common.version) {
            cli_print(c, "kopt %s\n", kopt_version());
            return CLI_EXIT_DONE;
        }
        /* "kopt store help list" is "kopt store list --help". */
        if (c->command != c->root && at < argc && strcmp(argv[at], "help") == 0) {
            common.help = true;
            at++;
        }
        const struct cli_command *sub = at < argc ? find_sub(c->command, argv[at]) : NULL;
        if (at < argc && !sub)
            return unknown_command(c, argv[at]);
        if (!sub && common.help) {
            cli_help(c, path, c->command);
            return CLI_EXIT_DONE;
        }
        if (!sub) {
            c->out = c->err; /* help that nobody asked for is a message */
            cli_help(c, path, c->command);
            return CLI_EXIT_USAGE;
        }
        size_t n = strlen(path);
        (void)snprintf(path + n, sizeof(path) - n, " %s", sub->name);
        c->command = sub;
        at++;
    }
    return run_leaf(c, argc - at, argv + at, &common, probe);
}

int cli_main(int argc, char **argv, const struct cli_probe *probe)
{
    struct cli c = {.root = &cli_root, .command = &cli_root};
    char *line = join(argc, argv);
    c.line = line ? line : "kopt";
    if (strcmp(kopt_version(), KOPT_VERSION) != 0) {
        struct cli_common common = {0};
        set_terms(&c, &common, probe);
        cli_warn(&c, "the program is version %s, libkopt is %s", KOPT_VERSION, kopt_version());
    }
    int code = finish(&c, dispatch(&c, argc, argv, probe));
    free(line);
    free(c.store_words);
    return code;
}
