/* SPDX-License-Identifier: MIT */
/* Completion scripts, made from the tables. What only the running program knows (devices,
 * strategies, the problem's names of a kernel file) is asked with `kopt __complete KIND`. */
#include "cli/cli.h"

#include <string.h>

static const char *kind_word(enum cli_complete kind)
{
    switch (kind) {
    case CLI_COMPLETE_NONE:
        return "";
    case CLI_COMPLETE_FILE:
        return "file";
    case CLI_COMPLETE_KERNEL:
        return "kernel";
    case CLI_COMPLETE_DEVICE:
        return "device";
    case CLI_COMPLETE_STRATEGY:
        return "strategy";
    case CLI_COMPLETE_METHOD:
        return "method";
    case CLI_COMPLETE_NETWORK:
        return "network";
    case CLI_COMPLETE_SUBJECT:
        return "subject";
    case CLI_COMPLETE_OUTCOME:
        return "outcome";
    case CLI_COMPLETE_COMMAND:
        return "command";
    case CLI_COMPLETE_SHELL:
        return "shell";
    }
    return "";
}

/* --- bash --------------------------------------------------------------------------------- */

static void bash_spellings(const struct cli_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)printf(" --%s%s", opts[i].shown_negated ? "no-" : "", opts[i].name);
}

static void bash_values(const struct cli_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cli_opt *o = &opts[i];
        if (o->kind == CLI_FLAG || o->kind == CLI_COUNT)
            continue;
        (void)printf("            --%s", o->name);
        if (o->letter)
            (void)printf("|-%c", o->letter);
        (void)printf(") _kopt_value %s", o->choices    ? "words"
                                         : o->complete ? kind_word(o->complete)
                                                       : "none");
        for (size_t k = 0; o->choices && o->choices[k]; k++)
            (void)printf(" %s", o->choices[k]);
        (void)puts("; return ;;");
    }
}

static void bash_case(const char *label, const struct cli_command *cmd)
{
    (void)printf("    '%s')\n        case $prev in\n", label);
    bash_values(cmd->opts, cmd->n_opts);
    bash_values(cli_common_opts, cli_n_common_opts - 1);
    (void)printf("        esac\n        opts='");
    bash_spellings(cmd->opts, cmd->n_opts);
    bash_spellings(cli_common_opts, cli_n_common_opts - 1);
    (void)printf("'\n        words=%s%s ;;\n", kind_word(cmd->complete),
                 cmd->complete ? "" : "none");
}

static void bash_names(const struct cli_command *const *subs)
{
    for (size_t i = 0; subs[i]; i++)
        if (!subs[i]->hidden)
            (void)printf(" %s", subs[i]->name);
}

