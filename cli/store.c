/* SPDX-License-Identifier: MIT */
#include "cli/store.h"
#include "cli/mem.h"

#include <stdlib.h>
#include <string.h>

kopt_store *cli_store_read(struct cli *c, const struct cli_store_common *o, int *code)
{
    kopt_store *s = NULL;
    kopt_error err = {0};
    char *path = cli_store_path(c, o->store);
    if (!path) {
        *code = CLI_EXIT_ENVIRONMENT;
        return NULL;
    }
    kopt_status st = kopt_store_open(path, 0, &s, &err);
    if (st == KOPT_ENOTFOUND) {
        *code = cli_failf(c, st, "kopt tune makes one; --store and KOPT_STORE name another",
                          "there is no store at %s", path);
    } else if (st != KOPT_OK) {
        *code = cli_fail(c, &err);
    }
    free(path);
    return s;
}

/* --- subjects ----------------------------------------------------------------------------- */

static char *dup_text(const char *s)
{
    return cli_strdup(s ? s : "");
}

void cli_subject_copy(struct cli_subject *to, const kopt_subject *from)
{
    to->s = *from;
    to->s.kernel = dup_text(from->kernel);
    to->s.kernel_path = dup_text(from->kernel_path);
    to->s.kernel_hash = dup_text(from->kernel_hash);
    to->s.backend = dup_text(from->backend);
    to->s.device = dup_text(from->device);
    to->s.arch = dup_text(from->arch);
    to->s.driver = dup_text(from->driver);
    to->s.compiler = dup_text(from->compiler);
    to->s.problem = dup_text(from->problem);
    to->s.data = dup_text(from->data);
    to->s.params = dup_text(from->params);
}

void cli_subject_free(struct cli_subject *s)
{
    cli_free(s->s.kernel);
    cli_free(s->s.kernel_path);
    cli_free(s->s.kernel_hash);
    cli_free(s->s.backend);
    cli_free(s->s.device);
    cli_free(s->s.arch);
    cli_free(s->s.driver);
    cli_free(s->s.compiler);
    cli_free(s->s.problem);
    cli_free(s->s.data);
    cli_free(s->s.params);
    memset(s, 0, sizeof(*s));
}

void cli_subjects_free(struct cli_subjects *l)
{
    for (size_t i = 0; i < l->n; i++)
        cli_subject_free(&l->items[i]);
    free(l->items);
    *l = (struct cli_subjects){0};
}

/* Has the problem this "NAME=VALUE"? */
static bool has_pair(const char *problem, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    kopt_pair p;
    while (kopt_pair_next(&problem, &p))
        if (p.name_bytes == n && memcmp(p.name, word, n) == 0)
            return equals && strlen(equals + 1) == p.value_bytes &&
                   memcmp(equals + 1, p.value, p.value_bytes) == 0;
    return false;
}

struct collect {
    struct cli_subjects *out;
    const char *const *pairs;
    size_t n_pairs;
};

static int add_subject(void *user, const kopt_subject *x)
{
    const struct collect *k = user;
    for (size_t i = 0; i < k->n_pairs; i++)
        if (!has_pair(x->problem, k->pairs[i]))
            return 1;
    struct cli_subjects *l = k->out;
    l->items = cli_grow(l->items, &l->cap, l->n, sizeof(*l->items));
    cli_subject_copy(&l->items[l->n++], x);
    return 1;
}

kopt_status cli_subjects_get(kopt_store *s, const char *kernel, const char *const *pairs,
                             size_t n_pairs, struct cli_subjects *out, kopt_error *err)
{
    struct collect k = {out, pairs, n_pairs};
    *out = (struct cli_subjects){0};
    kopt_status st = kopt_store_subjects(s, kernel, add_subject, &k, err);
    if (st != KOPT_OK)
        cli_subjects_free(out);
    return st;
}

int cli_subject_keep(void *user, const kopt_subject *x)
{
    cli_subject_copy(user, x);
    return 0;
}

int cli_id(struct cli *c, const char *word, const char *what, int64_t *out)
{
    if (cli_parse_int(word, out) && *out > 0)
        return 0;
    return cli_usage(c, "'%s' is no %s, which is a number", word, what);
}

int cli_need_subject(struct cli *c, const struct cli_args *args)
{
    if (args->n == 0)
        return cli_usage(c, "which subject? Its number in kopt store list, or a kernel's name");
    for (size_t i = 1; i < args->n; i++)
        if (!strchr(args->words[i], '='))
            return cli_usage(c, "'%s' is not NAME=VALUE", args->words[i]);
    return 0;
}

