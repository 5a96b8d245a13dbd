/* SPDX-License-Identifier: MIT */
/* kopt compare: strategies on recorded spaces. */
#include "cli/cmds.h"
#include "cli/compare_view.h"
#include "cli/mem.h"
#include "cli/plot.h"
#include "cli/recordings.h"
#include "cli/rows.h"
#include "cli/signals.h"
#include "cli/tune_opts.h"
#include "cli/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct compare_options {
    const char *methods;
    int64_t repeats;
    int64_t seed;
    struct cli_words priors;
    struct cli_words traces;
    double budget;
    double until;
    int64_t threads;
    int64_t window;
    int64_t compilers;
    const char *plot;
    bool json;
};

/* --- methods ------------------------------------------------------------------------------ */

struct methods {
    char **names;
    size_t n;
    size_t cap;
};

/* Each method once. */
static void add_method(struct methods *m, const char *name, size_t bytes, const char *suffix)
{
    char *whole = cli_strf("%.*s%s", (int)bytes, name, suffix);
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->names[i], whole) == 0) {
            free(whole);
            return;
        }
    }
    m->names = cli_grow(m->names, &m->cap, m->n, sizeof(*m->names));
    m->names[m->n++] = whole;
}

static void add_all(struct methods *m, const char *suffix)
{
    const char *name;
    for (size_t i = 0; (name = kopt_strategy(i, NULL)) != NULL; i++)
        add_method(m, name, strlen(name), suffix);
}

/* "bayes,random", "all", "all+prior". False: a name is empty. */
static bool read_methods(struct methods *m, const char *text)
{
    while (text) {
        size_t n = strcspn(text, ",");
        if (n == 0)
            return false;
        if (n == 3 && strncmp(text, "all", n) == 0)
            add_all(m, "");
        else if (n == 9 && strncmp(text, "all+prior", n) == 0)
            add_all(m, "+prior");
        else
            add_method(m, text, n, "");
        text = text[n] ? text + n + 1 : NULL;
    }
    return true;
}

static void free_methods(struct methods *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->names[i]);
    free(m->names);
}

/* --- the work ----------------------------------------------------------------------------- */

struct work {
    struct cli *c;
    const struct compare_options *o;
    struct methods methods;
    struct cli_recordings spaces;
    struct cli_recordings priors;
    kopt_traces **traces;
    size_t n_traces;
    struct cli_progress progress;
    uint64_t done; /* runs */
    uint64_t total;
    bool made_plot; /* try_plot() did; it was not there */
};

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct work *w = user;
    struct cli_field f[2] = {{.keep = 2}, {.keep = 1}};
    char a[CLI_NUM];
    char b[CLI_NUM];
    w->done = done;
    w->total = total;
    if (cli_signals_seen())
        return 0;
    if (!cli_progress_due(&w->progress))
        return 1;
    int64_t now = w->c->err.probe->now_ns(w->c->err.probe->user);
    double elapsed = (double)(now - w->progress.begun_ns) / 1e9;
    (void)snprintf(f[0].text, sizeof(f[0].text), "%s/%s runs", cli_count((double)done, a),
                   cli_count((double)total, b));
    if (done)
        (void)snprintf(f[1].text, sizeof(f[1].text), "%s left",
                       cli_clock(elapsed * (double)(total - done) / (double)done, a));
    cli_progress_draw(&w->progress, f, done ? 2 : 1);
    return 1;
}

static void fill(kopt_compare_options *co, struct work *w)
{
    const struct compare_options *o = w->o;
    kopt_compare_options_init(co);
    co->spaces = cli_recordings_list(&w->spaces);
    co->n_spaces = w->spaces.n;
    co->methods = w->methods.n ? (const char *const *)w->methods.names : NULL;
    co->n_methods = w->methods.n;
    co->priors = cli_recordings_list(&w->priors);
    co->n_priors = w->priors.n;
    co->traces = w->n_traces ? (const kopt_traces *const *)w->traces : NULL;
    co->n_traces = w->n_traces;
    co->repeats = (unsigned)o->repeats;
    co->seed = (uint64_t)o->seed;
    co->threads = (unsigned)o->threads;
    co->window = (unsigned)o->window;
    co->compilers = (unsigned)o->compilers;
    co->until = o->until;
    co->budget = o->budget;
    co->progress = on_progress;
    co->user = w;
}

