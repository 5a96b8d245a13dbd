/* SPDX-License-Identifier: MIT */
/* Reading AMD's models: what Keras and frugally-deep write. Layer: model.
 *
 * Sizes are taken from the layers' descriptions (ktn_layers.c); then every array must hold as
 * many numbers as follow from them. An array is a list of texts, each some floats
 * (little-endian) in base64. Keras has the weights of a layer as [inputs][outputs]; ours are
 * the other way round. Its LSTM's gates are ours: i f g o. */
#include "model/ktn_impl.h"

#include "base/alloc.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TESTS_MAX = 64 };

/* --- arrays ---------------------------------------------------------------------------------
 */

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Appends at most `max` - *n bytes to out; false: no base64, or more. */
static bool from_base64(struct kp_str text, unsigned char *out, size_t *n, size_t max)
{
    size_t len = text.len;
    uint32_t bits = 0;
    unsigned held = 0;
    if (len % 4 != 0)
        return false;
    for (int i = 0; i < 2 && len > 0 && text.ptr[len - 1] == '='; i++)
        len--;
    for (size_t i = 0; i < len; i++) {
        int v = sextet(text.ptr[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        if (*n == max)
            return false;
        out[(*n)++] = (unsigned char)(bits >> held);
        bits &= (1U << held) - 1;
    }
    return bits == 0;
}

/* values[n] from a list of texts; `what` stands in messages. */
static kopt_status read_floats(const struct kp_json *list, size_t n, float *values,
                               const char *what, kopt_error *err)
{
    size_t used = 0;
    unsigned char *bytes = kp_calloc(n + 1, sizeof(float));
    kopt_status st = KOPT_OK;
    if (!bytes)
        return kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(list); i++) {
        struct kp_str text;
        if (!kp_json_as_str(kp_json_at(list, i), &text) ||
            !from_base64(text, bytes, &used, n * sizeof(float)))
            st = kp_err(err, KOPT_EINPUT, "%s: no base64, or more than the %zu numbers of it",
                        what, n);
    }
    if (st == KOPT_OK && used != n * sizeof(float))
        st = kp_err(err, KOPT_EINPUT, "%s: %zu bytes, where %zu numbers should be", what, used,
                    n);
    for (size_t i = 0; st == KOPT_OK && i < n; i++) {
        const unsigned char *b = bytes + i * sizeof(float);
        uint32_t word =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(&values[i], &word, sizeof(word));
        if (!isfinite(values[i]))
            st = kp_err(err, KOPT_EINPUT, "%s: number %zu is not finite", what, i);
    }
    kp_free(bytes);
    return st;
}

/* Matrix `number` of the net, [rows][cols], from the layer's array `key`, which holds it as
 * [cols][rows] where it is `turned`. */
struct matrix {
    const char *layer;
    const char *key;
    size_t number;
    size_t rows;
    size_t cols;
    bool turned;
};

static kopt_status read_matrix(const struct ktn_reading *r, const struct ktn_half *h,
                               const struct matrix *m)
{
    char what[2 * KTN_NAME_BYTES];
    float *to = r->k->net.values + r->k->net.offset[m->number];
    const struct kp_json *layer = kp_json_get(h->params, m->layer);
    const struct kp_json *list = kp_json_get(layer, m->key);
    (void)snprintf(what, sizeof(what), "'%s' of '%s'", m->key, m->layer);
    if (!list)
        return kp_err(r->err, KOPT_EINPUT, "%s is missing", what);
    if (!m->turned)
        return read_floats(list, m->rows * m->cols, to, what, r->err);
    float *from = kp_calloc(m->rows * m->cols, sizeof(*from));
    if (!from)
        return kp_err_nomem(r->err);
    kopt_status st = read_floats(list, m->rows * m->cols, from, what, r->err);
    for (size_t i = 0; st == KOPT_OK && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            to[i * m->cols + j] = from[j * m->rows + i];
    kp_free(from);
    return st;
}

/* --- the numbers ----------------------------------------------------------------------------
 */

/* Of LSTM l, the decoder's behind the encoder's; without the layer's name. */
static void lstm_parts(const struct kp_ktn *k, size_t l, struct matrix *parts)
{
    size_t H = k->H[l % k->L];
    size_t in = l == 0 ? k->D : l == k->L ? k->E : k->H[(l - 1) % k->L];
    size_t number = KTN_LSTM + KTN_PARTS * l;
    parts[KTN_X] = (struct matrix){NULL, "weights", number + KTN_X, 4 * H, in, true};
    parts[KTN_B] = (struct matrix){NULL, "bias", number + KTN_B, 1, 4 * H, false};
    parts[KTN_H] = (struct matrix){NULL, "recurrent_weights", number + KTN_H, 4 * H, H, true};
}

static kopt_status declare(struct ktn_reading *r, size_t n_text)
{
    struct kp_ktn *k = r->k;
    struct kp_net *net = &k->net;
    char name[KP_TENSOR_NAME];
    if (k->has_dense)
        kp_net_declare(net, KTN_DENSE_W, "dense.w", k->D, k->I, KP_INIT_ZERO, 0);
    if (k->dense_bias)
        kp_net_declare(net, KTN_DENSE_B, "dense.b", 1, k->D, KP_INIT_ZERO, 0);
    kp_net_declare(net, KTN_EMBED, "embed", k->V, k->E, KP_INIT_ZERO, 0);
    kp_net_declare(net, KTN_OUT_W, "out.w", k->V, k->H[k->L - 1], KP_INIT_ZERO, 0);
    if (k->out_bias)
        kp_net_declare(net, KTN_OUT_B, "out.b", 1, k->V, KP_INIT_ZERO, 0);
    for (size_t l = 0; l < 2 * k->L; l++) {
        struct matrix parts[KTN_PARTS];
        lstm_parts(k, l, parts);
        for (size_t i = 0; i < KTN_PARTS; i++) {
            (void)snprintf(name, sizeof(name), "lstm%zu.%s", l, parts[i].key);
            kp_net_declare(net, parts[i].number, name, parts[i].rows, parts[i].cols,
                           KP_INIT_ZERO, 0);
        }
    }
    kopt_status st = kp_params_status(&net->params, r->err);
    if (st != KOPT_OK)
        return st;
    /* Four bytes of a number are more than five of text. */
    if (net->params.n_params > n_text)
        return kp_err(r->err, KOPT_EINPUT, "the layers need more numbers than there are");
    net->values = kp_slab_new(net->params.n_floats);
    return net->values ? KOPT_OK : kp_err_nomem(r->err);
}

static kopt_status read_lstms(const struct ktn_reading *r, const struct ktn_half *h,
                              size_t first)
{
    const struct kp_ktn *k = r->k;
    kopt_status st = KOPT_OK;
    for (size_t l = 0; st == KOPT_OK && l < k->L; l++) {
        struct matrix parts[KTN_PARTS];
        lstm_parts(k, first + l, parts);
        for (size_t i = 0; st == KOPT_OK && i < KTN_PARTS; i++) {
            parts[i].layer = h->lstm[l].text;
            st = read_matrix(r, h, &parts[i]);
        }
    }
    return st;
}

static kopt_status read_encoder_numbers(const struct ktn_reading *r)
{
    const struct kp_ktn *k = r->k;
    const char *dense = r->enc.first.text;
    const struct matrix w = {dense, "weights", KTN_DENSE_W, k->D, k->I, true};
    const struct matrix b = {dense, "bias", KTN_DENSE_B, 1, k->D, false};
    kopt_status st = k->has_dense ? read_matrix(r, &r->enc, &w) : KOPT_OK;
    if (st == KOPT_OK && k->dense_bias)
        st = read_matrix(r, &r->enc, &b);
    return st == KOPT_OK ? read_lstms(r, &r->enc, 0) : st;
}

static kopt_status read_decoder_numbers(const struct ktn_reading *r)
{
    const struct kp_ktn *k = r->k;
    const char *out = r->dec.last.text;
    const struct matrix e = {r->dec.first.text, "weights", KTN_EMBED, k->V, k->E, false};
    const struct matrix w = {out, "weights", KTN_OUT_W, k->V, k->H[k->L - 1], true};
    const struct matrix b = {out, "bias", KTN_OUT_B, 1, k->V, false};
    kopt_status st = read_matrix(r, &r->dec, &e);
    if (st == KOPT_OK)
        st = read_matrix(r, &r->dec, &w);
    if (st == KOPT_OK && k->out_bias)
        st = read_matrix(r, &r->dec, &b);
    return st == KOPT_OK ? read_lstms(r, &r->dec, k->L) : st;
}

/* --- tests ----------------------------------------------------------------------------------
 */

/* Arrays of a test, one behind the other: `first` numbers, then h and c of each LSTM where
 * `states`. */
static kopt_status read_side(const struct ktn_reading *r, const struct kp_json *side,
                             size_t first, bool states, float *to)
{
    const struct kp_ktn *k = r->k;
    size_t at = 0;
    size_t n = (first > 0) + (states ? 2 * k->L : 0);
    if (kp_json_size(side) != n)
        return kp_err(r->err, KOPT_EINPUT, "a test has not %zu arrays", n);
    for (size_t i = 0; i < n; i++) {
        size_t count = first > 0 && i == 0 ? first : k->H[(i - (first > 0)) / 2];
        kopt_status st = read_floats(kp_json_get(kp_json_at(side, i), "values"), count, to + at,
                                     "an array of a test", r->err);
        if (st != KOPT_OK)
            return st;
        at += count;
    }
    return KOPT_OK;
}

static kopt_status read_tests(const struct ktn_reading *r, const struct ktn_half *h,
                              struct kp_ktn_tests *t)
{
    const struct kp_ktn *k = r->k;
    bool decoder = h == &r->dec;
    const struct kp_json *list = kp_json_get(h->json, "tests");
    size_t states = 0;
    for (size_t l = 0; l < k->L; l++)
        states += 2 * k->H[l];
    t->in = decoder ? 1 + states : k->T * k->I;
    t->out = decoder ? k->V + states : states;
    size_t n = kp_json_size(list);
    if (n > TESTS_MAX)
        return kp_err(r->err, KOPT_ERANGE, "more than %d tests", (int)TESTS_MAX);
    if (n == 0)
        return KOPT_OK;
    t->data = kp_calloc(n * (t->in + t->out), sizeof(*t->data));
    if (!t->data)
        return kp_err_nomem(r->err);
    for (size_t i = 0; i < n; i++) {
        float *in = t->data + i * (t->in + t->out);
        const struct kp_json *test = kp_json_at(list, i);
        kopt_status st =
            read_side(r, kp_json_get(test, "inputs"), decoder ? 1 : t->in, decoder, in);
        if (st == KOPT_OK && decoder && !(in[0] >= 0 && in[0] < (float)k->V))
            st = kp_err(r->err, KOPT_EINPUT, "a test's token is none");
        if (st == KOPT_OK)
            st = read_side(r, kp_json_get(test, "outputs"), decoder ? k->V : 0, true,
                           in + t->in);
        if (st != KOPT_OK)
            return st;
    }
    t->n = n;
    return KOPT_OK;
}

/* --- metadata -------------------------------------------------------------------------------
 */

/* The one number that stands for all directions. */
struct agreement {
    int64_t n;
    bool agree;
};

static bool agree_on(void *user, const char *key, const struct kp_json *value)
{
    struct agreement *a = user;
    int64_t n = 0;
    (void)key;
    a->agree = kp_json_as_i64(value, &n) && (a->n == 0 || n == a->n);
    a->n = n;
    return a->agree;
}

static kopt_status read_metadata(struct ktn_reading *r, const struct kp_json *j)
{
    struct kp_ktn *k = r->k;
    const struct kp_json *counts = NULL;
    const struct kp_json *decodings = NULL;
    const struct kp_json *tunings = NULL;
    struct agreement a = {0, true};
    int64_t type = 0;
    kopt_status st = kp_json_need_i64(j, "predict_type", &type, r->err);
    if (st == KOPT_OK && type != 0)
        st = kp_err(r->err, KOPT_EINPUT,
                    "'predict_type' is %lld, only 0 can be read: one "
                    "length for all configurations",
                    (long long)type);
    if (st == KOPT_OK)
        st = kp_json_need_object(j, "num_tuning_params", &counts, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_object(j, "decodings", &decodings, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_object(decodings, "tunings", &tunings, r->err);
    if (st != KOPT_OK)
        return st;
    (void)kp_json_each(counts, agree_on, &a);
    if (!a.agree || a.n < 1 || a.n > KP_TARGETS_MAX)
        return kp_err(r->err, KOPT_EINPUT,
                      "'num_tuning_params': one number from 1 to %d expected",
                      (int)KP_TARGETS_MAX);
    k->P = (size_t)a.n;
    if (k->V < k->P + 2 || kp_json_size(tunings) != k->V)
        return kp_err(r->err, KOPT_EINPUT, "%zu values for %zu tokens and %zu parameters",
                      kp_json_size(tunings), k->V, k->P);
    k->value = kp_calloc(k->V, sizeof(*k->value));
    if (!k->value)
        return kp_err_nomem(r->err);
    for (size_t t = 0; t < k->V; t++) {
        char key[24];
        struct kp_str text;
        (void)snprintf(key, sizeof(key), "%zu", t);
        if (!kp_json_as_str(kp_json_get(tunings, key), &text) ||
            !kp_str_to_i64(text, &k->value[t]))
            return kp_err(r->err, KOPT_EINPUT, "token %zu has no value, or no whole number", t);
    }
    return KOPT_OK;
}

/* --- together -------------------------------------------------------------------------------
 */

static kopt_status open_half(const struct ktn_reading *r, struct ktn_half *h,
                             const struct kp_ktn_source *source)
{
    const struct kp_json *architecture = NULL;
    const struct kp_json *config = NULL;
    kopt_status st = kp_json_parse(source->text, source->name, &h->json, r->err);
    if (st != KOPT_OK)
        return st;
    st = kp_json_need_object(h->json, "architecture", &architecture, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_object(architecture, "config", &config, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_array(config, "layers", &h->layers, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_array(config, "input_layers", &h->inputs, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_array(config, "output_layers", &h->outputs, r->err);
    if (st == KOPT_OK)
        st = kp_json_need_object(h->json, "trainable_params", &h->params, r->err);
    if (st != KOPT_OK)
        kp_err_wrap(r->err, "%s", source->name);
    return st;
}

/* Puts the file's name in front of what is wrong with it. */
static kopt_status in_file(const struct ktn_reading *r, const char *file, kopt_status st)
{
    if (st != KOPT_OK && st != KOPT_ENOMEM)
        kp_err_wrap(r->err, "%s", file);
    return st;
}

kopt_status kp_ktn_parse(const struct kp_ktn_source *encoder,
                         const struct kp_ktn_source *decoder,
                         const struct kp_ktn_source *metadata, struct kp_ktn **out,
                         kopt_error *err)
{
    struct kp_json *meta = NULL;
    struct ktn_reading r = {.k = kp_calloc(1, sizeof(*r.k)), .err = err};
    *out = NULL;
    if (!r.k)
        return kp_err_nomem(err);
    r.k->net.ops = &kp_ktn_ops;
    r.k->net.blas = kp_blas_fast();
    kopt_status st = open_half(&r, &r.enc, encoder);
    if (st == KOPT_OK)
        st = open_half(&r, &r.dec, decoder);
    if (st == KOPT_OK)
        st = kp_json_parse(metadata->text, metadata->name, &meta, err);
    if (st == KOPT_OK)
        st = in_file(&r, encoder->name, kp_ktn_read_encoder(&r));
    if (st == KOPT_OK)
        st = in_file(&r, decoder->name, kp_ktn_read_decoder(&r));
    if (st == KOPT_OK)
        st = in_file(&r, metadata->name, read_metadata(&r, meta));
    if (st == KOPT_OK)
        st = in_file(&r, encoder->name, declare(&r, encoder->text.len + decoder->text.len));
    if (st == KOPT_OK)
        st = in_file(&r, encoder->name, read_encoder_numbers(&r));
    if (st == KOPT_OK)
        st = in_file(&r, decoder->name, read_decoder_numbers(&r));
    if (st == KOPT_OK)
        st = in_file(&r, encoder->name, read_tests(&r, &r.enc, &r.k->encoder));
    if (st == KOPT_OK)
        st = in_file(&r, decoder->name, read_tests(&r, &r.dec, &r.k->decoder));
    if (st == KOPT_OK) {
        r.k->net.shape.n_targets = r.k->P;
        r.k->net.shape.n_features = r.k->T * r.k->I;
        *out = r.k;
        r.k = NULL;
    }
    kp_json_free(meta);
    kp_json_free(r.enc.json);
    kp_json_free(r.dec.json);
    kp_ktn_free(r.k);
    return st;
}

kopt_status kp_ktn_load(const char *prefix, struct kp_ktn **out, kopt_error *err)
{
    static const char *const parts[] = {"encoder", "decoder", "metadata"};
    enum { N = sizeof(parts) / sizeof(*parts) };
    struct kp_buf paths[N];
    struct kp_buf texts[N];
    struct kp_ktn_source sources[N];
    kopt_status st = KOPT_OK;
    *out = NULL;
    for (size_t i = 0; i < N; i++) {
        paths[i] = KP_BUF_INIT(4096);
        texts[i] = KP_BUF_INIT(KP_KTN_FILE_MAX);
    }
    for (size_t i = 0; st == KOPT_OK && i < N; i++) {
        kp_buf_addf(&paths[i], "%s_%s.ktn.model", prefix, parts[i]);
        st = kp_buf_status(&paths[i], err);
        if (st == KOPT_OK)
            st = kp_file_read(kp_buf_text(&paths[i]), &texts[i], err);
        sources[i] = (struct kp_ktn_source){kp_buf_text(&paths[i]),
                                            {kp_buf_text(&texts[i]), texts[i].len}};
    }
    if (st == KOPT_OK)
        st = kp_ktn_parse(&sources[0], &sources[1], &sources[2], out, err);
    for (size_t i = 0; i < N; i++) {
        kp_buf_deinit(&paths[i]);
        kp_buf_deinit(&texts[i]);
    }
    return st;
}
