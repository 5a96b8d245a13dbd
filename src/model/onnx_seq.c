/* SPDX-License-Identifier: MIT */
/* The sequence models as ONNX; seq.c has the equations. Layer: model.
 *
 * ONNX's recurrent layers differ from ours in the order of the gates alone: i o f c and z r h
 * where we have i f g o and r z n. Behind the decoder everything is [B][P][H], so that MatMul
 * sees a problem's matrices. */
#include "model/models.h"
#include "model/onnx_graph.h"

#include "nn/attention.h"
#include "nn/rnn.h"

#include <math.h>
#include <string.h>

enum { DIRECTIONS = 2, ONE = 1 };

/* Names of a recurrent layer's tensors. */
struct rnn_names {
    const char *x;
    const char *b;
    const char *h;
    const char *n; /* GRU's */
};
static const struct rnn_names encoder_names[DIRECTIONS] = {
    {"enc.fwd.wx", "enc.fwd.b", "enc.fwd.wh", "enc.fwd.bn"},
    {"enc.bwd.wx", "enc.bwd.b", "enc.bwd.wh", "enc.bwd.bn"}};
static const struct rnn_names decoder_names = {"dec.wx", "dec.b", "dec.wh", "dec.bn"};

static bool is_lstm(const struct kp_net *net)
{
    return net->shape.cell == KP_CELL_LSTM;
}

/* --- recurrent layers -----------------------------------------------------------------------
 */

/* Which of our gates is ONNX's gate i. */
static size_t gate(const struct kp_net *net, size_t i)
{
    static const size_t lstm[] = {0, 3, 1, 2};
    static const size_t gru[] = {1, 0, 2};
    return is_lstm(net) ? lstm[i] : gru[i];
}

static size_t n_gates(const struct kp_net *net)
{
    return is_lstm(net) ? 4 : 3;
}

/* [n][gates H][cols] of the tensors `which` of n layers. */
static struct onnx_value gate_rows(struct onnx_graph *g, const struct kp_net *net,
                                   const struct rnn_names *names, size_t n, bool states)
{
    const char *first = states ? names[0].h : names[0].x;
    const struct kp_tensor *t = kp_onnx_tensor(net, first);
    const struct onnx_dims dims = {{n, t->rows, t->cols}, 3};
    size_t block = t->rows / n_gates(net) * t->cols;
    struct onnx_pieces w = kp_onnx_weight_begin(g, first, &dims);
    for (size_t d = 0; d < n; d++) {
        const float *p =
            net->values + kp_onnx_tensor(net, states ? names[d].h : names[d].x)->offset;
        for (size_t i = 0; i < n_gates(net); i++)
            kp_onnx_floats(g, p + gate(net, i) * block, block);
    }
    return kp_onnx_weight_end(g, &w);
}

/* [n][2 gates H]: biases of the inputs' products, then of the states'. The latter are 0 but for
 * GRU's b_n. */
static struct onnx_value gate_biases(struct onnx_graph *g, const struct kp_net *net,
                                     const struct rnn_names *names, size_t n)
{
    size_t all = kp_onnx_tensor(net, names[0].b)->cols;
    size_t H = all / n_gates(net);
    const struct onnx_dims dims = {{n, 2 * all}, 2};
    struct onnx_pieces w = kp_onnx_weight_begin(g, names[0].b, &dims);
    for (size_t d = 0; d < n; d++) {
        const float *p = net->values + kp_onnx_tensor(net, names[d].b)->offset;
        const float none = 0;
        for (size_t i = 0; i < n_gates(net); i++)
            kp_onnx_floats(g, p + gate(net, i) * H, H);
        size_t zeros = is_lstm(net) ? all : all - H;
        for (size_t i = 0; i < zeros; i++)
            kp_onnx_floats(g, &none, 1);
        if (!is_lstm(net))
            kp_onnx_floats(g, net->values + kp_onnx_tensor(net, names[d].n)->offset, H);
    }
    return kp_onnx_weight_end(g, &w);
}

