/* SPDX-License-Identifier: MIT */
/* The models of model/seq.h step by step. Layer: model.
 *
 * What a problem's prefixes have in common is multiplied once: the scores q . k with q = h W_q'
 * are h . (W_q' k), and the context's product with W_c is a sum of the W_c enc_t, so keys and
 * values stand in the state with these matrices in them. Prefixes that go on from one parent
 * share its product with the decoder's W_h.
 *
 * A network that was prepared has its matrices packed (math/thin.h), and the products with all
 * words made. */
#include "model/seq.h"

#include "math/thin.h"
#include "math/vec.h"

#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): memory that is written to, by way of kp_carve
 */

/* --- what is made once of a network ---------------------------------------------------------
 */

/* The matrices that are packed. */
static const size_t packed_ones[] = {FWD_X,  BWD_X,  FWD_H, BWD_H, JOIN_R, JOIN_C, INIT_F,
                                     INIT_R, INIT_C, ATT_K, ATT_Q, MIX_C,  DEC_H,  MIX_H};
/* Problems' words whose products are kept, at most. */
enum { WORDS_MAX = 2048 };

struct matrix {
    size_t O, I; /* 0: the model has none */
};

static struct matrix matrix_of(const struct kp_seq_dims *d, size_t number)
{
    const struct matrix none = {0, 0};
    switch (number) {
    case FWD_X:
    case BWD_X:
        return (struct matrix){d->G / 2, kp_seq_rnn_inputs(d)};
    case FWD_H:
    case BWD_H:
        return (struct matrix){d->G / 2, d->E};
    case JOIN_R:
        return d->conv == CONV_BESIDE ? (struct matrix){d->H, d->H} : none;
    case JOIN_C:
        return d->conv == CONV_BESIDE ? (struct matrix){d->H, d->C} : none;
    case INIT_F:
    case INIT_R:
        return (struct matrix){d->S * d->H, d->E};
    case INIT_C:
        return d->conv == CONV_BESIDE ? (struct matrix){d->S * d->H, d->C} : none;
    case DEC_H:
        return (struct matrix){d->G, d->H};
    case ATT_K:
        return d->additive ? (struct matrix){d->H, d->H} : none;
    default: /* ATT_Q, MIX_C, MIX_H */
        return d->attention ? (struct matrix){d->H, d->H} : none;
    }
}

struct prepared {
    kp_half *packed[HEAD_B]; /* by number; NULL: it is not */
    float *words;            /* [V+1][G]: of all words with the decoder's W_x, and its bias */
    float *read[2];          /* [n_vocab][G/2]: of a problem's words with a direction's W_x */
    float *conv;             /* [K][n_vocab][C]: with the convolution's; NULL: there is none */
};

static size_t lay_out_prepared(const struct kp_net *net, const struct kp_seq_dims *d,
                               float *base, struct prepared *r)
{
    size_t n_vocab = net->shape.n_vocab;
    bool listed = n_vocab <= WORDS_MAX;
    struct kp_carve c = {.base = base};
    *r = (struct prepared){0};
    for (size_t i = 0; i < sizeof(packed_ones) / sizeof(packed_ones[0]); i++) {
        const struct matrix m = matrix_of(d, packed_ones[i]);
        bool read = packed_ones[i] == FWD_X || packed_ones[i] == BWD_X;
        if (m.O && !(read && listed && d->conv != CONV_FRONT))
            r->packed[packed_ones[i]] = kp_carve_packed(&c, 1, m.O, m.I);
    }
    r->words = kp_carve_take(&c, (d->V + 1) * d->G);
    for (int i = 0; i < 2 && listed && d->conv != CONV_FRONT; i++)
        r->read[i] = kp_carve_take(&c, n_vocab * d->G / 2);
    if (listed && d->conv != CONV_NONE)
        r->conv = kp_carve_take(&c, d->K * n_vocab * d->C);
    return c.used;
}

/* Is W_q' wanted, not W_q? Keys are multiplied with it then, not queries. */
static bool turned(const struct kp_seq_dims *d, size_t number)
{
    return number == ATT_Q && !d->additive;
}