static int find_by_kernel(struct cli *c, kopt_store *s, const struct cli_args *args,
                          struct cli_subject *out)
{
    struct cli_subjects found;
    kopt_error err;
    const char *const *pairs = args->words + 1;
    if (cli_subjects_get(s, args->words[0], pairs, args->n - 1, &found, &err) != KOPT_OK)
        return cli_fail(c, &err);
    int code = 0;
    char hint[CLI_HINT];
    if (found.n == 0) {
        code = cli_failf(c, KOPT_ENOTFOUND, cli_see(c, "list", "shows what there is", hint),
                         "the store has nothing of kernel '%s'%s", args->words[0],
                         args->n > 1 ? " with this problem" : "");
    } else {
        cli_subject_copy(out, &found.items[0].s);
        if (found.n > 1)
            cli_note(c, "%zu subjects fit, this is the newest, %lld; %s", found.n,
                     (long long)out->s.id, cli_see(c, "list", "has all", hint));
    }
    cli_subjects_free(&found);
    return code;
}

int cli_subject_find(struct cli *c, kopt_store *s, const struct cli_args *args,
                     struct cli_subject *out)
{
    int64_t id = 0;
    kopt_error err;
    char hint[CLI_HINT];
    memset(out, 0, sizeof(*out));
    if (!cli_parse_int(args->words[0], &id))
        return find_by_kernel(c, s, args, out);
    if (args->n > 1)
        return cli_usage(c, "'%s' is one word too many", args->words[1]);
    kopt_status st = kopt_store_subject(s, id, cli_subject_keep, out, &err);
    if (st == KOPT_ENOTFOUND)
        return cli_failf(c, st, cli_see(c, "list", "shows what there is", hint),
                         "the store has no subject %lld", (long long)id);
    return st == KOPT_OK ? 0 : cli_fail(c, &err);
}

int cli_subject_run(struct cli *c, const struct cli_args *args, const void *options,
                    int (*work)(struct cli *c, kopt_store *s, const void *options,
                                const kopt_subject *subject))
{
    struct cli_subject subject = {0};
    int code = cli_need_subject(c, args);
    if (code)
        return code;
    kopt_store *s = cli_store_read(c, options, &code);
    if (!s)
        return code;
    code = cli_subject_find(c, s, args, &subject);
    if (code == 0)
        code = work(c, s, options, &subject.s);
    cli_subject_free(&subject);
    kopt_store_close(s);
    return code;
}

char *cli_subject_title(const kopt_subject *s)
{
    char *problem = cli_config_words(s->problem);
    char *title =
        cli_strf("%s%s%s on %s", s->kernel, problem[0] ? " " : "", problem, s->device);
    free(problem);
    return title;
}

/* --- results ------------------------------------------------------------------------------ */

int cli_rows_add(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct cli_rows *rows = user;
    rows->items = cli_grow(rows->items, &rows->cap, rows->n, sizeof(*rows->items));
    rows->runs = cli_grow(rows->runs, &rows->cap_runs, rows->n, sizeof(*rows->runs));
    rows->subjects =
        cli_grow(rows->subjects, &rows->cap_subjects, rows->n, sizeof(*rows->subjects));
    kopt_result *to = &rows->items[rows->n];
    *to = *r;
    to->config = dup_text(r->config);
    to->message = dup_text(r->message);
    to->log = dup_text(r->log);
    if (r->times_ns && r->n_times) {
        double *times = cli_alloc(r->n_times, sizeof(*times));
        memcpy(times, r->times_ns, r->n_times * sizeof(*times));
        to->times_ns = times;
    } else {
        to->times_ns = NULL;
    }
    rows->runs[rows->n] = run;
    rows->subjects[rows->n] = subject;
    rows->n++;
    return 1;
}

void cli_rows_free(struct cli_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        cli_free(rows->items[i].config);
        cli_free(rows->items[i].message);
        cli_free(rows->items[i].log);
        cli_free(rows->items[i].times_ns);
    }
    free(rows->items);
    free(rows->runs);
    free(rows->subjects);
    *rows = (struct cli_rows){0};
}

kopt_status cli_rows_get(kopt_store *s, const kopt_result_filter *f, struct cli_rows *out,
                         kopt_error *err)
{
    *out = (struct cli_rows){0};
    kopt_status st = kopt_store_results(s, f, cli_rows_add, out, err);
    if (st != KOPT_OK)
        cli_rows_free(out);
    return st;
}
