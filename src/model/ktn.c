/* SPDX-License-Identifier: MIT */
/* Running AMD's models. Layer: model. */
#include "model/ktn_impl.h"

#include "base/alloc.h"
#include "model/beam.h"
#include "nn/layers.h"
#include "nn/rnn.h"

#include <math.h>
#include <string.h>

/* Of the self-test; see ktn.h. */
#define TOLERANCE 1e-5

void kp_ktn_free(struct kp_ktn *k)
{
    if (!k)
        return;
    kp_slab_free(k->net.values);
    kp_params_deinit(&k->net.params);
    kp_free(k->value);
    kp_free(k->encoder.data);
    kp_free(k->decoder.data);
    kp_free(k);
}

size_t kp_ktn_n_inputs(const struct kp_ktn *k)
{
    return k->T * k->I;
}

size_t kp_ktn_n_params(const struct kp_ktn *k)
{
    return k->net.params.n_params;
}

size_t kp_ktn_n_tokens(const struct kp_ktn *k)
{
    return k->V;
}

size_t kp_ktn_n_positions(const struct kp_ktn *k)
{
    return k->P;
}

const struct kp_net *kp_ktn_net(const struct kp_ktn *k)
{
    KP_CHECK(k->divided);
    return &k->net;
}

int64_t kp_ktn_value(const struct kp_ktn *k, size_t p, uint32_t v)
{
    KP_CHECK(k->divided && p < k->P && v < k->net.shape.n_values[p]);
    return k->value[k->first[p] + v];
}

/* --- the network ----------------------------------------------------------------------------
 */

static size_t most_units(const struct kp_ktn *k)
{
    size_t most = 1;
    for (size_t l = 0; l < k->L; l++)
        most = k->H[l] > most ? k->H[l] : most;
    return most;
}

/* What enters any layer. */
static size_t most_inputs(const struct kp_ktn *k)
{
    size_t most = k->D > k->E ? k->D : k->E;
    return most > most_units(k) ? most : most_units(k);
}

static const float *part(const struct kp_ktn *k, size_t lstm, size_t which)
{
    return kp_net_w(&k->net, KTN_LSTM + KTN_PARTS * lstm + which);
}

/* One LSTM over T steps of B rows: x[T][B][in] -> h, c [T][B][H]; pre[T][B][4 H]. */
struct lstm {
    size_t number; /* in the net: the decoder's stand behind the encoder's */
    size_t T, B, in, H;
    const float *h0; /* [B][H] or NULL */
    const float *c0;
};

static void lstm_forward(const struct kp_ktn *k, const struct lstm *l, const float *x,
                         float *pre, float *h, float *c)
{
    const struct kp_linear in = {l->T * l->B, l->in, 4 * l->H, part(k, l->number, KTN_X),
                                 part(k, l->number, KTN_B)};
    const struct kp_rnn rnn = {.cell = KP_CELL_LSTM,
                               .T = l->T,
                               .B = l->B,
                               .H = l->H,
                               .w_h = part(k, l->number, KTN_H)};
    const struct kp_rnn_state s = {l->h0, l->c0};
    kp_linear_forward(k->net.blas, &in, x, pre);
    kp_rnn_forward(k->net.blas, &rnn, &s, pre, h, c);
}

struct encoder {
    float *x;    /* [T][D] */
    float *pre;  /* [T][4 H] */
    float *h[2]; /* [T][H]: of odd layers and of even ones */
    float *c;    /* [T][H] */
};

static void lay_out_encoder(const struct kp_ktn *k, struct kp_carve *c, struct encoder *e)
{
    size_t H = most_units(k);
    e->x = kp_carve_take(c, k->T * k->D);
    e->pre = kp_carve_take(c, k->T * 4 * H);
    e->h[0] = kp_carve_take(c, k->T * H);
    e->h[1] = kp_carve_take(c, k->T * H);
    e->c = kp_carve_take(c, k->T * H);
}