size_t kp_seq_prepare(const struct kp_net *net, float *out)
{
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct prepared r;
    size_t n = lay_out_prepared(net, &d, out, &r);
    if (!out)
        return n;
    for (size_t i = 0; i < sizeof(packed_ones) / sizeof(packed_ones[0]); i++) {
        size_t number = packed_ones[i];
        const struct matrix m = matrix_of(&d, number);
        bool t = turned(&d, number);
        if (r.packed[number])
            kp_pack(m.O, m.I, kp_net_w(net, number), t ? 1 : m.I, t ? m.O : 1,
                    r.packed[number]);
    }
    const float *embed = kp_net_w(net, IN_EMBED);
    size_t n_vocab = net->shape.n_vocab;
    for (size_t i = 0; i < 2 && r.read[i]; i++)
        net->blas->gemm(false, true, n_vocab, d.G / 2, d.D, 1, embed, d.D,
                        kp_net_w(net, i ? BWD_X : FWD_X), d.D, 0, r.read[i], d.G / 2);
    for (size_t k = 0; k < d.K && r.conv; k++)
        net->blas->gemm(false, true, n_vocab, d.C, d.D, 1, embed, d.D,
                        kp_net_w(net, CONV_W) + k * d.D, d.K * d.D, 0,
                        r.conv + k * n_vocab * d.C, d.C);
    const struct kp_linear in = kp_seq_linear(net, DEC_X, DEC_B, d.V + 1, d.D, d.G);
    kp_linear_forward(net->blas, &in, kp_net_w(net, OUT_EMBED), r.words);
    return n;
}

/* --- products -------------------------------------------------------------------------------
 */

struct one {
    const struct kp_net *net;
    struct kp_seq_dims d; /* of one problem */
    struct prepared ready;
};

static struct one one_of(const struct kp_net *net)
{
    struct one o = {.net = net, .d = kp_seq_dims(net, 1)};
    if (net->prepared)
        (void)lay_out_prepared(net, &o.d, net->prepared, &o.ready);
    return o;
}

/* y[rows][O] = x[rows][I] W', added to the bias that has this number; ADD: to y; FRESH: to
 * nothing. */
enum { ADD = -1, FRESH = -2 };
static void multiply(const struct one *o, size_t number, int bias, size_t rows, const float *x,
                     float *y)
{
    const struct matrix m = matrix_of(&o->d, number);
    const float *from = bias >= 0 ? kp_net_w(o->net, (size_t)bias) : bias == ADD ? y : NULL;
    if (o->ready.packed[number]) {
        const struct kp_packed p = {.m = rows,
                                    .n = m.O,
                                    .k = m.I,
                                    .x = x,
                                    .ldx = m.I,
                                    .packed = o->ready.packed[number],
                                    .depth = m.I,
                                    .from = from,
                                    .ldfrom = bias == ADD ? m.O : 0,
                                    .y = y,
                                    .ldy = m.O};
        kp_thin_best()->multiply_packed(&p);
        return;
    }
    for (size_t i = 0; i < rows && bias >= 0; i++)
        memcpy(y + i * m.O, from, m.O * sizeof(float));
    bool t = turned(&o->d, number);
    o->net->blas->gemm(false, !t, rows, m.O, m.I, 1, x, m.I, kp_net_w(o->net, number),
                       t ? m.O : m.I, bias == FRESH ? 0 : 1, y, m.O);
}

/* y[O] += the word's row of a table; none below 0. */
static void add_word(const float *table, size_t O, int32_t word, float *y)
{
    if (word >= 0)
        kp_vec_axpy(O, 1, table + (size_t)word * O, y);
}

