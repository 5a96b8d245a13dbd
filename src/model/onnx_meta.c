/* SPDX-License-Identifier: MIT */
/* What an ONNX file says of itself: entries of keys and values, most of them JSON.
 * Layer: model.
 *
 * kopt.ranking, of models that rank:
 *   {"columns":[{"kind":"coordinate","feature":0,"field":"M"},
 *               {"kind":"ratio","field":"M","target":"BM","mean":..,"scale":..},..],
 *    "formulas":{"coordinate":"..",..}, "standardised":"..", "clip":5, "temperature":0.1,
 *    "units":.., "configs":[[0,2,1],..]} */
#include "model/encoder_impl.h"
#include "model/model_impl.h"
#include "model/onnx_graph.h"

enum { MODEL_METADATA = 14 };

static const char *const formulas[KP_PAIR_KINDS] = {
    [KP_PAIR_PARAM] = "log2(1 + |v|), v: the value of 'target'",
    [KP_PAIR_IS] = "1 where 'target' has 'value', else 0",
    [KP_PAIR_LET] = "log2(1 + |v|), v: what 'let' of kopt.rules gives",
    [KP_PAIR_GRID] = "log2(1 + g), g: groups, the product of the grid of kopt.rules",
    [KP_PAIR_BLOCK] = "log2(1 + b), b: work-items of a group, the product of the block of "
                      "kopt.rules",
    [KP_PAIR_SHARED] = "log2(1 + s), s: bytes of dynamic shared memory, by kopt.rules",
    [KP_PAIR_RATIO] = "log2((1 + |f|) / (1 + |v|)), f: the problem's 'field', v: the value of "
                      "'target'",
    [KP_PAIR_REST] = "f / v - floor(f / v), or 0 where v is not above 0; f: the problem's "
                     "'field', v: the value of 'target'",
    [KP_PAIR_WAVES] = "log2(w), w = g / 'units' (g where they are 0), g: groups",
    [KP_PAIR_TAIL] = "ceil(w) - w, w = g / 'units' (g where they are 0), g: groups",
    [KP_PAIR_FILL] = "w / ceil(w), w = g / 'units' (g where they are 0), g: groups",
    [KP_PAIR_THREADS] = "log2(1 + g b), g: groups, b: work-items of a group"};
static const char coordinate[] = "number 'feature' of the features of kopt.encoder, as it is";
static const char standardised[] =
    "(x - mean) scale, cut to -'clip' .. 'clip'; 0 where x cannot be computed";

static void add_entry(struct kp_buf *out, const char *key, struct kp_str value)
{
    enum { KEY = 1, VALUE = 2 };
    size_t at = kp_onnx_begin(out, MODEL_METADATA);
    kp_onnx_text(out, KEY, key);
    kp_onnx_str(out, VALUE, value);
    kp_onnx_end(out, at);
}

/* --- pieces of JSON -------------------------------------------------------------------------
 */

/* ,"key": */
static void add_key(struct kp_buf *text, const char *key)
{
    if (text->len && text->ptr[text->len - 1] != '{')
        kp_buf_addc(text, ',');
    kp_json_quote(kp_str_from(key), text);
    kp_buf_addc(text, ':');
}

static void add_text(struct kp_buf *text, const char *key, const char *value)
{
    add_key(text, key);
    kp_json_quote(kp_str_from(value), text);
}

static void add_number(struct kp_buf *text, const char *key, double x)
{
    add_key(text, key);
    kp_value_to_json(kp_float(x), text);
}

/* [{"name":"BM","values":[16,32]},..] */
static void targets_text(const struct kp_model *m, struct kp_buf *text)
{
    for (size_t p = 0; p < m->n_targets; p++) {
        const struct kp_target *t = &m->targets[p];
        kp_buf_adds(text, p ? ",{\"name\":" : "[{\"name\":");
        kp_json_quote(kp_str_from(t->name), text);
        for (uint32_t v = 0; v < t->n_values; v++) {
            kp_buf_adds(text, v ? "," : ",\"values\":[");
            kp_value_to_json(t->values[v], text);
        }
        kp_buf_adds(text, "]}");
    }
    kp_buf_adds(text, "]");
}

/* --- ranking --------------------------------------------------------------------------------
 */

static void coordinate_text(const struct kp_model *m, uint32_t feature, struct kp_buf *text)
{
    const struct kp_encoder *e = m->encoder;
    kp_buf_addc(text, '{');
    add_text(text, "kind", "coordinate");
    add_key(text, "feature");
    kp_buf_addf(text, "%u", feature);
    add_text(text, "field", e->fields[e->features[feature].field].name);
    kp_buf_addc(text, '}');
}

