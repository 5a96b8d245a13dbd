/* SPDX-License-Identifier: MIT */
/* Networks that give any prefix any probabilities: a hash of it decides. */
#ifndef TEST_MODEL_FAKE_NET_H
#define TEST_MODEL_FAKE_NET_H

#include "model/net.h"

#include <math.h>
#include <string.h>

/* What shape.hidden says of the network. */
enum fake_mode {
    FAKE_SOUND,
    FAKE_EVEN,  /* all values alike */
    FAKE_HOLES, /* some probabilities are 0, some are not numbers */
    FAKE_DEAD   /* none is a number */
};

static inline uint64_t fake_mix(uint64_t h, uint64_t x)
{
    h = (h ^ (x + 1)) * 0x9e3779b97f4a7c15U;
    return h ^ (h >> 29);
}

/* `h` is the prefix's hash. */
static inline void fake_row(const struct kp_net *net, uint64_t h, uint32_t n, float *logp)
{
    double sum = 0;
    for (uint32_t v = 0; v < n; v++) {
        double u = (double)(fake_mix(h, 1000 + v) >> 11) * 0x1p-53;
        logp[v] = net->shape.hidden == FAKE_EVEN ? 1 : (float)(0.01 + u * u);
        sum += (double)logp[v];
    }
    for (uint32_t v = 0; v < n; v++) {
        uint64_t luck = fake_mix(h, 2000 + v) % 4;
        logp[v] = (float)log((double)logp[v] / sum);
        if (net->shape.hidden == FAKE_DEAD || (net->shape.hidden == FAKE_HOLES && luck == 0))
            logp[v] = NAN;
        else if (net->shape.hidden == FAKE_HOLES && luck == 1)
            logp[v] = -INFINITY;
    }
}

/* The state: a hash for each prefix. shape.embed seeds it. */
static inline size_t fake_floats(const struct kp_net *net, size_t width)
{
    (void)net;
    return width * (sizeof(uint64_t) / sizeof(float));
}

static inline void fake_begin(const struct kp_net *net, const int32_t *tokens,
                              const float *features, size_t width, float *state, float *scratch)
{
    uint64_t h = fake_mix(net->shape.embed, 7);
    (void)tokens;
    (void)features;
    memset(state, 0xff, fake_floats(net, width) * sizeof(float));
    memset(scratch, 0xff, fake_floats(net, width) * sizeof(float));
    memcpy(state, &h, sizeof(h));
}

static inline void fake_step(const struct kp_net *net, const struct kp_net_step *s,
                             float *state, float *scratch, float *logp)
{
    uint32_t n = net->shape.n_values[s->p];
    uint64_t *now = (uint64_t *)(void *)state;
    uint64_t *before = (uint64_t *)(void *)scratch;
    memcpy(before, now, s->width * sizeof(*now));
    for (size_t i = 0; i < s->n; i++) {
        if (s->p)
            now[i] = fake_mix(before[s->parent[i]], s->values[i]);
        fake_row(net, now[i], n, logp + i * n);
    }
}

static const struct kp_net_ops fake_ops = {.name = "fake",
                                           .about = "probabilities by a hash of the prefix",
                                           .state = fake_floats,
                                           .scratch = fake_floats,
                                           .begin = fake_begin,
                                           .step = fake_step};

/* The same by hand: what the network gives value config[p] after config[0 .. p-1]. */
static inline double fake_logp(const struct kp_net *net, const uint32_t *config, size_t p)
{
    float row[64];
    uint64_t h = fake_mix(net->shape.embed, 7);
    for (size_t i = 0; i < p; i++)
        h = fake_mix(h, config[i]);
    fake_row(net, h, net->shape.n_values[p], row);
    return isnan(row[config[p]]) ? -(double)INFINITY : (double)row[config[p]];
}

#endif