struct rnn_inputs {
    const struct onnx_value *x;  /* [T][B][I] */
    const struct onnx_value *h0; /* [1][B][H], or NULL */
    const struct onnx_value *c0; /* LSTM's, or NULL */
};

/* n directions: out[0] [T][n][B][H], all outputs, and out[1] [n][B][H], the last ones. */
static void rnn(struct onnx_graph *g, const struct kp_net *net, const struct rnn_names *names,
                size_t n, const struct rnn_inputs *in, struct onnx_value *out)
{
    const struct onnx_value w = gate_rows(g, net, names, n, false);
    const struct onnx_value r = gate_rows(g, net, names, n, true);
    const struct onnx_value b = gate_biases(g, net, names, n);
    struct onnx_node node = {
        .op = is_lstm(net) ? "LSTM" : "GRU",
        .in = {in->x, &w, &r, &b, NULL, in->h0, in->c0},
        .n_in = !in->h0  ? 4
                : in->c0 ? 7
                         : 6,
        .attribute = {
            {.name = "hidden_size",
             .is_int = true,
             .i = (int64_t)kp_onnx_tensor(net, names[0].h)->cols},
            {.name = "direction", .text = n == DIRECTIONS ? "bidirectional" : "forward"}}};
    if (!is_lstm(net)) /* r is multiplied with the product and its bias */
        node.attribute[2] =
            (struct onnx_attribute){.name = "linear_before_reset", .is_int = true, .i = 1};
    kp_onnx_add(g, &node, out, 2);
}

/* --- the encoder ----------------------------------------------------------------------------
 */

struct encoded {
    struct onnx_value out;  /* [B][T][H] */
    struct onnx_value init; /* [B][S H] */
};

/* relu of the convolution over x [T][B][D]: [T][B][C]. */
static struct onnx_value convolve(struct onnx_graph *g, const struct kp_net *net,
                                  const struct onnx_value *x)
{
    static const int64_t inwards[] = {1, 2, 0};
    static const int64_t outwards[] = {2, 0, 1};
    const struct kp_tensor *t = kp_onnx_tensor(net, "enc.conv.w");
    const struct kp_tensor *tb = kp_onnx_tensor(net, "enc.conv.b");
    size_t K = net->shape.kernel;
    size_t D = t->cols / K;
    const int64_t pads[] = {(int64_t)(K / 2), (int64_t)(K / 2)};
    const struct onnx_dims dims = {{t->rows, D, K}, 3};
    struct onnx_pieces pieces = kp_onnx_weight_begin(g, "enc.conv.w", &dims);
    for (size_t o = 0; o < t->rows; o++) /* ours is [C][K][D] */
        for (size_t i = 0; i < D; i++)
            for (size_t k = 0; k < K; k++)
                kp_onnx_floats(g, net->values + t->offset + (o * K + k) * D + i, 1);
    const struct onnx_value w = kp_onnx_weight_end(g, &pieces);
    const struct onnx_value b =
        kp_onnx_vector(g, "enc.conv.b", tb->cols, net->values + tb->offset);
    const struct onnx_value in = kp_onnx_transpose(g, x, inwards, 3); /* [B][D][T] */
    const struct onnx_node node = {.op = "Conv",
                                   .in = {&in, &w, &b},
                                   .n_in = 3,
                                   .attribute = {{.name = "pads", .ints = pads, .n_ints = 2}}};
    struct onnx_value y;
    kp_onnx_add(g, &node, &y, 1);
    y = kp_onnx_transpose(g, &y, outwards, 3);
    return kp_onnx_1(g, "Relu", &y);
}

/* Element i of the first dimension. */
static struct onnx_value pick(struct onnx_graph *g, const struct onnx_value *a, int64_t i)
{
    const struct onnx_value one = kp_onnx_slice(g, a, 0, i, i + 1);
    return kp_onnx_squeeze(g, "Squeeze", &one, 0);
}

