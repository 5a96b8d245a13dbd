/* SPDX-License-Identifier: MIT */
/* Judging models for other programs. Layer: api. */
#include "api/data.h"
#include "base/alloc.h"
#include "learn/baseline.h"
#include "learn/judge.h"
#include "model/model.h"

#include <string.h>

enum { ROWS_MAX = 4, TEXTS_MAX = 256 };

struct judging {
    const kopt_eval_options *o;
    struct kp_model *m;
    kopt_data_options from; /* the caller's, and what is missing there from the model */
    const char *texts[3 * TEXTS_MAX];
    struct kp_data data;
    unsigned char *roles;  /* [n_problems] by the split */
    unsigned char *judged; /* [n_problems]: 1 = to be judged */
    struct kp_baseline *baseline;
    kopt_eval_row rows[ROWS_MAX];
    size_t n;
    kopt_error *err;
};

void kopt_eval_options_init(kopt_eval_options *o)
{
    *o = (kopt_eval_options){.struct_bytes = sizeof(*o)};
}

/* --- what the model says about its data --------------------------------------------------- */

/* The texts of an array, borrowed; entries `slot` * TEXTS_MAX and on of j->texts hold them. */
static void take_texts(struct judging *j, const struct kp_json *list, size_t slot,
                       const char *const **out, size_t *n)
{
    const char **to = j->texts + slot * TEXTS_MAX;
    struct kp_str text;
    if (*n || kp_json_size(list) == 0)
        return; /* the caller's own, or none */
    for (size_t i = 0; i < kp_json_size(list) && *n < TEXTS_MAX; i++)
        if (kp_json_as_str(kp_json_at(list, i), &text))
            to[(*n)++] = text.ptr;
    *out = to;
}

static kopt_status fill_in(struct judging *j)
{
    const struct kp_json *info = j->m->info;
    const struct kp_json *split = kp_json_get(info, "split");
    kopt_data_options *d = &j->from;
    struct kp_str limits;
    int64_t fold = 0;
    *d = j->o->data;
    if (d->kernel && strcmp(d->kernel, j->m->kernel) != 0)
        return kp_err(j->err, KOPT_EINPUT, "%s is a model of '%s', not of '%s'", j->o->model,
                      j->m->kernel, d->kernel);
    d->kernel = j->m->kernel;
    take_texts(j, kp_json_get(info, "where"), 0, &d->where, &d->n_where);
    take_texts(j, kp_json_get(info, "params"), 1, &d->params, &d->n_params);
    take_texts(j, kp_json_get(split, "group"), 2, &d->group, &d->n_group);
    if (!d->limits && kp_json_as_str(kp_json_get(info, "limits"), &limits))
        d->limits = limits.ptr;
    if (!d->fold && kp_json_as_i64(kp_json_get(split, "fold"), &fold) && fold >= 0 && fold < 10)
        d->fold = (unsigned)fold;
    return KOPT_OK;
}

/* --- who is judged ------------------------------------------------------------------------ */

static kopt_status choose(struct judging *j)
{
    static const struct {
        const char *name;
        int role; /* -1: all */
    } parts[] = {{"test", KP_ROLE_TEST},
                 {"valid", KP_ROLE_VALID},
                 {"train", KP_ROLE_TRAIN},
                 {"all", -1}};
    const char *part = j->o->part ? j->o->part : "test";
    int64_t salt = 1;
    size_t i = 0;
    while (i < 4 && strcmp(parts[i].name, part) != 0)
        i++;
    if (i == 4)
        return kp_err(j->err, KOPT_EUSAGE, "there is no part '%s': test, valid, train or all",
                      part);
    (void)kp_json_as_i64(kp_json_get(kp_json_get(j->m->info, "split"), "salt"), &salt);
    const struct kp_dataset *d = j->data.set;
    const struct kp_split split = {.salt = (unsigned)salt,
                                   .fold = j->from.fold,
                                   .group = j->from.n_group ? j->from.group : NULL,
                                   .n_group = j->from.n_group};
    j->roles = kp_calloc(d->n_problems + 1, 1);
    j->judged = kp_calloc(d->n_problems + 1, 1);
    if (!j->roles || !j->judged)
        return kp_err_nomem(j->err);
    kopt_status st = kp_split(d, &split, j->roles, j->err);
    size_t n = 0;
    for (size_t p = 0; st == KOPT_OK && p < d->n_problems; p++) {
        j->judged[p] = parts[i].role < 0 || j->roles[p] == parts[i].role;
        n += j->judged[p];
    }
    if (st == KOPT_OK && n == 0) {
        st = kp_err(j->err, KOPT_EINPUT, "%s: none of its %zu problems is in the part '%s'",
                    j->o->data.path, d->n_problems, part);
        kp_err_hint(j->err, "the part 'all' is every problem");
    }
    return st;
}

