/* SPDX-License-Identifier: MIT */
/* Kernel files and spaces for other programs. Layer: api. */
#include "kopt/space.h"
#include "api/limits.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "space/kernel.h"

#include <stdio.h>

enum { TEXT_MAX = 1 << 20 };

struct kopt_kernel {
    struct kp_kernel *kernel;
};

struct kopt_space {
    struct kp_bound *bound;
    struct kp_buf problem;
};

kopt_status kopt_kernel_load(const char *path, kopt_kernel **out, kopt_error *err)
{
    *out = NULL;
    kopt_kernel *k = kp_calloc(1, sizeof(*k));
    if (!k)
        return kp_err_nomem(err);
    kopt_status st = kp_kernel_load(path, false, &k->kernel, err);
    if (st != KOPT_OK) {
        kp_free(k);
        return st;
    }
    *out = k;
    return KOPT_OK;
}

void kopt_kernel_free(kopt_kernel *k)
{
    if (!k)
        return;
    kp_kernel_free(k->kernel);
    kp_free(k);
}

const char *kopt_kernel_name(const kopt_kernel *k)
{
    return k->kernel->name;
}

const char *kopt_kernel_language(const kopt_kernel *k)
{
    return k->kernel->lang == KP_LANG_CUDA ? "cuda" : "opencl";
}

size_t kopt_kernel_n_problem(const kopt_kernel *k)
{
    return k->kernel->n_problem;
}

const char *kopt_kernel_problem_name(const kopt_kernel *k, size_t i)
{
    return i < k->kernel->n_problem ? k->kernel->problem[i] : "";
}

int kopt_kernel_problem_default(const kopt_kernel *k, size_t i, int64_t *value)
{
    const struct kp_kernel *kernel = k->kernel;
    if (i >= kernel->n_problem || !kernel->has_problem_default[i] ||
        kernel->problem_default[i].type != KP_INT)
        return 0;
    *value = kernel->problem_default[i].as.i;
    return 1;
}

/* --- spaces ------------------------------------------------------------------------------- */

static kopt_status new_space(const struct kp_kernel *k, const char *const *problem,
                             size_t n_problem, const struct kp_limits *limits, kopt_space **out,
                             kopt_error *err)
{
    kopt_space *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->problem.max = TEXT_MAX;
    kopt_status st = kp_kernel_bind(k, problem, n_problem, limits, &s->bound, err);
    if (st == KOPT_OK) {
        kp_bound_problem_json(s->bound, &s->problem);
        st = kp_buf_status(&s->problem, err);
    }
    if (st != KOPT_OK) {
        kopt_space_free(s);
        return st;
    }
    *out = s;
    return KOPT_OK;
}

kopt_status kopt_space_new(const kopt_kernel *k, const char *const *problem, size_t n_problem,
                           const char *device, kopt_space **out, kopt_error *err)
{
    struct kp_limits limits = {0};
    unsigned used = 0;
    *out = NULL;
    kopt_status st = kp_limits_used(k->kernel, &used, err);
    /* A device that was asked for must be there, whether a rule uses it or not. */
    if (st == KOPT_OK && (used || device)) {
        st = kp_limits_of_device(k->kernel, device, &limits, err);
        if (st != KOPT_OK && !device)
            kp_err_wrap(err, "%s: its rules need a device's limits", k->kernel->path);
    }
    if (st == KOPT_EENV) { /* what is wrong with the problem is worth knowing first */
        kopt_error first;
        if (new_space(k->kernel, problem, n_problem, &limits, out, &first) == KOPT_EUSAGE) {
            if (err)
                *err = first;
            return KOPT_EUSAGE;
        }
        kopt_space_free(*out);
        *out = NULL;
    }
    if (st != KOPT_OK)
        return st;
    return new_space(k->kernel, problem, n_problem, &limits, out, err);
}

kopt_status kopt_space_new_limits(const kopt_kernel *k, const char *const *problem,
                                  size_t n_problem, const char *limits, kopt_space **out,
                                  kopt_error *err)
{
    struct kp_limits numbers = {0};
    *out = NULL;
    kopt_status st = kp_limits_by_hand(k->kernel, limits, &numbers, err);
    if (st != KOPT_OK)
        return st;
    return new_space(k->kernel, problem, n_problem, &numbers, out, err);
}

void kopt_space_free(kopt_space *s)
{
    if (!s)
        return;
    kp_bound_free(s->bound);
    kp_buf_deinit(&s->problem);
    kp_free(s);
}

const char *kopt_space_problem(const kopt_space *s)
{
    return kp_buf_text(&s->problem);
}

