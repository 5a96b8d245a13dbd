/* SPDX-License-Identifier: MIT */
/* The layers of AMD's models, as Keras describes them: just the two chains of ktn.h can be
 * read. Layer: model. */
#include "model/ktn_impl.h"

#include <string.h>

static kopt_status need_size(const struct kp_json *j, const char *key, size_t *out,
                             kopt_error *err)
{
    int64_t v = 0;
    kopt_status st = kp_json_need_i64(j, key, &v, err);
    *out = 0;
    if (st == KOPT_OK && (v < 1 || v > KP_KTN_SIZE_MAX))
        st = kp_err(err, KOPT_ERANGE, "'%s' is %lld, 1 to %d can be read", key, (long long)v,
                    (int)KP_KTN_SIZE_MAX);
    if (st == KOPT_OK)
        *out = (size_t)v;
    return st;
}

/* A member that must be this text, or this truth. */
static bool has_text(const struct kp_json *config, const char *key, const char *want)
{
    struct kp_str text;
    return kp_json_as_str(kp_json_get(config, key), &text) && kp_str_is(text, want);
}

static bool has_flag(const struct kp_json *config, const char *key, bool want)
{
    bool is = false;
    return kp_json_as_bool(kp_json_get(config, key), &is) && is == want;
}

/* Connection i of a layer: ["name", node, output, {}]. */
static const struct kp_json *connection(const struct kp_json *layer, size_t i)
{
    return kp_json_at(kp_json_at(kp_json_get(layer, "inbound_nodes"), 0), i);
}

/* Is `edge`, ["name", 0, output, ..], output number `output` of `name`? */
static bool is_edge(const struct kp_json *edge, const char *name, int64_t output)
{
    struct kp_str text;
    int64_t node = -1;
    int64_t which = -1;
    return kp_json_as_str(kp_json_at(edge, 0), &text) && kp_str_is(text, name) &&
           kp_json_as_i64(kp_json_at(edge, 1), &node) && node == 0 &&
           kp_json_as_i64(kp_json_at(edge, 2), &which) && which == output;
}

static kopt_status name_of(const struct kp_json *text, struct ktn_name *out, kopt_error *err)
{
    struct kp_str s;
    *out = (struct ktn_name){""};
    if (!kp_json_as_str(text, &s) || s.len == 0 || s.len >= sizeof(out->text))
        return kp_err(err, KOPT_EINPUT, "a layer has no name, or one that is too long");
    memcpy(out->text, s.ptr, s.len);
    return KOPT_OK;
}

static const struct kp_json *find_layer(const struct ktn_half *h, const char *name)
{
    for (size_t i = 0; i < kp_json_size(h->layers); i++)
        if (has_text(kp_json_at(h->layers, i), "name", name))
            return kp_json_at(h->layers, i);
    return NULL;
}

/* sizes[n] of input layer i, behind that of the batch. */
static kopt_status input_shape(const struct ktn_reading *r, const struct ktn_half *h, size_t i,
                               size_t n, size_t *sizes)
{
    struct ktn_name name;
    kopt_status st = name_of(kp_json_at(kp_json_at(h->inputs, i), 0), &name, r->err);
    if (st != KOPT_OK)
        return st;
    const struct kp_json *layer = find_layer(h, name.text);
    const struct kp_json *shape =
        kp_json_get(kp_json_get(layer, "config"), "batch_input_shape");
    if (!has_text(layer, "class_name", "InputLayer") || kp_json_size(shape) != n + 1)
        return kp_err(r->err, KOPT_EINPUT, "input %zu has not %zu dimensions", i, n);
    for (size_t d = 0; d < n; d++) {
        int64_t v = 0;
        if (!kp_json_as_i64(kp_json_at(shape, d + 1), &v) || v < 1 || v > KP_KTN_SIZE_MAX)
            return kp_err(r->err, KOPT_ERANGE, "a size of input %zu is not from 1 to %d", i,
                          (int)KP_KTN_SIZE_MAX);
        sizes[d] = (size_t)v;
    }
    return KOPT_OK;
}

