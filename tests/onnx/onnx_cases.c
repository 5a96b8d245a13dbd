/* SPDX-License-Identifier: MIT */
/* Small models of all kinds as ONNX, each with inputs and the answers of our own code.
 *
 * onnx_cases FOLDER: NAME.onnx and NAME.txt, which check.py reads. Those of models that rank
 * are in rank_cases.c. */
#include "onnx_cases.h"

#include "model/onnx.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "nn/attention.h"
#include "nn/rnn.h"
#include "unit/model/forests.h"
#include "unit/model/small_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 5, MOST_VALUES = 16 };

struct shape_case {
    const char *name;
    const char *net;
    size_t n_nets;
    uint32_t cell;
    uint32_t score;
    size_t layers;
    size_t kernel;
    size_t n_targets;   /* 0: all there are */
    double trees;       /* the forest's weight; 0: there is none */
    bool one_value;     /* the second target has no other, so no trees either */
    const char *beside; /* two more networks of this kind; NULL: none */
};

static const struct shape_case cases[] = {
    {"factored", "factored", 1, 0, 0, 2, 0, 0, 0, false, NULL},
    {"factored_mixture", "factored", 3, 0, 0, 1, 0, 0, 0, false, NULL},
    {"factored_one_target", "factored", 2, 0, 0, 1, 0, 1, 0, false, NULL},
    {"seq2seq", "seq2seq", 1, KP_CELL_LSTM, 0, 0, 0, 0, 0, false, NULL},
    {"seq2seq_one_target", "seq2seq", 1, KP_CELL_LSTM, 0, 0, 0, 1, 0, false, NULL},
    {"seq2seq_gru", "seq2seq", 1, KP_CELL_GRU, 0, 0, 0, 0, 0, false, NULL},
    {"attention", "attention", 1, KP_CELL_LSTM, KP_SCORE_DOT, 0, 0, 0, 0, false, NULL},
    {"attention_additive", "attention", 1, KP_CELL_LSTM, KP_SCORE_ADDITIVE, 0, 0, 0, 0, false,
     NULL},
    {"hybrid1", "hybrid1", 1, KP_CELL_LSTM, KP_SCORE_DOT, 0, 5, 0, 0, false, NULL},
    {"hybrid1_mixture", "hybrid1", 2, KP_CELL_GRU, KP_SCORE_ADDITIVE, 0, 3, 0, 0, false, NULL},
    {"hybrid2", "hybrid2", 1, KP_CELL_LSTM, KP_SCORE_ADDITIVE, 0, 3, 0, 0, false, NULL},
    {"hybrid2_gru", "hybrid2", 1, KP_CELL_GRU, KP_SCORE_DOT, 0, 1, 0, 0, false, NULL},
    {"factored_trees", "factored", 1, 0, 0, 2, 0, 0, 0.35, false, NULL},
    {"factored_mixture_trees", "factored", 3, 0, 0, 1, 0, 0, 0.5, false, NULL},
    {"factored_one_value_trees", "factored", 2, 0, 0, 1, 0, 0, 0.8, true, NULL},
    {"factored_one_target_trees", "factored", 1, 0, 0, 1, 0, 1, 0.35, false, NULL},
    {"hybrid1_trees", "hybrid1", 2, KP_CELL_LSTM, KP_SCORE_DOT, 0, 3, 0, 0.35, false, NULL},
    {"two_kinds", "factored", 2, 0, 0, 1, 0, 0, 0, false, "attention"},
    {"two_kinds_trees", "factored", 1, 0, 0, 1, 0, 0, 0.35, false, "hybrid2"},
};

struct inputs {
    int32_t *tokens;  /* [B][T] */
    float *features;  /* [B][F] */
    uint32_t *values; /* [B][P] */
};

void draw(struct kp_net *net, struct kp_rng *rng)
{
    for (size_t t = 0; t < net->params.n_tensors; t++) {
        const struct kp_tensor *tensor = &net->params.tensors[t];
        for (size_t i = 0; i < tensor->rows * tensor->cols; i++)
            net->values[tensor->offset + i] = (float)(0.5 * kp_rng_normal(rng));
    }
}

static struct kp_model *make(const struct shape_case *c, struct kp_rng *rng)
{
    const struct small_plan plan = {.net = c->net, .n_nets = c->n_nets, .seed = 3};
    struct kp_model *m = small_model(&plan);
    kopt_error err;
    m->n_targets = c->n_targets ? c->n_targets : m->n_targets;
    for (size_t k = 0; k < m->n_nets; k++) {
        struct kp_net_shape shape = m->nets[k]->shape;
        shape.n_targets = m->n_targets;
        shape.cell = c->cell;
        shape.score = c->score;
        shape.layers = c->layers;
        shape.kernel = c->kernel;
        if (c->one_value)
            shape.n_values[1] = m->targets[1].n_values = 1;
        kp_net_free(m->nets[k]);
        m->nets[k] = NULL;
        KP_CHECK(kp_net_new(kp_net_find(c->net), &shape, 1 + k, &m->nets[k], &err) == KOPT_OK);
        draw(m->nets[k], rng);
    }
    if (c->beside)
        small_beside(m, c->beside, 2);
    for (size_t k = c->n_nets; k < m->n_nets; k++) {
        kp_net_unprepare(m->nets[k]); /* an export has the parameters, not their halves */
        draw(m->nets[k], rng);
    }
    if (c->trees > 0)
        forest_beside(m, 5, c->trees, 17);
    return m;
}

