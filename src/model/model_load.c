/* SPDX-License-Identifier: MIT */
/* Reading a model's file. Nothing in it is believed before it is checked: first the header,
 * then what the texts say of the networks' sizes, then that the tensors are just those that
 * such networks have and fill the data without a gap. Layer: model. */
#include "model/forest.h"
#include "model/model_impl.h"
#include "model/ranking.h"

#include "base/alloc.h"
#include "os/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct loading {
    const char *path;
    struct kp_model *m;
    struct kp_json *header;
    const struct kp_json *meta;
    unsigned char *data; /* in the map */
    size_t n_data;
    struct kp_net_shape shape;
    const struct kp_net_ops *ops;
    /* Of the networks behind them, which are of another kind. */
    struct kp_net_shape beside_shape;
    const struct kp_net_ops *beside;
    size_t n_beside; /* 0: there are none */
    kopt_error *err;
};

/* --- the header -----------------------------------------------------------------------------
 */

static kopt_status read_header(struct loading *l)
{
    const unsigned char *file = l->m->map;
    size_t size = l->m->map_bytes;
    uint64_t length = 0;
    if (size < KP_MODEL_LENGTH_BYTES)
        return kp_err(l->err, KOPT_EINPUT, "it has %zu bytes: that is no model", size);
    memcpy(&length, file, sizeof(length));
    if (length < 2 || length > KP_MODEL_HEADER_MAX ||
        (size > KP_MODEL_LENGTH_BYTES && file[KP_MODEL_LENGTH_BYTES] != '{'))
        return kp_err(l->err, KOPT_EINPUT, "it does not begin as a safetensors file");
    if (length > size - KP_MODEL_LENGTH_BYTES)
        return kp_err(l->err, KOPT_EINPUT,
                      "it is cut: the header has %" PRIu64 " bytes, %zu are there", length,
                      size - KP_MODEL_LENGTH_BYTES);
    if ((length + KP_MODEL_LENGTH_BYTES) % sizeof(float) != 0)
        return kp_err(l->err, KOPT_EINPUT,
                      "the header's length %" PRIu64 " is no multiple of %zu", length,
                      sizeof(float));
    struct kp_str text = {(const char *)file + KP_MODEL_LENGTH_BYTES, (size_t)length};
    l->data = (unsigned char *)l->m->map + KP_MODEL_LENGTH_BYTES + length;
    l->n_data = size - KP_MODEL_LENGTH_BYTES - (size_t)length;
    return kp_model_json(text, "header", &l->header, l->err);
}

static bool is_text(void *user, const char *key, const struct kp_json *value)
{
    struct kp_str s;
    (void)user;
    (void)key;
    return kp_json_as_str(value, &s);
}

static kopt_status need(struct loading *l, const char *key, struct kp_str *out)
{
    return kp_json_need_str(l->meta, key, out, l->err);
}

static kopt_status read_identity(struct loading *l)
{
    struct kp_str text;
    l->meta = kp_json_get(l->header, KP_MODEL_METADATA);
    if (kp_json_type(l->header) != KP_JSON_OBJECT || !l->meta ||
        kp_json_type(l->meta) != KP_JSON_OBJECT || !kp_json_each(l->meta, is_text, NULL) ||
        !kp_json_as_str(kp_json_get(l->meta, "format"), &text) ||
        !kp_str_is(text, KP_MODEL_FORMAT))
        return kp_err(l->err, KOPT_EINPUT, "its header does not say that it is a kopt model");
    kopt_status st = need(l, "version", &text);
    if (st == KOPT_OK && !kp_str_is(text, KP_MODEL_VERSION)) {
        st = kp_err(l->err, KOPT_EINPUT, "it is of version %.*s of the format",
                    KP_STR_FMT(text));
        kp_err_hint(l->err, "this program reads version %s", KP_MODEL_VERSION);
    }
    if (st == KOPT_OK)
        st = need(l, "kernel", &text);
    if (st != KOPT_OK)
        return st;
    l->m->kernel = kp_arena_strndup(&l->m->arena, text.ptr, text.len);
    return l->m->kernel ? KOPT_OK : kp_err_nomem(l->err);
}