/* The last states of layer l: h[l], c[l] [H[l]]. */
static void encode(const struct kp_ktn *k, const float *x, const struct encoder *e,
                   float *const *h, float *const *c)
{
    const float *in = x;
    size_t width = k->I;
    if (k->has_dense) {
        const struct kp_linear dense = {k->T, k->I, k->D, kp_net_w(&k->net, KTN_DENSE_W),
                                        k->dense_bias ? kp_net_w(&k->net, KTN_DENSE_B) : NULL};
        kp_linear_forward(k->net.blas, &dense, x, e->x);
        in = e->x;
        width = k->D;
    }
    for (size_t l = 0; l < k->L; l++) {
        const struct lstm lstm = {.number = l, .T = k->T, .B = 1, .in = width, .H = k->H[l]};
        float *out = e->h[l % 2];
        lstm_forward(k, &lstm, in, e->pre, out, e->c);
        memcpy(h[l], out + (k->T - 1) * k->H[l], k->H[l] * sizeof(float));
        memcpy(c[l], e->c + (k->T - 1) * k->H[l], k->H[l] * sizeof(float));
        in = out;
        width = k->H[l];
    }
}

struct decoder {
    float *x;      /* [n][E] */
    float *pre;    /* [n][4 H] */
    float *h0;     /* [n][H]: a layer's states before */
    float *c0;     /* [n][H] */
    float *scores; /* [n][V] */
    int32_t *tokens;
};

static void lay_out_decoder(const struct kp_ktn *k, size_t n, struct kp_carve *c,
                            struct decoder *d)
{
    size_t H = most_units(k);
    d->x = kp_carve_take(c, n * most_inputs(k));
    d->pre = kp_carve_take(c, n * 4 * H);
    d->h0 = kp_carve_take(c, n * H);
    d->c0 = kp_carve_take(c, n * H);
    d->scores = kp_carve_take(c, n * k->V);
    d->tokens = (int32_t *)kp_carve_take(c, n);
}

/* States of the decoder: h[l], c[l] [width][H[l]]; layers that are not there have no units. */
struct states {
    float *h[KP_KTN_LAYERS_MAX];
    float *c[KP_KTN_LAYERS_MAX];
};

static void lay_out_states(const struct kp_ktn *k, size_t width, struct kp_carve *c,
                           struct states *s)
{
    for (size_t l = 0; l < KP_KTN_LAYERS_MAX; l++) {
        s->h[l] = kp_carve_take(c, width * k->H[l]);
        s->c[l] = kp_carve_take(c, width * k->H[l]);
    }
}

/* Prefix i goes on from states parent[i] of `old` (NULL: from the first) by d->tokens[i];
 * `now` and d->scores are written. */
static void decode(const struct kp_ktn *k, size_t n, const uint32_t *parent,
                   const struct states *old, const struct states *now, const struct decoder *d)
{
    const float *in = d->x;
    size_t width = k->E;
    kp_embed_forward(kp_net_w(&k->net, KTN_EMBED), k->E, d->tokens, n, d->x);
    for (size_t l = 0; l < k->L; l++) {
        size_t H = k->H[l];
        for (size_t i = 0; i < n; i++) {
            size_t from = parent ? parent[i] : 0;
            memcpy(d->h0 + i * H, old->h[l] + from * H, H * sizeof(float));
            memcpy(d->c0 + i * H, old->c[l] + from * H, H * sizeof(float));
        }
        const struct lstm lstm = {
            .number = k->L + l, .T = 1, .B = n, .in = width, .H = H, .h0 = d->h0, .c0 = d->c0};
        lstm_forward(k, &lstm, in, d->pre, now->h[l], now->c[l]);
        in = now->h[l];
        width = H;
    }
    const struct kp_linear out = {n, width, k->V, kp_net_w(&k->net, KTN_OUT_W),
                                  k->out_bias ? kp_net_w(&k->net, KTN_OUT_B) : NULL};
    kp_linear_forward(k->net.blas, &out, in, d->scores);
}

/* --- as a network like any other ------------------------------------------------------------
 */

static const struct kp_ktn *of(const struct kp_net *net)
{
    return (const struct kp_ktn *)net;
}