/* y[T][C]: what kp_conv_forward() makes of the tokens' x[T][D]. */
static void convolve(const struct one *o, const int32_t *tokens, const float *x, float *y)
{
    const struct kp_seq_dims *d = &o->d;
    const struct kp_conv c = kp_seq_conv(o->net, d);
    if (!o->ready.conv) {
        kp_conv_forward(o->net->blas, &c, x, y, NULL);
        return;
    }
    for (size_t t = 0; t < d->T; t++) {
        memcpy(y + t * d->C, c.b, d->C * sizeof(float));
        for (size_t k = 0; k < d->K; k++) {
            size_t from = t + k; /* step from - K/2 of x */
            const float *table = o->ready.conv + k * o->net->shape.n_vocab * d->C;
            if (from >= d->K / 2 && from - d->K / 2 < d->T)
                add_word(table, d->C, tokens[from - d->K / 2], y + t * d->C);
        }
    }
}

/* pre[T][G/2] of a direction, first: FWD_X or BWD_X; x: the convolution's output, or the
 * tokens'. */
static void read_words(const struct one *o, size_t first, const int32_t *tokens, const float *x,
                       float *pre)
{
    size_t O = o->d.G / 2;
    const float *table = o->ready.read[first == BWD_X];
    if (!table) {
        multiply(o, first, (int)first + 1, o->d.T, x, pre);
        return;
    }
    for (size_t t = 0; t < o->d.T; t++) {
        memcpy(pre + t * O, kp_net_w(o->net, first + 1), O * sizeof(float));
        add_word(table, O, tokens[t], pre + t * O);
    }
}

/* --- the problem ----------------------------------------------------------------------------
 */

/* A row's pre += sums, its product of the state before with W_h; of the GRU's n that stays
 * apart, in c. */
static void add_sums(const struct kp_rnn *r, const float *sums, float *pre, float *c)
{
    bool lstm = r->cell == KP_CELL_LSTM;
    kp_vec_axpy((lstm ? 4 : 2) * r->H, 1, sums, pre);
    if (!lstm)
        memcpy(c, sums + 2 * r->H, r->H * sizeof(float));
}

/* A direction, from r->pre; first: FWD_X or BWD_X; sums [G/2]. */
static void read_along(const struct one *o, size_t first, const struct kp_seq_direction *r,
                       float *sums)
{
    const struct kp_seq_dims *d = &o->d;
    const struct kp_rnn rnn = kp_seq_rnn(o->net, d, first, 1);
    size_t E = d->E;
    const float *h_before = NULL;
    const float *c_before = NULL;
    for (size_t n = 0; n < d->T; n++) {
        size_t t = rnn.reverse ? d->T - 1 - n : n;
        float *pre = r->pre + t * d->G / 2;
        float *h = r->h + t * E;
        float *c = r->c + t * E;
        if (h_before) {
            multiply(o, first + 2, FRESH, 1, h_before, sums);
            add_sums(&rnn, sums, pre, c);
        } else {
            memset(c, 0, E * sizeof(float));
        }
        kp_rnn_step(&rnn, d->S == 2 ? c_before : h_before, pre, h, c);
        h_before = h;
        c_before = c;
    }
}

/* kp_seq_encode() of one problem, without dropout. */
static void encode(const struct one *o, const int32_t *tokens, const struct kp_seq_encoder *e)
{
    const struct kp_seq_dims *d = &o->d;
    kp_embed_forward(kp_net_w(o->net, IN_EMBED), d->D, tokens, d->T, e->x);
    if (d->conv != CONV_NONE) {
        convolve(o, tokens, e->x, e->conv);
        kp_relu_forward(e->conv, d->T * d->C);
    }
    const float *in = d->conv == CONV_FRONT ? e->conv : e->x;
    read_words(o, FWD_X, tokens, in, e->fwd.pre);
    read_words(o, BWD_X, tokens, in, e->bwd.pre);
    read_along(o, FWD_X, &e->fwd, e->sums);
    read_along(o, BWD_X, &e->bwd, e->sums);
    kp_seq_side_by_side(d->T, d->E, e->fwd.h, e->bwd.h, e->both);
    if (d->conv == CONV_BESIDE) {
        multiply(o, JOIN_R, JOIN_B, d->T, e->both, e->out);
        multiply(o, JOIN_C, ADD, d->T, e->conv, e->out);
        kp_relu_forward(e->out, d->T * d->H);
    }
    /* Of one problem the states stand one behind the other, as the decoder wants them. */
    multiply(o, INIT_F, INIT_B, 1, kp_seq_last_step(d, e->fwd.h, d->E), e->init);
    multiply(o, INIT_R, ADD, 1, e->bwd.h, e->init);
    if (d->conv == CONV_BESIDE)
        multiply(o, INIT_C, ADD, 1, kp_seq_last_step(d, e->conv, d->C), e->init);
    kp_tanh_forward(e->init, d->S * d->H);
}

