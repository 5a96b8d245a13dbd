/* SPDX-License-Identifier: MIT */
/* kopt store compare: two runs, configuration by configuration. */
#include "cli/mem.h"
#include "cli/store.h"
#include "cli/table.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20 };

struct compare_options {
    struct cli_store_common common;
    bool all;
};

/* A configuration that both runs measured. */
struct pair {
    const kopt_result *a;
    const kopt_result *b;
    double ratio; /* time of b over time of a; NaN unless both are ok */
};

struct comparison {
    struct pair *pairs; /* sorted: largest change first, those without a ratio last */
    size_t n;
    size_t only_a;
    size_t only_b;
    size_t changed; /* one is ok, the other is not */
    double geomean; /* of the ratios; NaN without any */
    const kopt_result *best_a;
    const kopt_result *best_b;
};

struct entry {
    const kopt_result *r;
};

static int by_config(const void *a, const void *b)
{
    const kopt_result *x = ((const struct entry *)a)->r;
    const kopt_result *y = ((const struct entry *)b)->r;
    int order = strcmp(x->config, y->config);
    if (order)
        return order;
    return x->id < y->id ? -1 : x->id > y->id; /* the newest last */
}

static int by_change(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    double dx = isnan(x->ratio) ? -1 : fabs(log(x->ratio));
    double dy = isnan(y->ratio) ? -1 : fabs(log(y->ratio));
    if (dx != dy)
        return dx > dy ? -1 : 1;
    return strcmp(x->a->config, y->a->config);
}

/* Sorted by configuration, of each the newest; the caller frees it. */
static struct entry *sorted(const struct cli_rows *rows, size_t *n)
{
    struct entry *list = cli_alloc(rows->n, sizeof(*list));
    for (size_t i = 0; i < rows->n; i++)
        list[i].r = &rows->items[i];
    if (rows->n)
        qsort(list, rows->n, sizeof(*list), by_config);
    *n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (*n && strcmp(list[*n - 1].r->config, list[i].r->config) == 0)
            list[*n - 1] = list[i];
        else
            list[(*n)++] = list[i];
    }
    return list;
}

static const kopt_result *best_of(const struct cli_rows *rows)
{
    const kopt_result *best = NULL;
    for (size_t i = 0; i < rows->n; i++) {
        const kopt_result *r = &rows->items[i];
        if (r->outcome == KOPT_OUT_OK && (!best || r->median_ns < best->median_ns))
            best = r;
    }
    return best;
}

static void add_pair(struct comparison *k, const kopt_result *a, const kopt_result *b)
{
    bool both = a->outcome == KOPT_OUT_OK && b->outcome == KOPT_OUT_OK;
    k->changed += (a->outcome == KOPT_OUT_OK) != (b->outcome == KOPT_OUT_OK);
    k->pairs[k->n++] = (struct pair){a, b, both ? b->median_ns / a->median_ns : (double)NAN};
}

static void compare(const struct cli_rows *a, const struct cli_rows *b, struct comparison *k)
{
    size_t na = 0;
    size_t nb = 0;
    struct entry *la = sorted(a, &na);
    struct entry *lb = sorted(b, &nb);
    *k = (struct comparison){.best_a = best_of(a), .best_b = best_of(b)};
    k->pairs = cli_alloc(na < nb ? na : nb, sizeof(*k->pairs));
    size_t i = 0;
    size_t j = 0;
    while (i < na && j < nb) {
        int order = strcmp(la[i].r->config, lb[j].r->config);
        if (order == 0)
            add_pair(k, la[i].r, lb[j].r);
        k->only_a += order < 0;
        k->only_b += order > 0;
        i += order <= 0;
        j += order >= 0;
    }
    k->only_a += na - i;
    k->only_b += nb - j;
    double sum = 0;
    size_t n = 0;
    for (size_t p = 0; p < k->n; p++) {
        if (isnan(k->pairs[p].ratio))
            continue;
        sum += log(k->pairs[p].ratio);
        n++;
    }
    k->geomean = n ? exp(sum / (double)n) : (double)NAN;
    if (k->n)
        qsort(k->pairs, k->n, sizeof(*k->pairs), by_change);
    free(la);
    free(lb);
}

/* --- showing it --------------------------------------------------------------------------- */