/* States of odd targets and of even ones. */
static size_t state(const struct kp_net *net, size_t width)
{
    struct kp_carve c = {0};
    struct states s;
    lay_out_states(of(net), width, &c, &s);
    lay_out_states(of(net), width, &c, &s);
    return c.used;
}

static size_t scratch(const struct kp_net *net, size_t width)
{
    struct kp_carve a = {0};
    struct kp_carve b = {0};
    struct encoder e;
    struct decoder d;
    lay_out_encoder(of(net), &a, &e);
    lay_out_decoder(of(net), width, &b, &d);
    return a.used > b.used ? a.used : b.used;
}

/* NOLINTBEGIN(readability-non-const-parameter): written to, by way of what lies in it */
static void begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *memory, float *temporary)
{
    struct kp_carve c = {.base = memory};
    struct kp_carve own = {.base = temporary};
    struct encoder e;
    struct states even;
    struct states odd;
    (void)tokens;
    lay_out_states(of(net), width, &c, &even);
    lay_out_states(of(net), width, &c, &odd);
    lay_out_encoder(of(net), &own, &e);
    encode(of(net), features, &e, odd.h, odd.c); /* where target 0 looks for its parent */
}

static void step(const struct kp_net *net, const struct kp_net_step *s, float *memory,
                 float *temporary, float *logp)
{
    const struct kp_ktn *k = of(net);
    struct kp_carve c = {.base = memory};
    struct kp_carve own = {.base = temporary};
    struct states states[2];
    struct decoder d;
    size_t n_values = net->shape.n_values[s->p];
    lay_out_states(k, s->width, &c, &states[0]);
    lay_out_states(k, s->width, &c, &states[1]);
    lay_out_decoder(k, s->n, &own, &d);
    for (size_t i = 0; i < s->n; i++)
        d.tokens[i] = s->p ? (int32_t)(k->first[s->p - 1] + s->values[i]) : 0;
    decode(k, s->n, s->p ? s->parent : NULL, &states[(s->p + 1) % 2], &states[s->p % 2], &d);
    for (size_t i = 0; i < s->n; i++)
        memcpy(logp + i * n_values, d.scores + i * k->V + k->first[s->p],
               n_values * sizeof(float));
    kp_log_softmax(s->n, n_values, logp);
}
/* NOLINTEND(readability-non-const-parameter) */

const struct kp_net_ops kp_ktn_ops = {.name = "ktn",
                                      .about = "a model of AMD's",
                                      .state = state,
                                      .scratch = scratch,
                                      .begin = begin,
                                      .step = step};

/* --- the files' own tests -------------------------------------------------------------------
 */

/* The larger of `most` and the largest difference; NaN is an infinite one. */
static double differ(const float *got, const float *want, size_t n, double most)
{
    for (size_t i = 0; i < n; i++) {
        double e = fabs((double)got[i] - (double)want[i]);
        if (!(e <= most))
            most = isnan(e) ? (double)INFINITY : e;
    }
    return most;
}

/* h, c of each layer, one behind the other. */
static double differ_states(const struct kp_ktn *k, const struct states *s, const float *want,
                            double most)
{
    for (size_t l = 0; l < k->L; l++) {
        most = differ(s->h[l], want, k->H[l], most);
        most = differ(s->c[l], want + k->H[l], k->H[l], most);
        want += 2 * k->H[l];
    }
    return most;
}

static double test_encoder(const struct kp_ktn *k, const struct states *s, struct kp_carve own)
{
    struct encoder e;
    double most = 0;
    lay_out_encoder(k, &own, &e);
    for (size_t t = 0; t < k->encoder.n; t++) {
        const float *in = k->encoder.data + t * (k->encoder.in + k->encoder.out);
        encode(k, in, &e, s->h, s->c);
        most = differ_states(k, s, in + k->encoder.in, most);
    }
    return most;
}