/* --- what the texts say ---------------------------------------------------------------------
 */

/* A text of the metadata that is JSON of its own. */
static kopt_status need_json(struct loading *l, const char *key, struct kp_json **out)
{
    struct kp_str text;
    *out = NULL;
    kopt_status st = need(l, key, &text);
    return st == KOPT_OK ? kp_model_json(text, key, out, l->err) : st;
}

/* The same, read by `read`; its complaints get the key in front. */
static kopt_status read_json(struct loading *l, const char *key,
                             kopt_status (*read)(struct loading *, const struct kp_json *))
{
    struct kp_json *j = NULL;
    kopt_status st = need_json(l, key, &j);
    if (st == KOPT_OK) {
        st = read(l, j);
        if (st != KOPT_OK)
            kp_err_wrap(l->err, "%s", key);
    }
    kp_json_free(j);
    return st;
}

static kopt_status find_kind(struct loading *l, struct kp_str name,
                             const struct kp_net_ops **ops)
{
    *ops = kp_net_named(name);
    return *ops ? KOPT_OK
                : kp_err(l->err, KOPT_EINPUT, "'model': '%.*s' is unknown", KP_STR_FMT(name));
}

static kopt_status take_shape(struct loading *l, const struct kp_json *j)
{
    return kp_net_shape_from_json(j, &l->shape, l->err);
}

static kopt_status read_shape(struct loading *l)
{
    struct kp_str name;
    kopt_status st = need(l, "model", &name);
    if (st == KOPT_OK)
        st = find_kind(l, name, &l->ops);
    return st == KOPT_OK ? read_json(l, "shape", take_shape) : st;
}

/* Do both kinds of networks see and say the same? */
static bool go_together(const struct kp_net_shape *a, const struct kp_net_shape *b)
{
    bool same = a->n_tokens == b->n_tokens && a->n_vocab == b->n_vocab &&
                a->n_features == b->n_features && a->n_targets == b->n_targets;
    for (size_t p = 0; same && p < a->n_targets; p++)
        same = a->n_values[p] == b->n_values[p];
    return same;
}

static kopt_status take_beside(struct loading *l, const struct kp_json *j)
{
    struct kp_str name;
    int64_t nets = 0;
    const struct kp_json *shape = NULL;
    kopt_status st = kp_json_need_str(j, "model", &name, l->err);
    if (st == KOPT_OK)
        st = kp_json_need_i64(j, "nets", &nets, l->err);
    if (st == KOPT_OK)
        st = find_kind(l, name, &l->beside);
    if (st == KOPT_OK)
        st = kp_json_need_object(j, "shape", &shape, l->err);
    if (st == KOPT_OK)
        st = kp_net_shape_from_json(shape, &l->beside_shape, l->err);
    if (st != KOPT_OK)
        return st;
    if (nets < 1 || nets >= KP_BEAM_NETS_MAX || l->beside == l->ops || l->ops->rank ||
        l->beside->rank || !go_together(&l->shape, &l->beside_shape))
        return kp_err(l->err, KOPT_EINPUT, "its networks do not go with the others");
    l->n_beside = (size_t)nets;
    return KOPT_OK;
}

static kopt_status read_beside(struct loading *l)
{
    return kp_json_get(l->meta, "beside") ? read_json(l, "beside", take_beside) : KOPT_OK;
}

