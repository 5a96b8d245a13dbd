/* SPDX-License-Identifier: MIT */
/* A portfolio: each ask goes to the strategy that has earned it. Layer: search.
 *
 * Every member learns every result, so whoever is asked begins where the others are. What a
 * result earns its member is how rare it is among all so far: the better half counts, the best
 * most. Members are chosen by the upper confidence bound of their mean over the latest results
 * (UCB1, Auer, Cesa-Bianchi and Fischer, 2002, on a sliding window; a bandit of this kind
 * divides the asks in OpenTuner, Ansel et al., 2014). */
#include "base/alloc.h"
#include "math/portable.h"
#include "search/strategy.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    LATEST = 64, /* results that count */
    SEEN = 512   /* results that new ones are compared with */
};
static const double curious = 0.1; /* weight of the confidence bound */

/* The order breaks ties. */
static const struct kp_search_ops *const members[] = {
    &kp_strategy_bayes, &kp_strategy_genetic,   &kp_strategy_evolution,
    &kp_strategy_swarm, &kp_strategy_annealing, &kp_strategy_tabu,
};
enum { N_MEMBERS = sizeof(members) / sizeof(members[0]), NOBODY = N_MEMBERS };

struct earned {
    unsigned char member;
    double reward;
};

struct portfolio {
    const struct kp_search_env *env;
    void *states[N_MEMBERS];
    unsigned char *flight; /* who proposed: a ring of env->window */
    size_t first;
    size_t n;
    unsigned char proposer; /* of what is about to be asked */
    uint32_t *proposed;
    struct earned latest[LATEST]; /* a ring */
    uint64_t n_earned;
    double seen[SEEN]; /* the cheapest results, in ascending order */
    size_t n_seen;
    uint64_t n_results;
};

static void portfolio_close(void *state)
{
    struct portfolio *p = state;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (p->states[i])
            members[i]->close(p->states[i]);
    }
    kp_free(p->flight);
    kp_free(p->proposed);
    kp_free(p);
}

static kopt_status portfolio_open(const struct kp_search_env *env, void **state,
                                  kopt_error *err)
{
    *state = NULL;
    struct portfolio *p = kp_calloc(1, sizeof(*p));
    if (!p)
        return kp_err_nomem(err);
    p->env = env;
    p->proposer = NOBODY;
    p->flight = kp_calloc(env->window, sizeof(*p->flight));
    p->proposed = kp_calloc(env->n_params + 1, sizeof(*p->proposed));
    kopt_status st = p->flight && p->proposed ? KOPT_OK : kp_err_nomem(err);
    for (size_t i = 0; i < N_MEMBERS && st == KOPT_OK; i++)
        st = members[i]->open(env, &p->states[i], err);
    if (st == KOPT_OK)
        *state = p;
    else
        portfolio_close(p);
    return st;
}

/* Who is asked next. Those in flight count as asked, for nothing. */
static size_t choose(const struct portfolio *p)
{
    double sums[N_MEMBERS] = {0};
    double counts[N_MEMBERS] = {0};
    double all = 1;
    for (uint64_t i = 0; i < p->n_earned && i < LATEST; i++) {
        sums[p->latest[i].member] += p->latest[i].reward;
        counts[p->latest[i].member] += 1;
        all += 1;
    }
    for (size_t i = 0; i < p->n; i++) {
        unsigned char m = p->flight[(p->first + i) % p->env->window];
        if (m != NOBODY) {
            counts[m] += 1;
            all += 1;
        }
    }
    size_t best = 0;
    double most = -1;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        double bound = counts[i] > 0 ? sums[i] / counts[i] +
                                           curious * sqrt(kp_log2_portable(all) / counts[i])
                                     : (double)INFINITY;
        if (bound > most) {
            most = bound;
            best = i;
        }
    }
    return best;
}

static bool portfolio_propose(void *state, uint32_t *config)
{
    struct portfolio *p = state;
    size_t m = choose(p);
    if (!members[m]->propose(p->states[m], config))
        return false;
    p->proposer = (unsigned char)m;
    memcpy(p->proposed, config, p->env->n_params * sizeof(*config));
    return true;
}

static void portfolio_asked(void *state, const uint32_t *config)
{
    struct portfolio *p = state;
    bool own = memcmp(p->proposed, config, p->env->n_params * sizeof(*config)) == 0;
    p->flight[(p->first + p->n++) % p->env->window] = own ? p->proposer : NOBODY;
    p->proposer = NOBODY;
    for (size_t i = 0; i < N_MEMBERS; i++)
        members[i]->asked(p->states[i], config);
}

/* How many results so far are better, and remember this one. */
static size_t place(struct portfolio *p, double cost)
{
    size_t low = 0;
    size_t high = p->n_seen;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (p->seen[mid] <= cost)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < SEEN) {
        size_t n = p->n_seen < SEEN ? p->n_seen++ : SEEN - 1;
        memmove(p->seen + low + 1, p->seen + low, (n - low) * sizeof(*p->seen));
        p->seen[low] = cost;
    }
    p->n_results++;
    return low;
}

static void portfolio_learn(void *state, const uint32_t *config, double cost)
{
    struct portfolio *p = state;
    unsigned char m = p->flight[p->first];
    p->first = (p->first + 1) % p->env->window;
    p->n--;
    size_t rank = place(p, cost);
    double above = (double)rank / (double)p->n_results;
    double reward = isfinite(cost) && rank < SEEN && above < 0.5 ? 1 - 2 * above : 0;
    reward *= reward;
    if (m != NOBODY)
        p->latest[p->n_earned++ % LATEST] = (struct earned){m, reward};
    for (size_t i = 0; i < N_MEMBERS; i++)
        members[i]->learn(p->states[i], config, cost);
}

const struct kp_search_ops kp_strategy_portfolio = {
    .open = portfolio_open,
    .close = portfolio_close,
    .propose = portfolio_propose,
    .asked = portfolio_asked,
    .learn = portfolio_learn,
};
