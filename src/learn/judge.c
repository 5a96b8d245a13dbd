/* SPDX-License-Identifier: MIT */
#include "learn/judge.h"

#include "base/alloc.h"
#include "learn/problem.h"
#include "model/crew.h"
#include "os/clock.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const size_t kp_judge_at[KP_JUDGE_AT] = {1, 5, 20, 50};
const size_t kp_judge_kept[KP_JUDGE_AT] = {0, 1, 5, 20};

enum { K_MOST = 50, WIDTH_DEFAULT = 100 };

/* What is found of one problem. */
struct verdict {
    bool answered;
    bool timed;
    size_t forced; /* positions right */
    double nll;
    size_t free_running;
    size_t exact_at; /* place of the truth among the predictions, from 1; 0 = it is not there */
    size_t canonical_at;
    bool valid;
    bool unmeasured; /* the first prediction: no row is about it */
    double kept[KP_JUDGE_AT];
};

struct judging {
    const struct kp_judged *who;
    const struct kp_dataset *d;
    const struct kp_judge_options *o;
    size_t n;           /* problems that are judged */
    uint32_t *problems; /* [n] */
    size_t *first;      /* [n_problems + 1]: rows of each problem */
    uint32_t *to_who;   /* values of the data set's targets as theirs: [n_targets][most] */
    size_t most;
    struct verdict *verdicts; /* [n] */
    pthread_mutex_t lock;
    kopt_status st; /* the first failure */
    kopt_error err;
    int64_t ns;
};

/* --- teacher forcing ------------------------------------------------------------------------
 */

struct forcing {
    float *state[KP_BEAM_NETS_MAX];
    float *scratch;
    double weight[KP_BEAM_NETS_MAX]; /* log-probability of the prefix */
    float *logp[KP_BEAM_NETS_MAX];
    double *row;   /* logarithms of a target's values */
    float *inputs; /* of the forest */
    float *trees;  /* what it says */
};

static void forcing_free(struct forcing *f)
{
    for (size_t k = 0; k < KP_BEAM_NETS_MAX; k++) {
        kp_slab_free(f->state[k]);
        kp_slab_free(f->logp[k]);
    }
    kp_slab_free(f->scratch);
    kp_free(f->row);
    kp_slab_free(f->inputs);
    kp_slab_free(f->trees);
}

static bool forcing_init(const struct kp_model *m, struct forcing *f)
{
    bool ok = true;
    size_t most = 0;
    for (size_t k = 0; k < m->n_nets; k++) {
        const struct kp_net *net = m->nets[k];
        size_t scratch = net->ops->scratch(net, 1);
        most = scratch > most ? scratch : most;
        f->state[k] = kp_slab_new(net->ops->state(net, 1));
        f->logp[k] = kp_slab_new(KP_TARGET_VALUES_MAX);
        ok = ok && f->state[k] && f->logp[k];
    }
    f->scratch = kp_slab_new(most);
    f->row = kp_calloc(KP_TARGET_VALUES_MAX, sizeof(*f->row));
    f->inputs = kp_slab_new(m->nets[0]->shape.n_features + KP_TARGETS_MAX);
    f->trees = kp_slab_new(KP_TARGET_VALUES_MAX);
    return ok && f->scratch && f->row && f->inputs && f->trees;
}

/* The networks' mixture's probability of value v, given the true values before. */
static double mixed(const struct forcing *f, size_t n_nets, uint32_t v)
{
    double most = -(double)INFINITY;
    double up = 0;
    double down = 0;
    for (size_t k = 0; k < n_nets; k++)
        most = fmax(most, f->weight[k]);
    for (size_t k = 0; k < n_nets; k++) {
        double w = exp(f->weight[k] - most);
        up += w * exp((double)f->logp[k][v]);
        down += w;
    }
    return up / down;
}

