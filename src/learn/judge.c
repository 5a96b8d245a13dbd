/* SPDX-License-Identifier: MIT */
#include "learn/judge.h"

#include "base/alloc.h"
#include "learn/problem.h"
#include "model/crew.h"
#include "os/clock.h"

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
    double kept[KP_JUDGE_AT];
};

struct judging {
    const struct kp_model *m;
    const struct kp_dataset *d;
    const struct kp_judge_options *o;
    size_t width;
    size_t n;           /* problems that are judged */
    uint32_t *problems; /* [n] */
    size_t *first;      /* [n_problems + 1]: rows of each problem */
    uint32_t *to_model; /* values of the data set's targets as the model's: [n_targets][most] */
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
};

static void forcing_free(struct forcing *f)
{
    for (size_t k = 0; k < KP_BEAM_NETS_MAX; k++) {
        kp_slab_free(f->state[k]);
        kp_slab_free(f->logp[k]);
    }
    kp_slab_free(f->scratch);
}

static bool forcing_init(const struct kp_model *m, struct forcing *f)
{
    const struct kp_net *net = m->nets[0];
    bool ok = true;
    for (size_t k = 0; k < m->n_nets; k++) {
        f->state[k] = kp_slab_new(net->ops->state(net, 1));
        f->logp[k] = kp_slab_new(KP_TARGET_VALUES_MAX);
        ok = ok && f->state[k] && f->logp[k];
    }
    f->scratch = kp_slab_new(net->ops->scratch(net, 1));
    return ok && f->scratch;
}

/* The mixture's probability of value v, given the true values before; the same as the beam's.
 */
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

static void force(const struct kp_model *m, struct forcing *f, const int32_t *tokens,
                  const float *features, const uint32_t *truth, struct verdict *v)
{
    const uint32_t parent = 0;
    for (size_t k = 0; k < m->n_nets; k++) {
        f->weight[k] = 0;
        m->nets[k]->ops->begin(m->nets[k], tokens, features, 1, f->state[k], f->scratch);
    }
    for (size_t p = 0; p < m->n_targets; p++) {
        const struct kp_net_step step = {.p = p,
                                         .n = 1,
                                         .width = 1,
                                         .parent = p ? &parent : NULL,
                                         .values = p ? &truth[p - 1] : NULL};
        double best = -1;
        uint32_t argmax = 0;
        for (size_t k = 0; k < m->n_nets; k++)
            m->nets[k]->ops->step(m->nets[k], &step, f->state[k], f->scratch, f->logp[k]);
        for (uint32_t i = 0; i < m->targets[p].n_values; i++) {
            double q = mixed(f, m->n_nets, i);
            if (q > best) {
                best = q;
                argmax = i;
            }
        }
        v->forced += argmax == truth[p];
        v->nll -= log(fmax(mixed(f, m->n_nets, truth[p]), 1e-30));
        for (size_t k = 0; k < m->n_nets; k++)
            f->weight[k] += (double)f->logp[k][truth[p]];
    }
}

/* --- one problem ----------------------------------------------------------------------------
 */

/* UINT32_MAX: the model has no such value. */
static uint32_t as_model(const struct judging *j, size_t target, uint32_t value)
{
    return j->to_model[target * j->most + value];
}

static size_t truth_row(const struct judging *j, size_t problem)
{
    size_t best = j->first[problem];
    for (size_t r = best; r < j->first[problem + 1]; r++)
        if (j->d->times_ns[r] < j->d->times_ns[best])
            best = r;
    return best;
}

static bool same_config(const struct judging *j, const uint32_t *predicted, size_t row)
{
    const uint32_t *config = j->d->configs + row * j->d->n_targets;
    for (size_t t = 0; t < j->d->n_targets; t++)
        if (as_model(j, t, config[t]) != predicted[t])
            return false;
    return true;
}

/* The predicted configuration's time; infinite where it failed or was not measured. */
static double time_of(const struct judging *j, size_t problem, const uint32_t *predicted)
{
    for (size_t r = j->first[problem]; r < j->first[problem + 1]; r++)
        if (same_config(j, predicted, r))
            return (double)j->d->times_ns[r];
    return (double)INFINITY;
}

static void look_at_times(const struct judging *j, size_t problem,
                          const struct kp_prediction *p, struct verdict *v)
{
    double best = (double)j->d->times_ns[truth_row(j, problem)];
    double found = (double)INFINITY;
    size_t at = 0;
    v->timed = isfinite(best);
    for (size_t i = 0; v->timed && i < KP_JUDGE_AT; i++) {
        size_t until = kp_judge_kept[i] ? kp_judge_kept[i] : 1;
        for (; at < until && at < p->n; at++)
            found = fmin(found, time_of(j, problem, p->configs + at * j->m->n_targets));
        v->kept[i] = isfinite(found) ? best / found : 0;
    }
}

static bool same_values(const struct kp_value *a, const struct kp_value *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!kp_value_same(a[i], b[i]))
            return false;
    return true;
}