static kopt_status not_ours(const struct ktn_reading *r, const struct ktn_name *layer,
                            const char *what)
{
    return kp_err(r->err, KOPT_EINPUT, "layer '%s' %s", layer->text, what);
}

static kopt_status read_dense(const struct ktn_reading *r, const struct kp_json *config,
                              const struct ktn_name *name, size_t *units, bool *bias)
{
    if (!has_text(config, "activation", "linear"))
        return not_ours(r, name, "is not linear");
    if (!kp_json_as_bool(kp_json_get(config, "use_bias"), bias))
        return not_ours(r, name, "does not say whether it has a bias");
    return need_size(config, "units", units, r->err);
}

static kopt_status read_lstm(const struct ktn_reading *r, struct ktn_half *h,
                             const struct kp_json *config, const struct ktn_name *name)
{
    if (h->n_lstm == KP_KTN_LAYERS_MAX)
        return kp_err(r->err, KOPT_ERANGE, "more than %d LSTMs", (int)KP_KTN_LAYERS_MAX);
    if (!has_text(config, "activation", "tanh") ||
        !has_text(config, "recurrent_activation", "sigmoid") ||
        !has_flag(config, "use_bias", true) || !has_flag(config, "go_backwards", false) ||
        !has_flag(config, "stateful", false))
        return not_ours(r, name, "is an LSTM of another kind");
    h->lstm[h->n_lstm] = *name;
    return need_size(config, "units", &h->H[h->n_lstm++], r->err);
}

/* Beside the layer before, an LSTM of the decoder has its states as inputs 1 and 2. */
static kopt_status check_states(const struct ktn_reading *r, const struct ktn_half *h, size_t l,
                                const struct kp_json *layer, const struct ktn_name *name)
{
    for (size_t s = 0; s < 2; s++) {
        struct ktn_name state;
        kopt_status st =
            name_of(kp_json_at(kp_json_at(h->inputs, 1 + 2 * l + s), 0), &state, r->err);
        if (st != KOPT_OK)
            return st;
        if (!is_edge(connection(layer, 1 + s), state.text, 0))
            return not_ours(r, name, "does not begin with the states that are put in");
    }
    return KOPT_OK;
}

static kopt_status read_embedding(struct ktn_reading *r, const struct kp_json *config,
                                  const struct ktn_name *name)
{
    if (!has_flag(config, "mask_zero", false))
        return not_ours(r, name, "masks tokens");
    kopt_status st = need_size(config, "output_dim", &r->k->E, r->err);
    return st == KOPT_OK ? need_size(config, "input_dim", &r->n_embedded, r->err) : st;
}

/* A layer that is no input, in the order of the file: it goes on from layer *from. */
static kopt_status read_layer(struct ktn_reading *r, struct ktn_half *h,
                              const struct kp_json *layer, struct ktn_name *from)
{
    struct kp_ktn *k = r->k;
    struct ktn_name name;
    const struct kp_json *config = kp_json_get(layer, "config");
    bool decoder = h == &r->dec;
    bool lstm = has_text(layer, "class_name", "LSTM");
    bool dense = has_text(layer, "class_name", "Dense");
    kopt_status st = name_of(kp_json_get(layer, "name"), &name, r->err);
    if (st != KOPT_OK)
        return st;
    if (!is_edge(connection(layer, 0), from->text, 0))
        return not_ours(r, &name, "does not go on from the layer before");
    if (connection(layer, lstm && decoder ? 3 : 1))
        return not_ours(r, &name, "has more inputs than it should");
    *from = name;
    if (lstm && !h->last.text[0]) {
        st = decoder ? check_states(r, h, h->n_lstm, layer, &name) : KOPT_OK;
        return st == KOPT_OK ? read_lstm(r, h, config, &name) : st;
    }
    if (dense && decoder && h->n_lstm > 0 && !h->last.text[0]) {
        h->last = name;
        return read_dense(r, config, &name, &k->V, &k->out_bias);
    }
    if (h->n_lstm > 0 || h->first.text[0])
        return not_ours(r, &name, "is of a kind that has no place there");
    h->first = name;
    if (dense && !decoder) {
        k->has_dense = true;
        return read_dense(r, config, &name, &k->D, &k->dense_bias);
    }
    if (decoder && has_text(layer, "class_name", "Embedding"))
        return read_embedding(r, config, &name);
    return not_ours(r, &name, "is of a kind that has no place there");
}