/* The logarithms of target p's probabilities, as the beam has them. */
static void fill_row(const struct kp_model *m, struct forcing *f, size_t p,
                     const uint32_t *truth)
{
    uint32_t n = m->targets[p].n_values;
    for (uint32_t v = 0; v < n; v++)
        f->row[v] = log(fmax(mixed(f, m->n_nets, v), 1e-30));
    if (!m->forest)
        return;
    kp_forest_log(m->forest, p, m->nets[0]->shape.n_features, truth, f->inputs, f->trees);
    kp_forest_pool(m->forest, n, f->trees, f->row);
}

static void force(const struct kp_model *m, struct forcing *f, const int32_t *tokens,
                  const float *features, const uint32_t *truth, struct verdict *v)
{
    const uint32_t parent = 0;
    for (size_t k = 0; k < m->n_nets; k++) {
        f->weight[k] = 0;
        m->nets[k]->ops->begin(m->nets[k], tokens, features, 1, f->state[k], f->scratch);
    }
    memcpy(f->inputs, features, m->nets[0]->shape.n_features * sizeof(float));
    for (size_t p = 0; p < m->n_targets; p++) {
        const struct kp_net_step step = {.p = p,
                                         .n = 1,
                                         .width = 1,
                                         .parent = p ? &parent : NULL,
                                         .values = p ? &truth[p - 1] : NULL};
        uint32_t argmax = 0;
        for (size_t k = 0; k < m->n_nets; k++)
            m->nets[k]->ops->step(m->nets[k], &step, f->state[k], f->scratch, f->logp[k]);
        fill_row(m, f, p, truth);
        for (uint32_t i = 1; i < m->targets[p].n_values; i++)
            if (f->row[i] > f->row[argmax])
                argmax = i;
        v->forced += argmax == truth[p];
        v->nll -= f->row[truth[p]];
        for (size_t k = 0; k < m->n_nets; k++)
            f->weight[k] += (double)f->logp[k][truth[p]];
    }
}

/* --- one problem ----------------------------------------------------------------------------
 */

/* UINT32_MAX: there is no such value. */
static uint32_t as_theirs(const struct judging *j, size_t target, uint32_t value)
{
    return j->to_who[target * j->most + value];
}

static size_t truth_row(const struct judging *j, size_t problem)
{
    return kp_judge_truth(j->d, j->first[problem], j->first[problem + 1]);
}

static bool same_config(const struct judging *j, const uint32_t *predicted, size_t row)
{
    const uint32_t *config = j->d->configs + row * j->d->n_targets;
    for (size_t t = 0; t < j->d->n_targets; t++)
        if (as_theirs(j, t, config[t]) != predicted[t])
            return false;
    return true;
}

static bool same_values(const struct kp_value *a, const struct kp_value *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!kp_value_same(a[i], b[i]))
            return false;
    return true;
}

/* A problem in terms of the rules. */
struct bound {
    struct kp_problem_rules r;
    size_t n_params;
    /* [rows][n_params]: canonical forms of the problem's rows, made when they are needed. */
    struct kp_value *forms;
    bool *known; /* [rows]: has the row one? */
};

/* NULL: there are no rules, or they do not bind to this problem. */
static struct bound *bind_rules(const struct judging *j, size_t problem, struct bound *b)
{
    const struct kp_judged *who = j->who;
    *b = (struct bound){0};
    if (!who->rules || kp_problem_rules_init(j->d, problem, who->rules, j->o->limits,
                                             who->targets, who->n_targets, &b->r) != KOPT_OK)
        return NULL;
    b->n_params = who->rules->n_params;
    return b;
}

static void unbind_rules(struct bound *b)
{
    if (!b)
        return;
    kp_problem_rules_deinit(&b->r);
    kp_free(b->forms);
    kp_free(b->known);
}

/* Row `row` in terms of the predictor's values, and its canonical form. */
static bool form_of_row(const struct judging *j, const struct bound *b, size_t row,
                        struct kp_value *out)
{
    const uint32_t *config = j->d->configs + row * j->d->n_targets;
    uint32_t theirs[KP_TARGETS_MAX];
    for (size_t t = 0; t < j->who->n_targets; t++)
        theirs[t] = as_theirs(j, t, config[t]);
    return kp_problem_rules_canonical(&b->r, theirs, out);
}