/* In terms of the rules: is the first prediction valid, and where does one stand whose
 * canonical form is the truth's? */
static void look_at_rules(const struct judging *j, size_t problem,
                          const struct kp_prediction *p, struct verdict *v)
{
    struct kp_problem_rules r;
    struct kp_value want[KP_PARAMS_MAX];
    struct kp_value got[KP_PARAMS_MAX];
    const struct kp_model *m = j->m;
    if (!m->rules || kp_problem_rules_init(j->d, problem, m->rules, j->o->limits, m->targets,
                                           m->n_targets, &r) != KOPT_OK)
        return;
    const uint32_t *truth = j->d->configs + truth_row(j, problem) * j->d->n_targets;
    uint32_t mine[KP_TARGETS_MAX];
    for (size_t t = 0; t < m->n_targets; t++)
        mine[t] = as_model(j, t, truth[t]);
    v->valid = p->n && kp_problem_rules_valid(&r, p->configs);
    bool known = kp_problem_rules_canonical(&r, mine, want);
    for (size_t i = 0; known && i < p->n && !v->canonical_at; i++) {
        if (kp_problem_rules_canonical(&r, p->configs + i * m->n_targets, got) &&
            same_values(want, got, m->n_targets))
            v->canonical_at = i + 1;
    }
    kp_problem_rules_deinit(&r);
}

static void look_at_truth(const struct judging *j, size_t problem,
                          const struct kp_prediction *p, struct verdict *v)
{
    size_t row = truth_row(j, problem);
    const uint32_t *config = j->d->configs + row * j->d->n_targets;
    for (size_t t = 0; p->n && t < j->m->n_targets; t++)
        v->free_running += as_model(j, t, config[t]) == p->configs[t];
    for (size_t i = 0; i < p->n && !v->exact_at; i++)
        if (same_config(j, p->configs + i * j->m->n_targets, row))
            v->exact_at = i + 1;
}

static kopt_status judge_forced(const struct judging *j, size_t problem, struct verdict *v)
{
    const struct kp_model *m = j->m;
    const struct kp_dataset *d = j->d;
    struct forcing f = {0};
    uint32_t truth[KP_TARGETS_MAX];
    int32_t tokens[KP_FIELDS_MAX];
    float *features = kp_slab_new(kp_encoder_n_features(m->encoder) + 1);
    bool ok = features && forcing_init(m, &f);
    bool known = true;
    for (size_t t = 0; t < m->n_targets; t++) {
        truth[t] = as_model(j, t, d->configs[truth_row(j, problem) * d->n_targets + t]);
        known = known && truth[t] != UINT32_MAX;
    }
    if (ok && known) {
        kp_encode(m->encoder, d->problems + problem * d->n_fields, tokens, features);
        force(m, &f, tokens, features, truth, v);
    }
    forcing_free(&f);
    kp_slab_free(features);
    return ok ? KOPT_OK : KOPT_ENOMEM;
}

