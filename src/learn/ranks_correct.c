/* SPDX-License-Identifier: MIT */
/* The correction of a ranking: what the networks are off by at problems that they have not
 * learned from, spread to their neighbours. Layer: learn. */
#include "learn/ranks.h"

#include "base/alloc.h"
#include "nn/params.h"

#include <math.h>
#include <string.h>

enum { SITES_MOST = 600 }; /* an inverse of that many rows takes a second or so */

struct correcting {
    const struct kp_ranks *r;
    struct kp_model *m;
    size_t n;        /* sites */
    uint32_t *sites; /* [n]: problems of r */
    float *at;       /* [n][coordinates] */
    double *off;     /* [n][configs]: R */
    double *worth;   /* [n][configs]: how much that counts; 0: not known */
    double *inverse; /* [n][n] */
    double *field;   /* [n][configs] */
    double *best;    /* [n][configs] */
    double best_loss;
    double best_length;
};

/* --- what the networks are off by ------------------------------------------------------------
 */

static kopt_status measure_off(struct correcting *c, kopt_error *err)
{
    const struct kp_ranks *r = c->r;
    size_t C = r->ranking->n_configs;
    const struct kp_net *first = c->m->nets[0];
    float *work = kp_slab_new(first->ops->work(first, r->n_most, false));
    float *scores = kp_slab_new(r->n_most + 1);
    for (size_t s = 0; work && scores && s < c->n; s++) {
        size_t p = c->sites[s];
        size_t from = r->first[p];
        size_t n = r->first[p + 1] - from;
        const struct kp_net *net = c->m->nets[r->part[p]];
        double mean = 0;
        double total = 0;
        net->ops->rank(net, n, r->number + from, r->x + from * r->n_inputs, work, scores);
        for (size_t i = 0; i < n; i++) {
            double u = kp_rank_worth((double)r->wanted[from + i]);
            mean += u * (double)(r->wanted[from + i] - scores[i]);
            total += u;
        }
        for (size_t i = 0; i < n; i++) {
            size_t k = s * C + (size_t)r->number[from + i];
            c->off[k] = (double)(r->wanted[from + i] - scores[i]) - mean / total;
            c->worth[k] = exp((double)-r->wanted[from + i] / 0.1);
        }
    }
    bool ok = work && scores;
    kp_slab_free(work);
    kp_slab_free(scores);
    return ok ? KOPT_OK : kp_err_nomem(err);
}

/* --- kriging --------------------------------------------------------------------------------
 */

/* a[n][n], symmetric and positive definite, becomes its inverse (Gauss and Jordan, without
 * pivots, which such a matrix does not need). */
static void invert(double *a, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        double pivot = 1 / a[k * n + k];
        a[k * n + k] = 1;
        for (size_t j = 0; j < n; j++)
            a[k * n + j] *= pivot;
        for (size_t i = 0; i < n; i++) {
            double f = a[i * n + k];
            if (i == k || f == 0)
                continue;
            a[i * n + k] = 0;
            for (size_t j = 0; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
        }
    }
}

static void set_matrix(struct correcting *c, double length, double noise)
{
    size_t dims = c->r->ranking->n_coordinates;
    for (size_t s = 0; s < c->n; s++) {
        for (size_t t = 0; t < c->n; t++) {
            double square = 0;
            for (size_t k = 0; k < dims; k++) {
                double d = (double)(c->at[s * dims + k] - c->at[t * dims + k]);
                square += d * d;
            }
            c->inverse[s * c->n + t] =
                exp(-square / (2 * length * length)) + (s == t ? noise : 0);
        }
    }
}

/* The loss when each site's correction comes from the others alone; the off of site s after
 * that is field[s] / inverse[s][s] (Dubrule, Mathematical Geology 15, 1983). */
static double loss_without_own(const struct correcting *c)
{
    size_t C = c->r->ranking->n_configs;
    double loss = 0;
    double total = 0;
    for (size_t s = 0; s < c->n; s++) {
        double mean = 0;
        double sum = 0;
        for (size_t k = 0; k < C; k++) {
            double w = c->worth[s * C + k];
            mean += w * c->field[s * C + k] / c->inverse[s * c->n + s];
            sum += w;
        }
        for (size_t k = 0; k < C && sum > 0; k++) {
            double e = c->field[s * C + k] / c->inverse[s * c->n + s] - mean / sum;
            loss += c->worth[s * C + k] * e * e;
        }
        total += sum;
    }
    return loss / total;
}