static void draw_inputs(const struct kp_net_shape *s, struct kp_rng *rng, struct inputs *in)
{
    in->tokens = kp_calloc(B * s->n_tokens, sizeof(*in->tokens));
    in->features = kp_calloc(B * s->n_features + 1, sizeof(*in->features));
    in->values = kp_calloc(B * s->n_targets, sizeof(*in->values));
    KP_CHECK(in->tokens && in->features && in->values);
    for (size_t i = 0; i < B * s->n_tokens; i++)
        in->tokens[i] = (int32_t)kp_rng_below(rng, s->n_vocab);
    for (size_t i = 0; i < B * s->n_features; i++)
        in->features[i] = (float)kp_rng_normal(rng);
    for (size_t i = 0; i < B * s->n_targets; i++)
        in->values[i] = (uint32_t)kp_rng_below(rng, s->n_values[i % s->n_targets]);
}

/* logp[V_p] of each target of row b, as the beam gets them: by steps of one prefix. */
static void walk(const struct kp_net *net, const struct inputs *in, size_t b,
                 float (*logp)[MOST_VALUES])
{
    const struct kp_net_shape *s = &net->shape;
    float *state = kp_slab_new(net->ops->state(net, 1));
    float *scratch = kp_slab_new(net->ops->scratch(net, 1));
    const uint32_t parent = 0;
    KP_CHECK(state && scratch);
    net->ops->begin(net, in->tokens + b * s->n_tokens, in->features + b * s->n_features, 1,
                    state, scratch);
    for (size_t p = 0; p < s->n_targets; p++) {
        const struct kp_net_step step = {.p = p,
                                         .n = 1,
                                         .width = 1,
                                         .parent = p ? &parent : NULL,
                                         .values =
                                             p ? in->values + b * s->n_targets + p - 1 : NULL};
        KP_CHECK(s->n_values[p] <= MOST_VALUES);
        net->ops->step(net, &step, state, scratch, logp[p]);
    }
    kp_slab_free(state);
    kp_slab_free(scratch);
}

/* The sum of the losses is what training sees; it must be of the same numbers. */
static double loss_of(const struct kp_net *net, const struct inputs *in)
{
    const struct kp_net_shape *s = &net->shape;
    int32_t tokens[KP_FIELDS_MAX * B];
    int32_t targets[KP_TARGETS_MAX * B];
    struct kp_net_score score = {0};
    for (size_t i = 0; i < B; i++) {
        for (size_t t = 0; t < s->n_tokens; t++)
            tokens[t * B + i] = in->tokens[i * s->n_tokens + t];
        for (size_t p = 0; p < s->n_targets; p++)
            targets[p * B + i] = (int32_t)in->values[i * s->n_targets + p];
    }
    const struct kp_batch batch = {
        .B = B, .tokens = tokens, .features = in->features, .targets = targets};
    float *work = kp_slab_new(net->ops->work(net, B, false));
    KP_CHECK(work);
    net->ops->run(net, &batch, 0, 0, NULL, work, &score);
    kp_slab_free(work);
    return score.loss;
}

/* The beam's best configuration becomes the values of row b; returns its logarithm. */
static double best_of(const struct kp_model *m, struct inputs *in, size_t b)
{
    const struct kp_net_shape *s = &m->nets[0]->shape;
    const struct kp_beam_input ask = {.nets = (const struct kp_net *const *)m->nets,
                                      .n_nets = m->n_nets,
                                      .forest = m->forest,
                                      .tokens = in->tokens + b * s->n_tokens,
                                      .features = in->features + b * s->n_features,
                                      .width = 8,
                                      .k = 1};
    size_t bytes = (kp_beam_work(&ask) + 63) / 64 * 64;
    void *work = aligned_alloc(64, bytes);
    double logp;
    KP_CHECK(work && kp_beam_search(&ask, work, in->values + b * s->n_targets, &logp) == 1);
    free(work);
    return logp;
}

/* The forest's part in logp of row b. */
static void hear_forest(const struct kp_model *m, const struct inputs *in, size_t b,
                        double (*logp)[MOST_VALUES])
{
    const struct kp_net_shape *s = &m->nets[0]->shape;
    float x[KP_FIELDS_MAX * 16];
    float trees[MOST_VALUES];
    KP_CHECK(kp_forest_inputs(m->forest) <= sizeof(x) / sizeof(*x));
    memcpy(x, in->features + b * s->n_features, s->n_features * sizeof(*x));
    for (size_t p = 0; p < s->n_targets; p++) {
        kp_forest_log(m->forest, p, s->n_features, in->values + b * s->n_targets, x, trees);
        kp_forest_pool(m->forest, s->n_values[p], trees, logp[p]);
    }
}

