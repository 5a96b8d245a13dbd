/* SPDX-License-Identifier: MIT */
/* The choice of a configuration at run time: what was measured, what a model predicts, what was
 * measured for another problem. Layer: api. */
#include "api/answers.h"
#include "api/kopt_model.h"
#include "api/pairs.h"
#include "base/alloc.h"
#include "kopt/store.h"
#include "store/store.h"

#include <math.h>

enum { BUSY_MS = 5000, MODELS_MAX = 64, NAMES_MAX = KP_FIELDS_MAX + KP_PARAMS_MAX, MASK = 64 };

/* A model that is asked where nothing was measured. */
struct advisor {
    const kopt_model *m;
    struct kp_limits limits;
    bool has_limits;
    size_t width;
    const char *names[NAMES_MAX]; /* that a problem may have */
    size_t n_names;
    size_t n_words; /* of a problem as a key: which names are given, and their values */
    struct kp_answers *answers;
};

struct kopt_selector {
    struct kp_select *select; /* NULL: no store */
    struct advisor *advisors[MODELS_MAX];
    size_t n_advisors;
};

/* --- life --------------------------------------------------------------------------------- */

static kopt_status load(const char *store, const char *device, kopt_selector *s,
                        kopt_error *err)
{
    struct kp_store *db = NULL;
    kopt_status st = kp_store_open(store, KP_STORE_READ, BUSY_MS, &db, err);
    if (st == KOPT_OK)
        st = kp_select_load(db, device ? device : "", &s->select, err);
    kp_store_close(db);
    return st;
}

kopt_status kopt_selector_open(const char *store, const char *device, kopt_selector **out,
                               kopt_error *err)
{
    *out = NULL;
    kopt_selector *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    kopt_status st = store ? load(store, device, s, err) : KOPT_OK;
    if (st == KOPT_OK)
        *out = s;
    else
        kopt_selector_close(s);
    return st;
}

static void advisor_free(struct advisor *a)
{
    if (!a)
        return;
    kp_answers_free(a->answers);
    kp_free(a);
}

void kopt_selector_close(kopt_selector *s)
{
    if (!s)
        return;
    kp_select_free(s->select);
    for (size_t i = 0; i < s->n_advisors; i++)
        advisor_free(s->advisors[i]);
    kp_free(s);
}

/* --- models ------------------------------------------------------------------------------- */

static const struct advisor *find_advisor(const kopt_selector *s, const char *kernel)
{
    for (size_t i = 0; i < s->n_advisors; i++)
        if (strcmp(s->advisors[i]->m->model->kernel, kernel) == 0)
            return s->advisors[i];
    return NULL;
}

/* The model's fields, then what its rules ask for beside them. */
static void list_names(struct advisor *a)
{
    const struct kp_model *m = a->m->model;
    for (size_t i = 0; i < m->n_raw && a->n_names < NAMES_MAX; i++)
        a->names[a->n_names++] = kp_encoder_field(m->encoder, i)->name;
    size_t n_fields = a->n_names;
    for (size_t i = 0; m->rules && i < m->rules->n_problem && a->n_names < NAMES_MAX; i++) {
        size_t k = 0;
        while (k < n_fields && strcmp(a->names[k], m->rules->problem[i]) != 0)
            k++;
        if (k == n_fields)
            a->names[a->n_names++] = m->rules->problem[i];
    }
    a->n_words = (a->n_names + MASK - 1) / MASK + a->n_names;
}

kopt_status kopt_selector_add_model(kopt_selector *s, const kopt_model *m,
                                    const kopt_predict_options *o, kopt_error *err)
{
    static const kopt_predict_options defaults = {.struct_bytes = sizeof(defaults)};
    o = o ? o : &defaults;
    kopt_status st = kp_model_check_options(o, err);
    if (st != KOPT_OK)
        return st;
    if (o->top > 1 || o->unconstrained || o->width > KP_BEAM_WIDTH_MAX)
        return kp_err(err, KOPT_EUSAGE,
                      "a selector takes the first prediction that satisfies the rules, of a "
                      "beam of at most %d",
                      (int)KP_BEAM_WIDTH_MAX);
    if (find_advisor(s, m->model->kernel))
        return kp_err(err, KOPT_EUSAGE, "the selector has a model of '%s'", m->model->kernel);
    if (s->n_advisors == MODELS_MAX)
        return kp_err(err, KOPT_ERANGE, "a selector has %d models at most", (int)MODELS_MAX);
    struct advisor *a = kp_calloc(1, sizeof(*a));
    if (!a)
        return kp_err_nomem(err);
    a->m = m;
    a->width = o->width;
    list_names(a);
    st = kp_model_limits(m, o, &a->limits, &a->has_limits, err);
    if (st == KOPT_OK) {
        a->answers = kp_answers_new(a->n_words, m->model->n_targets);
        st = a->answers ? KOPT_OK : kp_err_nomem(err);
    }
    if (st == KOPT_OK)
        s->advisors[s->n_advisors++] = a;
    else
        advisor_free(a);
    return st;
}