static const char bash_head[] =
    "# bash completion for kopt; made by `kopt completion bash`.\n"
    "_kopt_value() {\n"
    "    local kind=$1; shift\n"
    "    case $kind in\n"
    "    none) ;;\n"
    "    file) COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames 2>/dev/null ;;\n"
    "    words) COMPREPLY=($(compgen -W \"$*\" -- \"$cur\")) ;;\n"
    "    method)\n"
    "        local head=''\n"
    "        case $cur in *,*) head=${cur%,*}, ;; esac\n"
    "        COMPREPLY=($(compgen -P \"$head\" -W \"$(kopt __complete method 2>/dev/null)\" -- "
    "\"${cur##*,}\")) ;;\n"
    "    kernel)\n"
    "        if [ -n \"$file\" ]; then\n"
    "            COMPREPLY=($(compgen -W \"$(kopt __complete problem \"$file\" 2>/dev/null)\" "
    "-- \"$cur\"))\n"
    "            compopt -o nospace 2>/dev/null\n"
    "        else\n"
    "            COMPREPLY=($(compgen -f -X '!*.@(cl|cu|json)' -- \"$cur\") $(compgen -d -- "
    "\"$cur\"))\n"
    "            compopt -o filenames 2>/dev/null\n"
    "        fi ;;\n"
    "    *) COMPREPLY=($(compgen -W \"$(kopt __complete \"$kind\" 2>/dev/null)\" -- "
    "\"$cur\")) ;;\n"
    "    esac\n"
    "    [ -n \"$colon\" ] && COMPREPLY=(\"${COMPREPLY[@]#\"$colon\"}\")\n"
    "}\n"
    "_kopt() {\n"
    "    local cur prev cmd='' sub='' file='' opts='' words='' colon='' i w\n"
    "    COMPREPLY=()\n"
    "    cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    [ \"$prev\" = '=' ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    # readline parts words at colons: put device ids together again\n"
    "    if [ \"$cur\" = ':' ]; then\n"
    "        colon=\"$prev:\"; cur=$colon; prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    elif [ \"$prev\" = ':' ]; then\n"
    "        colon=\"${COMP_WORDS[COMP_CWORD-2]}:\"; cur=$colon$cur\n"
    "        prev=${COMP_WORDS[COMP_CWORD-3]}\n"
    "    fi\n"
    "    shopt -q extglob || shopt -s extglob\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        w=${COMP_WORDS[i]}\n"
    "        case $w in\n"
    "        -*) ;;\n"
    "        *.cl|*.cu|*.json) [ -n \"$file\" ] || file=$w ;;\n"
    "        *) if [ -z \"$cmd\" ]; then cmd=$w; elif [ -z \"$sub\" ]; then sub=$w; fi ;;\n"
    "        esac\n"
    "    done";

void cli_complete_bash(const struct cli_command *root)
{
    (void)puts(bash_head);
    (void)puts("    if [ -z \"$cmd\" ]; then\n        case $prev in");
    bash_values(cli_common_opts, cli_n_common_opts);
    (void)printf("        esac\n        _kopt_value words");
    bash_names(root->subs);
    (void)puts(" --help --version\n        return\n    fi");
    for (size_t i = 0; root->subs[i]; i++) {
        const struct cli_command *cmd = root->subs[i];
        if (!cmd->subs)
            continue;
        (void)printf("    if [ \"$cmd\" = %s ]; then\n"
                     "        if [ -z \"$sub\" ]; then _kopt_value words",
                     cmd->name);
        bash_names(cmd->subs);
        (void)puts(" --help; return; fi\n        cmd=\"$cmd $sub\"\n    fi");
    }
    (void)puts("    case $cmd in");
    char label[64];
    for (size_t i = 0; root->subs[i]; i++) {
        const struct cli_command *cmd = root->subs[i];
        if (cmd->hidden)
            continue;
        if (!cmd->subs)
            bash_case(cmd->name, cmd);
        for (size_t k = 0; cmd->subs && cmd->subs[k]; k++) {
            (void)snprintf(label, sizeof(label), "%s %s", cmd->name, cmd->subs[k]->name);
            bash_case(label, cmd->subs[k]);
        }
    }
    (void)puts("    esac\n"
               "    case $cur in\n"
               "    -*) _kopt_value words $opts ;;\n"
               "    *) _kopt_value \"$words\" ;;\n"
               "    esac\n"
               "}\n"
               "complete -F _kopt kopt");
}

/* --- zsh ---------------------------------------------------------------------------------- */

/* Inside '..' of an _arguments spec: quotes, brackets and colons are special. */
static void zsh_text(const char *s)
{
    for (; *s; s++) {
        if (*s == '\'')
            (void)fputs("'\\''", stdout);
        else if (*s == '[' || *s == ']' || *s == ':')
            (void)printf("\\%c", *s);
        else
            (void)fputc(*s, stdout);
    }
}

static void zsh_action(const struct cli_opt *o)
{
    if (o->choices) {
        (void)fputs("(", stdout);
        for (size_t i = 0; o->choices[i]; i++)
            (void)printf("%s%s", i ? " " : "", o->choices[i]);
        (void)fputs(")", stdout);
    } else if (o->complete == CLI_COMPLETE_FILE) {
        (void)fputs("_files", stdout);
    } else if (o->complete) {
        (void)printf("_kopt_ask %s", kind_word(o->complete));
    }
}

