/* SPDX-License-Identifier: MIT */
/* Sizes and parameters of the models of model/seq.h. Layer: model. */
#include "model/seq.h"

#include <math.h>

struct kp_seq_dims kp_seq_dims(const struct kp_net *net, size_t B)
{
    const struct kp_net_shape *s = &net->shape;
    struct kp_seq_dims d = {.T = s->n_tokens,
                            .B = B,
                            .D = s->embed,
                            .H = s->hidden,
                            .E = s->hidden / 2,
                            .C = s->hidden / 2,
                            .K = s->kernel,
                            .P = s->n_targets};
    d.cell = s->cell == KP_CELL_GRU ? KP_CELL_GRU : KP_CELL_LSTM;
    d.G = kp_rnn_gates(d.cell, d.H);
    d.V = kp_net_values_before(net, d.P);
    d.S = d.cell == KP_CELL_LSTM ? 2 : 1;
    d.conv = net->ops == &kp_net_hybrid1   ? CONV_FRONT
             : net->ops == &kp_net_hybrid2 ? CONV_BESIDE
                                           : CONV_NONE;
    d.attention = net->ops != &kp_net_seq2seq;
    d.additive = d.attention && s->score == KP_SCORE_ADDITIVE;
    return d;
}

size_t kp_seq_rnn_inputs(const struct kp_seq_dims *d)
{
    return d->conv == CONV_FRONT ? d->C : d->D;
}

/* --- parameters -----------------------------------------------------------------------------
 */

/* Glorot and Bengio, 2010: uniform in +-sqrt(6 / (inputs + outputs)). */
static float glorot(size_t in, size_t out)
{
    return sqrtf(6.0F / (float)(in + out));
}

static void declare_matrix(struct kp_net *net, size_t number, const char *name, size_t rows,
                           size_t cols)
{
    kp_net_declare(net, number, name, rows, cols, KP_INIT_UNIFORM, glorot(cols, rows));
}

static void declare_vector(struct kp_net *net, size_t number, const char *name, size_t n)
{
    kp_net_declare(net, number, name, 1, n, KP_INIT_ZERO, 0);
}

/* Four tensors from `number`; names[4]. */
static void declare_rnn(struct kp_net *net, size_t number, const char *const *names, size_t I,
                        size_t H)
{
    bool lstm = net->shape.cell == KP_CELL_LSTM;
    size_t gates = lstm ? 4 : 3;
    kp_net_declare(net, number, names[0], gates * H, I, KP_INIT_UNIFORM, glorot(I, H));
    kp_net_declare(net, number + 1, names[1], 1, gates * H,
                   lstm ? KP_INIT_LSTM_BIAS : KP_INIT_ZERO, 0);
    kp_net_declare(net, number + 2, names[2], gates * H, H, KP_INIT_UNIFORM, glorot(H, H));
    if (!lstm)
        declare_vector(net, number + 3, names[3], H);
}

kopt_status kp_seq_build(struct kp_net *net, kopt_error *err)
{
    static const char *const fwd[] = {"enc.fwd.wx", "enc.fwd.b", "enc.fwd.wh", "enc.fwd.bn"};
    static const char *const bwd[] = {"enc.bwd.wx", "enc.bwd.b", "enc.bwd.wh", "enc.bwd.bn"};
    static const char *const dec[] = {"dec.wx", "dec.b", "dec.wh", "dec.bn"};
    struct kp_net_shape *s = &net->shape;
    (void)err;
    s->embed = s->embed ? s->embed : 48;
    s->hidden = s->hidden ? s->hidden : 224;
    s->kernel = s->kernel ? s->kernel : 3;
    s->layers = 1;
    s->dropout = s->dropout < 0 ? 0.2F : s->dropout;
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    kp_net_declare(net, IN_EMBED, "enc.embed", s->n_vocab, d.D, KP_INIT_NORMAL, 0.3F);
    if (d.conv != CONV_NONE) {
        declare_matrix(net, CONV_W, "enc.conv.w", d.C, d.K * d.D);
        declare_vector(net, CONV_B, "enc.conv.b", d.C);
    }
    declare_rnn(net, FWD_X, fwd, kp_seq_rnn_inputs(&d), d.E);
    declare_rnn(net, BWD_X, bwd, kp_seq_rnn_inputs(&d), d.E);
    if (d.conv == CONV_BESIDE) {
        declare_matrix(net, JOIN_R, "enc.join.rnn", d.H, d.H);
        declare_matrix(net, JOIN_C, "enc.join.conv", d.H, d.C);
        declare_vector(net, JOIN_B, "enc.join.b", d.H);
        declare_matrix(net, INIT_C, "dec.init.conv", d.S * d.H, d.C);
    }
    declare_matrix(net, INIT_F, "dec.init.fwd", d.S * d.H, d.E);
    declare_matrix(net, INIT_R, "dec.init.bwd", d.S * d.H, d.E);
    declare_vector(net, INIT_B, "dec.init.b", d.S * d.H);
    kp_net_declare(net, OUT_EMBED, "dec.embed", d.V + 1, d.D, KP_INIT_NORMAL, 0.3F);
    declare_rnn(net, DEC_X, dec, d.D, d.H);
    if (d.attention) {
        declare_matrix(net, ATT_Q, "attention.q", d.H, d.H);
        if (d.additive) {
            declare_matrix(net, ATT_K, "attention.k", d.H, d.H);
            kp_net_declare(net, ATT_V, "attention.v", 1, d.H, KP_INIT_UNIFORM, glorot(d.H, 1));
        }
        declare_matrix(net, MIX_H, "mix.h", d.H, d.H);
        declare_matrix(net, MIX_C, "mix.context", d.H, d.H);
        declare_vector(net, MIX_B, "mix.b", d.H);
    }
    declare_matrix(net, HEAD_W, "heads.w", d.V, d.H);
    declare_vector(net, HEAD_B, "heads.b", d.V);
    return KOPT_OK;
}

struct kp_linear kp_seq_linear(const struct kp_net *net, size_t w, size_t b, size_t rows,
                               size_t I, size_t O)
{
    return (struct kp_linear){rows, I, O, kp_net_w(net, w),
                              b == SIZE_MAX ? NULL : kp_net_w(net, b)};
}

void kp_seq_add_product(const struct kp_net *net, const struct kp_linear *l, const float *x,
                        float *y)
{
    net->blas->gemm(false, true, l->B, l->O, l->I, 1, x, l->I, l->w, l->I, 1, y, l->O);
}
