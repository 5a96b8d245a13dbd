/* SPDX-License-Identifier: MIT */
/* kopt store export, import: other tools' files. */
#include "cli/mem.h"
#include "cli/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- export ------------------------------------------------------------------------------- */

struct export_options {
    struct cli_store_common common;
    const char *output;
};

static int write_out(struct cli *c, const char *path, const char *text)
{
    if (!path || strcmp(path, "-") == 0) {
        cli_print(c, "%s", text);
        return 0;
    }
    errno = 0;
    FILE *f = fopen(path, "w");
    bool ok = f && fputs(text, f) >= 0;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (!ok)
        return cli_failf(c, KOPT_EIO, NULL, "cannot write %s: %s", path,
                         strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    return 0;
}

static int export_subject(struct cli *c, kopt_store *s, const void *options,
                          const kopt_subject *subject)
{
    const struct export_options *o = options;
    kopt_error err;
    char *text = NULL;
    if (kopt_store_export_t4(s, subject->id, &text, &err) != KOPT_OK)
        return cli_fail(c, &err);
    int code = write_out(c, o->output, text);
    kopt_text_free(text);
    return code;
}

static int run_export(struct cli *c, const struct cli_args *args, const void *options)
{
    return cli_subject_run(c, args, options, export_subject);
}

static const struct cli_opt export_opts[] = {
    {.name = "output",
     .letter = 'o',
     .kind = CLI_TEXT,
     .arg = "FILE",
     .complete = CLI_COMPLETE_FILE,
     .offset = offsetof(struct export_options, output),
     .help = "write there instead of to standard output"},
    CLI_STORE_OPT,
};

static const struct cli_example export_examples[] = {
    {"store export 3 -o gemm.json", "the results of subject 3 for other tools"},
};

const struct cli_command cli_cmd_store_export = {
    .name = "export",
    .summary = "write the results of a subject as T4 JSON",
    .args = "SUBJECT | KERNEL [NAME=VALUE..]",
    .about = "T4 is the results format that autotuning tools share.",
    .opts = export_opts,
    .n_opts = CLI_LEN(export_opts),
    .examples = export_examples,
    .n_examples = CLI_LEN(export_examples),
    .options_bytes = sizeof(struct export_options),
    .complete = CLI_COMPLETE_SUBJECT,
    .run = run_export,
};

/* --- import ------------------------------------------------------------------------------- */

static void say_count(struct cli *c, const char *file, const kopt_import_count *n, bool json)
{
    char a[CLI_NUM];
    char b[CLI_NUM];
    if (json) {
        struct cli_json j = cli_json_begin(stdout, "import");
        cli_json_str(&j, "file", file);
        cli_json_int(&j, "added", n->added);
        cli_json_int(&j, "present", n->present);
        cli_json_int(&j, "bad", n->bad);
        cli_json_bool(&j, "cut", n->cut != 0);
        cli_json_end(&j);
    } else {
        cli_print(c, "%s: %s added, %s there already\n", file, cli_count((double)n->added, a),
                  cli_count((double)n->present, b));
    }
    if (n->bad)
        cli_warn(c, "%s: %s entries could not be read", file, cli_count((double)n->bad, a));
    if (n->cut)
        cli_warn(c, "%s ends in the middle of an entry; all before it was taken", file);
}

static int run_import(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct cli_store_common *o = options;
    kopt_store *s = NULL;
    kopt_error err;
    int code = 0;
    if (args->n == 0)
        return cli_usage(c, "which file?");
    char *path = cli_store_path(c, o->store);
    if (!path)
        return CLI_EXIT_ENVIRONMENT;
    if ((!o->store && cli_make_folders(path, &err) != KOPT_OK) ||
        kopt_store_open(path, 1, &s, &err) != KOPT_OK)
        code = cli_fail(c, &err);
    for (size_t i = 0; i < args->n && code == 0; i++) {
        kopt_import_count n = {0};
        if (kopt_store_import(s, args->words[i], &n, &err) != KOPT_OK)
            code = cli_fail(c, &err);
        else
            say_count(c, args->words[i], &n, o->json);
    }
    kopt_store_close(s);
    free(path);
    return code;
}

static const struct cli_opt import_opts[] = {CLI_STORE_OPTS};

static const struct cli_example import_examples[] = {
    {"store import cache.json", "everything Kernel Tuner measured, also from a cut file"},
    {"store import laptop.db node7.db", "what was measured elsewhere, into one store"},
};

const struct cli_command cli_cmd_store_import = {
    .name = "import",
    .summary = "take another store or Kernel Tuner cache files into the store",
    .args = "FILE..",
    .about =
        "FILE is another kopt store or a cache file of Kernel Tuner; that may be whole, still "
        "open (without its closing brackets) or cut by a crash. What the store has already is "
        "recognised: importing a file again adds nothing.",
    .opts = import_opts,
    .n_opts = CLI_LEN(import_opts),
    .examples = import_examples,
    .n_examples = CLI_LEN(import_examples),
    .options_bytes = sizeof(struct cli_store_common),
    .complete = CLI_COMPLETE_FILE,
    .run = run_import,
};
