/* SPDX-License-Identifier: MIT */
/* The tables of model/seq.h's models, and training a batch. Layer: model. */
#include "model/seq.h"

/* --- the table ------------------------------------------------------------------------------
 */

static size_t work(const struct kp_net *net, size_t B, bool train)
{
    struct kp_carve c = {0};
    struct kp_seq_encoder e;
    struct kp_seq_decoder w;
    struct kp_seq_gradients g;
    const struct kp_seq_dims d = kp_seq_dims(net, B);
    kp_seq_lay_out_encoder(&d, &c, &e);
    kp_seq_lay_out_decoder(net, &d, &c, &w);
    if (train)
        kp_seq_lay_out_gradients(&d, &c, &g);
    return c.used;
}

/* NOLINTBEGIN(readability-function-size,readability-non-const-parameter): the parameters of the
 * contract; memory is written to, by way of c */
static void run(const struct kp_net *net, const struct kp_batch *b, float smoothing,
                uint64_t key, float *grad, float *memory, struct kp_net_score *score)
{
    struct kp_carve c = {.base = memory};
    struct kp_seq_encoder e;
    struct kp_seq_decoder w;
    struct kp_seq_gradients g;
    const struct kp_seq_dims d = kp_seq_dims(net, b->B);
    const struct kp_heads heads = {net, kp_net_w(net, HEAD_W), kp_net_w(net, HEAD_B), d.H};
    if (!grad)
        key = 0;
    kp_seq_lay_out_encoder(&d, &c, &e);
    kp_seq_lay_out_decoder(net, &d, &c, &w);
    kp_seq_encode(net, &d, b->tokens, key, &e);
    kp_seq_decode(net, &d, b, key, &e, &w);
    if (!grad) {
        kp_heads_run(&heads, b, smoothing, w.out, NULL, NULL, NULL, w.z, score);
        return;
    }
    kp_seq_lay_out_gradients(&d, &c, &g);
    kp_heads_run(&heads, b, smoothing, w.out, g.out, kp_net_g(net, grad, HEAD_W),
                 kp_net_g(net, grad, HEAD_B), w.z, score);
    const struct kp_seq_pass back = {net, &d, &e, &w, &g, grad, key};
    kp_seq_decode_back(&back);
    kp_seq_encode_back(&back, b->tokens);
}
/* NOLINTEND(readability-function-size,readability-non-const-parameter) */

/* NOLINTBEGIN(bugprone-macro-parentheses): initialisers */
#define SEQ_MODEL(symbol, text, words)                           \
    const struct kp_net_ops symbol = {.name = text,              \
                                      .about = words,            \
                                      .build = kp_seq_build,     \
                                      .work = work,              \
                                      .run = run,                \
                                      .prepare = kp_seq_prepare, \
                                      .state = kp_seq_state,     \
                                      .scratch = kp_seq_scratch, \
                                      .begin = kp_seq_begin,     \
                                      .step = kp_seq_step}

SEQ_MODEL(kp_net_seq2seq, "seq2seq", "a recurrent encoder and decoder");
SEQ_MODEL(kp_net_attention, "attention", "the same, and the decoder looks back by attention");
SEQ_MODEL(kp_net_hybrid1, "hybrid1", "a convolution in front of the recurrent encoder");
SEQ_MODEL(kp_net_hybrid2, "hybrid2", "a convolution beside the recurrent encoder, joined");
/* NOLINTEND(bugprone-macro-parentheses) */
