/* SPDX-License-Identifier: MIT */
/* The models of Mahmood, Khan and Afzal (2024): an encoder-decoder network that reads a
 * problem's numbers as words. Layer: model.
 *
 *   x      = embedding of the tokens                                       [T][B][D]
 *   conv   = relu(convolution of width K over x)                           [T][B][C], C = H/2
 *   rnn    = a recurrent layer in both directions over x (hybrid1: over conv)
 *   enc    = the two directions side by side                               [T][B][H]
 *            (hybrid2: relu(enc W_r' + conv W_c' + b))
 *   s0     = tanh(W of the two last states, hybrid2: and conv's last step) [B][H], for each of
 *            the decoder's states
 *   h      = a recurrent layer over the values before, from s0             [P][B][H]
 *   out    = h; with attention tanh(h W_h' + context W_c' + b)             [P][B][H]
 *   P(value of p | problem, values before) = softmax(out[p] W_p' + b_p)
 *
 * `seq2seq` has neither attention nor convolution, `attention` the former, `hybrid1` a
 * convolution in front of the recurrent encoder, `hybrid2` one beside it; both look back by
 * attention. A target's softmax is over its own values alone. */
#include "model/models.h"

#include "math/vec.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/rnn.h"

#include <string.h>

enum {
    IN_EMBED,
    CONV_W,
    CONV_B,
    FWD_X, /* the forward direction: weights of inputs, bias, of states, GRU's b_n */
    FWD_B,
    FWD_H,
    FWD_N,
    BWD_X,
    BWD_B,
    BWD_H,
    BWD_N,
    JOIN_R,
    JOIN_C,
    JOIN_B,
    INIT_F, /* from the forward direction's last state to both of the decoder's */
    INIT_R,
    INIT_C,
    INIT_B,
    OUT_EMBED,
    DEC_X,
    DEC_B,
    DEC_H,
    DEC_N,
    ATT_Q,
    ATT_K,
    ATT_V,
    MIX_H,
    MIX_C,
    MIX_B,
    HEAD_W,
    HEAD_B
};

enum conv { CONV_NONE, CONV_FRONT, CONV_BESIDE };

/* Sizes, by the letters above. */
struct dims {
    size_t T, B, D, H, E, C, K, P; /* E = H/2: units of a direction */
    size_t G;                      /* gates of the decoder, of a direction half of it */
    size_t V;                      /* values of all targets; the decoder's words are one more */
    size_t S;                      /* states of the decoder: LSTM 2, GRU 1 */
    enum conv conv;
    bool attention;
    bool additive;
    enum kp_cell cell;
};