static void show_json(const struct comparison *k, int64_t a, int64_t b)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct pair *p = &k->pairs[i];
        struct cli_json j = cli_json_begin(stdout, "pair");
        cli_json_raw(&j, "config", p->a->config);
        cli_json_str(&j, "outcome_a", kopt_outcome_name(p->a->outcome));
        cli_json_str(&j, "outcome_b", kopt_outcome_name(p->b->outcome));
        cli_json_num(&j, "median_a_ns", p->a->median_ns);
        cli_json_num(&j, "median_b_ns", p->b->median_ns);
        cli_json_num(&j, "ratio", p->ratio);
        cli_json_end(&j);
    }
    struct cli_json j = cli_json_begin(stdout, "comparison");
    cli_json_int(&j, "run_a", a);
    cli_json_int(&j, "run_b", b);
    cli_json_u64(&j, "in_both", k->n);
    cli_json_u64(&j, "only_a", k->only_a);
    cli_json_u64(&j, "only_b", k->only_b);
    cli_json_u64(&j, "outcome_changed", k->changed);
    cli_json_num(&j, "geometric_mean_ratio", k->geomean);
    cli_json_result_at(&j, "best_a", k->best_a);
    cli_json_result_at(&j, "best_b", k->best_b);
    cli_json_end(&j);
}

static void best_line(struct cli *c, const char *name, const kopt_result *r)
{
    char text[CLI_NUM];
    if (!r) {
        cli_print(c, "best of %s  nothing valid\n", name);
        return;
    }
    char *words = cli_config_words(r->config);
    cli_print(c, "best of %s  %s  %s\n", name, cli_time(&c->out, r->median_ns, text), words);
    free(words);
}

static enum cli_style ratio_style(double ratio)
{
    if (ratio < 0.99)
        return CLI_GREEN;
    return ratio > 1.01 ? CLI_RED : CLI_PLAIN;
}

static void side_cell(struct cli *c, struct cli_table *t, const kopt_result *r)
{
    char text[CLI_NUM];
    if (r->outcome == KOPT_OUT_OK)
        cli_cell(t, CLI_PLAIN, "%s", cli_time(&c->out, r->median_ns, text));
    else
        cli_cell(t, CLI_RED, "%s", kopt_outcome_name(r->outcome));
}

static void show_text(struct cli *c, const struct comparison *k, bool all)
{
    static const struct cli_column columns[] = {{"A", CLI_RIGHT, CLI_WHOLE},
                                                {"B", CLI_RIGHT, CLI_WHOLE},
                                                {"B / A", CLI_RIGHT, CLI_WHOLE},
                                                {"CONFIGURATION", CLI_LEFT, CLI_WRAP}};
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    size_t n = all || k->n <= SHOWN ? k->n : SHOWN;
    for (size_t i = 0; i < n; i++) {
        const struct pair *p = &k->pairs[i];
        char *words = cli_config_words(p->a->config);
        side_cell(c, t, p->a);
        side_cell(c, t, p->b);
        if (isnan(p->ratio))
            cli_cell(t, CLI_DIM, "-");
        else
            cli_cell(t, ratio_style(p->ratio), "%.3f", p->ratio);
        cli_cell(t, CLI_PLAIN, "%s", words);
        free(words);
    }
    if (n) {
        cli_print(c, "\n");
        cli_table_print(t, &c->out, 0);
    }
    cli_table_free(t);
    if (n < k->n)
        cli_note(c, "the %zu that differ most of %zu; --all shows every one", n, k->n);
}

static void show_summary(struct cli *c, const struct comparison *k, const char *a,
                         const char *b)
{
    cli_print(c, "A  run %s\nB  run %s\n\n", a, b);
    best_line(c, "A", k->best_a);
    best_line(c, "B", k->best_b);
    if (k->best_a && k->best_b) {
        double ratio = k->best_b->median_ns / k->best_a->median_ns;
        cli_print(c, "best B / A  %s%.3f%s\n", cli_on(&c->out, ratio_style(ratio)), ratio,
                  cli_off(&c->out, ratio_style(ratio)));
    }
    cli_print(c, "in both %zu, only in A %zu, only in B %zu", k->n, k->only_a, k->only_b);
    if (k->changed)
        cli_print(c, ", valid in one of them %zu", k->changed);
    if (!isnan(k->geomean))
        cli_print(c, "; geometric mean of B / A %.3f", k->geomean);
    cli_print(c, "\n");
}

