/* SPDX-License-Identifier: MIT */
/* kopt devices: what there is, and what is missing. */
#include "cli/cmds.h"
#include "cli/json.h"
#include "cli/mem.h"
#include "cli/rows.h"
#include "cli/table.h"
#include "cli/units.h"

#include <stdlib.h>

struct devices_options {
    bool json;
};

struct missing {
    char *backend;
    char *reason;
    char *hint;
};

struct found {
    struct cli *c;
    struct cli_table *table;
    size_t n;
    bool json;
    struct missing *missing;
    size_t n_missing;
    size_t cap;
};

static void json_device(const kopt_device_info *d)
{
    struct cli_json j = cli_json_begin(stdout, "device");
    cli_json_str(&j, "id", d->id);
    cli_json_str(&j, "backend", d->backend);
    cli_json_str(&j, "name", d->name);
    cli_json_str(&j, "arch", d->arch);
    cli_json_str(&j, "driver", d->driver);
    cli_json_str(&j, "compiler", d->compiler);
    cli_json_bool(&j, "is_cpu", d->is_cpu != 0);
    cli_json_int(&j, "max_threads", d->max_threads);
    cli_json_int(&j, "shared_bytes", d->shared_bytes);
    cli_json_int(&j, "compute_units", d->compute_units);
    cli_json_int(&j, "l2_bytes", d->l2_bytes);
    cli_json_int(&j, "global_bytes", d->global_bytes);
    cli_json_int(&j, "clock_khz", d->clock_khz);
    cli_json_end(&j);
}

static void amount_cell(struct cli_table *t, int64_t bytes)
{
    char text[CLI_NUM];
    cli_cell(t, CLI_PLAIN, "%s", bytes > 0 ? cli_bytes(bytes, text) : "-");
}

static void number_cell(struct cli_table *t, int64_t n)
{
    char text[CLI_NUM];
    cli_cell(t, CLI_PLAIN, "%s", n > 0 ? cli_count((double)n, text) : "-");
}

static void on_found(void *user, const kopt_device_info *d)
{
    struct found *f = user;
    f->n++;
    if (f->json) {
        json_device(d);
        return;
    }
    cli_cell(f->table, CLI_BOLD, "%s", d->id);
    cli_cell(f->table, CLI_PLAIN, "%s", d->name);
    amount_cell(f->table, d->global_bytes);
    amount_cell(f->table, d->shared_bytes);
    number_cell(f->table, d->max_threads);
    number_cell(f->table, d->compute_units);
    cli_table_note(f->table, 1, CLI_DIM, "%s%s%s", d->driver,
                   d->driver[0] && d->compiler[0] ? ", " : "", d->compiler);
}

static void on_missing(void *user, const kopt_device_missing *m)
{
    struct found *f = user;
    if (f->json) {
        struct cli_json j = cli_json_begin(stdout, "missing");
        cli_json_str(&j, "backend", m->backend);
        cli_json_str(&j, "reason", m->reason);
        cli_json_str(&j, "hint", m->hint);
        cli_json_end(&j);
    }
    f->missing = cli_grow(f->missing, &f->cap, f->n_missing, sizeof(*f->missing));
    f->missing[f->n_missing++] = (struct missing){
        cli_clean(m->backend, false), cli_clean(m->reason, false), cli_clean(m->hint, false)};
}

static void print_missing(const struct found *f)
{
    static const struct cli_column columns[] = {{"", CLI_LEFT, CLI_WHOLE},
                                                {"", CLI_LEFT, CLI_WRAP}};
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    for (size_t i = 0; i < f->n_missing; i++) {
        const struct missing *m = &f->missing[i];
        cli_cell(t, CLI_YELLOW, "no %s", m->backend);
        cli_cell(t, CLI_PLAIN, "%s", m->reason);
        if (m->hint[0])
            cli_table_note(t, 1, CLI_BOLD, "to get it: %s", m->hint);
    }
    if (f->n && f->n_missing)
        cli_print(f->c, "\n");
    cli_table_print(t, &f->c->out, 0);
    cli_table_free(t);
}

static void free_found(struct found *f)
{
    for (size_t i = 0; i < f->n_missing; i++) {
        free(f->missing[i].backend);
        free(f->missing[i].reason);
        free(f->missing[i].hint);
    }
    free(f->missing);
    cli_table_free(f->table);
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    static const struct cli_column columns[] = {
        {"ID", CLI_LEFT, CLI_WHOLE},       {"NAME", CLI_LEFT, CLI_CUT},
        {"MEMORY", CLI_RIGHT, CLI_WHOLE},  {"SHARED", CLI_RIGHT, CLI_WHOLE},
        {"THREADS", CLI_RIGHT, CLI_WHOLE}, {"UNITS", CLI_RIGHT, CLI_WHOLE}};
    const struct devices_options *o = options;
    if (args->n)
        return cli_usage(c, "'%s' is one word too many", args->words[0]);
    struct found f = {
        .c = c, .json = o->json, .table = cli_table_new(columns, CLI_LEN(columns))};
    kopt_device_visitor v = {.found = on_found, .missing = on_missing, .user = &f};
    kopt_error err;
    kopt_status st = kopt_devices(&v, &err);
    int code = CLI_EXIT_DONE;
    if (st != KOPT_OK) {
        code = cli_fail(c, &err);
    } else if (!o->json) {
        if (f.n)
            cli_table_print(f.table, &c->out, 0);
        print_missing(&f);
    }
    if (st == KOPT_OK && f.n == 0)
        code = cli_failf(c, KOPT_EENV, NULL, "no device was found");
    free_found(&f);
    return code;
}

static const struct cli_opt opts[] = {
    CLI_ROW_JSON(struct devices_options, CLI_JSON_HELP ": type device or missing", NULL),
};

static const struct cli_example examples[] = {
    {"devices", "the table, and below it what is missing with the reason and the remedy"},
    {"devices --json | jq -r 'select(.type == \"device\").id'", "the ids alone, for scripts"},
};

const struct cli_command cli_cmd_devices = {
    .name = "devices",
    .summary = "list the devices kopt can use, and what is missing for others",
    .args = "",
    .about =
        "Every device that a driver on this machine offers: its id for --device, name, memory, "
        "memory and threads (work-items) of a group, compute units, driver and compiler. "
        "For a backend without a device it says why, and what to install.\n\n"
        "Drivers are opened in a process of their own: one that crashes or hangs is reported, "
        "and the others are still listed.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .options_bytes = sizeof(struct devices_options),
    .run = run,
};