static void zsh_options(const struct cli_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cli_opt *o = &opts[i];
        for (int form = o->letter ? 0 : 1; form < 2; form++) {
            const char *many = o->kind == CLI_COUNT ? "*" : "";
            if (form == 0)
                (void)printf("            '%s-%c", many, o->letter);
            else
                (void)printf("            '%s--%s%s%s", many, o->shown_negated ? "no-" : "",
                             o->name, o->arg ? "=" : "");
            (void)fputs("[", stdout);
            zsh_text(o->help);
            (void)fputs("]", stdout);
            if (o->arg) {
                (void)fputs(":", stdout);
                zsh_text(o->arg);
                (void)fputs(":", stdout);
                zsh_action(o);
            }
            (void)puts("' \\");
        }
    }
}

static void zsh_case(const char *label, const struct cli_command *cmd)
{
    (void)printf("    '%s')\n        _arguments -s \\\n", label);
    zsh_options(cmd->opts, cmd->n_opts);
    zsh_options(cli_common_opts, cli_n_common_opts - 1);
    if (cmd->complete == CLI_COMPLETE_FILE)
        (void)puts("            '*:file:_files' ;;");
    else if (cmd->complete == CLI_COMPLETE_KERNEL)
        (void)puts("            '1:kernel file:_files -g \"*.(cl|cu|json)\"' \\\n"
                   "            '*:size:_kopt_problem' ;;");
    else if (cmd->complete)
        (void)printf("            '*:word:_kopt_ask %s' ;;\n", kind_word(cmd->complete));
    else
        (void)puts("            ;;");
}

static void zsh_names(const char *list, const struct cli_command *const *subs)
{
    (void)printf("    %s=(\n", list);
    for (size_t i = 0; subs[i]; i++) {
        if (subs[i]->hidden)
            continue;
        (void)printf("        '%s:", subs[i]->name);
        zsh_text(subs[i]->summary);
        (void)puts("'");
    }
    (void)puts("    )");
}

void cli_complete_zsh(const struct cli_command *root)
{
    (void)puts("#compdef kopt\n"
               "# zsh completion for kopt; made by `kopt completion zsh`.\n"
               "_kopt_ask() {\n"
               "    local -a found\n"
               "    found=(${(f)\"$(kopt __complete $1 2>/dev/null)\"})\n"
               "    [[ $1 == method ]] && compset -P '*,'\n"
               "    compadd -a found\n"
               "}\n"
               "_kopt_problem() {\n"
               "    local -a found\n"
               "    found=(${(f)\"$(kopt __complete problem ${(Q)line[1]} 2>/dev/null)\"})\n"
               "    compadd -S '' -a found\n"
               "}\n"
               "_kopt() {\n"
               "    local -a commands subcommands\n"
               "    local cmd line state");
    zsh_names("commands", root->subs);
    (void)puts("    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
               "    cmd=$words[2]\n"
               "    shift words; (( CURRENT-- ))");
    for (size_t i = 0; root->subs[i]; i++) {
        const struct cli_command *cmd = root->subs[i];
        if (!cmd->subs)
            continue;
        (void)printf("    if [[ $cmd == %s ]]; then\n", cmd->name);
        zsh_names("subcommands", cmd->subs);
        (void)puts("    if (( CURRENT == 2 )); then _describe command subcommands; return; fi\n"
                   "    cmd=\"$cmd $words[2]\"\n"
                   "    shift words; (( CURRENT-- ))\n"
                   "    fi");
    }
    (void)puts("    case $cmd in");
    char label[64];
    for (size_t i = 0; root->subs[i]; i++) {
        const struct cli_command *cmd = root->subs[i];
        if (cmd->hidden)
            continue;
        if (!cmd->subs)
            zsh_case(cmd->name, cmd);
        for (size_t k = 0; cmd->subs && cmd->subs[k]; k++) {
            (void)snprintf(label, sizeof(label), "%s %s", cmd->name, cmd->subs[k]->name);
            zsh_case(label, cmd->subs[k]);
        }
    }
    (void)puts("    esac\n}\n_kopt \"$@\"");
}
