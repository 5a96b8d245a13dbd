/* SPDX-License-Identifier: MIT */
/* kopt help, version, completion; and what the completion scripts and the man page call. */
#include "cli/cmds.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/rows.h"

#include <stdlib.h>
#include <string.h>

/* --- help --------------------------------------------------------------------------------- */

static int run_help(struct cli *c, const struct cli_args *args, const void *options)
{
    (void)options;
    const struct cli_command *cmd = c->root;
    char path[128] = "kopt";
    for (size_t i = 0; i < args->n; i++) {
        const struct cli_command *found = NULL;
        for (size_t k = 0; cmd->subs && cmd->subs[k]; k++)
            if (strcmp(cmd->subs[k]->name, args->words[i]) == 0)
                found = cmd->subs[k];
        if (!found)
            return cli_failf(c, KOPT_EUSAGE, "kopt --help lists the commands",
                             "there is no command '%s %s'", path, args->words[i]);
        size_t n = strlen(path);
        (void)snprintf(path + n, sizeof(path) - n, " %s", found->name);
        cmd = found;
    }
    cli_help(c, path, cmd);
    return CLI_EXIT_DONE;
}

const struct cli_command cli_cmd_help = {
    .name = "help",
    .summary = "show help on a command",
    .args = "[COMMAND]",
    .about = "The same as COMMAND --help.",
    .complete = CLI_COMPLETE_COMMAND,
    .run = run_help,
};

/* --- version ------------------------------------------------------------------------------ */

struct version_options {
    bool json;
};

static int run_version(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct version_options *o = options;
    if (args->n)
        return cli_usage(c, "'%s' is one word too many", args->words[0]);
    if (o->json) {
        struct cli_json j = cli_json_begin(stdout, "version");
        cli_json_str(&j, "kopt", KOPT_VERSION);
        cli_json_str(&j, "libkopt", kopt_version());
        cli_json_end(&j);
        return CLI_EXIT_DONE;
    }
    cli_print(c, "kopt %s (libkopt %s)\n", KOPT_VERSION, kopt_version());
    return CLI_EXIT_DONE;
}

static const struct cli_opt version_opts[] = {
    CLI_ROW_JSON(struct version_options, "as one JSON object", NULL),
};

const struct cli_command cli_cmd_version = {
    .name = "version",
    .summary = "print the versions of the program and of libkopt",
    .args = "",
    .opts = version_opts,
    .n_opts = CLI_LEN(version_opts),
    .options_bytes = sizeof(struct version_options),
    .run = run_version,
};

/* --- completion --------------------------------------------------------------------------- */

static int run_completion(struct cli *c, const struct cli_args *args, const void *options)
{
    (void)options;
    if (args->n != 1)
        return cli_usage(c, "%s", args->n ? "one shell at a time" : "which shell?");
    if (strcmp(args->words[0], "bash") == 0)
        cli_complete_bash(c->root);
    else if (strcmp(args->words[0], "zsh") == 0)
        cli_complete_zsh(c->root);
    else
        return cli_usage(c, "there is no completion for '%s', only for bash and zsh",
                         args->words[0]);
    return CLI_EXIT_DONE;
}

static const struct cli_example completion_examples[] = {
    {"completion bash > ~/.local/share/bash-completion/completions/kopt",
     "install it for one user"},
    {"completion zsh > ~/.zfunc/_kopt",
     "the same for zsh; ~/.zfunc must be in fpath before compinit"},
};

const struct cli_command cli_cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for bash or zsh",
    .args = "bash|zsh",
    .about = "The script completes commands, options and their values, device ids, strategies, "
             "kernel files and the names of their problem sizes.",
    .examples = completion_examples,
    .n_examples = CLI_LEN(completion_examples),
    .complete = CLI_COMPLETE_SHELL,
    .run = run_completion,
};

static int run_man(struct cli *c, const struct cli_args *args, const void *options)
{
    (void)args;
    (void)options;
    cli_man(c->root);
    return CLI_EXIT_DONE;
}

const struct cli_command cli_cmd_man = {
    .name = "__man",
    .summary = "the man page",
    .args = "",
    .run = run_man,
    .hidden = true,
};

/* --- words for the completion scripts ----------------------------------------------------- */

static void print_device(void *user, const kopt_device_info *info)
{
    (void)user;
    (void)puts(info->id);
}

static void words_devices(struct cli *c)
{
    (void)c;
    kopt_device_visitor v = {.found = print_device};
    kopt_error err;
    (void)!kopt_devices(&v, &err); /* no devices, no words */
}

static void words_strategies(struct cli *c)
{
    (void)c;
    const char *name;
    for (size_t i = 0; (name = kopt_strategy(i, NULL)) != NULL; i++)
        (void)puts(name);
}

static void words_methods(struct cli *c)
{
    const char *name;
    words_strategies(c);
    for (size_t i = 0; (name = kopt_strategy(i, NULL)) != NULL; i++)
        (void)printf("%s+prior\n", name);
    (void)puts("all\nall+prior");
}

static void words_networks(struct cli *c)
{
    (void)c;
    const char *name;
    for (size_t i = 0; (name = kopt_network(i, NULL)) != NULL; i++)
        (void)puts(name);
}

static void words_outcomes(struct cli *c)
{
    (void)c;
    for (int i = 0; i < KOPT_OUT_COUNT; i++)
        (void)puts(kopt_outcome_name((kopt_outcome)i));
}

static int print_subject(void *user, const kopt_subject *x)
{
    (void)user;
    (void)printf("%lld\n%s\n", (long long)x->id, x->kernel);
    return 1;
}

static void words_subjects(struct cli *c)
{
    kopt_store *store = NULL;
    kopt_error err;
    char *path = cli_store_path(c, NULL);
    if (path && kopt_store_open(path, 0, &store, &err) == KOPT_OK)
        (void)!kopt_store_subjects(store, NULL, print_subject, NULL, &err);
    kopt_store_close(store);
    free(path);
}

static void words_commands(struct cli *c)
{
    for (size_t i = 0; c->root->subs[i]; i++)
        if (!c->root->subs[i]->hidden)
            (void)puts(c->root->subs[i]->name);
}

static void words_shells(struct cli *c)
{
    (void)c;
    (void)puts("bash\nzsh");
}

static void words_problem(const char *path)
{
    kopt_kernel *k = NULL;
    kopt_error err;
    if (kopt_kernel_load(path, &k, &err) != KOPT_OK)
        return;
    for (size_t i = 0; i < kopt_kernel_n_problem(k); i++)
        (void)printf("%s=\n", kopt_kernel_problem_name(k, i));
    kopt_kernel_free(k);
}

static int run_complete(struct cli *c, const struct cli_args *args, const void *options)
{
    static const struct {
        const char *kind;
        void (*print)(struct cli *c);
    } kinds[] = {
        {"device", words_devices},   {"strategy", words_strategies},
        {"outcome", words_outcomes}, {"subject", words_subjects},
        {"network", words_networks}, {"command", words_commands},
        {"shell", words_shells},     {"method", words_methods},
    };
    (void)options;
    if (args->n == 2 && strcmp(args->words[0], "problem") == 0)
        words_problem(args->words[1]);
    for (size_t i = 0; args->n == 1 && i < CLI_LEN(kinds); i++)
        if (strcmp(args->words[0], kinds[i].kind) == 0)
            kinds[i].print(c);
    return CLI_EXIT_DONE;
}

const struct cli_command cli_cmd_complete = {
    .name = "__complete",
    .summary = "words for the completion scripts",
    .args = "KIND",
    .run = run_complete,
    .hidden = true,
};