/* A state: keys and values, then the decoder's states of all prefixes, for odd targets and for
 * even ones. */
struct beam_state {
    float *keys;   /* [T][H] */
    float *values; /* [T][H] */
    float *h[2];   /* [width][H] */
    float *c[2];   /* [width][H]: LSTM; GRU: room for its h W_hn' */
};

static size_t lay_out_state(const struct kp_seq_dims *d, size_t width, float *base,
                            struct beam_state *s)
{
    struct kp_carve c = {.base = base};
    *s = (struct beam_state){0};
    if (d->attention) {
        s->keys = kp_carve_take(&c, d->T * d->H);
        s->values = kp_carve_take(&c, d->T * d->H);
    }
    for (int i = 0; i < 2; i++) {
        s->h[i] = kp_carve_take(&c, width * d->H);
        s->c[i] = kp_carve_take(&c, width * d->H);
    }
    return c.used;
}

size_t kp_seq_state(const struct kp_net *net, size_t width)
{
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct beam_state s;
    return lay_out_state(&d, width, NULL, &s);
}

void kp_seq_begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *state, float *scratch)
{
    const struct one o = one_of(net);
    const struct kp_seq_dims *d = &o.d;
    struct kp_carve c = {.base = scratch};
    struct kp_seq_encoder e;
    struct beam_state s;
    (void)features;
    kp_seq_lay_out_encoder(d, &c, &e);
    (void)lay_out_state(d, width, state, &s);
    encode(&o, tokens, &e);
    if (d->attention) {
        multiply(&o, d->additive ? ATT_K : ATT_Q, FRESH, d->T, e.out, s.keys);
        multiply(&o, MIX_C, FRESH, d->T, e.out, s.values);
    }
    /* Where target 0 looks for its parent's states. */
    memcpy(s.h[1], e.init, d->H * sizeof(float));
    if (d->S == 2)
        memcpy(s.c[1], e.init + d->H, d->H * sizeof(float));
}

/* --- a target -------------------------------------------------------------------------------
 */

struct step_work {
    float *x;       /* [n][D] */
    float *pre;     /* [n][G] */
    float *from;    /* [n][H]: h of the parents, each once */
    float *sums;    /* [n][G]: their products with W_h */
    float *before;  /* [n][H]: the parents' c, GRU: h */
    uint32_t *slot; /* [n]: where a prefix's parent is among them */
    float *q;       /* [n][H]: additive attention's */
    float *weights; /* [n][T] */
    float *context; /* [n][H] */
    float *out;     /* [n][H] */
};

static size_t lay_out_step(const struct kp_seq_dims *d, size_t n, float *base,
                           struct step_work *w)
{
    struct kp_carve c = {.base = base};
    w->x = kp_carve_take(&c, n * d->D);
    w->pre = kp_carve_take(&c, n * d->G);
    w->from = kp_carve_take(&c, n * d->H);
    w->sums = kp_carve_take(&c, n * d->G);
    w->before = kp_carve_take(&c, n * d->H);
    w->slot = (uint32_t *)kp_carve_take(&c, n);
    w->q = kp_carve_take(&c, n * d->H);
    w->weights = kp_carve_take(&c, n * d->T);
    w->context = kp_carve_take(&c, n * d->H);
    w->out = kp_carve_take(&c, n * d->H);
    return c.used;
}

size_t kp_seq_scratch(const struct kp_net *net, size_t width)
{
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct kp_carve c = {0};
    struct kp_seq_encoder e;
    struct step_work w;
    kp_seq_lay_out_encoder(&d, &c, &e);
    size_t step_needs = lay_out_step(&d, width, NULL, &w);
    return c.used > step_needs ? c.used : step_needs;
}