static bool make_forms(const struct judging *j, size_t problem, struct bound *b)
{
    size_t from = j->first[problem];
    size_t n = j->first[problem + 1] - from;
    if (b->forms)
        return true;
    b->forms = kp_calloc(n * b->n_params + 1, sizeof(*b->forms));
    b->known = kp_calloc(n + 1, sizeof(*b->known));
    for (size_t i = 0; b->forms && b->known && i < n; i++)
        b->known[i] = form_of_row(j, b, from + i, b->forms + i * b->n_params);
    return b->forms && b->known;
}

/* The predicted configuration's time, or that of one that is the same kernel; infinite where it
 * failed, NaN where no row is about it. */
static kopt_status time_of(const struct judging *j, size_t problem, const uint32_t *predicted,
                           struct bound *b, double *time_ns)
{
    struct kp_value form[KP_PARAMS_MAX];
    size_t from = j->first[problem];
    *time_ns = (double)NAN;
    for (size_t r = from; r < j->first[problem + 1]; r++) {
        if (same_config(j, predicted, r)) {
            *time_ns = (double)j->d->times_ns[r];
            return KOPT_OK;
        }
    }
    if (!b || j->who->rules->n_canonicals == 0 ||
        !kp_problem_rules_canonical(&b->r, predicted, form))
        return KOPT_OK;
    if (!make_forms(j, problem, b))
        return KOPT_ENOMEM;
    for (size_t r = from; r < j->first[problem + 1]; r++)
        if (b->known[r - from] &&
            same_values(form, b->forms + (r - from) * b->n_params, b->n_params))
            *time_ns = fmin(*time_ns, (double)j->d->times_ns[r]);
    return KOPT_OK;
}

static kopt_status look_at_times(const struct judging *j, size_t problem,
                                 const struct kp_prediction *p, struct bound *b,
                                 struct verdict *v)
{
    double best = (double)j->d->times_ns[truth_row(j, problem)];
    double found = (double)INFINITY;
    double time_ns;
    size_t at = 0;
    kopt_status st = KOPT_OK;
    v->timed = isfinite(best);
    for (size_t i = 0; v->timed && i < KP_JUDGE_AT; i++) {
        size_t until = kp_judge_kept[i] ? kp_judge_kept[i] : 1;
        for (; at < until && at < p->n && st == KOPT_OK; at++) {
            st = time_of(j, problem, p->configs + at * j->who->n_targets, b, &time_ns);
            found = fmin(found, time_ns); /* NaN gives way */
            v->unmeasured |= at == 0 && isnan(time_ns);
        }
        v->kept[i] = isfinite(found) ? best / found : 0;
    }
    return st;
}

/* Is the first prediction valid, and where does one stand whose canonical form is the truth's?
 */
static void look_at_rules(const struct judging *j, size_t problem,
                          const struct kp_prediction *p, const struct bound *b,
                          struct verdict *v)
{
    struct kp_value want[KP_PARAMS_MAX];
    struct kp_value got[KP_PARAMS_MAX];
    if (!b)
        return;
    v->valid = p->n && kp_problem_rules_valid(&b->r, p->configs);
    bool known = form_of_row(j, b, truth_row(j, problem), want);
    for (size_t i = 0; known && i < p->n && !v->canonical_at; i++) {
        if (kp_problem_rules_canonical(&b->r, p->configs + i * j->who->n_targets, got) &&
            same_values(want, got, b->n_params))
            v->canonical_at = i + 1;
    }
}

static void look_at_truth(const struct judging *j, size_t problem,
                          const struct kp_prediction *p, struct verdict *v)
{
    size_t row = truth_row(j, problem);
    const uint32_t *config = j->d->configs + row * j->d->n_targets;
    for (size_t t = 0; p->n && t < j->who->n_targets; t++)
        v->free_running += as_theirs(j, t, config[t]) == p->configs[t];
    for (size_t i = 0; i < p->n && !v->exact_at; i++)
        if (same_config(j, p->configs + i * j->who->n_targets, row))
            v->exact_at = i + 1;
}