static kopt_status read_encoder(struct loading *l)
{
    struct kp_json *j = NULL;
    struct kp_str text;
    int64_t n_raw = 0;
    kopt_status st = need_json(l, "encoder", &j);
    if (st == KOPT_OK)
        st = kp_encoder_from_json(j, &l->m->encoder, l->err);
    kp_json_free(j);
    if (st == KOPT_OK)
        st = need(l, "fields", &text);
    if (st != KOPT_OK)
        return st;
    const struct kp_encoder *e = l->m->encoder;
    if (!kp_str_to_i64(text, &n_raw) || n_raw < 1 || (uint64_t)n_raw > kp_encoder_n_fields(e))
        return kp_err(l->err, KOPT_EINPUT, "'fields' is no number of the encoder's fields");
    l->m->n_raw = (size_t)n_raw;
    if (!l->ops->rank && (kp_encoder_n_tokens(e) != l->shape.n_tokens ||
                          kp_encoder_n_vocab(e) != l->shape.n_vocab ||
                          kp_encoder_n_features(e) != l->shape.n_features))
        return kp_err(l->err, KOPT_EINPUT,
                      "the networks' inputs are not what the encoder gives");
    return KOPT_OK;
}

static kopt_status read_targets(struct loading *l)
{
    struct kp_json *j = NULL;
    struct kp_model *m = l->m;
    kopt_status st = need_json(l, "targets", &j);
    if (st == KOPT_OK)
        st = kp_model_targets_read(j, &m->arena, m->targets, &m->n_targets, l->err);
    kp_json_free(j);
    if (st != KOPT_OK)
        return st;
    bool agree = m->n_targets == l->shape.n_targets;
    for (size_t p = 0; agree && p < m->n_targets; p++)
        agree = m->targets[p].n_values == l->shape.n_values[p];
    return agree ? KOPT_OK
                 : kp_err(l->err, KOPT_EINPUT, "the networks' outputs are not the targets'");
}

/* Can the rules be asked with what a problem has, and are the other fields theirs? */
static kopt_status check_fields(struct loading *l)
{
    const struct kp_model *m = l->m;
    const char *derived[KP_FIELDS_MAX];
    size_t n_derived = m->rules ? kp_model_derived_names(m->rules, derived) : 0;
    for (size_t i = 0; m->rules && i < m->rules->n_problem; i++) {
        const char *name = m->rules->problem[i];
        if (!m->rules->has_problem_default[i] &&
            kp_model_field(m->encoder, kp_str_from(name)) >= m->n_raw)
            return kp_err(l->err, KOPT_EINPUT,
                          "the rules ask for '%s', which no problem of the model has", name);
    }
    for (size_t i = m->n_raw; i < kp_encoder_n_fields(m->encoder); i++) {
        const struct kp_field *f = kp_encoder_field(m->encoder, i);
        bool found = false;
        for (size_t d = 0; d < n_derived; d++)
            found |= strcmp(derived[d], f->name) == 0;
        if (!found || f->is_word)
            return kp_err(l->err, KOPT_EINPUT,
                          "field '%s' is none of a problem, and the rules do not give it",
                          f->name);
    }
    return KOPT_OK;
}

/* "gemm.model: gemm.cu": where the rules are, for messages. NULL: no memory. */
static const char *rules_place(const struct loading *l)
{
    const char *slash = strrchr(l->path, '/');
    const char *file = slash ? slash + 1 : l->path;
    size_t bytes = strlen(file) + strlen(l->m->rules_path) + sizeof(": ");
    char *place = kp_arena_alloc(&l->m->arena, bytes, 1);
    if (place)
        (void)snprintf(place, bytes, "%s: %s", file, l->m->rules_path);
    return place;
}

static kopt_status read_rules(struct loading *l)
{
    struct kp_model *m = l->m;
    struct kp_str text;
    struct kp_str name;
    if (!kp_json_get(l->meta, "rules"))
        return check_fields(l);
    kopt_status st = need(l, "rules", &text);
    if (st == KOPT_OK)
        st = need(l, "rules_name", &name);
    if (st != KOPT_OK)
        return st;
    if (name.len == 0 || memchr(name.ptr, '/', name.len))
        return kp_err(l->err, KOPT_EINPUT, "'rules_name' is no file's name");
    m->rules_path = kp_arena_strndup(&m->arena, name.ptr, name.len);
    m->rules_text = (struct kp_str){kp_arena_strndup(&m->arena, text.ptr, text.len), text.len};
    const char *place = m->rules_path ? rules_place(l) : NULL;
    if (!place || !m->rules_text.ptr)
        return kp_err_nomem(l->err);
    st = kp_kernel_parse(place, m->rules_text, &m->rules, l->err);
    if (st != KOPT_OK && st != KOPT_ENOMEM) {
        kp_err_wrap(l->err, "its rules");
        return st;
    }
    return st == KOPT_OK ? check_fields(l) : st;
}