/* The files, in the order of the command line. Returns 0, or the exit code after a message. */
static int open_files(struct work *w, const struct cli_args *args)
{
    const struct compare_options *o = w->o;
    kopt_error err;
    int code = 0;
    for (size_t i = 0; i < args->n && code == 0; i++)
        code = cli_recordings_add(w->c, &w->spaces, args->words[i], true);
    for (size_t i = 0; i < o->priors.n && code == 0; i++)
        code = cli_recordings_add(w->c, &w->priors, o->priors.words[i], true);
    w->traces = cli_alloc(o->traces.n + 1, sizeof(kopt_traces *));
    for (size_t i = 0; i < o->traces.n && code == 0; i++) {
        if (kopt_traces_open(o->traces.words[i], &w->traces[i], &err) != KOPT_OK)
            code = cli_fail(w->c, &err);
        else
            w->n_traces++;
    }
    if (code == 0 && w->spaces.n == 0)
        code = cli_failf(w->c, KOPT_EFAILED, NULL, "no space is left to compare on");
    return code;
}

static int plot_failed(struct work *w)
{
    return cli_failf(w->c, errno == ENOSPC || errno == EDQUOT ? KOPT_EFULL : KOPT_EIO, NULL,
                     "cannot write %s: %s", w->o->plot,
                     strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
}

/* A file that has something else in it, a recording perhaps, is not for us to overwrite. */
static bool is_no_picture(const char *path)
{
    char head[5] = "";
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(head, 1, 4, f);
    (void)fclose(f);
    return n > 0 && strcmp(head, "<svg") != 0;
}

/* Before the work is done: can it be written? What is there stays until there is something new.
 */
static int try_plot(struct work *w)
{
    if (is_no_picture(w->o->plot))
        return cli_usage(w->c,
                         "--plot: %s is there already, and is no picture of ours; it stays",
                         w->o->plot);
    bool was_there = access(w->o->plot, F_OK) == 0;
    FILE *f = fopen(w->o->plot, "a");
    if (!f)
        return plot_failed(w);
    w->made_plot = !was_there;
    (void)fclose(f);
    return 0;
}

/* Nothing came of it: the file that try_plot() made is of no use. */
static void drop_plot(const struct work *w)
{
    struct stat st;
    if (w->made_plot && stat(w->o->plot, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        (void)remove(w->o->plot);
}

static int write_plot(struct work *w, const kopt_compare_report *r)
{
    FILE *f = fopen(w->o->plot, "w");
    bool ok = f && cli_plot(f, r);
    if (f)
        ok = fclose(f) == 0 && ok;
    return ok ? 0 : plot_failed(w);
}

/* A method with a prior of nothing is the strategy alone. */
static void note_priors(struct cli *c, const kopt_compare_report *r)
{
    for (size_t m = 0; m < r->n_methods; m++) {
        const char *plus = strrchr(r->methods[m], '+');
        size_t without = 0;
        if (r->foreign[m] || !plus || strcmp(plus, "+prior") != 0)
            continue;
        for (size_t s = 0; s < r->n_spaces; s++)
            without +=
                r->cells[m * r->n_spaces + s].runs && !r->cells[m * r->n_spaces + s].prior;
        if (without)
            cli_note(c,
                     "%s: for %zu of %zu space%s there are no other results of the same "
                     "kernel and parameters, so it ran without a prior",
                     r->methods[m], without, r->n_spaces, r->n_spaces == 1 ? "" : "s");
    }
}

static int show(struct work *w, const kopt_compare_report *r)
{
    struct cli_compare_view v = {.c = w->c, .until = w->o->until};
    size_t *order = cli_compare_order(r);
    double *random = cli_compare_random(r);
    int code = 0;
    v.order = order;
    v.random = random;
    if (w->o->json)
        cli_compare_json(&v, r);
    else
        cli_compare_tables(&v, r);
    note_priors(w->c, r);
    if (w->o->plot)
        code = write_plot(w, r);
    free(order);
    free(random);
    return code;
}

static int compare(struct work *w)
{
    kopt_compare_options co;
    kopt_compare_report *r = NULL;
    kopt_error err;
    char a[CLI_NUM];
    char b[CLI_NUM];
    fill(&co, w);
    cli_progress_init(&w->progress, &w->c->err, w->c->verbosity < 0);
    cli_signals_catch(w->c, "\nkopt: stopping; once more to exit at once\n", NULL);
    kopt_status st = kopt_compare(&co, &r, &err);
    cli_progress_clear(&w->progress);
    if (st != KOPT_OK)
        return cli_signals_seen() ? CLI_EXIT_INTERRUPTED : cli_fail(w->c, &err);
    int code = show(w, r);
    if (r->stopped) {
        cli_note(w->c, "interrupted: %s of %s runs were made", cli_count((double)w->done, a),
                 cli_count((double)w->total, b));
        code = CLI_EXIT_INTERRUPTED;
    }
    kopt_compare_report_free(r);
    return code;
}

static void end_work(struct work *w)
{
    for (size_t i = 0; i < w->n_traces; i++)
        kopt_traces_close(w->traces[i]);
    free(w->traces);
    cli_recordings_free(&w->spaces);
    cli_recordings_free(&w->priors);
    free_methods(&w->methods);
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    struct work w = {.c = c, .o = options};
    int code = 0;
    if (args->n == 0)
        return cli_usage(c, "which recorded spaces?");
    if (w.o->methods && !read_methods(&w.methods, w.o->methods))
        code = cli_usage(c, "--methods: '%s' has an empty name", w.o->methods);
    if (code == 0 && w.o->plot)
        code = try_plot(&w);
    if (code == 0)
        code = open_files(&w, args);
    if (code && w.o->plot)
        drop_plot(&w);
    if (code == 0) {
        code = compare(&w);
        if (code && w.o->plot)
            drop_plot(&w);
    }
    end_work(&w);
    return code;
}

/* --- the table ---------------------------------------------------------------------------- */

#define AT(field) offsetof(struct compare_options, field)

static const struct cli_opt opts[] = {
    {.name = "methods",
     .letter = 'm',
     .kind = CLI_TEXT,
     .arg = "NAME,..",
     .complete = CLI_COMPLETE_METHOD,
     .offset = AT(methods),
     .help = "strategies to compare, see kopt tune --help; NAME+prior begins with the results "
             "of the other files for the same kernel; all, all+prior (default: the strategy "
             "that kopt tune chooses, and random)",
     .group = "What"},
    {.name = "repeats",
     .letter = 'r',
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1000000,
     .offset = AT(repeats),
     .help = "runs of each method on each space (default 30)"},
    CLI_ROW_SEED(struct compare_options,
                 "of the first run; the next has S + 1, and so on (default 1)", NULL),
    {.name = "budget",
     .letter = 'b',
     .kind = CLI_NUMBER,
     .arg = "X",
     .min = 0.01,
     .max = 100,
     .offset = AT(budget),
     .help = "how long a run is: times the evaluations that random search is expected to need "
             "to come within 5 % of the way from the optimum to the median (default 1)"},
    {.name = "until",
     .kind = CLI_CUSTOM,
     .arg = "SHARE",
     .offset = AT(until),
     .parse = cli_parse_until,
     .help = "say what kopt tune --until SHARE, such as 2%, would have come to, and how good "
             "its estimates are"},
    {.name = "prior",
     .kind = CLI_CUSTOM,
     .arg = "FILE",
     .offset = AT(priors),
     .parse = cli_parse_word,
     .complete = CLI_COMPLETE_FILE,
     .help = "more results for NAME+prior, on which nothing is compared; again for more"},
    {.name = "traces",
     .kind = CLI_CUSTOM,
     .arg = "FILE",
     .offset = AT(traces),
     .parse = cli_parse_word,
     .complete = CLI_COMPLETE_FILE,
     .help = "runs of other tuners on these spaces, to be judged beside; again for more"},
    {.name = "compilers",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 128,
     .offset = AT(compilers),
     .help = "simulated compilers that work ahead of the device (default 1)",
     .group = "How"},
    {.name = "window",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 256,
     .offset = AT(window),
     .help = "evaluations asked for and not yet told (default: one for each compiler)"},
    CLI_ROW_THREADS(struct compare_options,
                    "to work with, which changes no score (default: one for each core)", NULL),
    {.name = "plot",
     .letter = 'o',
     .kind = CLI_TEXT,
     .arg = "FILE",
     .complete = CLI_COMPLETE_FILE,
     .offset = AT(plot),
     .help = "write the best so far over simulated time there, as an SVG picture",
     .group = "Output"},
    CLI_ROW_JSON(struct compare_options,
                 CLI_JSON_HELP ": type recording for each space, score for each method on it "
                               "with its curves, total for each method, then compared",
                 NULL),
};

static const struct cli_example examples[] = {
    {"compare gemm_A4000.json.gz", "the default strategy and random search on one space"},
    {"compare spaces/*.json.gz --methods all --repeats 100 --plot all.svg",
     "every strategy on many spaces, with a picture"},
    {"compare gemm_*.json.gz --methods bayes,bayes+prior",
     "what results of other devices are worth"},
    {"compare kopt.db --until 2%", "on what was tuned here, and what --until would have saved"},
    {"compare gemm_A4000.json.gz --json | jq -c 'select(.type==\"total\")|[.method,.score]'",
     "for a script"},
};

const struct cli_command cli_cmd_compare = {
    .name = "compare",
    .summary = "compare search strategies on recorded spaces",
    .args = "FILE..",
    .about =
        "FILE is a recorded space: a cache file of Kernel Tuner (whole, open or cut), a T4 file, "
        "both also packed by gzip, or a store, all of whose subjects are taken; kopt.db#3 is its "
        "subject 3. A comparison says the more, the more of a space was measured. Nothing runs on a "
        "device: results and costs come from the file, time is simulated.\n\n"
        "  SCORE      over evaluations: 0 is random search, 1 the optimum at once; with\n"
        "             its standard error\n"
        "  OVER TIME  the same over simulated time\n"
        "  IN 1 %     share of runs that end within 1 % of the optimum\n"
        "  AT CUTOFF  .. within 5 % of the way from the optimum to the median\n"
        "  GAP        mean distance to the optimum at the end, as a share of it\n"
        "  WORST      that of the worst run\n"
        "  TO 1 %     mean number of evaluations to within 1 %; the budget where never\n"
        "  PRIOR      results of the prior that are in this space\n\n"
        "The best of each column has a *, a score below random search an ! (where random is "
        "among the methods, below its score). The last column of the table over all spaces says "
        "on how many a method is. Ctrl-C ends with what was done.\n\n"
        "A file for --traces has a JSON object in each line, one run:\n\n"
        "  {\"space\":NAME,\"method\":NAME,\"seed\":S,\"times_ns\":[..],\"costs_s\":[..]}\n\n"
        "in the order of the evaluations. A time is null where it failed; a space has the name "
        "of its file without folder and endings.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .defaults = &(const struct compare_options){.seed = 1},
    .options_bytes = sizeof(struct compare_options),
    .complete = CLI_COMPLETE_FILE,
    .run = run,
};