static void encode(struct onnx_graph *g, const struct kp_net *net,
                   const struct onnx_value *tokens, struct encoded *e)
{
    static const int64_t turn[] = {1, 0};
    static const int64_t by_row[] = {2, 0, 1, 3};
    static const int64_t swap[] = {1, 0, 2};
    const int64_t joined[] = {0, 0, (int64_t)net->shape.hidden};
    bool front = net->ops == &kp_net_hybrid1;
    bool beside = net->ops == &kp_net_hybrid2;
    const struct kp_tensor *t = kp_onnx_tensor(net, "enc.embed");
    const struct onnx_value table =
        kp_onnx_matrix(g, "enc.embed", t->rows, t->cols, net->values + t->offset);
    const struct onnx_value ids = kp_onnx_transpose(g, tokens, turn, 2);
    const struct onnx_value x = kp_onnx_2(g, "Gather", &table, &ids); /* [T][B][D] */
    struct onnx_value conv = x;
    if (front || beside)
        conv = convolve(g, net, &x);
    struct onnx_value h[2];
    const struct rnn_inputs in = {.x = front ? &conv : &x};
    rnn(g, net, encoder_names, DIRECTIONS, &in, h);
    e->out = kp_onnx_transpose(g, &h[0], by_row, 4); /* [B][T][2][E] */
    e->out = kp_onnx_reshape(g, &e->out, joined, 3);
    const struct onnx_value fwd = pick(g, &h[1], 0);
    const struct onnx_value bwd = pick(g, &h[1], 1);
    const struct onnx_value a = kp_onnx_linear(g, net, &fwd, "dec.init.fwd", "dec.init.b");
    const struct onnx_value b = kp_onnx_linear(g, net, &bwd, "dec.init.bwd", NULL);
    e->init = kp_onnx_2(g, "Add", &a, &b);
    if (beside) {
        const int64_t last = (int64_t)net->shape.n_tokens - 1;
        const struct onnx_value end = pick(g, &conv, last);
        const struct onnx_value c = kp_onnx_linear(g, net, &end, "dec.init.conv", NULL);
        e->init = kp_onnx_2(g, "Add", &e->init, &c);
        const struct onnx_value conv_rows = kp_onnx_transpose(g, &conv, swap, 3);
        const struct onnx_value r =
            kp_onnx_linear(g, net, &e->out, "enc.join.rnn", "enc.join.b");
        const struct onnx_value j = kp_onnx_linear(g, net, &conv_rows, "enc.join.conv", NULL);
        e->out = kp_onnx_2(g, "Add", &r, &j);
        e->out = kp_onnx_1(g, "Relu", &e->out);
    }
    e->init = kp_onnx_1(g, "Tanh", &e->init);
}

/* --- the decoder ----------------------------------------------------------------------------
 */

/* Words that go in, [B][P]: 0, then those of the values before. Word 0 begins a configuration;
 * the values of target p follow those of p-1. */
static struct onnx_value words(struct onnx_graph *g, const struct kp_net *net,
                               const struct onnx_value *values)
{
    int64_t first[KP_TARGETS_MAX];
    size_t P = net->shape.n_targets;
    const int64_t zero = 0;
    const struct onnx_value nothing = kp_onnx_ints(g, &zero, 1);
    struct onnx_value parts[2];
    parts[0] = kp_onnx_slice(g, values, 1, 0, 1);
    parts[0] = kp_onnx_2(g, "Mul", &parts[0], &nothing);
    if (P == 1)
        return parts[0];
    for (size_t p = 0; p + 1 < P; p++)
        first[p] = 1 + (int64_t)kp_net_values_before(net, p);
    const struct onnx_value offsets = kp_onnx_ints(g, first, P - 1);
    parts[1] = kp_onnx_slice(g, values, 1, 0, (int64_t)P - 1);
    parts[1] = kp_onnx_2(g, "Add", &parts[1], &offsets);
    return kp_onnx_concat(g, parts, 2, 1);
}