static kopt_status take_ranking(struct loading *l, const struct kp_json *j)
{
    return kp_ranking_from_json(j, l->m, &l->m->ranking, l->err);
}

/* Of networks that rank, which must fit it. */
static kopt_status read_ranking(struct loading *l)
{
    kopt_status st = l->ops->rank ? read_json(l, "ranking", take_ranking) : KOPT_OK;
    if (st != KOPT_OK || !l->ops->rank)
        return st;
    const struct kp_ranking *r = l->m->ranking;
    if (l->shape.n_tokens == 1 && l->shape.n_vocab == r->n_configs &&
        l->shape.n_features == r->n_coordinates + r->n_pairs)
        return KOPT_OK;
    return kp_err(l->err, KOPT_EINPUT, "the networks' inputs are not what 'ranking' gives");
}

/* The groves of a model that translates are the targets', of which one with a single value asks
 * nothing; a model that ranks has one. Inputs count where there are no trees, too: they are how
 * much room the others' get. */
static bool forest_fits(const struct loading *l)
{
    const struct kp_model *m = l->m;
    const struct kp_forest *f = m->forest;
    bool fits = f->n_groves == (m->ranking ? 1 : m->n_targets);
    for (size_t g = 0; fits && g < f->n_groves; g++) {
        const struct kp_grove *w = &f->groves[g];
        size_t inputs = l->shape.n_features + (m->ranking ? 0 : g);
        fits = w->n_outputs == (m->ranking ? 1 : l->shape.n_values[g]) &&
               w->n_inputs == inputs && (w->n_trees == 0 || m->ranking || w->n_outputs > 1);
    }
    return fits;
}

static kopt_status take_forest(struct loading *l, const struct kp_json *j)
{
    return kp_forest_from_json(j, &l->m->forest, l->err);
}

static kopt_status read_forest(struct loading *l)
{
    if (!kp_json_get(l->meta, "forest"))
        return KOPT_OK;
    kopt_status st = read_json(l, "forest", take_forest);
    if (st == KOPT_OK && !forest_fits(l))
        st = kp_err(l->err, KOPT_EINPUT, "the trees of 'forest' are not of such a model");
    return st;
}

static kopt_status read_info(struct loading *l)
{
    kopt_status st = need_json(l, "info", &l->m->info);
    if (st == KOPT_OK && kp_json_type(l->m->info) != KP_JSON_OBJECT)
        st = kp_err(l->err, KOPT_EINPUT, "'info' is no object");
    return st;
}

/* --- tensors --------------------------------------------------------------------------------
 */

/* Where a tensor lies in the data. */
struct span {
    size_t begin;
    size_t end;
    uint32_t net; /* or one of the two below */
    uint32_t tensor;
};
enum { OF_RANKING = KP_BEAM_NETS_MAX, OF_FOREST };

static struct kp_params *params_of(const struct loading *l, size_t net)
{
    return net == OF_RANKING  ? &l->m->ranking->params
           : net == OF_FOREST ? &l->m->forest->params
                              : &l->m->nets[net]->params;
}

static void name_of(const struct loading *l, const struct span *s,
                    char name[KP_MODEL_TENSOR_NAME])
{
    const struct kp_tensor *t = &params_of(l, s->net)->tensors[s->tensor];
    if (s->net >= KP_BEAM_NETS_MAX)
        (void)snprintf(name, KP_MODEL_TENSOR_NAME, "%s", t->name);
    else
        kp_model_tensor_name(s->net, t, name);
}