static struct dims dims_of(const struct kp_net *net, size_t B)
{
    const struct kp_net_shape *s = &net->shape;
    struct dims d = {.T = s->n_tokens,
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

static size_t rnn_inputs(const struct dims *d)
{
    return d->conv == CONV_FRONT ? d->C : d->D;
}

/* --- parameters -----------------------------------------------------------------------------
 */

/* Glorot and Bengio, 2010: uniform in +-sqrt(6 / (inputs + outputs)). The square root is
 * Newton's, the same on every machine. */
static float glorot(size_t in, size_t out)
{
    float a = 6.0F / (float)(in + out);
    float s = a < 1 ? 1 : a;
    for (int i = 0; i < 24; i++)
        s = (s + a / s) / 2;
    return s;
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

static kopt_status build(struct kp_net *net, kopt_error *err)
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
    const struct dims d = dims_of(net, 1);
    kp_net_declare(net, IN_EMBED, "enc.embed", s->n_vocab, d.D, KP_INIT_NORMAL, 0.3F);
    if (d.conv != CONV_NONE) {
        declare_matrix(net, CONV_W, "enc.conv.w", d.C, d.K * d.D);
        declare_vector(net, CONV_B, "enc.conv.b", d.C);
    }
    declare_rnn(net, FWD_X, fwd, rnn_inputs(&d), d.E);
    declare_rnn(net, BWD_X, bwd, rnn_inputs(&d), d.E);
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

static struct kp_linear linear(const struct kp_net *net, size_t w, size_t b, size_t rows,
                               size_t I, size_t O)
{
    return (struct kp_linear){rows, I, O, kp_net_w(net, w),
                              b == SIZE_MAX ? NULL : kp_net_w(net, b)};
}

/* y[n][O] += x[n][I] W' */
static void add_product(const struct kp_net *net, size_t w, size_t n, size_t I, size_t O,
                        const float *x, float *y)
{
    net->blas->gemm(false, true, n, O, I, 1, x, I, kp_net_w(net, w), I, 1, y, O);
}

/* --- the encoder ----------------------------------------------------------------------------
 */

struct direction {
    float *pre; /* [T][B][G/2] */
    float *h;   /* [T][B][E] */
    float *c;   /* [T][B][E] */
};

struct encoder {
    float *x;    /* [T][B][D] */
    float *conv; /* [T][B][C], where there is one */
    float *work; /* of the convolution */
    struct direction fwd, bwd;
    float *both;   /* [T][B][H]: the directions side by side */
    float *out;    /* [T][B][H]: the same as `both` without a join */
    float *init;   /* [S][B][H]: the decoder's first states */
    float *states; /* [B][S H]: the same, a row for each problem */
    float *keys;   /* [T][B][H]: additive attention's */
};

static void lay_out_encoder(const struct dims *d, struct kp_carve *c, struct encoder *e)
{
    size_t rows = d->T * d->B;
    const struct kp_conv conv = {d->T, d->B, d->D, d->C, d->K, NULL, NULL};
    *e = (struct encoder){0};
    e->x = kp_carve_take(c, rows * d->D);
    if (d->conv != CONV_NONE) {
        e->conv = kp_carve_take(c, rows * d->C);
        e->work = kp_carve_take(c, kp_conv_work(&conv));
    }
    struct direction *const both[] = {&e->fwd, &e->bwd};
    for (int i = 0; i < 2; i++) {
        both[i]->pre = kp_carve_take(c, rows * d->G / 2);
        both[i]->h = kp_carve_take(c, rows * d->E);
        both[i]->c = kp_carve_take(c, rows * d->E);
    }
    e->both = kp_carve_take(c, rows * d->H);
    e->out = d->conv == CONV_BESIDE ? kp_carve_take(c, rows * d->H) : e->both;
    e->init = kp_carve_take(c, d->S * d->B * d->H);
    e->states = kp_carve_take(c, d->S * d->B * d->H);
    if (d->additive)
        e->keys = kp_carve_take(c, rows * d->H);
}

/* Forward and backward alike. Key 0: none. */
static void drop(const struct kp_net *net, uint64_t key, uint64_t place, float *x, size_t n)
{
    if (key && net->shape.dropout > 0)
        kp_dropout(key + place * 0x9e3779b97f4a7c15U, net->shape.dropout, x, n);
}
enum { DROP_IN, DROP_ENC, DROP_OUT, DROP_WORDS };

static struct kp_conv conv_of(const struct kp_net *net, const struct dims *d)
{
    return (struct kp_conv){
        d->T, d->B, d->D, d->C, d->K, kp_net_w(net, CONV_W), kp_net_w(net, CONV_B)};
}

/* first: FWD_X, BWD_X or DEC_X. */
static struct kp_rnn rnn_of(const struct kp_net *net, const struct dims *d, size_t first,
                            size_t T)
{
    return (struct kp_rnn){.cell = d->cell,
                           .reverse = first == BWD_X,
                           .T = T,
                           .B = d->B,
                           .H = first == DEC_X ? d->H : d->E,
                           .w_h = kp_net_w(net, first + 2),
                           .b_n = d->cell == KP_CELL_GRU ? kp_net_w(net, first + 3) : NULL};
}

static void direction_forward(const struct kp_net *net, const struct dims *d, size_t first,
                              const float *x, const struct direction *r)
{
    const struct kp_linear l =
        linear(net, first, first + 1, d->T * d->B, rnn_inputs(d), d->G / 2);
    const struct kp_rnn rnn = rnn_of(net, d, first, d->T);
    const struct kp_rnn_state none = {NULL, NULL};
    kp_linear_forward(net->blas, &l, x, r->pre);
    kp_rnn_forward(net->blas, &rnn, &none, r->pre, r->h, r->c);
}

/* [rows][E] twice <-> [rows][2E] */
static void side_by_side(size_t rows, size_t E, const float *a, const float *b, float *out)
{
    for (size_t i = 0; i < rows; i++) {
        memcpy(out + i * 2 * E, a + i * E, E * sizeof(float));
        memcpy(out + i * 2 * E + E, b + i * E, E * sizeof(float));
    }
}

static void apart(size_t rows, size_t E, const float *both, float *a, float *b)
{
    for (size_t i = 0; i < rows; i++) {
        memcpy(a + i * E, both + i * 2 * E, E * sizeof(float));
        memcpy(b + i * E, both + i * 2 * E + E, E * sizeof(float));
    }
}

static const float *last_step(const struct dims *d, const float *x, size_t width)
{
    return x + (d->T - 1) * d->B * width;
}

/* states [B][S H] <-> init [S][B][H] */
static void states_apart(const struct dims *d, const float *states, float *init)
{
    for (size_t s = 0; s < d->S; s++)
        for (size_t i = 0; i < d->B; i++)
            memcpy(init + (s * d->B + i) * d->H, states + (i * d->S + s) * d->H,
                   d->H * sizeof(float));
}

static void states_together(const struct dims *d, const float *init, float *states)
{
    for (size_t s = 0; s < d->S; s++)
        for (size_t i = 0; i < d->B; i++)
            memcpy(states + (i * d->S + s) * d->H, init + (s * d->B + i) * d->H,
                   d->H * sizeof(float));
}

static void encode(const struct kp_net *net, const struct dims *d, const int32_t *tokens,
                   uint64_t key, const struct encoder *e)
{
    size_t rows = d->T * d->B;
    kp_embed_forward(kp_net_w(net, IN_EMBED), d->D, tokens, rows, e->x);
    drop(net, key, DROP_IN, e->x, rows * d->D);
    if (d->conv != CONV_NONE) {
        const struct kp_conv c = conv_of(net, d);
        kp_conv_forward(net->blas, &c, e->x, e->conv, e->work);
        kp_relu_forward(e->conv, rows * d->C);
    }
    const float *in = d->conv == CONV_FRONT ? e->conv : e->x;
    direction_forward(net, d, FWD_X, in, &e->fwd);
    direction_forward(net, d, BWD_X, in, &e->bwd);
    side_by_side(rows, d->E, e->fwd.h, e->bwd.h, e->both);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear l = linear(net, JOIN_R, JOIN_B, rows, d->H, d->H);
        kp_linear_forward(net->blas, &l, e->both, e->out);
        add_product(net, JOIN_C, rows, d->C, d->H, e->conv, e->out);
        kp_relu_forward(e->out, rows * d->H);
    }
    drop(net, key, DROP_ENC, e->out, rows * d->H);
    const struct kp_linear l = linear(net, INIT_F, INIT_B, d->B, d->E, d->S * d->H);
    kp_linear_forward(net->blas, &l, last_step(d, e->fwd.h, d->E), e->states);
    add_product(net, INIT_R, d->B, d->E, d->S * d->H, e->bwd.h, e->states);
    if (d->conv == CONV_BESIDE)
        add_product(net, INIT_C, d->B, d->C, d->S * d->H, last_step(d, e->conv, d->C),
                    e->states);
    kp_tanh_forward(e->states, d->B * d->S * d->H);
    states_apart(d, e->states, e->init);
    if (d->additive) {
        const struct kp_linear k = linear(net, ATT_K, SIZE_MAX, rows, d->H, d->H);
        kp_linear_forward(net->blas, &k, e->out, e->keys);
    }
}

/* --- the decoder ----------------------------------------------------------------------------
 */

struct decoder {
    float *words; /* [V+1][G]: the products of all words with the decoder's W_x, and its bias */
    int32_t *ids; /* [P][B]: the words that go in */
    float *pre;   /* [P][B][G] */
    float *h;     /* [P][B][H] */
    float *c;     /* [P][B][H] */
    float *q;     /* [P][B][H] */
    float *weights; /* [P][B][T] */
    float *context; /* [P][B][H] */
    float *mixed;   /* [P][B][H]: of h and context; NULL without attention */
    float *out;     /* [P][B][H]: mixed or h, after dropout */
    float *z;       /* [B][most V] */
};

static void lay_out_decoder(const struct kp_net *net, const struct dims *d, struct kp_carve *c,
                            struct decoder *w)
{
    size_t rows = d->P * d->B;
    *w = (struct decoder){0};
    w->words = kp_carve_take(c, (d->V + 1) * d->G);
    w->ids = (int32_t *)kp_carve_take(c, rows);
    w->pre = kp_carve_take(c, rows * d->G);
    w->h = kp_carve_take(c, rows * d->H);
    w->c = kp_carve_take(c, rows * d->H);
    if (d->attention) {
        w->q = kp_carve_take(c, rows * d->H);
        w->weights = kp_carve_take(c, rows * d->T);
        w->context = kp_carve_take(c, rows * d->H);
        w->mixed = kp_carve_take(c, rows * d->H);
    }
    w->out = kp_carve_take(c, rows * d->H);
    w->z = kp_carve_take(c, d->B * kp_net_most_values(net));
}

/* Word 0 begins a configuration; the values of target p follow those of p-1. */
static void words_before(const struct kp_net *net, const struct dims *d, const int32_t *targets,
                         int32_t *ids)
{
    int32_t first = 1;
    for (size_t i = 0; i < d->B; i++)
        ids[i] = 0;
    for (size_t p = 1; p < d->P; p++) {
        const int32_t *value = targets + (p - 1) * d->B;
        for (size_t i = 0; i < d->B; i++)
            ids[p * d->B + i] = value[i] < 0 ? -1 : first + value[i];
        first += (int32_t)net->shape.n_values[p - 1];
    }
}

static struct kp_attention attention_of(const struct kp_net *net, const struct dims *d,
                                        size_t Q)
{
    return (struct kp_attention){.score = d->additive ? KP_SCORE_ADDITIVE : KP_SCORE_DOT,
                                 .Q = Q,
                                 .S = d->T,
                                 .B = d->B,
                                 .H = d->H,
                                 .C = d->H,
                                 .v = d->additive ? kp_net_w(net, ATT_V) : NULL};
}

static const float *keys_of(const struct dims *d, const struct encoder *e)
{
    return d->additive ? e->keys : e->out;
}

static void decode(const struct kp_net *net, const struct dims *d, const struct kp_batch *b,
                   uint64_t key, const struct encoder *e, const struct decoder *w)
{
    size_t rows = d->P * d->B;
    const struct kp_linear in = linear(net, DEC_X, DEC_B, d->V + 1, d->D, d->G);
    const struct kp_rnn rnn = rnn_of(net, d, DEC_X, d->P);
    const struct kp_rnn_state s = {e->init, d->S == 2 ? e->init + d->B * d->H : NULL};
    kp_linear_forward(net->blas, &in, kp_net_w(net, OUT_EMBED), w->words);
    words_before(net, d, b->targets, w->ids);
    kp_embed_forward(w->words, d->G, w->ids, rows, w->pre);
    kp_rnn_forward(net->blas, &rnn, &s, w->pre, w->h, w->c);
    if (d->attention) {
        const struct kp_linear q = linear(net, ATT_Q, SIZE_MAX, rows, d->H, d->H);
        const struct kp_linear mix = linear(net, MIX_H, MIX_B, rows, d->H, d->H);
        const struct kp_attention a = attention_of(net, d, d->P);
        kp_linear_forward(net->blas, &q, w->h, w->q);
        kp_attention_forward(&a, w->q, keys_of(d, e), e->out, w->weights, w->context);
        kp_linear_forward(net->blas, &mix, w->h, w->mixed);
        add_product(net, MIX_C, rows, d->H, d->H, w->context, w->mixed);
        kp_tanh_forward(w->mixed, rows * d->H);
    }
    memcpy(w->out, d->attention ? w->mixed : w->h, rows * d->H * sizeof(float));
    drop(net, key, DROP_OUT, w->out, rows * d->H);
}

/* --- backward -------------------------------------------------------------------------------
 */

struct gradients {
    float *out;     /* [P][B][H] */
    float *h;       /* [P][B][H] */
    float *q;       /* [P][B][H] */
    float *context; /* [P][B][H] */
    float *init;    /* [S][B][H] */
    float *states;  /* [B][S H] */
    float *words;   /* [V+1][G] */
    float *enc;     /* [T][B][H] */
    float *keys;    /* [T][B][H] */
    float *both;    /* [T][B][H] */
    float *fwd;     /* [T][B][E] */
    float *bwd;     /* [T][B][E] */
    float *conv;    /* [T][B][C] */
    float *x;       /* [T][B][D] */
    float *in;      /* [T][B][inputs of the recurrent layers] */
    float *work;    /* of the recurrent layers */
};

static void lay_out_gradients(const struct kp_net *net, const struct dims *d,
                              struct kp_carve *c, struct gradients *g)
{
    size_t out = d->P * d->B * d->H;
    size_t in = d->T * d->B;
    struct kp_rnn dec = {.cell = d->cell, .T = d->P, .B = d->B, .H = d->H};
    struct kp_rnn enc = {.cell = d->cell, .T = d->T, .B = d->B, .H = d->E};
    size_t a = kp_rnn_work(&dec);
    size_t b = kp_rnn_work(&enc);
    (void)net;
    *g = (struct gradients){0};
    g->out = kp_carve_take(c, out);
    g->h = kp_carve_take(c, out);
    if (d->attention) {
        g->q = kp_carve_take(c, out);
        g->context = kp_carve_take(c, out);
    }
    g->init = kp_carve_take(c, d->S * d->B * d->H);
    g->states = kp_carve_take(c, d->S * d->B * d->H);
    g->words = kp_carve_take(c, (d->V + 1) * d->G);
    g->enc = kp_carve_take(c, in * d->H);
    if (d->attention)
        g->keys = kp_carve_take(c, in * d->H);
    if (d->conv == CONV_BESIDE)
        g->both = kp_carve_take(c, in * d->H);
    g->fwd = kp_carve_take(c, in * d->E);
    g->bwd = kp_carve_take(c, in * d->E);
    if (d->conv != CONV_NONE)
        g->conv = kp_carve_take(c, in * d->C);
    g->x = kp_carve_take(c, in * d->D);
    g->in = kp_carve_take(c, in * rnn_inputs(d));
    g->work = kp_carve_take(c, a > b ? a : b);
}

static void add_to(float *y, const float *x, size_t n)
{
    kp_vec_axpy(n, 1, x, y);
}

/* g->out -> g->h, g->enc (both written). */
static void attention_back(const struct kp_net *net, const struct dims *d, float *grad,
                           const struct encoder *e, const struct decoder *w,
                           const struct gradients *g)
{
    size_t rows = d->P * d->B;
    size_t keys = d->T * d->B;
    const struct kp_blas *blas = net->blas;
    const struct kp_linear q = linear(net, ATT_Q, SIZE_MAX, rows, d->H, d->H);
    const struct kp_linear mix_h = linear(net, MIX_H, MIX_B, rows, d->H, d->H);
    const struct kp_linear mix_c = linear(net, MIX_C, SIZE_MAX, rows, d->H, d->H);
    const struct kp_attention a = attention_of(net, d, d->P);
    const struct kp_attention_grad back = {.dcontext = g->context,
                                           .dq = g->q,
                                           .dk = g->keys,
                                           .dvalues = g->enc,
                                           .dv =
                                               d->additive ? kp_net_g(net, grad, ATT_V) : NULL};
    kp_linear_backward(blas, &mix_h, w->h, g->out, g->h, kp_net_g(net, grad, MIX_H),
                       kp_net_g(net, grad, MIX_B));
    kp_linear_backward(blas, &mix_c, w->context, g->out, g->context, kp_net_g(net, grad, MIX_C),
                       NULL);
    kp_attention_backward(&a, w->q, keys_of(d, e), e->out, w->weights, &back);
    kp_linear_backward(blas, &q, w->h, g->q, g->context, kp_net_g(net, grad, ATT_Q), NULL);
    add_to(g->h, g->context, rows * d->H); /* g->context has done its first duty */
    if (d->additive) {
        const struct kp_linear k = linear(net, ATT_K, SIZE_MAX, keys, d->H, d->H);
        kp_linear_backward(blas, &k, e->out, g->keys, NULL, kp_net_g(net, grad, ATT_K), NULL);
        blas->gemm(false, false, keys, d->H, d->H, 1, g->keys, d->H, kp_net_w(net, ATT_K), d->H,
                   1, g->enc, d->H);
    } else {
        add_to(g->enc, g->keys, keys * d->H);
    }
}

/* g->out -> g->init, g->enc. */
static void decode_back(const struct kp_net *net, const struct dims *d, uint64_t key,
                        float *grad, const struct encoder *e, const struct decoder *w,
                        const struct gradients *g)
{
    size_t rows = d->P * d->B;
    const struct kp_rnn rnn = rnn_of(net, d, DEC_X, d->P);
    bool lstm = d->S == 2;
    const struct kp_rnn_state s = {e->init, lstm ? e->init + d->B * d->H : NULL};
    const struct kp_rnn_grad back = {.dh = g->h,
                                     .dw_h = kp_net_g(net, grad, DEC_H),
                                     .db_n = lstm ? NULL : kp_net_g(net, grad, DEC_N),
                                     .dh0 = g->init,
                                     .dc0 = lstm ? g->init + d->B * d->H : NULL};
    drop(net, key, DROP_OUT, g->out, rows * d->H);
    if (d->attention) {
        kp_tanh_backward(w->mixed, rows * d->H, g->out);
        attention_back(net, d, grad, e, w, g);
    } else {
        memcpy(g->h, g->out, rows * d->H * sizeof(float));
        memset(g->enc, 0, d->T * d->B * d->H * sizeof(float));
    }
    kp_rnn_backward(net->blas, &rnn, &s, w->pre, w->h, w->c, &back, g->work);
    const struct kp_linear in = linear(net, DEC_X, DEC_B, d->V + 1, d->D, d->G);
    memset(g->words, 0, (d->V + 1) * d->G * sizeof(float));
    kp_embed_backward(d->G, w->ids, rows, w->pre, g->words);
    kp_linear_backward(net->blas, &in, kp_net_w(net, OUT_EMBED), g->words, NULL,
                       kp_net_g(net, grad, DEC_X), kp_net_g(net, grad, DEC_B));
    net->blas->gemm(false, false, d->V + 1, d->D, d->G, 1, g->words, d->G, kp_net_w(net, DEC_X),
                    d->D, 1, kp_net_g(net, grad, OUT_EMBED), d->D);
}

static void direction_back(const struct kp_net *net, const struct dims *d, size_t first,
                           float *grad, const float *x, const struct direction *r, float *dh,
                           float *dx, const struct gradients *g)
{
    size_t rows = d->T * d->B;
    const struct kp_rnn rnn = rnn_of(net, d, first, d->T);
    const struct kp_rnn_state none = {NULL, NULL};
    const struct kp_rnn_grad back = {.dh = dh,
                                     .dw_h = kp_net_g(net, grad, first + 2),
                                     .db_n = d->S == 2 ? NULL : kp_net_g(net, grad, first + 3)};
    const struct kp_linear l = linear(net, first, first + 1, rows, rnn_inputs(d), d->G / 2);
    kp_rnn_backward(net->blas, &rnn, &none, r->pre, r->h, r->c, &back, g->work);
    kp_linear_backward(net->blas, &l, x, r->pre, dx, kp_net_g(net, grad, first),
                       kp_net_g(net, grad, first + 1));
}

/* g->init -> what it adds to the gradients of the last states: added to g->fwd, g->bwd and,
 * with a convolution beside, g->conv. */
static void init_back(const struct kp_net *net, const struct dims *d, float *grad,
                      const struct encoder *e, const struct gradients *g)
{
    size_t n = d->S * d->H;
    const struct kp_linear f = linear(net, INIT_F, INIT_B, d->B, d->E, n);
    const struct kp_linear r = linear(net, INIT_R, SIZE_MAX, d->B, d->E, n);
    float *last = g->fwd + (d->T - 1) * d->B * d->E;
    states_together(d, g->init, g->states);
    kp_tanh_backward(e->states, d->B * n, g->states);
    kp_linear_backward(net->blas, &f, last_step(d, e->fwd.h, d->E), g->states, NULL,
                       kp_net_g(net, grad, INIT_F), kp_net_g(net, grad, INIT_B));
    net->blas->gemm(false, false, d->B, d->E, n, 1, g->states, n, f.w, d->E, 1, last, d->E);
    kp_linear_backward(net->blas, &r, e->bwd.h, g->states, NULL, kp_net_g(net, grad, INIT_R),
                       NULL);
    net->blas->gemm(false, false, d->B, d->E, n, 1, g->states, n, r.w, d->E, 1, g->bwd, d->E);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear c = linear(net, INIT_C, SIZE_MAX, d->B, d->C, n);
        kp_linear_backward(net->blas, &c, last_step(d, e->conv, d->C), g->states, NULL,
                           kp_net_g(net, grad, INIT_C), NULL);
        net->blas->gemm(false, false, d->B, d->C, n, 1, g->states, n, c.w, d->C, 1,
                        g->conv + (d->T - 1) * d->B * d->C, d->C);
    }
}

/* g->init, g->enc -> the encoder's parameters. */
static void encode_back(const struct kp_net *net, const struct dims *d, const int32_t *tokens,
                        uint64_t key, float *grad, const struct encoder *e,
                        const struct gradients *g)
{
    size_t rows = d->T * d->B;
    const float *both = g->enc;
    drop(net, key, DROP_ENC, g->enc, rows * d->H);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear r = linear(net, JOIN_R, JOIN_B, rows, d->H, d->H);
        const struct kp_linear c = linear(net, JOIN_C, SIZE_MAX, rows, d->C, d->H);
        kp_relu_backward(e->out, rows * d->H, g->enc);
        kp_linear_backward(net->blas, &r, e->both, g->enc, g->both, kp_net_g(net, grad, JOIN_R),
                           kp_net_g(net, grad, JOIN_B));
        kp_linear_backward(net->blas, &c, e->conv, g->enc, g->conv, kp_net_g(net, grad, JOIN_C),
                           NULL);
        both = g->both;
    }
    apart(rows, d->E, both, g->fwd, g->bwd);
    init_back(net, d, grad, e, g);
    const float *in = d->conv == CONV_FRONT ? e->conv : e->x;
    float *din = d->conv == CONV_FRONT ? g->conv : g->x;
    direction_back(net, d, FWD_X, grad, in, &e->fwd, g->fwd, din, g);
    direction_back(net, d, BWD_X, grad, in, &e->bwd, g->bwd, g->in, g);
    add_to(din, g->in, rows * rnn_inputs(d));
    if (d->conv != CONV_NONE) {
        const struct kp_conv c = conv_of(net, d);
        float *dx = d->conv == CONV_FRONT ? g->x : g->in; /* in has D floats a row there */
        kp_relu_backward(e->conv, rows * d->C, g->conv);
        kp_conv_backward(net->blas, &c, e->x, g->conv, dx, kp_net_g(net, grad, CONV_W),
                         kp_net_g(net, grad, CONV_B), e->work);
        if (d->conv == CONV_BESIDE)
            add_to(g->x, g->in, rows * d->D);
    }
    drop(net, key, DROP_IN, g->x, rows * d->D);
    kp_embed_backward(d->D, tokens, rows, g->x, kp_net_g(net, grad, IN_EMBED));
}