/* The weights of attention before the softmax, [B][P][T], from q [B][P][H]. */
static struct onnx_value attention_scores(struct onnx_graph *g, const struct kp_net *net,
                                          const struct onnx_value *q,
                                          const struct onnx_value *enc)
{
    static const int64_t swap[] = {0, 2, 1};
    if (net->shape.score != KP_SCORE_ADDITIVE) {
        const struct onnx_value keys = kp_onnx_transpose(g, enc, swap, 3);
        const struct onnx_value s = kp_onnx_2(g, "MatMul", q, &keys);
        const struct onnx_value root = kp_onnx_scalar(g, sqrtf((float)net->shape.hidden));
        return kp_onnx_2(g, "Div", &s, &root);
    }
    struct onnx_value k = kp_onnx_linear(g, net, enc, "attention.k", NULL);
    k = kp_onnx_squeeze(g, "Unsqueeze", &k, 1);                           /* [B][1][T][H] */
    const struct onnx_value rows = kp_onnx_squeeze(g, "Unsqueeze", q, 2); /* [B][P][1][H] */
    struct onnx_value s = kp_onnx_2(g, "Add", &rows, &k);
    s = kp_onnx_1(g, "Tanh", &s);
    s = kp_onnx_linear(g, net, &s, "attention.v", NULL); /* [B][P][T][1] */
    return kp_onnx_squeeze(g, "Squeeze", &s, 3);
}

/* tanh(h W_h' + context W_c' + b), [B][P][H]. */
static struct onnx_value attend(struct onnx_graph *g, const struct kp_net *net,
                                const struct onnx_value *h, const struct onnx_value *enc)
{
    const struct onnx_value q = kp_onnx_linear(g, net, h, "attention.q", NULL);
    const struct onnx_value s = attention_scores(g, net, &q, enc);
    const struct onnx_value weights = kp_onnx_1i(g, "Softmax", &s, "axis", -1);
    const struct onnx_value context = kp_onnx_2(g, "MatMul", &weights, enc);
    const struct onnx_value a = kp_onnx_linear(g, net, h, "mix.h", "mix.b");
    const struct onnx_value b = kp_onnx_linear(g, net, &context, "mix.context", NULL);
    const struct onnx_value sum = kp_onnx_2(g, "Add", &a, &b);
    return kp_onnx_1(g, "Tanh", &sum);
}

void kp_onnx_seq(struct onnx_graph *g, const struct kp_net *net, const struct onnx_inputs *in,
                 struct onnx_value *logp)
{
    static const int64_t turn[] = {1, 0};
    static const int64_t swap[] = {1, 0, 2};
    const int64_t H = (int64_t)net->shape.hidden;
    struct encoded e;
    struct onnx_value states[2];
    struct onnx_value h[2];
    const struct kp_tensor *t = kp_onnx_tensor(net, "dec.embed");
    encode(g, net, &in->tokens, &e);
    for (int s = 0; s < (is_lstm(net) ? 2 : 1); s++) {
        states[s] = kp_onnx_slice(g, &e.init, 1, s * H, (s + 1) * H);
        states[s] = kp_onnx_squeeze(g, "Unsqueeze", &states[s], 0);
    }
    const struct onnx_value table =
        kp_onnx_matrix(g, "dec.embed", t->rows, t->cols, net->values + t->offset);
    const struct onnx_value said = words(g, net, &in->values);
    const struct onnx_value ids = kp_onnx_transpose(g, &said, turn, 2);
    const struct onnx_value x = kp_onnx_2(g, "Gather", &table, &ids); /* [P][B][D] */
    const struct rnn_inputs rows = {&x, &states[0], is_lstm(net) ? &states[1] : NULL};
    rnn(g, net, &decoder_names, ONE, &rows, h);
    struct onnx_value out = kp_onnx_squeeze(g, "Squeeze", &h[0], 1); /* [P][B][H] */
    out = kp_onnx_transpose(g, &out, swap, 3);
    if (net->ops != &kp_net_seq2seq)
        out = attend(g, net, &out, &e.out);
    for (size_t p = 0; p < net->shape.n_targets; p++) {
        struct onnx_value row = kp_onnx_slice(g, &out, 1, (int64_t)p, (int64_t)p + 1);
        row = kp_onnx_squeeze(g, "Squeeze", &row, 1);
        logp[p] = kp_onnx_head(g, net, p, &row);
    }
}