/* --- the command -------------------------------------------------------------------------- */

struct run_find {
    int64_t id;
    int64_t subject; /* 0 = not found */
    char *kernel;
    char *title;
};

static int on_run(void *user, const kopt_run *r)
{
    struct run_find *f = user;
    if (r->id != f->id)
        return 1;
    f->subject = r->subject;
    return 0;
}

static int on_subject(void *user, const kopt_subject *s)
{
    struct run_find *f = user;
    char *title = cli_subject_title(s);
    f->kernel = cli_strdup(s->kernel);
    f->title = cli_strf("%lld, %s", (long long)f->id, title);
    free(title);
    return 0;
}

/* What was begun and never completed is no measurement, and hides none. */
static int add_completed(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    return r->outcome == KOPT_OUT_INTERRUPTED || cli_rows_add(user, r, subject, run);
}

static int load(struct cli *c, kopt_store *s, const char *word, struct run_find *f,
                struct cli_rows *rows)
{
    kopt_error err;
    char hint[CLI_HINT];
    int code = cli_id(c, word, "run", &f->id);
    if (code)
        return code;
    if (kopt_store_runs(s, 0, on_run, f, &err) != KOPT_OK)
        return cli_fail(c, &err);
    if (!f->subject)
        return cli_failf(c, KOPT_ENOTFOUND, cli_see(c, "runs", "lists them", hint),
                         "the store has no run %lld", (long long)f->id);
    kopt_result_filter filter = {.run = f->id, .outcome = -1, .brief = 1};
    if (kopt_store_subject(s, f->subject, on_subject, f, &err) != KOPT_OK ||
        kopt_store_results(s, &filter, add_completed, rows, &err) != KOPT_OK)
        return cli_fail(c, &err);
    if (rows->n == 0)
        return cli_failf(
            c, KOPT_ENOTFOUND,
            "what an earlier run had measured was taken from the store; compare that "
            "run",
            "run %lld measured nothing itself", (long long)f->id);
    return 0;
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct compare_options *o = options;
    struct run_find find[2] = {{0}, {0}};
    struct cli_rows rows[2] = {{0}, {0}};
    int code = 0;
    if (args->n != 2)
        return cli_usage(c, "two runs are needed; kopt store runs lists them");
    kopt_store *s = cli_store_read(c, &o->common, &code);
    if (!s)
        return code;
    for (size_t i = 0; i < 2 && code == 0; i++)
        code = load(c, s, args->words[i], &find[i], &rows[i]);
    if (code == 0) {
        struct comparison k;
        if (strcmp(find[0].kernel, find[1].kernel) != 0)
            cli_warn(c, "these are runs of two kernels, %s and %s", find[0].kernel,
                     find[1].kernel);
        compare(&rows[0], &rows[1], &k);
        if (o->common.json) {
            show_json(&k, find[0].id, find[1].id);
        } else {
            show_summary(c, &k, find[0].title, find[1].title);
            show_text(c, &k, o->all);
        }
        free(k.pairs);
    }
    for (size_t i = 0; i < 2; i++) {
        cli_rows_free(&rows[i]);
        free(find[i].kernel);
        free(find[i].title);
    }
    kopt_store_close(s);
    return code;
}

static const struct cli_opt opts[] = {
    {.name = "all",
     .letter = 'a',
     .kind = CLI_FLAG,
     .offset = offsetof(struct compare_options, all),
     .help = "every configuration; else the 20 that differ most"},
    CLI_STORE_OPTS,
};

static const struct cli_example examples[] = {
    {"store compare 4 7", "what run 7 changed against run 4"},
};

const struct cli_command cli_cmd_store_compare = {
    .name = "compare",
    .summary = "compare two runs, configuration by configuration",
    .args = "RUN_A RUN_B",
    .about = "The two may be of one subject, or of two: another device, driver, or an edited "
             "kernel. Ratios are times of B over times of A: below 1, B is faster.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .options_bytes = sizeof(struct compare_options),
    .run = run,
};