/* --- the table ------------------------------------------------------------------------------
 */

static size_t work(const struct kp_net *net, size_t B, bool train)
{
    struct kp_carve c = {0};
    struct encoder e;
    struct decoder w;
    struct gradients g;
    const struct dims d = dims_of(net, B);
    lay_out_encoder(&d, &c, &e);
    lay_out_decoder(net, &d, &c, &w);
    if (train)
        lay_out_gradients(net, &d, &c, &g);
    return c.used;
}

static void run(const struct kp_net *net, const struct kp_batch *b, float smoothing,
                uint64_t key, float *grad, float *memory, struct kp_net_score *score)
{
    struct kp_carve c = {.base = memory};
    struct encoder e;
    struct decoder w;
    struct gradients g;
    const struct dims d = dims_of(net, b->B);
    const struct kp_heads heads = {net, kp_net_w(net, HEAD_W), kp_net_w(net, HEAD_B), d.H};
    if (!grad)
        key = 0;
    lay_out_encoder(&d, &c, &e);
    lay_out_decoder(net, &d, &c, &w);
    encode(net, &d, b->tokens, key, &e);
    decode(net, &d, b, key, &e, &w);
    if (!grad) {
        kp_heads_run(&heads, b, smoothing, w.out, NULL, NULL, NULL, w.z, score);
        return;
    }
    lay_out_gradients(net, &d, &c, &g);
    kp_heads_run(&heads, b, smoothing, w.out, g.out, kp_net_g(net, grad, HEAD_W),
                 kp_net_g(net, grad, HEAD_B), w.z, score);
    decode_back(net, &d, key, grad, &e, &w, &g);
    encode_back(net, &d, b->tokens, key, grad, &e, &g);
}

