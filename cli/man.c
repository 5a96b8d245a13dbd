/* SPDX-License-Identifier: MIT */
/* kopt.1, made from the tables: `kopt __man`. */
#include "cli/cli.h"

#include <string.h>

/* Text with what troff would read as its own made harmless. */
static void put_n(const char *s, size_t n)
{
    bool line_start = true;
    for (size_t i = 0; i < n; i++) {
        char ch = s[i];
        if (line_start && (ch == '.' || ch == '\''))
            (void)fputs("\\&", stdout);
        if (ch == '\\')
            (void)fputs("\\e", stdout);
        else if (ch == '-')
            (void)fputs("\\-", stdout);
        else
            (void)fputc(ch, stdout);
        line_start = ch == '\n';
    }
}

static void put(const char *s)
{
    put_n(s, strlen(s));
}

/* A phrase as a sentence. */
static void put_sentence(const char *s)
{
    char first = (char)(s[0] >= 'a' && s[0] <= 'z' ? s[0] - 'a' + 'A' : s[0]);
    put_n(&first, 1);
    put(s + 1);
    (void)puts(".");
}

static void put_paragraphs(const char *text)
{
    while (*text) {
        const char *gap = strstr(text, "\n\n");
        size_t n = gap ? (size_t)(gap - text) : strlen(text);
        bool as_it_is = text[0] == ' ';
        (void)puts(as_it_is ? ".PP\n.nf" : ".PP");
        put_n(text, n);
        (void)puts(as_it_is ? "\n.fi" : "");
        text += n + (gap ? 2 : 0);
    }
}

static void put_option(const struct cli_opt *o)
{
    (void)puts(".TP");
    (void)fputs("\\fB", stdout);
    if (o->letter)
        (void)printf("\\-%c\\fR, \\fB", o->letter);
    (void)fputs("\\-\\-", stdout);
    if (o->shown_negated)
        (void)fputs("no\\-", stdout);
    put(o->name);
    (void)fputs("\\fR", stdout);
    if (o->arg) {
        (void)fputs(" \\fI", stdout);
        put(o->arg);
        (void)fputs("\\fR", stdout);
    }
    (void)fputc('\n', stdout);
    put_sentence(o->help);
}

static void put_options(const struct cli_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_option(&opts[i]);
}

static void put_examples(const struct cli_command *cmd)
{
    for (size_t i = 0; i < cmd->n_examples; i++) {
        (void)fputs(".TP\n\\fBkopt ", stdout);
        put(cmd->examples[i].command);
        (void)puts("\\fR");
        put_sentence(cmd->examples[i].text);
    }
}

static void put_command(const char *path, const struct cli_command *cmd)
{
    (void)fputs(".SS \"", stdout);
    put(path);
    (void)puts("\"");
    (void)fputs("\\fB", stdout);
    put(path);
    (void)fputs("\\fR", stdout);
    if (cmd->args && cmd->args[0]) {
        (void)fputs(" \\fI", stdout);
        put(cmd->args);
        (void)fputs("\\fR", stdout);
    }
    (void)puts(cmd->n_opts ? " [\\fIoptions\\fR]" : "");
    if (cmd->about)
        put_paragraphs(cmd->about);
    put_options(cmd->opts, cmd->n_opts);
}

static const char *const sections_before[] = {
    ".SH EXIT STATUS",
    ".TP\n0\nDone.",
    ".TP\n1\nThe work failed: nothing valid was found, no such result.",
    ".TP\n2\nWrong use: an option, a name or a value on the command line.",
    ".TP\n3\nThe environment: no device, driver or helper program; a store that is locked or a "
    "disk that is full, for results on standard output as well.",
    ".TP\n4\nA file is not valid or cannot be read or written; messages about kernel files have "
    "file, line and column. Standard output that cannot be written counts as such a file.",
    ".TP\n130\nInterrupted; what was measured is in the store, what was learned in the model or beside it, in FILE.partial.",
    ".SH ENVIRONMENT",
    ".TP\n.B KOPT_STORE\nThe store, where \\-\\-store does not say.",
    ".TP\n.B KOPT_SHARE\nThe folder of the data that come with kopt, such as rules.",
    ".TP\n.B KOPT_LIBEXEC\nThe folder of the helper programs.",
    ".TP\n.B KOPT_CUDA_LIBRARY\\fR, \\fBKOPT_NVRTC_LIBRARY\\fR, \\fBKOPT_OPENCL_LIBRARY\nPaths "
    "of libraries that replace the ones found by name.",
    ".TP\n.B NO_COLOR\nNo colour, unless \\-\\-color=always.",
    ".SH FILES",
    ".TP\n.I ~/.local/share/kopt/kopt.db\nThe store, or $XDG_DATA_HOME/kopt/kopt.db.",
};

void cli_man(const struct cli_command *root)
{
    (void)printf(".\\\" Made by kopt __man from the program's own tables.\n");
    (void)printf(".TH KOPT 1 \"\" \"kopt %s\" \"User Commands\"\n", kopt_version());
    (void)puts(".SH NAME\nkopt \\- make GPU kernels fast by measurement");
    (void)puts(".SH SYNOPSIS\n.B kopt\n.I command\n[\\fIarguments\\fR] [\\fIoptions\\fR]\n.br\n"
               ".B kopt\n\\-\\-version");
    (void)puts(".SH DESCRIPTION");
    put_paragraphs(root->about);
    (void)puts(".SH OPTIONS\nEvery command has these.");
    put_options(cli_common_opts, cli_n_common_opts - 1); /* without --version */
    (void)puts(".SH COMMANDS");
    char path[128];
    for (size_t i = 0; root->subs[i]; i++) {
        const struct cli_command *cmd = root->subs[i];
        if (cmd->hidden)
            continue;
        (void)snprintf(path, sizeof(path), "kopt %s", cmd->name);
        put_command(path, cmd);
        for (size_t k = 0; cmd->subs && cmd->subs[k]; k++) {
            (void)snprintf(path, sizeof(path), "kopt %s %s", cmd->name, cmd->subs[k]->name);
            put_command(path, cmd->subs[k]);
        }
    }
    for (size_t i = 0; i < sizeof(sections_before) / sizeof(sections_before[0]); i++)
        (void)puts(sections_before[i]);
    (void)puts(".SH EXAMPLES");
    put_examples(root);
    for (size_t i = 0; root->subs[i]; i++) {
        put_examples(root->subs[i]);
        for (size_t k = 0; root->subs[i]->subs && root->subs[i]->subs[k]; k++)
            put_examples(root->subs[i]->subs[k]);
    }
}
