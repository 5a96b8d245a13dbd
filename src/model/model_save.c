/* SPDX-License-Identifier: MIT */
/* Writing a model's file. Layer: model.
 *
 * The format has no room between tensors, so those whose size is a multiple of 64 bytes, nearly
 * all that are large, go first: each of them is then aligned. */
#include "model/forest.h"
#include "model/model_impl.h"
#include "model/ranking.h"

#include "base/alloc.h"
#include "os/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#    error "the file's numbers are little-endian and used where they lie"
#endif

struct writer {
    const struct kp_model *m;
    struct kp_buf header;
    struct kp_str *pieces; /* of the file: the header's length, the header, the tensors */
    size_t n_pieces;
    size_t at; /* of the next tensor in the data */
    kopt_error *err;
};

/* --- metadata -------------------------------------------------------------------------------
 */

static kopt_status add_text(struct writer *w, const char *key, struct kp_str text)
{
    if (!kp_json_is_utf8(text))
        return kp_err(w->err, KOPT_EINPUT, "'%s' is not UTF-8", key);
    kp_buf_adds(&w->header, w->header.ptr[w->header.len - 1] == '{' ? "" : ",");
    kp_json_quote(kp_str_from(key), &w->header);
    kp_buf_addc(&w->header, ':');
    kp_json_quote(text, &w->header);
    return kp_buf_status(&w->header, w->err);
}

/* Takes over `text`. */
static kopt_status add_buf(struct writer *w, const char *key, struct kp_buf *text)
{
    struct kp_str s = {kp_buf_text(text), text->len};
    kopt_status st = kp_buf_status(text, w->err);
    if (st == KOPT_OK && !kp_model_json_is_small(s))
        st = kp_err(w->err, KOPT_ERANGE, "'%s' has too many values", key);
    if (st == KOPT_OK)
        st = add_text(w, key, s);
    kp_buf_deinit(text);
    return st;
}

/* Takes over `j`, which is NULL where there was no memory. */
static kopt_status add_json(struct writer *w, const char *key, struct kp_json *j)
{
    struct kp_buf text = KP_BUF_INIT(KP_MODEL_HEADER_MAX);
    if (!j)
        return kp_err_nomem(w->err);
    kp_json_dump(j, &text);
    kp_json_free(j);
    return add_buf(w, key, &text);
}

static kopt_status add_targets(struct writer *w)
{
    struct kp_buf text = KP_BUF_INIT(KP_MODEL_HEADER_MAX);
    const struct kp_model *m = w->m;
    for (size_t p = 0; p < m->n_targets; p++) {
        const struct kp_target *t = &m->targets[p];
        bool good = kp_json_is_utf8(kp_str_from(t->name));
        for (uint32_t v = 0; good && v < t->n_values; v++)
            good = t->values[v].type != KP_STRING || kp_json_is_utf8(t->values[v].as.s);
        if (!good)
            return kp_err(w->err, KOPT_EINPUT, "'targets': '%s' or a value is not UTF-8",
                          t->name);
    }
    kp_model_targets_write(m->targets, m->n_targets, &text);
    return add_buf(w, "targets", &text);
}

static kopt_status add_rules(struct writer *w)
{
    const struct kp_model *m = w->m;
    if (!m->rules)
        return KOPT_OK;
    const char *slash = strrchr(m->rules_path, '/');
    kopt_status st = add_text(w, "rules_name", kp_str_from(slash ? slash + 1 : m->rules_path));
    return st == KOPT_OK ? add_text(w, "rules", m->rules_text) : st;
}

/* Networks of a second kind: {"model":"attention","nets":3,"shape":{..}} */
static kopt_status add_beside(struct writer *w, size_t first)
{
    const struct kp_net *net = w->m->nets[first];
    struct kp_json *j = kp_json_new_object();
    if (!(j && kp_json_set_str(j, "model", net->ops->name) &&
          kp_json_set_i64(j, "nets", (int64_t)(w->m->n_nets - first)) &&
          kp_json_set(j, "shape", kp_net_shape_to_json(&net->shape)))) {
        kp_json_free(j);
        return kp_err_nomem(w->err);
    }
    return add_json(w, "beside", j);
}

static kopt_status add_networks(struct writer *w)
{
    size_t first = kp_model_n_first(w->m);
    kopt_status st = add_text(w, "model", kp_str_from(w->m->nets[0]->ops->name));
    if (st == KOPT_OK)
        st = add_json(w, "shape", kp_net_shape_to_json(&w->m->nets[0]->shape));
    return st == KOPT_OK && first < w->m->n_nets ? add_beside(w, first) : st;
}

static kopt_status add_metadata(struct writer *w)
{
    const struct kp_model *m = w->m;
    struct kp_buf n_raw = KP_BUF_INIT(32);
    kp_buf_addf(&w->header, "{\"%s\":{", KP_MODEL_METADATA);
    kopt_status st = kp_buf_status(&w->header, w->err);
    if (st == KOPT_OK)
        st = add_text(w, "format", KP_STR(KP_MODEL_FORMAT));
    if (st == KOPT_OK)
        st = add_text(w, "version", KP_STR(KP_MODEL_VERSION));
    if (st == KOPT_OK)
        st = add_text(w, "kernel", kp_str_from(m->kernel));
    if (st == KOPT_OK)
        st = add_networks(w);
    if (st == KOPT_OK)
        st = add_json(w, "encoder", kp_encoder_to_json(m->encoder));
    kp_buf_addf(&n_raw, "%zu", m->n_raw);
    if (st == KOPT_OK)
        st = add_buf(w, "fields", &n_raw);
    if (st == KOPT_OK)
        st = add_targets(w);
    if (st == KOPT_OK)
        st = add_rules(w);
    if (st == KOPT_OK && m->ranking)
        st = add_json(w, "ranking", kp_ranking_to_json(m->ranking));
    if (st == KOPT_OK && m->forest)
        st = add_json(w, "forest", kp_forest_to_json(m->forest));
    if (st == KOPT_OK)
        st = add_json(w, "info", m->info ? kp_json_dup(m->info) : kp_json_new_object());
    kp_buf_deinit(&n_raw);
    kp_buf_addc(&w->header, '}');
    return st;
}