static kopt_status learn_baseline(struct judging *j)
{
    const struct kp_dataset *d = j->data.set;
    unsigned char *use = kp_calloc(d->n_problems + 1, 1);
    if (!use)
        return kp_err_nomem(j->err);
    for (size_t p = 0; p < d->n_problems; p++)
        use[p] = j->roles[p] == KP_ROLE_TRAIN;
    kopt_status st = kp_baseline_new(d, use, j->m->encoder, &j->baseline, j->err);
    kp_free(use);
    return st;
}

static void tell_start(const struct judging *j)
{
    const struct kp_load_report *r = &j->data.report;
    const struct kp_dataset *d = j->data.set;
    struct kp_str hash = {0};
    char network[KP_MODEL_NETWORK];
    kp_model_network(j->m, network);
    kopt_eval_start s = {.source = kp_source_name(r->source),
                         .kernel = d->kernel,
                         .network = network,
                         .rows = d->n_rows,
                         .left_out = r->left_out,
                         .skipped = r->skipped,
                         .skipped_why = r->reason};
    if (!j->o->start)
        return;
    (void)kp_json_as_str(kp_json_get(kp_json_get(j->m->info, "data"), "sha256"), &hash);
    s.same_data = kp_str_is(hash, r->hash);
    for (size_t p = 0; p < d->n_problems; p++) {
        s.problems += j->judged[p];
        s.known += j->roles[p] == KP_ROLE_TRAIN;
    }
    j->o->start(j->o->user, &s);
}

/* --- the rows ----------------------------------------------------------------------------- */

static void copy_row(const struct kp_judgement *from, kopt_judgement *to)
{
    *to = (kopt_judgement){.problems = from->n,
                           .answered = from->n_answered,
                           .forced = from->forced,
                           .forced_nll = from->forced_nll,
                           .free_running = from->free_running,
                           .valid = from->valid,
                           .timed = from->n_timed,
                           .unmeasured = from->unmeasured,
                           .seconds = from->seconds};
    for (size_t i = 0; i < KOPT_AT; i++) {
        to->exact[i] = from->exact[i];
        to->canonical[i] = from->canonical[i];
        to->kept_mean[i] = from->kept_mean[i];
        to->kept_geometric[i] = from->kept_geometric[i];
        to->kept_p5[i] = from->kept_p5[i];
    }
}

/* `who` NULL: the model. */
struct telling {
    const struct judging *j;
    const char *name;
};

static void tell(void *user, const struct kp_judge_case *c)
{
    const struct telling *t = user;
    kopt_eval_case to = {.name = t->name,
                         .problem = t->j->data.set->keys[c->problem],
                         .exact_at = c->exact_at,
                         .canonical_at = c->canonical_at,
                         .timed = c->timed};
    memcpy(to.kept, c->kept, sizeof(to.kept));
    t->j->o->problem(t->j->o->user, &to);
}