/* pre = the products of the words that go in, and the bias. */
static void put_words(const struct one *o, const struct kp_net_step *st,
                      const struct step_work *w)
{
    const struct kp_net *net = o->net;
    const struct kp_seq_dims *d = &o->d;
    size_t first = st->p ? 1 + kp_net_values_before(net, st->p - 1) : 0;
    bool ready = o->ready.words != NULL;
    const float *table = ready ? o->ready.words : kp_net_w(net, OUT_EMBED);
    size_t width = ready ? d->G : d->D;
    for (size_t i = 0; i < st->n; i++) {
        int32_t word = (int32_t)(st->p ? first + st->values[i] : 0);
        kp_embed_forward(table, width, &word, 1, (ready ? w->pre : w->x) + i * width);
    }
    const struct kp_linear in = kp_seq_linear(net, DEC_X, DEC_B, st->n, d->D, d->G);
    if (!ready)
        kp_linear_forward(net->blas, &in, w->x, w->pre);
}

/* The parents' h into w->from, each once; returns how many. */
static size_t gather(const struct kp_seq_dims *d, const struct kp_net_step *st, const float *h,
                     const float *c, const struct step_work *w)
{
    size_t n_from = 0;
    for (size_t i = 0; i < st->n; i++) {
        size_t from = st->p ? st->parent[i] : 0;
        size_t twin = 0;
        while (twin < i && st->parent[twin] != from)
            twin++;
        w->slot[i] = twin < i ? w->slot[twin] : (uint32_t)n_from;
        if (twin == i)
            memcpy(w->from + n_from++ * d->H, h + from * d->H, d->H * sizeof(float));
        memcpy(w->before + i * d->H, (d->S == 2 ? c : h) + from * d->H, d->H * sizeof(float));
    }
    return n_from;
}

/* Keys and values are the same for all prefixes: each prefix is a query of a batch of one. */
static void look_back(const struct one *o, size_t n, const struct beam_state *s, const float *h,
                      const struct step_work *w)
{
    const struct kp_seq_dims *d = &o->d;
    const struct kp_attention a = kp_seq_attention(o->net, d, n);
    if (d->additive)
        multiply(o, ATT_Q, FRESH, n, h, w->q);
    kp_attention_forward(&a, d->additive ? w->q : h, s->keys, s->values, w->weights,
                         w->context);
    multiply(o, MIX_H, MIX_B, n, h, w->out);
    kp_vec_axpy(n * d->H, 1, w->context, w->out);
    kp_tanh_forward(w->out, n * d->H);
}

void kp_seq_step(const struct kp_net *net, const struct kp_net_step *st, float *state,
                 float *scratch, float *logp)
{
    const struct one o = one_of(net);
    const struct kp_seq_dims *d = &o.d;
    struct beam_state s;
    struct step_work w;
    const struct kp_heads heads = {net, kp_net_w(net, HEAD_W), kp_net_w(net, HEAD_B), d->H};
    (void)lay_out_state(d, st->width, state, &s);
    (void)lay_out_step(d, st->n, scratch, &w);
    size_t old = (st->p + 1) % 2;
    float *h = s.h[st->p % 2];
    float *c = s.c[st->p % 2];
    struct kp_rnn rnn = kp_seq_rnn(net, d, DEC_X, 1);
    rnn.B = st->n;
    put_words(&o, st, &w);
    multiply(&o, DEC_H, FRESH, gather(d, st, s.h[old], s.c[old], &w), w.from, w.sums);
    for (size_t i = 0; i < st->n; i++)
        add_sums(&rnn, w.sums + w.slot[i] * d->G, w.pre + i * d->G, c + i * d->H);
    kp_rnn_step(&rnn, w.before, w.pre, h, c);
    if (d->attention)
        look_back(&o, st->n, &s, h, &w);
    kp_heads_logp(&heads, st->p, st->n, d->attention ? w.out : h, logp);
}
/* NOLINTEND(readability-non-const-parameter) */