static double test_decoder(const struct kp_ktn *k, const struct states *before,
                           const struct states *after, struct kp_carve own)
{
    struct decoder d;
    double most = 0;
    lay_out_decoder(k, 1, &own, &d);
    for (size_t t = 0; t < k->decoder.n; t++) {
        const float *in = k->decoder.data + t * (k->decoder.in + k->decoder.out);
        const float *at = in + 1;
        for (size_t l = 0; l < k->L; l++, at += 2 * k->H[l - 1]) {
            memcpy(before->h[l], at, k->H[l] * sizeof(float));
            memcpy(before->c[l], at + k->H[l], k->H[l] * sizeof(float));
        }
        d.tokens[0] = (int32_t)in[0];
        decode(k, 1, NULL, before, after, &d);
        most = differ(d.scores, at, k->V, most);
        most = differ_states(k, after, at + k->V, most);
    }
    return most;
}

kopt_status kp_ktn_self_test(const struct kp_ktn *k, double *max_error, kopt_error *err)
{
    *max_error = 0;
    if (!k->encoder.n || !k->decoder.n)
        return kp_err(err, KOPT_EINPUT, "the files bring no tests along");
    size_t n_states = state(&k->net, 1);
    float *memory = kp_slab_new(n_states + scratch(&k->net, 1));
    if (!memory)
        return kp_err_nomem(err);
    struct kp_carve c = {.base = memory};
    struct states before;
    struct states after;
    lay_out_states(k, 1, &c, &before);
    lay_out_states(k, 1, &c, &after);
    const struct kp_carve rest = {.base = memory + n_states};
    double a = test_encoder(k, &after, rest);
    double b = test_decoder(k, &before, &after, rest);
    kp_slab_free(memory);
    *max_error = a > b ? a : b;
    if (*max_error <= TOLERANCE)
        return KOPT_OK;
    return kp_err(err, KOPT_EINPUT, "the outputs of the %s differ by %g from those in its file",
                  a > b ? "encoder" : "decoder", *max_error);
}

/* --- asking ---------------------------------------------------------------------------------
 */

static const struct kp_given *find(const struct kp_given *given, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(given[i].name, name) == 0)
            return &given[i];
    return NULL;
}

/* Word a is 0, word b is 1. */
static kopt_status need_word(const struct kp_given *g, const char *name, const char *a,
                             const char *b, int *which, kopt_error *err)
{
    *which = 0;
    if (!g)
        return kp_err(err, KOPT_EUSAGE, "'%s' is missing", name);
    bool is_a = g->value.type == KP_STRING && kp_str_is(g->value.as.s, a);
    bool is_b = g->value.type == KP_STRING && kp_str_is(g->value.as.s, b);
    if (!is_a && !is_b)
        return kp_err(err, KOPT_EUSAGE, "'%s': %s or %s expected", name, a, b);
    *which = is_b;
    return KOPT_OK;
}

/* Each feature stands in a row of its own, at its own place: times a matrix it becomes the
 * feature's own vector, as long as the number is large. Channels are those of the forward
 * direction, where the databases have the solver's input first. */
kopt_status kp_ktn_features(const struct kp_ktn *k, const struct kp_given *given,
                            size_t n_given, float *x, kopt_error *err)
{
    static const char *const forward[] = {"in_channels", "out_channels", "in_h", "in_w",
                                          "batchsize"};
    static const char *const backward[] = {"out_channels", "in_channels", "in_h", "in_w",
                                           "batchsize"};
    enum { N_SIZES = sizeof(forward) / sizeof(*forward), N_ALL = N_SIZES + 3 };
    int is_back;
    int is_half;
    if (k->T != N_ALL || k->I != N_ALL)
        return kp_err(err, KOPT_EINPUT,
                      "the network has %zu x %zu inputs; those of 8 x 8 alone are known", k->T,
                      k->I);
    kopt_status st =
        need_word(find(given, n_given, "direction"), "direction", "F", "B", &is_back, err);
    if (st == KOPT_OK)
        st = need_word(find(given, n_given, "data_type"), "data_type", "FP32", "FP16", &is_half,
                       err);
    if (st != KOPT_OK)
        return st;
    memset(x, 0, (size_t)N_ALL * N_ALL * sizeof(*x));
    x[0] = is_half ? 1 : 2;
    x[is_back ? 2 * N_ALL + 2 : N_ALL + 1] = 1;
    for (size_t i = 0; i < N_SIZES; i++) {
        const char *name = is_back ? backward[i] : forward[i];
        const struct kp_given *g = find(given, n_given, name);
        double v = 0;
        if (!g)
            return kp_err(err, KOPT_EUSAGE, "'%s' is missing", name);
        if (!kp_value_to_f64(g->value, &v) || !(v >= 0 && v <= 1e9))
            return kp_err(err, KOPT_EUSAGE, "'%s': a number from 0 to 1e9 expected", name);
        x[(i + 3) * N_ALL + i + 3] = (float)v;
    }
    return KOPT_OK;
}