/* --- asking a model ----------------------------------------------------------------------- */

struct query {
    const char *const *names;
    const int64_t *values;
    size_t n;
};

/* Callers mostly have the names in the model's order, so each is looked for where the one
 * before was found. False: a name that the model does not have, or one twice. */
static bool make_key(const struct advisor *a, const struct query *q, uint64_t *key)
{
    size_t n_masks = a->n_words - a->n_names;
    size_t at = 0;
    memset(key, 0, a->n_words * sizeof(*key));
    for (size_t i = 0; i < q->n; i++) {
        size_t tried = 0;
        while (tried < a->n_names && strcmp(a->names[at], q->names[i]) != 0) {
            at = at + 1 < a->n_names ? at + 1 : 0;
            tried++;
        }
        uint64_t bit = (uint64_t)1 << (at % MASK);
        if (tried == a->n_names || (key[at / MASK] & bit) != 0)
            return false;
        key[at / MASK] |= bit;
        key[n_masks + at] = (uint64_t)q->values[i];
        at = at + 1 < a->n_names ? at + 1 : 0;
    }
    return true;
}

static void write_text(void *user, const uint32_t *config, char *to)
{
    const struct advisor *const *a = user;
    (void)kp_config_write(&(*a)->m->texts, config, KP_CONFIG_KEY, to);
}

/* False: no answer, which `lasting` says is worth remembering. */
static bool ask(const struct advisor *a, const struct query *q, struct kp_answer *out,
                bool *lasting)
{
    struct kp_given given[NAMES_MAX];
    struct kp_prediction got;
    const struct kp_predict_options o = {
        .k = 1, .width = a->width, .limits = a->has_limits ? &a->limits : NULL};
    for (size_t i = 0; i < q->n; i++)
        given[i] = (struct kp_given){q->names[i], kp_int(q->values[i])};
    kopt_status st = kp_model_predict(a->m->model, given, q->n, &o, &got, NULL);
    *lasting = st == KOPT_ENOTFOUND || st == KOPT_EUSAGE;
    *out = (struct kp_answer){0};
    if (st != KOPT_OK)
        return false;
    if (got.n > 0) {
        size_t bytes = kp_config_bytes(&a->m->texts, got.configs, KP_CONFIG_KEY);
        out->config = kp_answers_add_text(a->answers, got.configs, bytes, write_text, &a);
        out->probability = exp(got.logp[0]);
    }
    kp_prediction_deinit(&got);
    return out->config != NULL;
}

static bool advise(const struct advisor *a, const struct query *q, kopt_selection *out)
{
    uint64_t key[NAMES_MAX + NAMES_MAX / MASK + 1];
    struct kp_answer answer;
    bool lasting = true;
    if (!make_key(a, q, key))
        return false;
    if (!kp_answers_find(a->answers, key, &answer)) {
        bool known = ask(a, q, &answer, &lasting);
        if (known || lasting)
            kp_answers_put(a->answers, key, answer);
    }
    if (!answer.config)
        return false;
    *out = (kopt_selection){.how = KOPT_SELECT_MODEL,
                            .config = answer.config,
                            .confidence = answer.probability,
                            .distance = (double)NAN,
                            .median_ns = (double)NAN};
    return true;
}

/* --- choosing ----------------------------------------------------------------------------- */

static void give(const struct kp_selected *found, kopt_selection *out)
{
    static const kopt_select_how how[] = {[KP_SELECT_NONE] = KOPT_SELECT_NONE,
                                          [KP_SELECT_EXACT] = KOPT_SELECT_EXACT,
                                          [KP_SELECT_NEAREST] = KOPT_SELECT_NEAREST,
                                          [KP_SELECT_OTHER] = KOPT_SELECT_OTHER};
    *out = (kopt_selection){.how = how[found->how],
                            .config = found->config ? found->config : "",
                            .confidence = found->confidence,
                            .distance = found->distance,
                            .median_ns = found->median_ns};
}

void kopt_select(const kopt_selector *s, const char *kernel, const char *const *names,
                 const int64_t *values, size_t n, kopt_selection *out)
{
    struct kp_selected found = {
        .config = "", .how = KP_SELECT_NONE, .distance = (double)NAN, .median_ns = (double)NAN};
    const struct query q = {names, values, n};
    if (s->select && kp_select_exact(s->select, kernel, names, values, n, &found)) {
        give(&found, out);
        return;
    }
    const struct advisor *a = find_advisor(s, kernel);
    if (a && advise(a, &q, out))
        return;
    if (s->select)
        kp_select_near(s->select, kernel, names, values, n, &found);
    give(&found, out);
}

int64_t kopt_selection_int(const kopt_selection *c, const char *name, int64_t missing)
{
    int64_t value = missing;
    return kp_pairs_int(c->config, name, &value) ? value : missing;
}