static kopt_status fault(struct loading *l, const char *name, const char *why)
{
    return kp_err(l->err, KOPT_EINPUT, "tensor '%s': %s", name, why);
}

/* A list of `n` numbers; false where it is none or they do not fit. */
static bool read_sizes(const struct kp_json *j, size_t n, size_t *out)
{
    if (!j || kp_json_type(j) != KP_JSON_ARRAY || kp_json_size(j) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        if (!kp_json_as_i64(kp_json_at(j, i), &v) || v < 0)
            return false;
        out[i] = (size_t)v;
    }
    return true;
}

/* Tensor out->tensor of out->net. */
static kopt_status read_tensor(struct loading *l, struct span *out)
{
    const struct kp_tensor *t = &params_of(l, out->net)->tensors[out->tensor];
    char name[KP_MODEL_TENSOR_NAME];
    struct kp_str dtype;
    size_t shape[2] = {1, 1};
    size_t at[2];
    size_t dims = t->rows == 1 ? 1 : 2;
    name_of(l, out, name);
    const struct kp_json *j = kp_json_get(l->header, name);
    if (!j)
        return fault(l, name, "it is missing");
    if (!kp_json_as_str(kp_json_get(j, "dtype"), &dtype) || !kp_str_is(dtype, "F32"))
        return fault(l, name, "its dtype is not F32");
    if (!read_sizes(kp_json_get(j, "shape"), dims, shape + 2 - dims) || shape[0] != t->rows ||
        shape[1] != t->cols)
        return kp_err(l->err, KOPT_EINPUT, "tensor '%s': its shape is not %zu x %zu", name,
                      t->rows, t->cols);
    /* The sizes that networks can have keep this product far from overflow. */
    if (!read_sizes(kp_json_get(j, "data_offsets"), 2, at) || at[0] > at[1] ||
        at[1] - at[0] != t->rows * t->cols * sizeof(float))
        return fault(l, name, "its offsets do not fit its shape");
    if (at[1] > l->n_data)
        return fault(l, name, "it goes beyond the end of the file");
    if (at[0] % sizeof(float) != 0)
        return kp_err(l->err, KOPT_EINPUT, "offset %zu is no multiple of %zu", at[0],
                      sizeof(float));
    out->begin = at[0];
    out->end = at[1];
    return KOPT_OK;
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a;
    const struct span *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* One behind the other, from the first byte to the last. */
static kopt_status check_spans(struct loading *l, struct span *spans, size_t n)
{
    size_t at = 0;
    qsort(spans, n, sizeof(*spans), compare_spans);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin != at) {
            char name[KP_MODEL_TENSOR_NAME];
            name_of(l, &spans[i], name);
            return fault(l, name,
                         spans[i].begin < at ? "it lies over another one"
                                             : "bytes before it belong to no tensor");
        }
        at = spans[i].end;
    }
    if (at != l->n_data)
        return kp_err(l->err, KOPT_EINPUT, "%zu bytes at the end belong to no tensor",
                      l->n_data - at);
    return KOPT_OK;
}

static kopt_status check_finite(struct loading *l, const struct span *s)
{
    const uint32_t exponent = 0x7f800000;
    bool bad = false;
    for (size_t i = s->begin; i < s->end; i += sizeof(uint32_t)) {
        uint32_t bits;
        memcpy(&bits, l->data + i, sizeof(bits));
        bad |= (bits & exponent) == exponent;
    }
    if (bad) {
        char name[KP_MODEL_TENSOR_NAME];
        name_of(l, s, name);
        return fault(l, name, "a number of it is not finite");
    }
    return KOPT_OK;
}