double kopt_space_cartesian(const kopt_space *s)
{
    return kp_space_cartesian(s->bound->space);
}

uint64_t kopt_space_count(const kopt_space *s)
{
    return kp_space_count(s->bound->space);
}

size_t kopt_space_n_params(const kopt_space *s)
{
    return kp_space_n_params(s->bound->space);
}

const char *kopt_space_param_name(const kopt_space *s, size_t i)
{
    return i < kopt_space_n_params(s) ? kp_space_param(s->bound->space, i)->name : "";
}

size_t kopt_space_n_values(const kopt_space *s, size_t i)
{
    return i < kopt_space_n_params(s) ? kp_space_param(s->bound->space, i)->n_values : 0;
}

/* Copy a text out and free it; returns its whole length. */
static size_t give(struct kp_buf *text, char *out, size_t bytes)
{
    size_t len = text->len;
    if (bytes)
        (void)snprintf(out, bytes, "%s", kp_buf_text(text));
    kp_buf_deinit(text);
    return len;
}

size_t kopt_space_value(const kopt_space *s, size_t i, size_t value, char *out, size_t bytes)
{
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX);
    if (i < kopt_space_n_params(s) && value < kopt_space_n_values(s, i))
        kp_value_to_text(kp_space_param(s->bound->space, i)->values[value], &text);
    return give(&text, out, bytes);
}

kopt_status kopt_space_at(const kopt_space *s, uint64_t rank, uint32_t *config, kopt_error *err)
{
    return kp_space_at(s->bound->space, rank, config, err);
}

kopt_status kopt_space_sample(const kopt_space *s, uint64_t seed, size_t n, uint32_t *config,
                              kopt_error *err)
{
    if (kopt_space_count(s) == 0)
        return kp_err(err, KOPT_EFAILED, "no configuration satisfies every rule");
    struct kp_rng rng;
    kp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++)
        kp_space_sample(s->bound->space, &rng, config + i * kopt_space_n_params(s));
    return KOPT_OK;
}

/* Indices come from outside. */
static bool in_range(const kopt_space *s, const uint32_t *config)
{
    for (size_t i = 0; i < kopt_space_n_params(s); i++)
        if (config[i] >= kopt_space_n_values(s, i))
            return false;
    return true;
}

size_t kopt_space_config_text(const kopt_space *s, const uint32_t *config, char *out,
                              size_t bytes)
{
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX);
    if (in_range(s, config))
        kp_space_config_text(s->bound->space, config, &text);
    return give(&text, out, bytes);
}

size_t kopt_space_config_json(const kopt_space *s, const uint32_t *config, char *out,
                              size_t bytes)
{
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX);
    if (in_range(s, config))
        kp_space_config_json(s->bound->space, config, &text);
    return give(&text, out, bytes);
}

/* --- configurations from text ------------------------------------------------------------- */

static bool is_separator(char c)
{
    return c == ',' || c == ' ';
}

/* The value of `p` that stands at the start of `text`: the longest text that is one as written,
 * since a string may hold a separator, else what is meant. Errors: KOPT_EUSAGE, KOPT_ENOMEM. */
static kopt_status match_value(const struct kp_param *p, struct kp_str text, uint32_t *index,
                               size_t *used, kopt_error *err)
{
    struct kp_buf value = KP_BUF_INIT(TEXT_MAX);
    kopt_status st = KOPT_OK;
    bool found = false;
    *used = 0;
    for (uint32_t i = 0; i < p->n_values && st == KOPT_OK; i++) {
        kp_buf_clear(&value);
        kp_value_to_text(p->values[i], &value);
        st = kp_buf_status(&value, err);
        size_t n = value.len;
        if (n < text.len && !is_separator(text.ptr[n]))
            continue;
        if (st != KOPT_OK || n > text.len || memcmp(text.ptr, kp_buf_text(&value), n) != 0 ||
            (found && n <= *used))
            continue;
        found = true;
        *index = i;
        *used = n;
    }
    kp_buf_deinit(&value);
    if (st != KOPT_OK || found)
        return st;
    size_t n = 0;
    while (n < text.len && !is_separator(text.ptr[n]))
        n++;
    *used = n;
    for (uint32_t i = 0; i < p->n_values; i++) {
        *index = i;
        if (kp_value_means(p->values[i], (struct kp_str){text.ptr, n}))
            return KOPT_OK;
    }
    return kp_err(err, KOPT_EUSAGE, "%s has no value '%.*s'", p->name, (int)n, text.ptr);
}