static kopt_status judge_forced(const struct judging *j, size_t problem, struct verdict *v)
{
    const struct kp_model *m = j->who->forced;
    const struct kp_dataset *d = j->d;
    struct forcing f = {0};
    uint32_t truth[KP_TARGETS_MAX];
    int32_t tokens[KP_FIELDS_MAX];
    float *features = kp_slab_new(kp_encoder_n_features(m->encoder) + 1);
    bool ok = features && forcing_init(m, &f);
    bool known = true;
    for (size_t t = 0; t < m->n_targets; t++) {
        truth[t] = as_theirs(j, t, d->configs[truth_row(j, problem) * d->n_targets + t]);
        known = known && truth[t] != UINT32_MAX;
    }
    if (ok && known) {
        kp_encode_problem(m->encoder, d, problem, tokens, features);
        force(m, &f, tokens, features, truth, v);
    }
    forcing_free(&f);
    kp_slab_free(features);
    return ok ? KOPT_OK : KOPT_ENOMEM;
}

static kopt_status judge_problem(struct judging *j, size_t problem, struct verdict *v,
                                 int64_t *ns, kopt_error *err)
{
    struct kp_prediction p = {0};
    kopt_status st = j->who->forced ? judge_forced(j, problem, v) : KOPT_OK;
    if (st != KOPT_OK)
        return kp_err_nomem(err);
    int64_t begun = kp_clock_ns();
    st = j->who->predict(j->who->user, problem, K_MOST, &p, err);
    *ns = kp_clock_ns() - begun;
    if (st != KOPT_OK && st != KOPT_ENOTFOUND) /* no answer is one that is wrong */
        return st;
    v->answered = p.n > 0;
    struct bound space;
    struct bound *b = bind_rules(j, problem, &space);
    look_at_truth(j, problem, &p, v);
    look_at_rules(j, problem, &p, b, v);
    st = look_at_times(j, problem, &p, b, v);
    unbind_rules(b);
    kp_prediction_deinit(&p);
    return st == KOPT_OK ? st : kp_err_nomem(err);
}