static kopt_status judge_problem(struct judging *j, size_t problem, struct verdict *v,
                                 int64_t *ns, kopt_error *err)
{
    const struct kp_model *m = j->m;
    struct kp_given given[KP_FIELDS_MAX];
    struct kp_prediction p = {0};
    const struct kp_predict_options o = {.k = j->width < K_MOST ? j->width : K_MOST,
                                         .width = j->width,
                                         .unconstrained = j->o->unconstrained,
                                         .limits = j->o->limits};
    for (size_t i = 0; i < m->n_raw; i++)
        given[i] = (struct kp_given){
            j->d->fields[i].name,
            kp_problem_value(&j->d->fields[i], j->d->problems[problem * j->d->n_fields + i])};
    kopt_status st = judge_forced(j, problem, v);
    if (st != KOPT_OK)
        return kp_err_nomem(err);
    int64_t begun = kp_clock_ns();
    st = kp_model_predict(m, given, m->n_raw, &o, &p, err);
    *ns = kp_clock_ns() - begun;
    if (st == KOPT_ENOTFOUND)
        return KOPT_OK;
    if (st != KOPT_OK)
        return st;
    v->answered = p.n > 0;
    look_at_truth(j, problem, &p, v);
    look_at_rules(j, problem, &p, v);
    look_at_times(j, problem, &p, v);
    kp_prediction_deinit(&p);
    return KOPT_OK;
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

/* Mean and 5th percentile (the nearest rank) of what was kept after kp_judge_kept[at]. */
static kopt_status sum_kept(const struct judging *j, size_t at, struct kp_judgement *out)
{
    double *kept = kp_calloc(j->n + 1, sizeof(*kept));
    size_t n = 0;
    double sum = 0;
    if (!kept)
        return KOPT_ENOMEM;
    for (size_t i = 0; i < j->n; i++) {
        if (!j->verdicts[i].timed)
            continue;
        kept[n++] = j->verdicts[i].kept[at];
        sum += j->verdicts[i].kept[at];
    }
    qsort(kept, n, sizeof(*kept), up);
    out->n_timed = n;
    out->kept_mean[at] = n ? sum / (double)n : (double)NAN;
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
    double n = (double)j->n;
    double positions = n * (double)j->m->n_targets;
    bool rules = j->m->rules != NULL;
    for (size_t i = 0; i < j->n; i++) {
        const struct verdict *v = &j->verdicts[i];
        out->n_answered += v->answered;
        out->forced += (double)v->forced / positions;
        out->forced_nll += v->nll / positions;
        out->free_running += (double)v->free_running / positions;
        out->valid += v->valid / n;
        for (size_t k = 0; k < KP_JUDGE_AT; k++) {
            out->exact[k] += within(v->exact_at, kp_judge_at[k]) / n;
            out->canonical[k] += within(v->canonical_at, kp_judge_at[k]) / n;
        }
    }
    if (!rules) {
        out->valid = (double)NAN;
        for (size_t k = 0; k < KP_JUDGE_AT; k++)
            out->canonical[k] = (double)NAN;
    }
    out->seconds = (double)j->ns / 1e9 / n;
    kopt_status st = KOPT_OK;
    for (size_t k = 0; k < KP_JUDGE_AT && st == KOPT_OK; k++)
        st = sum_kept(j, k, out);
    return st;
}

/* The data set's fields and targets by the model's: fields must stand in the same order. */
static kopt_status check(const struct judging *j, kopt_error *err)
{
    const struct kp_model *m = j->m;
    const struct kp_dataset *d = j->d;
    if (d->n_targets != m->n_targets || d->n_fields != kp_encoder_n_fields(m->encoder))
        return kp_err(err, KOPT_EINPUT,
                      "the data set is not one of this model's kind: %zu fields "
                      "and %zu parameters, the model has %zu and %zu",
                      d->n_fields, d->n_targets, kp_encoder_n_fields(m->encoder), m->n_targets);
    for (size_t i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].name, kp_encoder_field(m->encoder, i)->name) != 0)
            return kp_err(err, KOPT_EINPUT, "field %zu is %s, the model's is %s", i + 1,
                          d->fields[i].name, kp_encoder_field(m->encoder, i)->name);
    for (size_t t = 0; t < d->n_targets; t++)
        if (strcmp(d->targets[t].name, m->targets[t].name) != 0)
            return kp_err(err, KOPT_EINPUT, "parameter %zu is %s, the model's is %s", t + 1,
                          d->targets[t].name, m->targets[t].name);
    return KOPT_OK;
}

static kopt_status prepare(struct judging *j, const unsigned char *roles, unsigned char role,
                           kopt_error *err)
{
    const struct kp_dataset *d = j->d;
    for (size_t t = 0; t < d->n_targets; t++)
        j->most = d->targets[t].n_values > j->most ? d->targets[t].n_values : j->most;
    j->problems = kp_calloc(d->n_problems + 1, sizeof(*j->problems));
    j->first = kp_calloc(d->n_problems + 1, sizeof(*j->first));
    j->to_model = kp_calloc(d->n_targets * j->most + 1, sizeof(*j->to_model));
    if (!j->problems || !j->first || !j->to_model)
        return kp_err_nomem(err);
    for (size_t p = 0; p < d->n_problems; p++)
        if (roles[p] == role)
            j->problems[j->n++] = (uint32_t)p;
    for (size_t r = 0; r < d->n_rows; r++)
        j->first[d->of[r] + 1] = r + 1;
    for (size_t p = 1; p <= d->n_problems; p++)
        if (j->first[p] < j->first[p - 1])
            j->first[p] = j->first[p - 1];
    for (size_t t = 0; t < d->n_targets; t++) {
        const struct kp_target *m = &j->m->targets[t];
        for (uint32_t v = 0; v < d->targets[t].n_values; v++) {
            uint32_t i = 0;
            while (i < m->n_values && !kp_value_same(m->values[i], d->targets[t].values[v]))
                i++;
            j->to_model[t * j->most + v] = i < m->n_values ? i : UINT32_MAX;
        }
    }
    j->verdicts = kp_calloc(j->n + 1, sizeof(*j->verdicts));
    return j->verdicts ? KOPT_OK : kp_err_nomem(err);
}

kopt_status kp_judge(const struct kp_model *m, const struct kp_dataset *d,
                     const unsigned char *roles, unsigned char role,
                     const struct kp_judge_options *o, struct kp_judgement *out,
                     kopt_error *err)
{
    struct judging j = {.m = m, .d = d, .o = o, .width = o->width ? o->width : WIDTH_DEFAULT};
    struct kp_crew *crew = NULL;
    *out = (struct kp_judgement){0};
    (void)pthread_mutex_init(&j.lock, NULL); /* cannot fail on Linux */
    kopt_status st = check(&j, err);
    if (st == KOPT_OK)
        st = prepare(&j, roles, role, err);
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
    kp_crew_free(crew);
    (void)pthread_mutex_destroy(&j.lock);
    kp_free(j.problems);
    kp_free(j.first);
    kp_free(j.to_model);
    kp_free(j.verdicts);
    return st;
}