/* --- tensors --------------------------------------------------------------------------------
 */

static size_t bytes_of(const struct kp_tensor *t)
{
    return t->rows * t->cols * sizeof(float);
}

static kopt_status add_tensor(struct writer *w, const char *name, const float *x,
                              const struct kp_tensor *t)
{
    size_t n = bytes_of(t);
    for (size_t i = 0; i < t->rows * t->cols; i++)
        if (!isfinite(x[i]))
            return kp_err(w->err, KOPT_EINPUT, "tensor '%s' has a number that is not finite",
                          name);
    if (n > (size_t)KP_MODEL_FILE_MAX - KP_MODEL_HEADER_MAX - KP_MODEL_ALIGN - w->at)
        return kp_err(w->err, KOPT_ERANGE, "the parameters need more than %d MiB",
                      (KP_MODEL_FILE_MAX - KP_MODEL_HEADER_MAX) >> 20);
    kp_buf_adds(&w->header, ",");
    kp_json_quote(kp_str_from(name), &w->header);
    kp_buf_adds(&w->header, ":{\"dtype\":\"F32\",\"shape\":[");
    if (t->rows != 1)
        kp_buf_addf(&w->header, "%zu,", t->rows);
    kp_buf_addf(&w->header, "%zu],\"data_offsets\":[%zu,%zu]}", t->cols, w->at, w->at + n);
    w->pieces[w->n_pieces++] = (struct kp_str){(const char *)x, n};
    w->at += n;
    return kp_buf_status(&w->header, w->err);
}

/* Of what is no network. */
static kopt_status add_slab(struct writer *w, const struct kp_params *params,
                            const float *values, bool aligned)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < params->n_tensors; i++) {
        const struct kp_tensor *t = &params->tensors[i];
        if ((bytes_of(t) % KP_MODEL_ALIGN == 0) == aligned)
            st = add_tensor(w, t->name, values + t->offset, t);
    }
    return st;
}

static kopt_status add_tensors(struct writer *w, bool aligned)
{
    const struct kp_ranking *r = w->m->ranking;
    const struct kp_forest *f = w->m->forest;
    kopt_status st = r ? add_slab(w, &r->params, r->values, aligned) : KOPT_OK;
    if (st == KOPT_OK && f)
        st = add_slab(w, &f->params, f->values, aligned);
    for (size_t k = 0; k < w->m->n_nets; k++) {
        const struct kp_params *params = &w->m->nets[k]->params;
        for (size_t i = 0; st == KOPT_OK && i < params->n_tensors; i++) {
            const struct kp_tensor *t = &params->tensors[i];
            char name[KP_MODEL_TENSOR_NAME];
            kp_model_tensor_name(k, t, name);
            if ((bytes_of(t) % KP_MODEL_ALIGN == 0) == aligned)
                st = add_tensor(w, name, w->m->nets[k]->values + t->offset, t);
        }
    }
    return st;
}

static kopt_status end_header(struct writer *w)
{
    kp_buf_addc(&w->header, '}');
    while (w->header.failed == KOPT_OK &&
           (w->header.len + KP_MODEL_LENGTH_BYTES) % KP_MODEL_ALIGN != 0)
        kp_buf_addc(&w->header, ' ');
    kopt_status st = kp_buf_status(&w->header, w->err);
    if (st == KOPT_OK &&
        !kp_model_json_is_small((struct kp_str){kp_buf_text(&w->header), w->header.len}))
        st = kp_err(w->err, KOPT_ERANGE, "the networks have too many matrices for one file");
    return st;
}

kopt_status kp_model_save(const struct kp_model *m, const char *path, kopt_error *err)
{
    struct writer w = {.m = m, .header = KP_BUF_INIT(KP_MODEL_HEADER_MAX), .err = err};
    kopt_status st = KOPT_OK;
    KP_CHECK(m->n_nets >= 1 && m->n_nets <= KP_BEAM_NETS_MAX);
    size_t n_tensors = 0;
    for (size_t k = 0; k < m->n_nets; k++)
        n_tensors += m->nets[k]->params.n_tensors;
    n_tensors += m->ranking ? m->ranking->params.n_tensors : 0;
    n_tensors += m->forest ? m->forest->params.n_tensors : 0;
    w.pieces = kp_calloc(n_tensors + 2, sizeof(*w.pieces));
    if (!w.pieces)
        return kp_err_nomem(err);
    w.n_pieces = 2;
    st = add_metadata(&w);
    if (st == KOPT_OK)
        st = add_tensors(&w, true);
    if (st == KOPT_OK)
        st = add_tensors(&w, false);
    if (st == KOPT_OK)
        st = end_header(&w);
    if (st == KOPT_OK) {
        uint64_t length = w.header.len;
        w.pieces[0] = (struct kp_str){(const char *)&length, sizeof(length)};
        w.pieces[1] = (struct kp_str){kp_buf_text(&w.header), w.header.len};
        st = kp_file_replace(path, w.pieces, w.n_pieces, err);
    } else {
        kp_err_wrap(err, "%s", path);
    }
    kp_buf_deinit(&w.header);
    kp_free(w.pieces);
    return st;
}