static void task(void *user, size_t i)
{
    struct judging *j = user;
    kopt_error err = {0};
    int64_t ns = 0;
    kopt_status st = judge_problem(j, j->problems[i], &j->verdicts[i], &ns, &err);
    (void)pthread_mutex_lock(&j->lock);
    j->ns += ns;
    if (st != KOPT_OK && j->st == KOPT_OK) {
        j->st = st;
        j->err = err;
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* --- all of them ----------------------------------------------------------------------------
 */

static int up(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Means and 5th percentile (the nearest rank) of what was kept after kp_judge_kept[at]. */
static kopt_status sum_kept(const struct judging *j, size_t at, struct kp_judgement *out)
{
    double *kept = kp_calloc(j->n + 1, sizeof(*kept));
    size_t n = 0;
    size_t unmeasured = 0;
    double sum = 0;
    double logs = 0;
    if (!kept)
        return KOPT_ENOMEM;
    for (size_t i = 0; i < j->n; i++) {
        if (!j->verdicts[i].timed)
            continue;
        kept[n++] = j->verdicts[i].kept[at];
        unmeasured += j->verdicts[i].unmeasured;
        sum += j->verdicts[i].kept[at];
        logs += log(j->verdicts[i].kept[at]);
    }
    qsort(kept, n, sizeof(*kept), up);
    out->n_timed = n;
    out->unmeasured = n ? (double)unmeasured / (double)n : (double)NAN;
    out->kept_mean[at] = n ? sum / (double)n : (double)NAN;
    out->kept_geometric[at] = n ? exp(logs / (double)n) : (double)NAN;
    out->kept_p5[at] = n ? kept[(n - 1) / 20] : (double)NAN;
    kp_free(kept);
    return KOPT_OK;
}

static bool within(size_t place, size_t first)
{
    return place && place <= first;
}

static kopt_status sum_up(const struct judging *j, struct kp_judgement *out)
{
    const double n = (double)j->n;
    const double positions = n * (double)j->who->n_targets;
    bool rules = j->who->rules != NULL;
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < j->n; i++) { /* counts, so that all of them are exactly 1 */
        const struct verdict *v = &j->verdicts[i];
        out->n_answered += v->answered;
        out->forced += (double)v->forced;
        out->forced_nll += v->nll;
        out->free_running += (double)v->free_running;
        out->valid += v->valid;
        for (size_t k = 0; k < KP_JUDGE_AT; k++) {
            out->exact[k] += within(v->exact_at, kp_judge_at[k]);
            out->canonical[k] += within(v->canonical_at, kp_judge_at[k]);
        }
    }
    out->forced = j->who->forced ? out->forced / positions : (double)NAN;
    out->forced_nll = j->who->forced ? out->forced_nll / positions : (double)NAN;
    out->free_running /= positions;
    out->valid = rules ? out->valid / n : (double)NAN;
    out->seconds = (double)j->ns / 1e9 / n;
    for (size_t k = 0; k < KP_JUDGE_AT && st == KOPT_OK; k++) {
        out->exact[k] /= n;
        out->canonical[k] = rules ? out->canonical[k] / n : (double)NAN;
        st = sum_kept(j, k, out);
    }
    return st;
}

/* Fields must stand in the model's order. */
kopt_status kp_judge_check(const struct kp_model *m, const struct kp_dataset *d,
                           kopt_error *err)
{
    if (d->n_fields != kp_encoder_n_fields(m->encoder))
        return kp_err(err, KOPT_EINPUT, "its problems have %zu fields, the model's %zu",
                      d->n_fields, kp_encoder_n_fields(m->encoder));
    for (size_t i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].name, kp_encoder_field(m->encoder, i)->name) != 0)
            return kp_err(err, KOPT_EINPUT, "field %zu is %s, the model's is %s", i + 1,
                          d->fields[i].name, kp_encoder_field(m->encoder, i)->name);
    if (d->n_targets != m->n_targets)
        return kp_err(err, KOPT_EINPUT, "it has %zu parameters, the model %zu", d->n_targets,
                      m->n_targets);
    for (size_t t = 0; t < d->n_targets; t++)
        if (strcmp(d->targets[t].name, m->targets[t].name) != 0)
            return kp_err(err, KOPT_EINPUT, "parameter %zu is %s, the model's is %s", t + 1,
                          d->targets[t].name, m->targets[t].name);
    return KOPT_OK;
}

void kp_judge_rows(const struct kp_dataset *d, size_t *first)
{
    memset(first, 0, (d->n_problems + 1) * sizeof(*first));
    for (size_t r = 0; r < d->n_rows; r++)
        first[d->of[r] + 1] = r + 1;
    for (size_t p = 1; p <= d->n_problems; p++)
        if (first[p] < first[p - 1])
            first[p] = first[p - 1];
}

/* Failures are the worst, what was not measured is next. */
static float cost(float time_ns)
{
    return isnan(time_ns) ? FLT_MAX : time_ns;
}

size_t kp_judge_truth(const struct kp_dataset *d, size_t from, size_t to)
{
    size_t best = from;
    for (size_t r = from + 1; r < to; r++)
        if (cost(d->times_ns[r]) < cost(d->times_ns[best]))
            best = r;
    return best;
}

static kopt_status prepare(struct judging *j, kopt_error *err)
{
    const struct kp_dataset *d = j->d;
    for (size_t t = 0; t < d->n_targets; t++)
        j->most = d->targets[t].n_values > j->most ? d->targets[t].n_values : j->most;
    j->problems = kp_calloc(d->n_problems + 1, sizeof(*j->problems));
    j->first = kp_calloc(d->n_problems + 1, sizeof(*j->first));
    j->to_who = kp_calloc(d->n_targets * j->most + 1, sizeof(*j->to_who));
    if (!j->problems || !j->first || !j->to_who)
        return kp_err_nomem(err);
    kp_judge_rows(d, j->first);
    for (size_t p = 0; p < d->n_problems; p++)
        if (j->o->roles[p] == j->o->role && !isinf(d->times_ns[truth_row(j, p)]))
            j->problems[j->n++] = (uint32_t)p;
    for (size_t t = 0; t < d->n_targets; t++) {
        const struct kp_target *m = &j->who->targets[t];
        for (uint32_t v = 0; v < d->targets[t].n_values; v++) {
            uint32_t i = kp_value_find(m->values, m->n_values, d->targets[t].values[v]);
            j->to_who[t * j->most + v] = i < m->n_values ? i : UINT32_MAX;
        }
    }
    j->verdicts = kp_calloc(j->n + 1, sizeof(*j->verdicts));
    return j->verdicts ? KOPT_OK : kp_err_nomem(err);
}