/* Where the target's values stand in the space's lists: index[sum V]. */
static void map_values(const struct kp_ktn *k, const struct kp_space *space, uint32_t *index,
                       uint32_t *map, const uint32_t **value)
{
    for (size_t p = 0; p < k->P; p++) {
        const struct kp_param *param = kp_space_param(space, p);
        uint32_t n = k->net.shape.n_values[p];
        map[p] = (uint32_t)p;
        value[p] = index;
        for (uint32_t v = 0; v < n; v++) {
            uint32_t i =
                kp_value_find(param->values, param->n_values, kp_int(kp_ktn_value(k, p, v)));
            index[v] = i < param->n_values ? i : UINT32_MAX;
        }
        index += n;
    }
}

kopt_status kp_ktn_predict(const struct kp_ktn *k, const struct kp_ktn_ask *ask,
                           int64_t *values, double *logp, size_t *found, kopt_error *err)
{
    uint32_t map[KP_TARGETS_MAX];
    const uint32_t *lists[KP_TARGETS_MAX];
    const struct kp_net *nets[] = {&k->net};
    *found = 0;
    if (!k->divided)
        return kp_err(err, KOPT_EUSAGE, "the positions' tokens are not known");
    if (ask->n < 1 || ask->n > ask->width || ask->width > KP_BEAM_WIDTH_MAX)
        return kp_err(err, KOPT_EUSAGE, "%zu configurations from a beam of %zu", ask->n,
                      ask->width);
    if (ask->space && kp_space_n_params(ask->space) != k->P)
        return kp_err(err, KOPT_EUSAGE, "the space has %zu parameters, the network %zu",
                      kp_space_n_params(ask->space), k->P);
    struct kp_beam_input in = {
        .nets = nets, .n_nets = 1, .features = ask->x, .width = ask->width, .k = ask->n};
    uint32_t *index = kp_calloc(k->V, sizeof(*index));
    uint32_t *configs = kp_calloc(ask->n * k->P, sizeof(*configs));
    if (index && ask->space) {
        map_values(k, ask->space, index, map, lists);
        in.allowed = (struct kp_beam_space){ask->space, map, lists};
    }
    float *work = kp_slab_new(kp_beam_work(&in) / sizeof(float) + 1);
    bool ok = index && configs && work;
    if (ok) {
        *found = kp_beam_search(&in, work, configs, logp);
        for (size_t i = 0; i < *found * k->P; i++)
            values[i] = kp_ktn_value(k, i % k->P, configs[i]);
    }
    kp_slab_free(work);
    kp_free(configs);
    kp_free(index);
    return ok ? KOPT_OK : kp_err_nomem(err);
}

/* The token to go on with: the best that may follow; of equal ones the first. Tried ones get
 * the lowest score. 0 where there is none. */
static size_t choose(const struct kp_ktn *k, const struct kp_ktn_prefix *prefix, float *scores,
                     int64_t *values, size_t n)
{
    for (size_t tried = 0; tried < k->V; tried++) {
        size_t best = 0;
        for (size_t t = 1; t < k->V; t++)
            if (scores[t] > scores[best])
                best = t;
        if (best == 0 || best == k->V - 1 || scores[best] == -INFINITY)
            return 0;
        values[n] = k->value[best];
        if (!prefix || !prefix->begins || prefix->begins(prefix->user, values, n + 1))
            return best;
        scores[best] = -INFINITY;
    }
    return 0;
}