static kopt_status judge_one(struct judging *j, const char *name, const struct kp_judged *who,
                             bool unconstrained)
{
    struct kp_judgement found;
    struct telling telling = {j, name};
    const struct kp_judge_options jo = {.user = &telling,
                                        .each = j->o->problem ? tell : NULL,
                                        .roles = j->judged,
                                        .role = 1,
                                        .width = j->o->width,
                                        .unconstrained = unconstrained,
                                        .limits = j->data.limits,
                                        .threads = j->o->threads};
    if (j->o->judging)
        j->o->judging(j->o->user, name);
    kopt_status st = who ? kp_judge_any(who, j->data.set, &jo, &found, j->err)
                         : kp_judge(j->m, j->data.set, &jo, &found, j->err);
    if (st != KOPT_OK) {
        kp_err_wrap(j->err, "%s", j->o->data.path);
        return st;
    }
    kopt_eval_row *row = &j->rows[j->n++];
    row->name = name;
    copy_row(&found, &row->j);
    return KOPT_OK;
}

static kopt_status judge_all(struct judging *j)
{
    struct kp_judged base = {.user = j->baseline,
                             .predict = kp_baseline_majority,
                             .targets = j->data.set->targets,
                             .n_targets = j->data.set->n_targets,
                             .rules = j->data.rules};
    kopt_status st = judge_one(j, "model", NULL, false);
    if (st == KOPT_OK && j->m->rules)
        st = judge_one(j, "model, no rules", NULL, true);
    if (st == KOPT_OK)
        st = judge_one(j, "majority", &base, false);
    base.predict = kp_baseline_neighbours;
    if (st == KOPT_OK)
        st = judge_one(j, "15 nearest neighbours", &base, false);
    return st;
}

static kopt_status check(const kopt_eval_options *o, kopt_error *err)
{
    if (o->struct_bytes != sizeof(*o))
        return kp_err(err, KOPT_EUSAGE,
                      "the options were not set up by "
                      "kopt_eval_options_init() of this version");
    if (!o->model)
        return kp_err(err, KOPT_EUSAGE, "no model is named");
    if (o->width > KP_BEAM_WIDTH_MAX)
        return kp_err(err, KOPT_EUSAGE, "a beam of %zu: at most %d", o->width,
                      (int)KP_BEAM_WIDTH_MAX);
    return KOPT_OK;
}

static kopt_status prepare(struct judging *j)
{
    kopt_status st = kp_model_load(j->o->model, &j->m, j->err);
    if (st == KOPT_OK)
        st = fill_in(j);
    if (st == KOPT_OK)
        st = kp_data_open(&j->from, j->m->rules, kp_json_get(j->m->info, "pooled"), &j->data,
                          j->err);
    if (st == KOPT_OK)
        st = kp_judge_check(j->m, j->data.set, j->err);
    if (st == KOPT_EINPUT && j->data.set) {
        kp_err_wrap(j->err, "%s is no data for the model %s", j->o->data.path, j->o->model);
        return st;
    }
    if (st == KOPT_OK)
        st = choose(j);
    if (st == KOPT_OK)
        st = learn_baseline(j);
    return st;
}

kopt_status kopt_eval(const kopt_eval_options *o, kopt_eval_row **out, size_t *n,
                      kopt_error *err)
{
    *out = NULL;
    *n = 0;
    kopt_status st = check(o, err);
    if (st != KOPT_OK)
        return st;
    struct judging *j = kp_calloc(1, sizeof(*j));
    if (!j)
        return kp_err_nomem(err);
    j->o = o;
    j->err = err;
    st = prepare(j);
    if (st == KOPT_OK) {
        tell_start(j);
        st = judge_all(j);
    }
    kopt_eval_row *block = st == KOPT_OK ? kp_calloc(ROWS_MAX, sizeof(*block)) : NULL;
    if (st == KOPT_OK && !block)
        st = kp_err_nomem(err);
    if (block) {
        memcpy(block, j->rows, j->n * sizeof(*block));
        *out = block;
        *n = j->n;
    }
    kp_baseline_free(j->baseline);
    kp_free(j->roles);
    kp_free(j->judged);
    kp_data_close(&j->data);
    kp_model_free(j->m);
    kp_free(j);
    return st;
}