static void pair_text(const struct kp_model *m, const struct kp_pair *p, struct kp_buf *text)
{
    bool of_field = p->kind == KP_PAIR_RATIO || p->kind == KP_PAIR_REST;
    kp_buf_addc(text, '{');
    add_text(text, "kind", kp_pair_kind_name(p->kind));
    if (of_field)
        add_text(text, "field", kp_encoder_field(m->encoder, p->a)->name);
    if (of_field)
        add_text(text, "target", m->targets[p->b].name);
    if (p->kind == KP_PAIR_PARAM || p->kind == KP_PAIR_IS)
        add_text(text, "target", m->targets[p->a].name);
    if (p->kind == KP_PAIR_IS) {
        add_key(text, "value");
        kp_value_to_json(m->targets[p->a].values[p->b], text);
    }
    if (p->kind == KP_PAIR_LET)
        add_text(text, "let", m->rules->lets[p->a].name);
    add_number(text, "mean", p->mean);
    add_number(text, "scale", p->scale);
    kp_buf_addc(text, '}');
}

static void configs_text(const struct kp_ranking *r, struct kp_buf *text)
{
    add_key(text, "configs");
    for (size_t c = 0; c < r->n_configs; c++) {
        kp_buf_adds(text, c ? ",[" : "[[");
        for (size_t t = 0; t < r->n_targets; t++)
            kp_buf_addf(text, t ? ",%u" : "%u", r->configs[c * r->n_targets + t]);
        kp_buf_addc(text, ']');
    }
    kp_buf_addc(text, ']');
}

static void ranking_text(const struct kp_model *m, struct kp_buf *text)
{
    const struct kp_ranking *r = m->ranking;
    kp_buf_adds(text, "{\"columns\":[");
    for (size_t i = 0; i < r->n_coordinates; i++) {
        kp_buf_adds(text, i ? "," : "");
        coordinate_text(m, r->coordinates[i], text);
    }
    for (size_t i = 0; i < r->n_pairs; i++) {
        kp_buf_adds(text, i || r->n_coordinates ? "," : "");
        pair_text(m, &r->pairs[i], text);
    }
    kp_buf_adds(text, "],\"formulas\":{");
    add_text(text, "coordinate", coordinate);
    for (int k = 0; k < KP_PAIR_KINDS; k++)
        add_text(text, kp_pair_kind_name((enum kp_pair_kind)k), formulas[k]);
    kp_buf_addc(text, '}');
    add_text(text, "standardised", standardised);
    add_number(text, "clip", KP_PAIR_CLIP);
    add_number(text, "temperature", KP_RANK_TEMPERATURE);
    add_number(text, "units", r->units);
    configs_text(r, text);
    kp_buf_addc(text, '}');
}

/* --- the entries ----------------------------------------------------------------------------
 */

/* What `text` has, which is then empty. */
static kopt_status flush(struct kp_buf *out, const char *key, struct kp_buf *text,
                         kopt_error *err)
{
    kopt_status st = kp_buf_status(text, err);
    if (st == KOPT_OK)
        add_entry(out, key, (struct kp_str){kp_buf_text(text), text->len});
    kp_buf_clear(text);
    return st;
}

static kopt_status write_rules(const struct kp_model *m, struct kp_buf *out,
                               struct kp_buf *text, kopt_error *err)
{
    if (!kp_json_is_utf8(m->rules_text))
        return kp_err(err, KOPT_EINPUT, "the rules are not UTF-8");
    add_entry(out, "kopt.rules", m->rules_text);
    kp_buf_addf(text, "%zu", m->n_raw);
    return flush(out, "kopt.fields", text, err);
}

static kopt_status write_entries(const struct kp_model *m, struct kp_buf *out,
                                 struct kp_buf *text, kopt_error *err)
{
    struct kp_json *encoder = kp_encoder_to_json(m->encoder);
    if (!encoder)
        return kp_err_nomem(err);
    add_entry(out, "kopt.kernel", kp_str_from(m->kernel));
    targets_text(m, text);
    kopt_status st = flush(out, "kopt.targets", text, err);
    if (st == KOPT_OK) {
        kp_json_dump(encoder, text);
        st = flush(out, "kopt.encoder", text, err);
    }
    kp_json_free(encoder);
    if (st == KOPT_OK && m->rules)
        st = write_rules(m, out, text, err);
    if (st == KOPT_OK && m->ranking) {
        ranking_text(m, text);
        st = flush(out, "kopt.ranking", text, err);
    }
    return st;
}

kopt_status kp_onnx_metadata(const struct kp_model *m, struct kp_buf *out, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(out->max);
    kopt_status st = write_entries(m, out, &text, err);
    kp_buf_deinit(&text);
    return st;
}