kopt_status kp_ktn_greedy(const struct kp_ktn *k, const float *x,
                          const struct kp_ktn_prefix *prefix, int64_t *values, size_t *found,
                          kopt_error *err)
{
    *found = 0;
    size_t n_states = state(&k->net, 1);
    float *memory = kp_slab_new(n_states + scratch(&k->net, 1));
    if (!memory)
        return kp_err_nomem(err);
    struct kp_carve c = {.base = memory};
    struct kp_carve enc = {.base = memory + n_states};
    struct kp_carve dec = enc; /* the encoder is done when the decoder begins */
    struct encoder e;
    struct states states[2];
    struct decoder d;
    size_t token = 0;
    lay_out_states(k, 1, &c, &states[0]);
    lay_out_states(k, 1, &c, &states[1]);
    lay_out_encoder(k, &enc, &e);
    encode(k, x, &e, states[1].h, states[1].c);
    lay_out_decoder(k, 1, &dec, &d);
    for (size_t p = 0; p < k->P; p++) {
        d.tokens[0] = (int32_t)token;
        decode(k, 1, NULL, &states[(p + 1) % 2], &states[p % 2], &d);
        token = choose(k, prefix, d.scores, values, p);
        if (token == 0)
            break;
        *found = p + 1;
    }
    kp_slab_free(memory);
    return KOPT_OK;
}

/* --- positions ------------------------------------------------------------------------------
 */

static bool in_list(const struct kp_param *p, int64_t value)
{
    return kp_value_find(p->values, p->n_values, kp_int(value)) < p->n_values;
}

/* May token t follow tokens first .. t-1 at the position? */
static bool may_follow(const struct kp_ktn *k, const struct kp_param *p, size_t first, size_t t)
{
    for (size_t i = first; i < t; i++)
        if (k->value[i] == k->value[t])
            return false;
    return in_list(p, k->value[t]);
}

/* ways[p][t]: how tokens 1 .. t-1 can be cut into p positions: 0, 1, or 2 for more. from[p][t]:
 * where the last of them begins. */
static void count_ways(const struct kp_ktn *k, const struct kp_param *params,
                       unsigned char *ways, uint32_t *from)
{
    size_t V = k->V;
    ways[1] = 1;
    for (size_t p = 0; p < k->P; p++) {
        for (size_t t = 1; t < V - 1; t++) {
            if (!ways[p * V + t])
                continue;
            for (size_t e = t; e < V - 1 && may_follow(k, &params[p], t, e); e++) {
                unsigned sum = ways[(p + 1) * V + e + 1] + (unsigned)ways[p * V + t];
                ways[(p + 1) * V + e + 1] = (unsigned char)(sum < 2 ? sum : 2);
                from[(p + 1) * V + e + 1] = (uint32_t)t;
            }
        }
    }
}

kopt_status kp_ktn_divide(struct kp_ktn *k, const struct kp_param *params, size_t n_params,
                          kopt_error *err)
{
    kopt_status st = KOPT_OK;
    k->divided = false;
    if (n_params != k->P)
        return kp_err(err, KOPT_EINPUT, "the network predicts %zu parameters, not %zu", k->P,
                      n_params);
    unsigned char *ways = kp_calloc((k->P + 1) * k->V, sizeof(*ways));
    uint32_t *from = kp_calloc((k->P + 1) * k->V, sizeof(*from));
    if (!ways || !from) {
        st = kp_err_nomem(err);
        goto done;
    }
    count_ways(k, params, ways, from);
    size_t end = k->V - 1;
    if (ways[k->P * k->V + end] != 1) {
        st = kp_err(err, KOPT_EINPUT, "the tokens fit the parameters' lists in %s way",
                    ways[k->P * k->V + end] ? "more than one" : "no");
        goto done;
    }
    for (size_t p = k->P; p-- > 0;) {
        k->first[p] = from[(p + 1) * k->V + end];
        k->net.shape.n_values[p] = (uint32_t)(end - k->first[p]);
        end = k->first[p];
    }
    k->divided = true;
done:
    kp_free(ways);
    kp_free(from);
    return st;
}