static const struct kp_param *find_param(const kopt_space *s, struct kp_str name, size_t *index)
{
    for (size_t i = 0; i < kopt_space_n_params(s); i++) {
        const struct kp_param *p = kp_space_param(s->bound->space, i);
        *index = i;
        if (kp_str_is(name, p->name))
            return p;
    }
    return NULL;
}

static void hint_params(const kopt_space *s, kopt_error *err)
{
    char names[200] = "";
    size_t len = 0;
    for (size_t i = 0; i < kopt_space_n_params(s) && len < sizeof(names); i++) {
        int n = snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
                         kopt_space_param_name(s, i));
        len += n > 0 ? (size_t)n : 0;
    }
    kp_err_hint(err, "the parameters are %s", names);
}

/* One "NAME=VALUE" at the start of `rest`, which is moved behind it. */
static kopt_status read_pair(const kopt_space *s, struct kp_str *rest, uint32_t *config,
                             unsigned char *seen, kopt_error *err)
{
    struct kp_str value;
    struct kp_str name = kp_str_trim(kp_str_cut(*rest, '=', &value));
    size_t i = 0;
    size_t used = 0;
    const struct kp_param *p = find_param(s, name, &i);
    if (!p) {
        kopt_status st =
            kp_err(err, KOPT_EUSAGE, "there is no parameter '%.*s'", KP_STR_FMT(name));
        hint_params(s, err);
        return st;
    }
    if (seen[i])
        return kp_err(err, KOPT_EUSAGE, "%s is given twice", p->name);
    kopt_status st = match_value(p, value, &config[i], &used, err);
    if (st != KOPT_OK)
        return st;
    seen[i] = 1;
    *rest = (struct kp_str){value.ptr + used, value.len - used};
    return KOPT_OK;
}

kopt_status kopt_space_config(const kopt_space *s, const char *text, uint32_t *config,
                              kopt_error *err)
{
    size_t n = kopt_space_n_params(s);
    unsigned char seen[KP_PARAMS_MAX] = {0};
    struct kp_str rest = kp_str_from(text);
    for (;;) {
        while (rest.len && is_separator(rest.ptr[0]))
            rest = (struct kp_str){rest.ptr + 1, rest.len - 1};
        if (!rest.len)
            break;
        kopt_status st = read_pair(s, &rest, config, seen, err);
        if (st != KOPT_OK)
            return st;
    }
    for (size_t i = 0; i < n; i++) {
        if (!seen[i]) {
            kopt_status st = kp_err(err, KOPT_EUSAGE, "%s has no value in '%s'",
                                    kopt_space_param_name(s, i), text);
            hint_params(s, err);
            return st;
        }
    }
    return KOPT_OK;
}

/* --- rules -------------------------------------------------------------------------------- */

kopt_status kopt_space_explain(const kopt_space *s,
                               void (*visit)(void *user, const kopt_rule_info *r), void *user,
                               kopt_error *err)
{
    const struct kp_kernel *k = s->bound->kernel;
    size_t last = k->n_rules;
    struct kp_rule_effect *effects = kp_calloc(k->n_rules ? k->n_rules : 1, sizeof(*effects));
    if (!effects)
        return kp_err_nomem(err);
    kopt_status st = kp_space_explain(s->bound->space, effects, &last, err);
    for (size_t i = 0; st == KOPT_OK && i < k->n_rules; i++) {
        const struct kp_rule *rule = &k->rules[i];
        kopt_rule_info info = {.text = rule->text,
                               .message = rule->message ? rule->message : "",
                               .line = rule->line,
                               .alone = effects[i].alone,
                               .in_turn = effects[i].in_turn,
                               .emptied = i == last};
        visit(user, &info);
    }
    kp_free(effects);
    return st;
}

int kopt_space_valid(const kopt_space *s, const uint32_t *config, char *why, size_t bytes)
{
    struct kp_rule_hit hit = {0};
    if (why && bytes)
        why[0] = '\0';
    if (!in_range(s, config)) {
        if (why && bytes)
            (void)snprintf(why, bytes, "a value's index is out of range");
        return 0;
    }
    if (kp_space_valid(s->bound->space, config, &hit))
        return 1;
    if (!why || !bytes)
        return 0;
    const struct kp_rule *rule = &s->bound->kernel->rules[hit.rule];
    char place[24] = "";
    if (rule->line > 0)
        (void)snprintf(place, sizeof(place), "line %d: ", rule->line);
    (void)snprintf(why, bytes, "%s%s%s%s%s%s", place, rule->text, hit.why.what ? ": " : "",
                   hit.why.what ? hit.why.what : "", rule->message ? ": " : "",
                   rule->message ? rule->message : "");
    return 0;
}
