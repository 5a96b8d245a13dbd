/* SPDX-License-Identifier: MIT */
#include "cli/train_view.h"
#include "cli/cmds.h"
#include "cli/json.h"
#include "cli/mem.h"
#include "cli/table.h"
#include "cli/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_train_view_init(struct cli_train_view *v, struct cli *c, bool json, const char *out)
{
    memset(v, 0, sizeof(*v));
    v->c = c;
    v->json = json;
    v->out = out;
    cli_progress_init(&v->progress, &c->err, c->verbosity < 0);
}

/* Below so many problems it is said that they are few. */
enum { FEW = 30 };

/* --- start -------------------------------------------------------------------------------- */

static void json_start(struct cli *c, const kopt_train_start *s)
{
    struct cli_json j = cli_json_begin(stdout, "training");
    cli_json_str(&j, "source", s->source);
    cli_json_str(&j, "kernel", s->kernel);
    cli_json_str(&j, "network", s->network);
    cli_json_u64(&j, "rows", s->rows);
    cli_json_u64(&j, "left_out", s->left_out);
    cli_json_u64(&j, "skipped", s->skipped);
    cli_json_str(&j, "skipped_why", s->skipped ? s->skipped_why : NULL);
    cli_json_u64(&j, "unlisted", s->unlisted);
    cli_json_bool(&j, "untimed", s->untimed != 0);
    cli_json_u64(&j, "checked", s->checked);
    cli_json_u64(&j, "forbidden", s->forbidden);
    cli_json_u64(&j, "train", s->train);
    cli_json_u64(&j, "valid", s->valid);
    cli_json_u64(&j, "test", s->test);
    cli_json_u64(&j, "helping", s->helping);
    cli_json_u64(&j, "all_failed", s->without);
    cli_json_u64(&j, "examples", s->examples);
    cli_json_u64(&j, "constant", s->constant);
    cli_json_u64(&j, "canonical", s->canonical);
    cli_json_u64(&j, "ranked", s->ranked);
    cli_json_bool(&j, "unbound", s->unbound);
    cli_json_u64(&j, "fields", s->fields);
    cli_json_u64(&j, "parameters", s->params);
    cli_json_u64(&j, "numbers", s->parameters);
    cli_json_u64(&j, "resumed", s->resumed);
    cli_json_end(&j);
    (void)cli_flush(c);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void note_data(struct cli *c, const kopt_train_start *s)
{
    char rows[CLI_NUM];
    char train[CLI_NUM];
    char valid[CLI_NUM];
    char test[CLI_NUM];
    char n[CLI_NUM];
    cli_note(c,
             "%s: %s row%s of %s, %s problem%s for training, %s for validation, %s for tests",
             s->source, cli_count((double)s->rows, rows), plural(s->rows), s->kernel,
             cli_count((double)s->train, train), plural(s->train),
             cli_count((double)s->valid, valid), cli_count((double)s->test, test));
    if (s->train + s->helping < FEW)
        cli_note(c, "%zu problem%s few to learn from", s->train + s->helping,
                 s->train + s->helping == 1 ? " is" : "s are");
    if (s->untimed)
        cli_note(
            c,
            "no row has a time, so all count as equally good; times are read from a column "
            "time_ns, time_us, us, time_ms or ms%s%s",
            s->aside[0] ? "; left aside: " : "", s->aside);
    if (s->helping)
        cli_note(c, "%s more problem%s in training", cli_count((double)s->helping, n),
                 s->helping == 1 ? " helps" : "s help");
    if (s->left_out)
        cli_note(c, "%s row%s left out by --where", cli_count((double)s->left_out, n),
                 s->left_out == 1 ? " is" : "s are");
    if (s->skipped)
        cli_warn(c, "%s row%s cannot be used; the first, %s", cli_count((double)s->skipped, n),
                 plural(s->skipped), s->skipped_why);
    if (s->unlisted)
        cli_note(c, "%s row%s a value that the rules do not list",
                 cli_count((double)s->unlisted, n), s->unlisted == 1 ? " has" : "s have");
    if (s->forbidden)
        cli_note(
            c,
            "the rules forbid the best configuration of %s of the problems%s: it is learned, "
            "but never predicted",
            cli_percent((double)s->forbidden / (double)s->checked, n),
            s->checked < s->train + s->helping ? " (by a sample)" : "");
    if (s->without)
        cli_note(c, "%s problem%s left aside: all configurations failed",
                 cli_count((double)s->without, n), s->without == 1 ? " is" : "s are");
    if (s->examples > s->train + s->helping)
        cli_note(c,
                 "%s configurations are learned: some problems have several that are as good, "
                 "or nearly so",
                 cli_count((double)s->examples, n));
    if (s->unbound)
        cli_warn(c,
                 "the rules use numbers of a device (%s), which --device-limits does not give: "
                 "rules about it do not bind, and its other numbers count as 0",
                 s->unbound_names);
    if (s->ranked)
        cli_note(
            c,
            "%s configurations are ranked; any that were far from the best with every problem "
            "are not",
            cli_count((double)s->ranked, n));
    if (s->canonical)
        cli_note(c, "%s row%s parameters without effect, learned with their canonical values",
                 cli_count((double)s->canonical, n), s->canonical == 1 ? " has" : "s have");
    if (s->constant)
        cli_note(c, "%zu of the %zu parameters %s one value only", s->constant, s->params,
                 s->constant == 1 ? "has" : "have");
}

void cli_train_start(struct cli_train_view *v, const kopt_train_start *s)
{
    char n[CLI_NUM];
    if (v->json)
        json_start(v->c, s);
    note_data(v->c, s);
    cli_note(v->c, "%s: %s numbers from %zu field%s to %zu parameter%s", s->network,
             cli_count((double)s->parameters, n), s->fields, plural(s->fields), s->params,
             plural(s->params));
    v->resumed = s->resumed > 0;
    v->spares = s->spares;
    if (s->resumed)
        cli_note(v->c, "going on from %s.partial, behind epoch %u of network %u", v->out,
                 s->resumed, s->resumed_net + 1);
}

/* --- epochs ------------------------------------------------------------------------------- */

static void json_epoch(struct cli *c, const kopt_epoch *e)
{
    struct cli_json j = cli_json_begin(stdout, "epoch");
    cli_json_int(&j, "net", e->net + 1);
    cli_json_int(&j, "nets", e->nets);
    cli_json_int(&j, "epoch", e->epoch);
    cli_json_int(&j, "epochs", e->epochs);
    cli_json_num(&j, "train_loss", e->train_loss);
    cli_json_num(&j, "valid_loss", e->valid_loss);
    cli_json_num(&j, "valid_right", e->valid_right);
    cli_json_num(&j, "seconds", e->seconds);
    cli_json_bool(&j, "best", e->best != 0);
    cli_json_end(&j);
    (void)cli_flush(c);
}

__attribute__((format(printf, 3, 4))) static void put(struct cli_field *f, int keep,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    f->keep = keep;
    f->style = CLI_PLAIN;
}

static void draw(struct cli_train_view *v, const kopt_epoch *e)
{
    struct cli_field f[6];
    char text[CLI_NUM];
    size_t n = 0;
    /* As if no network stopped early. */
    double left =
        v->seconds / v->epochs * ((double)(e->nets - e->net) * e->epochs - (double)e->epoch);
    if (e->nets > 1)
        put(&f[n++], 5, "network %u/%u", e->net + 1, e->nets);
    put(&f[n++], 6, "epoch %u/%u", e->epoch, e->epochs);
    put(&f[n++], 2, "loss %.4f", e->train_loss);
    put(&f[n++], 4, "validation %.4f", e->valid_loss);
    put(&f[n++], 3, "%s right", cli_percent(e->valid_right, text));
    put(&f[n++], 1, "at most %s left", cli_clock(left, text));
    cli_progress_draw(&v->progress, f, n);
}

void cli_train_epoch(struct cli_train_view *v, const kopt_epoch *e)
{
    char text[CLI_NUM];
    if (e->net < CLI_NETS_MAX) {
        struct cli_net_line *l = &v->nets[e->net];
        v->n_nets = e->net + 1;
        l->epochs = e->epoch;
        if (e->best)
            l->best = *e;
    }
    v->seconds += e->seconds;
    v->epochs++;
    if (v->json)
        json_epoch(v->c, e);
    if (v->c->verbosity > 0) {
        cli_progress_clear(&v->progress);
        cli_note(v->c, "network %u, epoch %u: loss %.4f, validation %.4f, %s right%s",
                 e->net + 1, e->epoch, e->train_loss, e->valid_loss,
                 cli_percent(e->valid_right, text), e->best ? ", the best so far" : "");
    } else if (cli_progress_due(&v->progress)) {
        draw(v, e);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

/* What was trained before this run is known from the model's log. */
static void look_back(struct cli_train_view *v)
{
    kopt_model *m = NULL;
    kopt_error err;
    if (kopt_model_open(v->out, &m, &err) != KOPT_OK)
        return; /* then the table has this run's */
    for (unsigned i = 0; i < CLI_NETS_MAX; i++) {
        struct cli_net_line l;
        if (!kopt_model_trained(m, i, &l.epochs, &l.best))
            break;
        v->nets[i] = l;
        v->n_nets = i + 1;
    }
    kopt_model_close(m);
}

static void json_end(const struct cli_train_view *v, bool interrupted)
{
    struct cli_json j = cli_json_begin(stdout, "trained");
    cli_json_str(&j, "file", v->out);
    cli_json_bool(&j, "interrupted", interrupted);
    cli_json_open(&j, "networks", '[');
    for (unsigned i = 0; i < v->n_nets; i++) {
        const struct cli_net_line *l = &v->nets[i];
        if (!l->epochs)
            continue;
        cli_json_open(&j, NULL, '{');
        cli_json_int(&j, "net", i + 1);
        cli_json_int(&j, "epochs", l->epochs);
        cli_json_int(&j, "best_epoch", l->best.epoch);
        cli_json_num(&j, "valid_loss", l->best.epoch ? l->best.valid_loss : (double)NAN);
        cli_json_num(&j, "valid_right", l->best.epoch ? l->best.valid_right : (double)NAN);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    cli_json_end(&j);
}

void cli_train_end(struct cli_train_view *v, bool interrupted)
{
    static const struct cli_column columns[] = {
        {"NETWORK", CLI_RIGHT, CLI_WHOLE},    {"EPOCHS", CLI_RIGHT, CLI_WHOLE},
        {"BEST EPOCH", CLI_RIGHT, CLI_WHOLE}, {"LOSS", CLI_RIGHT, CLI_WHOLE},
        {"VALIDATION", CLI_RIGHT, CLI_WHOLE}, {"RIGHT", CLI_RIGHT, CLI_WHOLE}};
    char text[CLI_NUM];
    cli_progress_clear(&v->progress);
    if (v->resumed && !(interrupted && v->spares))
        look_back(v);
    if (v->json) {
        json_end(v, interrupted);
        return;
    }
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    for (unsigned i = 0; i < v->n_nets; i++) {
        const struct cli_net_line *l = &v->nets[i];
        if (!l->best.epoch)
            continue;
        cli_cell(t, CLI_PLAIN, "%u", i + 1);
        cli_cell(t, CLI_PLAIN, "%u", l->epochs);
        cli_cell(t, CLI_PLAIN, "%u", l->best.epoch);
        cli_cell(t, CLI_PLAIN, "%.4f", l->best.train_loss);
        cli_cell(t, CLI_PLAIN, "%.4f", l->best.valid_loss);
        cli_cell(t, CLI_PLAIN, "%s", cli_percent(l->best.valid_right, text));
    }
    if (cli_table_rows(t))
        cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
}