static void tell_each(const struct judging *j)
{
    for (size_t i = 0; j->o->each && i < j->n; i++) {
        const struct verdict *v = &j->verdicts[i];
        struct kp_judge_case c = {.problem = j->problems[i],
                                  .exact_at = v->exact_at,
                                  .canonical_at = v->canonical_at,
                                  .timed = v->timed};
        memcpy(c.kept, v->kept, sizeof(c.kept));
        j->o->each(j->o->user, &c);
    }
}

kopt_status kp_judge_any(const struct kp_judged *who, const struct kp_dataset *d,
                         const struct kp_judge_options *o, struct kp_judgement *out,
                         kopt_error *err)
{
    struct judging j = {.who = who, .d = d, .o = o};
    struct kp_crew *crew = NULL;
    *out = (struct kp_judgement){0};
    (void)pthread_mutex_init(&j.lock, NULL); /* cannot fail on Linux */
    kopt_status st = prepare(&j, err);
    if (st == KOPT_OK && j.n == 0)
        st = kp_err(err, KOPT_EINPUT, "there is no problem to judge by");
    if (st == KOPT_OK)
        st = kp_crew_new(o->threads, &crew, err);
    if (st == KOPT_OK) {
        kp_crew_run(crew, task, &j, j.n);
        st = j.st;
        if (st != KOPT_OK && err)
            *err = j.err;
    }
    out->n = j.n;
    if (st == KOPT_OK && sum_up(&j, out) != KOPT_OK)
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        tell_each(&j);
    kp_crew_free(crew);
    (void)pthread_mutex_destroy(&j.lock);
    kp_free(j.problems);
    kp_free(j.first);
    kp_free(j.to_who);
    kp_free(j.verdicts);
    return st;
}

/* --- a model --------------------------------------------------------------------------------
 */

struct asking {
    const struct kp_model *m;
    const struct kp_dataset *d;
    const struct kp_judge_options *o;
};

static kopt_status ask(const void *user, size_t problem, size_t k, struct kp_prediction *out,
                       kopt_error *err)
{
    const struct asking *a = user;
    const struct kp_dataset *d = a->d;
    struct kp_given given[KP_FIELDS_MAX];
    size_t width = a->o->width ? a->o->width : WIDTH_DEFAULT;
    const struct kp_predict_options o = {.k = width < k ? width : k,
                                         .width = width,
                                         .unconstrained = a->o->unconstrained,
                                         .limits = a->o->limits};
    for (size_t i = 0; i < a->m->n_raw; i++)
        given[i] = (struct kp_given){
            d->fields[i].name,
            kp_problem_value(&d->fields[i], d->problems[problem * d->n_fields + i])};
    return kp_model_predict(a->m, given, a->m->n_raw, &o, out, err);
}

kopt_status kp_judge(const struct kp_model *m, const struct kp_dataset *d,
                     const struct kp_judge_options *o, struct kp_judgement *out,
                     kopt_error *err)
{
    const struct asking a = {m, d, o};
    const struct kp_judged who = {.user = &a,
                                  .predict = ask,
                                  .targets = m->targets,
                                  .n_targets = m->n_targets,
                                  .rules = m->rules,
                                  .forced = m->ranking ? NULL : m};
    *out = (struct kp_judgement){0};
    kopt_status st = kp_judge_check(m, d, err);
    return st == KOPT_OK ? kp_judge_any(&who, d, o, out, err) : st;
}