static void try(struct correcting *c, double length, double noise)
{
    size_t C = c->r->ranking->n_configs;
    set_matrix(c, length, noise);
    invert(c->inverse, c->n);
    memset(c->field, 0, c->n * C * sizeof(*c->field));
    for (size_t s = 0; s < c->n; s++)
        for (size_t t = 0; t < c->n; t++)
            for (size_t k = 0; k < C; k++)
                c->field[s * C + k] += c->inverse[s * c->n + t] * c->off[t * C + k];
    double loss = loss_without_own(c);
    if (loss >= c->best_loss)
        return;
    c->best_loss = loss;
    c->best_length = length;
    memcpy(c->best, c->field, c->n * C * sizeof(*c->field));
}

/* Without a correction. */
static double loss_of_nets(struct correcting *c)
{
    size_t C = c->r->ranking->n_configs;
    memset(c->inverse, 0, c->n * c->n * sizeof(*c->inverse));
    for (size_t s = 0; s < c->n; s++)
        c->inverse[s * c->n + s] = 1;
    memcpy(c->field, c->off, c->n * C * sizeof(*c->field));
    return loss_without_own(c);
}

static kopt_status keep(struct correcting *c, kopt_error *err)
{
    struct kp_ranking *k = c->m->ranking;
    kopt_status st = kp_ranking_place(k, c->n, err);
    if (st != KOPT_OK)
        return st;
    k->values = kp_slab_new(k->params.n_floats);
    if (!k->values)
        return kp_err_nomem(err);
    k->length = c->best_length;
    memcpy(k->values + k->params.tensors[KP_SITES_AT].offset, c->at,
           c->n * k->n_coordinates * sizeof(float));
    float *field = k->values + k->params.tensors[KP_SITES_FIELD].offset;
    for (size_t i = 0; i < c->n * k->n_configs; i++)
        field[i] = (float)c->best[i];
    return KOPT_OK;
}

/* --- the whole ------------------------------------------------------------------------------
 */

static void place_sites(struct correcting *c)
{
    const struct kp_ranking *k = c->r->ranking;
    for (size_t p = 0; p < c->r->n; p++) {
        if (c->r->part[p] >= c->m->n_nets)
            continue; /* every network has learned from it */
        if (c->r->helps[p])
            continue; /* beside its twin it would know of that what no test's twin may say */
        const float *x = c->r->x + c->r->first[p] * c->r->n_inputs;
        for (size_t d = 0; d < k->n_coordinates; d++)
            c->at[c->n * k->n_coordinates + d] = x[d];
        c->sites[c->n++] = (uint32_t)p;
    }
}

static kopt_status search(struct correcting *c, kopt_error *err)
{
    static const double lengths[] = {0.3, 0.5, 0.8, 1.2, 2};
    static const double noises[] = {0.1, 0.3, 1, 3};
    kopt_status st = measure_off(c, err);
    if (st != KOPT_OK)
        return st;
    c->best_loss = loss_of_nets(c);
    for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++)
        for (size_t n = 0; n < sizeof(noises) / sizeof(*noises); n++)
            try(c, lengths[l], noises[n]);
    return c->best_length > 0 ? keep(c, err) : KOPT_OK;
}

kopt_status kp_ranks_correct(const struct kp_ranks *r, struct kp_model *m, kopt_error *err)
{
    struct correcting c = {.r = r, .m = m};
    size_t C = r->ranking->n_configs;
    size_t dims = r->ranking->n_coordinates;
    if (r->n > SITES_MOST || dims == 0)
        return KOPT_OK;
    c.sites = kp_calloc(r->n, sizeof(*c.sites));
    c.at = kp_calloc(r->n * dims, sizeof(*c.at));
    c.off = kp_calloc(r->n * C, sizeof(*c.off));
    c.worth = kp_calloc(r->n * C, sizeof(*c.worth));
    c.inverse = kp_calloc(r->n * r->n, sizeof(*c.inverse));
    c.field = kp_calloc(r->n * C, sizeof(*c.field));
    c.best = kp_calloc(r->n * C, sizeof(*c.best));
    kopt_status st = KOPT_OK;
    if (!c.sites || !c.at || !c.off || !c.worth || !c.inverse || !c.field || !c.best)
        st = kp_err_nomem(err);
    else
        place_sites(&c);
    if (st == KOPT_OK && c.n > 1)
        st = search(&c, err);
    kp_free(c.sites);
    kp_free(c.at);
    kp_free(c.off);
    kp_free(c.worth);
    kp_free(c.inverse);
    kp_free(c.field);
    kp_free(c.best);
    return st;
}