/* Prediction. A state: the encoder's outputs and keys, then the decoder's states of all
 * prefixes, [S][width][H] for odd targets and the same for even ones. */

struct beam_state {
    float *values; /* [T][H] */
    float *keys;   /* [T][H]: the same where attention is not additive */
    float *h[2];   /* [width][H] */
    float *c[2];   /* [width][H]: LSTM */
};

static size_t lay_out_state(const struct dims *d, size_t width, float *base,
                            struct beam_state *s)
{
    struct kp_carve c = {.base = base};
    s->values = s->keys = kp_carve_take(&c, d->T * d->H);
    if (d->additive)
        s->keys = kp_carve_take(&c, d->T * d->H);
    for (int i = 0; i < 2; i++) {
        s->h[i] = kp_carve_take(&c, width * d->H);
        s->c[i] = kp_carve_take(&c, width * d->H);
    }
    return c.used;
}

static size_t state(const struct kp_net *net, size_t width)
{
    const struct dims d = dims_of(net, 1);
    struct beam_state s;
    return lay_out_state(&d, width, NULL, &s);
}

struct step_work {
    float *x;       /* [n][D] */
    float *pre;     /* [n][G] */
    float *h0;      /* [n][H] */
    float *c0;      /* [n][H] */
    float *q;       /* [n][H] */
    float *weights; /* [n][T] */
    float *context; /* [n][H] */
    float *out;     /* [n][H] */
};