/* The network's matrices are those of the file. */
static void use_in_place(struct loading *l, struct kp_net *net, const struct span *spans)
{
    struct kp_params *params = &net->params;
    for (size_t number = 0; number < sizeof(net->offset) / sizeof(*net->offset); number++) {
        size_t offset = net->offset[number];
        /* An empty matrix has the next one's offset, and nobody looks at what it has. */
        for (size_t i = 0; i < params->n_tensors; i++)
            if (params->tensors[i].offset == offset && params->tensors[i].rows &&
                params->tensors[i].cols)
                net->offset[number] = spans[i].begin / sizeof(float);
    }
    for (size_t i = 0; i < params->n_tensors; i++)
        params->tensors[i].offset = spans[i].begin / sizeof(float);
    params->n_floats = l->n_data / sizeof(float);
    net->values = (float *)(void *)l->data;
    net->borrowed = true;
}

/* The same for what is no network. */
static void use_slab_in_place(struct loading *l, struct kp_params *params,
                              const struct span *spans, float **values, bool *borrowed)
{
    for (size_t i = 0; i < params->n_tensors; i++)
        params->tensors[i].offset = spans[i].begin / sizeof(float);
    params->n_floats = l->n_data / sizeof(float);
    *values = (float *)(void *)l->data;
    *borrowed = true;
}

static size_t n_tensors_of(const struct loading *l, size_t net)
{
    bool none = (net == OF_RANKING && !l->m->ranking) || (net == OF_FOREST && !l->m->forest);
    return none ? 0 : params_of(l, net)->n_tensors;
}

static void use_others_in_place(struct loading *l, const struct span *spans)
{
    struct kp_ranking *r = l->m->ranking;
    struct kp_forest *f = l->m->forest;
    if (r && r->params.n_tensors)
        use_slab_in_place(l, &r->params, spans, &r->values, &r->borrowed);
    if (f) {
        use_slab_in_place(l, &f->params, spans + n_tensors_of(l, OF_RANKING), &f->values,
                          &f->borrowed);
        kp_forest_point(f);
    }
}

/* The tensors of one; `at`: the next span. */
static kopt_status read_tensors_of(struct loading *l, size_t net, struct span *spans,
                                   size_t *at)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < n_tensors_of(l, net); i++) {
        spans[*at] = (struct span){.net = (uint32_t)net, .tensor = (uint32_t)i};
        st = read_tensor(l, &spans[(*at)++]);
    }
    return st;
}

/* All tensors: those of the networks, then those of the ranking, then those of the forest. */
static kopt_status read_spans(struct loading *l, struct span *spans, size_t n)
{
    struct kp_model *m = l->m;
    kopt_status st = KOPT_OK;
    size_t at = 0;
    for (size_t k = 0; st == KOPT_OK && k < m->n_nets; k++)
        st = read_tensors_of(l, k, spans, &at);
    const size_t of_nets = at;
    if (st == KOPT_OK)
        st = read_tensors_of(l, OF_RANKING, spans, &at);
    if (st == KOPT_OK)
        st = read_tensors_of(l, OF_FOREST, spans, &at);
    at = 0;
    for (size_t k = 0; st == KOPT_OK && k < m->n_nets; k++) {
        use_in_place(l, m->nets[k], spans + at);
        at += n_tensors_of(l, k);
    }
    if (st == KOPT_OK)
        use_others_in_place(l, spans + of_nets);
    if (st == KOPT_OK)
        st = check_spans(l, spans, n);
    for (size_t i = 0; st == KOPT_OK && i < n; i++)
        st = check_finite(l, &spans[i]);
    if (st == KOPT_OK && m->forest)
        st = kp_forest_check(m->forest, l->err);
    for (size_t k = 0; st == KOPT_OK && k < m->n_nets; k++)
        st = kp_net_prepare(m->nets[k], l->err);
    return st;
}

static kopt_status new_net(struct loading *l, const struct kp_net_ops *ops,
                           const struct kp_net_shape *shape)
{
    struct kp_model *m = l->m;
    kopt_status st = kp_net_new(ops, shape, 0, &m->nets[m->n_nets], l->err);
    if (st == KOPT_OK)
        m->n_nets++;
    else if (st != KOPT_ENOMEM) /* too large, for example */
        st = kp_err(l->err, KOPT_EINPUT, "no network can have the sizes of 'shape'");
    return st;
}