/* logp of row b under the mixture: p(h, v) / p(h). */
static void mixture(const struct kp_model *m, const struct inputs *in, size_t b,
                    double (*out)[MOST_VALUES], double *losses)
{
    double before[KP_BEAM_NETS_MAX] = {0};
    static float logp[KP_BEAM_NETS_MAX][KP_TARGETS_MAX][MOST_VALUES];
    const struct kp_net_shape *s = &m->nets[0]->shape;
    for (size_t k = 0; k < m->n_nets; k++)
        walk(m->nets[k], in, b, logp[k]);
    for (size_t p = 0; p < s->n_targets; p++) {
        double prefix = 0;
        uint32_t value = in->values[b * s->n_targets + p];
        for (size_t k = 0; k < m->n_nets; k++)
            prefix += exp(before[k]);
        for (size_t v = 0; v < s->n_values[p]; v++) {
            double joint = 0;
            for (size_t k = 0; k < m->n_nets; k++)
                joint += exp(before[k] + (double)logp[k][p][v]);
            out[p][v] = log(joint / prefix);
        }
        for (size_t k = 0; k < m->n_nets; k++) {
            before[k] += (double)logp[k][p][value];
            losses[k] -= (double)logp[k][p][value];
        }
    }
}

static void write_inputs(FILE *f, const struct kp_net_shape *s, const struct inputs *in)
{
    (void)fprintf(f, "tokens int64 %d %zu\n", B, s->n_tokens);
    for (size_t i = 0; i < B * s->n_tokens; i++)
        (void)fprintf(f, "%d%c", (int)in->tokens[i], (i + 1) % s->n_tokens ? ' ' : '\n');
    (void)fprintf(f, "features float32 %d %zu\n", B, s->n_features);
    for (size_t i = 0; i < B * s->n_features; i++)
        (void)fprintf(f, "%.9g%c", (double)in->features[i],
                      (i + 1) % s->n_features ? ' ' : '\n');
    (void)fprintf(f, "values int64 %d %zu\n", B, s->n_targets);
    for (size_t i = 0; i < B * s->n_targets; i++)
        (void)fprintf(f, "%u%c", in->values[i], (i + 1) % s->n_targets ? ' ' : '\n');
}

static bool write_case(const struct kp_model *m, struct inputs *in, const char *path)
{
    static double logp[B][KP_TARGETS_MAX][MOST_VALUES];
    double losses[KP_BEAM_NETS_MAX] = {0};
    const struct kp_net_shape *s = &m->nets[0]->shape;
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    /* The other half of the rows has values that were drawn. */
    double best[B] = {0};
    for (size_t b = 0; b < B / 2; b++)
        best[b] = best_of(m, in, b);
    for (size_t b = 0; b < B; b++) {
        mixture(m, in, b, logp[b], losses);
        if (m->forest)
            hear_forest(m, in, b, logp[b]);
        for (size_t p = 0; p < s->n_targets; p++)
            best[b] -= logp[b][p][in->values[b * s->n_targets + p]];
    }
    for (size_t b = 0; b < B / 2; b++) /* what is here is what the beam has, but for rounding */
        KP_CHECK(fabs(best[b]) < 1e-5);
    for (size_t k = 0; k < m->n_nets; k++)
        KP_CHECK(fabs(losses[k] - loss_of(m->nets[k], in)) < 1e-4); /* of 20 logarithms */
    write_inputs(f, s, in);
    for (size_t p = 0; p < s->n_targets; p++) {
        (void)fprintf(f, "logp.%s float32 %d %u\n", m->targets[p].name, B, s->n_values[p]);
        for (size_t b = 0; b < B; b++)
            for (uint32_t v = 0; v < s->n_values[p]; v++)
                (void)fprintf(f, "%.9g%c", logp[b][p][v], v + 1 < s->n_values[p] ? ' ' : '\n');
    }
    return fclose(f) == 0;
}

static bool run_case(const struct shape_case *c, const char *folder)
{
    char path[4096];
    struct kp_rng rng;
    struct inputs in;
    kopt_error err = {0};
    kp_rng_init(&rng, 11);
    struct kp_model *m = make(c, &rng);
    draw_inputs(&m->nets[0]->shape, &rng, &in);
    (void)snprintf(path, sizeof(path), "%s/%s.onnx", folder, c->name);
    bool ok = kp_onnx_save(m, path, &err) == KOPT_OK;
    (void)snprintf(path, sizeof(path), "%s/%s.txt", folder, c->name);
    ok = ok && write_case(m, &in, path);
    if (!ok)
        (void)fprintf(stderr, "onnx_cases: %s: %s\n", c->name, err.message);
    kp_free(in.tokens);
    kp_free(in.features);
    kp_free(in.values);
    kp_model_free(m);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (!run_case(&cases[i], argv[1]))
            return 1;
    return rank_cases(argv[1]) ? 0 : 1;
}
