/* SPDX-License-Identifier: MIT */
#include "api/limits.h"
#include "base/alloc.h"
#include "device/device.h"
#include "measure/lab.h"

#include <stddef.h>
#include <stdlib.h>

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    {"max_threads", offsetof(struct kp_limits, max_threads)},
    {"max_block_x", offsetof(struct kp_limits, max_block[0])},
    {"max_block_y", offsetof(struct kp_limits, max_block[1])},
    {"max_block_z", offsetof(struct kp_limits, max_block[2])},
    {"shared_bytes", offsetof(struct kp_limits, shared_bytes)},
    {"registers", offsetof(struct kp_limits, registers)},
    {"warp", offsetof(struct kp_limits, warp)},
    {"compute_units", offsetof(struct kp_limits, compute_units)},
    {"l2_bytes", offsetof(struct kp_limits, l2_bytes)},
    {"global_bytes", offsetof(struct kp_limits, global_bytes)},
    {"clock_khz", offsetof(struct kp_limits, clock_khz)},
    {"cc", offsetof(struct kp_limits, cc)},
};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

static const char prefix[] = "device.";

/* --- which are used ----------------------------------------------------------------------- */

struct marks {
    unsigned char *slots;
    uint32_t n;
};

static void mark(void *user, uint32_t slot)
{
    struct marks *m = user;
    if (slot < m->n)
        m->slots[slot] = 1;
}

/* Slots that the rules depend on; *out is the caller's. */
static kopt_status mark_used(const struct kp_kernel *k, struct marks *m, kopt_error *err)
{
    m->n = k->n_slots;
    m->slots = kp_calloc(m->n ? m->n : 1, 1);
    if (!m->slots)
        return kp_err_nomem(err);
    for (size_t i = 0; i < k->n_rules; i++)
        kp_expr_slots(k->rules[i].expr, mark, m);
    /* A let may use the lets above it. */
    for (size_t i = k->n_lets; i-- > 0;)
        if (k->lets[i].slot < m->n && m->slots[k->lets[i].slot])
            kp_expr_slots(k->lets[i].expr, mark, m);
    return KOPT_OK;
}

/* The field whose name is used and whose bit is not in `given`; NULL when there is none. */
static const char *first_missing(const struct kp_kernel *k, const struct marks *m,
                                 unsigned given)
{
    for (size_t i = 0; i < k->scope.n; i++) {
        const struct kp_scope_name *name = &k->scope.names[i];
        if (!kp_str_starts(kp_str_from(name->name), prefix) || !m->slots[name->slot])
            continue;
        const char *field = name->name + sizeof(prefix) - 1;
        unsigned bit = 0;
        for (unsigned f = 0; f < N_FIELDS; f++)
            if (kp_str_is(kp_str_from(field), fields[f].name))
                bit = 1U << f;
        if (!(given & bit))
            return field;
    }
    return NULL;
}

kopt_status kp_limits_used(const struct kp_kernel *k, bool *used, kopt_error *err)
{
    struct marks m = {0};
    *used = false;
    kopt_status st = mark_used(k, &m, err);
    if (st == KOPT_OK)
        *used = first_missing(k, &m, 0) != NULL;
    kp_free(m.slots);
    return st;
}

/* --- of a device -------------------------------------------------------------------------- */

struct wanted {
    int index;
    bool found;
    struct kp_limits *out;
};

static void visit(void *user, const struct kp_device_info *info)
{
    struct wanted *w = user;
    if (info->index != w->index || w->found)
        return;
    w->found = true;
    *w->out = info->limits;
}

static kopt_status ask(enum kp_backend b, int index, struct kp_limits *out, kopt_error *err)
{
    struct wanted w = {index, false, out};
    kopt_status st = kp_lab_probe(b, visit, &w, err);
    if (st == KOPT_OK && !w.found) {
        st = kp_err(err, KOPT_EENV, "there is no device %s:%d", kp_backend_name(b), index);
        kp_err_hint(err, "kopt devices lists what is there");
    }
    return st;
}

kopt_status kp_limits_of_device(const struct kp_kernel *k, const char *id,
                                struct kp_limits *out, kopt_error *err)
{
    *out = (struct kp_limits){0};
    if (!id) {
        enum kp_backend b = k->lang == KP_LANG_CUDA ? KP_BACKEND_CUDA : KP_BACKEND_OPENCL;
        return ask(b, 0, out, err);
    }
    /* Of several devices (they are of one kind) the first. */
    struct kp_str others;
    struct kp_str number;
    struct kp_str name =
        kp_str_cut(kp_str_trim(kp_str_cut(kp_str_from(id), ',', &others)), ':', &number);
    char backend[16] = "";
    enum kp_backend b = KP_BACKEND_CUDA;
    int64_t index = 0;
    if (name.len < sizeof(backend))
        memcpy(backend, name.ptr, name.len);
    bool ok = kp_backend_from_name(backend, &b);
    if (ok && number.len)
        ok = kp_str_to_i64(number, &index) && index >= 0 && index < 4096;
    if (!ok) {
        kopt_status st = kp_err(err, KOPT_EUSAGE, "'%s' is no device", id);
        kp_err_hint(err, "devices are called cuda:0, opencl:1 and the like");
        return st;
    }
    return ask(b, (int)index, out, err);
}

/* --- by hand ------------------------------------------------------------------------------ */

static kopt_status set_one(struct kp_str text, struct kp_limits *out, unsigned *given,
                           kopt_error *err)
{
    struct kp_str value;
    struct kp_str name = kp_str_trim(kp_str_cut(text, '=', &value));
    int64_t number = 0;
    for (unsigned f = 0; f < N_FIELDS; f++) {
        if (!kp_str_is(name, fields[f].name))
            continue;
        if (*given & (1U << f))
            return kp_err(err, KOPT_EUSAGE, "%s is given twice", fields[f].name);
        if (!kp_str_to_i64(kp_str_trim(value), &number) || number < 0)
            return kp_err(err, KOPT_EUSAGE, "%s: '%.*s' is not a whole number of at least 0",
                          fields[f].name, KP_STR_FMT(value));
        *given |= 1U << f;
        *(int64_t *)(void *)((char *)out + fields[f].offset) = number;
        return KOPT_OK;
    }
    kopt_status st =
        kp_err(err, KOPT_EUSAGE, "'%.*s' is no number of a device", KP_STR_FMT(name));
    kp_err_hint(err, "they are max_threads, max_block_x, max_block_y, max_block_z, "
                     "shared_bytes, registers, warp, compute_units, l2_bytes, global_bytes, "
                     "clock_khz, cc");
    return st;
}

kopt_status kp_limits_by_hand(const struct kp_kernel *k, const char *text,
                              struct kp_limits *out, kopt_error *err)
{
    unsigned given = 0;
    struct kp_str rest = kp_str_from(text);
    *out = (struct kp_limits){0};
    while (rest.len) {
        struct kp_str one = kp_str_cut(rest, ',', &rest);
        kopt_status st = set_one(one, out, &given, err);
        if (st != KOPT_OK)
            return st;
    }
    struct marks m = {0};
    kopt_status st = mark_used(k, &m, err);
    if (st == KOPT_OK) {
        const char *missing = first_missing(k, &m, given);
        if (missing) {
            st = kp_err(err, KOPT_EUSAGE, "a rule uses device.%s, which is not given", missing);
            kp_err_hint(err, "add %s=NUMBER", missing);
        }
    }
    kp_free(m.slots);
    return st;
}