/* The states of all LSTMs, in their order, from output number `first` on. */
static kopt_status check_outputs(const struct ktn_reading *r, const struct ktn_half *h,
                                 size_t first)
{
    bool good = kp_json_size(h->outputs) == first + 2 * h->n_lstm;
    for (size_t i = 0; good && i < 2 * h->n_lstm; i++)
        good = is_edge(kp_json_at(h->outputs, first + i), h->lstm[i / 2].text,
                       1 + (int64_t)(i % 2));
    return good ? KOPT_OK
                : kp_err(r->err, KOPT_EINPUT, "its outputs are not the states of its LSTMs");
}

static kopt_status read_chain(struct ktn_reading *r, struct ktn_half *h)
{
    struct ktn_name from;
    kopt_status st = name_of(kp_json_at(kp_json_at(h->inputs, 0), 0), &from, r->err);
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(h->layers); i++) {
        const struct kp_json *layer = kp_json_at(h->layers, i);
        if (!has_text(layer, "class_name", "InputLayer"))
            st = read_layer(r, h, layer, &from);
    }
    if (st == KOPT_OK && h->n_lstm == 0)
        st = kp_err(r->err, KOPT_EINPUT, "it has no LSTM");
    return st;
}

kopt_status kp_ktn_read_encoder(struct ktn_reading *r)
{
    struct kp_ktn *k = r->k;
    size_t shape[2] = {0};
    kopt_status st = kp_json_size(r->enc.inputs) == 1
                         ? input_shape(r, &r->enc, 0, 2, shape)
                         : kp_err(r->err, KOPT_EINPUT, "an encoder has one input");
    k->T = shape[0];
    k->I = k->D = shape[1];
    if (st == KOPT_OK)
        st = read_chain(r, &r->enc);
    if (st == KOPT_OK)
        st = check_outputs(r, &r->enc, 0);
    k->L = r->enc.n_lstm;
    memcpy(k->H, r->enc.H, sizeof(k->H));
    return st;
}

kopt_status kp_ktn_read_decoder(struct ktn_reading *r)
{
    struct kp_ktn *k = r->k;
    struct ktn_half *h = &r->dec;
    size_t one = 0;
    kopt_status st = input_shape(r, h, 0, 1, &one);
    if (st == KOPT_OK)
        st = read_chain(r, h);
    if (st != KOPT_OK)
        return st;
    if (one != 1 || !h->first.text[0] || !h->last.text[0])
        return kp_err(r->err, KOPT_EINPUT,
                      "a decoder has one token, an embedding and a dense layer");
    if (kp_json_size(h->inputs) != 1 + 2 * h->n_lstm || h->n_lstm != k->L ||
        memcmp(h->H, k->H, sizeof(k->H)) != 0)
        return kp_err(r->err, KOPT_EINPUT, "its LSTMs are not as those of the encoder");
    for (size_t i = 0; i < 2 * k->L; i++) {
        size_t units = 0;
        st = input_shape(r, h, 1 + i, 1, &units);
        if (st == KOPT_OK && units != k->H[i / 2])
            st = kp_err(r->err, KOPT_EINPUT, "input %zu has not the size of its LSTM", i + 1);
        if (st != KOPT_OK)
            return st;
    }
    if (r->n_embedded != k->V)
        return kp_err(r->err, KOPT_EINPUT, "as many tokens as scores expected");
    if (!is_edge(kp_json_at(h->outputs, 0), h->last.text, 0))
        return kp_err(r->err, KOPT_EINPUT, "its first output is not that of its dense layer");
    return check_outputs(r, h, 1);
}