static size_t lay_out_step(const struct dims *d, size_t n, float *base, struct step_work *w)
{
    struct kp_carve c = {.base = base};
    w->x = kp_carve_take(&c, n * d->D);
    w->pre = kp_carve_take(&c, n * d->G);
    w->h0 = kp_carve_take(&c, n * d->H);
    w->c0 = kp_carve_take(&c, n * d->H);
    w->q = kp_carve_take(&c, n * d->H);
    w->weights = kp_carve_take(&c, n * d->T);
    w->context = kp_carve_take(&c, n * d->H);
    w->out = kp_carve_take(&c, n * d->H);
    return c.used;
}

static size_t scratch(const struct kp_net *net, size_t width)
{
    const struct dims d = dims_of(net, 1);
    struct kp_carve c = {0};
    struct encoder e;
    struct step_work w;
    lay_out_encoder(&d, &c, &e);
    size_t step_needs = lay_out_step(&d, width, NULL, &w);
    return c.used > step_needs ? c.used : step_needs;
}

static void begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *memory, float *temporary)
{
    const struct dims d = dims_of(net, 1);
    struct kp_carve c = {.base = temporary};
    struct encoder e;
    struct beam_state s;
    (void)features;
    lay_out_encoder(&d, &c, &e);
    (void)lay_out_state(&d, width, memory, &s);
    encode(net, &d, tokens, 0, &e);
    memcpy(s.values, e.out, d.T * d.H * sizeof(float));
    if (d.additive)
        memcpy(s.keys, e.keys, d.T * d.H * sizeof(float));
    /* Where target 0 looks for its parent's states. */
    memcpy(s.h[1], e.init, d.H * sizeof(float));
    if (d.S == 2)
        memcpy(s.c[1], e.init + d.H, d.H * sizeof(float));
}