/* All networks, the first kind's as many as the file has tensors for. */
static kopt_status new_nets(struct loading *l, size_t n_tensors)
{
    struct kp_model *m = l->m;
    kopt_status st = new_net(l, l->ops, &l->shape);
    if (st != KOPT_OK)
        return st;
    size_t per_net = m->nets[0]->params.n_tensors;
    size_t of_beside = 0;
    if (l->n_beside) {
        /* One is made to be counted; it comes to its place behind the first kind's. */
        st = new_net(l, l->beside, &l->beside_shape);
        if (st != KOPT_OK)
            return st;
        of_beside = l->n_beside * m->nets[1]->params.n_tensors;
        kp_net_free(m->nets[--m->n_nets]);
    }
    size_t of_first = n_tensors > of_beside ? n_tensors - of_beside : 0;
    if (of_first == 0 || of_first % per_net != 0 ||
        of_first / per_net + l->n_beside > KP_BEAM_NETS_MAX)
        return kp_err(l->err, KOPT_EINPUT,
                      "it has %zu tensors of networks: such a network has %zu, %zu others have "
                      "%zu, and there are 1 to %d networks",
                      n_tensors, per_net, l->n_beside, of_beside, (int)KP_BEAM_NETS_MAX);
    while (st == KOPT_OK && m->n_nets < of_first / per_net)
        st = new_net(l, l->ops, &l->shape);
    for (size_t k = 0; st == KOPT_OK && k < l->n_beside; k++)
        st = new_net(l, l->beside, &l->beside_shape);
    return st;
}

static kopt_status read_tensors(struct loading *l)
{
    size_t n = kp_json_size(l->header) - 1; /* without the metadata */
    size_t of_others = n_tensors_of(l, OF_RANKING) + n_tensors_of(l, OF_FOREST);
    kopt_status st = new_nets(l, n > of_others ? n - of_others : 0);
    if (st != KOPT_OK)
        return st;
    struct span *spans = kp_calloc(n, sizeof(*spans));
    if (!spans)
        return kp_err_nomem(l->err);
    st = read_spans(l, spans, n);
    kp_free(spans);
    return st;
}

/* --- the whole ------------------------------------------------------------------------------
 */

static kopt_status read_all(struct loading *l)
{
    kopt_status (*const parts[])(struct loading *) = {
        read_header, read_identity, read_shape,  read_beside, read_encoder, read_targets,
        read_rules,  read_ranking,  read_forest, read_info,   read_tensors};
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < sizeof(parts) / sizeof(*parts); i++)
        st = parts[i](l);
    return st;
}

kopt_status kp_model_load(const char *path, struct kp_model **out, kopt_error *err)
{
    struct kp_file_map map;
    struct loading l = {.path = path, .err = err};
    *out = NULL;
    kopt_status st = kp_file_map(path, KP_MODEL_FILE_MAX, &map, err);
    if (st == KOPT_ERANGE)
        st = kp_err(err, KOPT_EINPUT, "%s: larger than any model (%d MiB)", path,
                    KP_MODEL_FILE_MAX >> 20);
    if (st != KOPT_OK)
        return st;
    l.m = kp_calloc(1, sizeof(*l.m));
    if (!l.m) {
        kp_file_unmap(&map);
        return kp_err_nomem(err);
    }
    l.m->map = map.ptr;
    l.m->map_bytes = map.n;
    l.m->arena = KP_ARENA_INIT(KP_MODEL_ARENA_MAX);
    st = read_all(&l);
    if (st == KOPT_OK)
        st = kp_model_keep_spaces(l.m, err);
    kp_json_free(l.header);
    if (st != KOPT_OK) {
        if (st != KOPT_ENOMEM)
            kp_err_wrap(err, "%s", path);
        kp_model_free(l.m);
        return st;
    }
    *out = l.m;
    return KOPT_OK;
}