/* Keys and values are the same for all prefixes: each prefix is a query of a batch of one. */
static void look_back(const struct kp_net *net, struct dims d, size_t n,
                      const struct beam_state *s, const float *h, const struct step_work *w)
{
    const struct kp_linear q = linear(net, ATT_Q, SIZE_MAX, n, d.H, d.H);
    const struct kp_linear mix = linear(net, MIX_H, MIX_B, n, d.H, d.H);
    const struct kp_attention a = attention_of(net, &d, n);
    kp_linear_forward(net->blas, &q, h, w->q);
    kp_attention_forward(&a, w->q, s->keys, s->values, w->weights, w->context);
    kp_linear_forward(net->blas, &mix, h, w->out);
    add_product(net, MIX_C, n, d.H, d.H, w->context, w->out);
    kp_tanh_forward(w->out, n * d.H);
}

static void step(const struct kp_net *net, const struct kp_net_step *st, float *memory,
                 float *temporary, float *logp)
{
    struct dims d = dims_of(net, 1);
    struct beam_state s;
    struct step_work w;
    const struct kp_heads heads = {net, kp_net_w(net, HEAD_W), kp_net_w(net, HEAD_B), d.H};
    (void)lay_out_state(&d, st->width, memory, &s);
    (void)lay_out_step(&d, st->n, temporary, &w);
    size_t old = (st->p + 1) % 2;
    size_t first = st->p ? 1 + kp_net_values_before(net, st->p - 1) : 0;
    for (size_t i = 0; i < st->n; i++) {
        size_t from = st->p ? st->parent[i] : 0;
        int32_t word = (int32_t)(st->p ? first + st->values[i] : 0);
        kp_embed_forward(kp_net_w(net, OUT_EMBED), d.D, &word, 1, w.x + i * d.D);
        memcpy(w.h0 + i * d.H, s.h[old] + from * d.H, d.H * sizeof(float));
        memcpy(w.c0 + i * d.H, s.c[old] + from * d.H, d.H * sizeof(float));
    }
    const struct kp_linear in = linear(net, DEC_X, DEC_B, st->n, d.D, d.G);
    const struct kp_rnn_state before = {w.h0, d.S == 2 ? w.c0 : NULL};
    struct dims rows = d;
    rows.B = st->n;
    const struct kp_rnn rnn = rnn_of(net, &rows, DEC_X, 1);
    float *h = s.h[st->p % 2];
    kp_linear_forward(net->blas, &in, w.x, w.pre);
    kp_rnn_forward(net->blas, &rnn, &before, w.pre, h, s.c[st->p % 2]);
    if (d.attention)
        look_back(net, d, st->n, &s, h, &w);
    kp_heads_logp(&heads, st->p, st->n, d.attention ? w.out : h, logp);
}

#define SEQ_MODEL(symbol, text, words)                    \
    const struct kp_net_ops symbol = {.name = text,       \
                                      .about = words,     \
                                      .build = build,     \
                                      .work = work,       \
                                      .run = run,         \
                                      .state = state,     \
                                      .scratch = scratch, \
                                      .begin = begin,     \
                                      .step = step}

SEQ_MODEL(kp_net_seq2seq, "seq2seq", "a recurrent encoder and decoder");
SEQ_MODEL(kp_net_attention, "attention", "the same, and the decoder looks back by attention");
SEQ_MODEL(kp_net_hybrid1, "hybrid1", "a convolution in front of the recurrent encoder");
SEQ_MODEL(kp_net_hybrid2, "hybrid2", "a convolution beside the recurrent encoder, joined");
