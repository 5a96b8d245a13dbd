/* SPDX-License-Identifier: MIT */
#include "api/limits.h"
#include "base/alloc.h"
#include "device/device.h"
#include "measure/lab.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* `least`: a bound of 0 would count as one that is not known, which bounds nothing. */
static const struct {
    const char *name;
    size_t offset;
    int64_t least;
} fields[] = {
    {"max_threads", offsetof(struct kp_limits, max_threads), 1},
    {"max_block_x", offsetof(struct kp_limits, max_block[0]), 1},
    {"max_block_y", offsetof(struct kp_limits, max_block[1]), 1},
    {"max_block_z", offsetof(struct kp_limits, max_block[2]), 1},
    {"shared_bytes", offsetof(struct kp_limits, shared_bytes), 1},
    {"registers", offsetof(struct kp_limits, registers), 1},
    {"warp", offsetof(struct kp_limits, warp), 1},
    {"compute_units", offsetof(struct kp_limits, compute_units), 1},
    {"l2_bytes", offsetof(struct kp_limits, l2_bytes), 0},
    {"global_bytes", offsetof(struct kp_limits, global_bytes), 1},
    {"clock_khz", offsetof(struct kp_limits, clock_khz), 0},
    {"cc", offsetof(struct kp_limits, cc), 0},
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

static unsigned bit_of(struct kp_str field)
{
    for (unsigned f = 0; f < N_FIELDS; f++)
        if (kp_str_is(field, fields[f].name))
            return 1U << f;
    return 0;
}

kopt_status kp_limits_used(const struct kp_kernel *k, unsigned *used, kopt_error *err)
{
    struct marks m = {.n = k->n_slots};
    *used = 0;
    m.slots = kp_calloc(m.n ? m.n : 1, 1);
    if (!m.slots)
        return kp_err_nomem(err);
    /* In rules the lets are written out. */
    for (size_t i = 0; i < k->n_rules; i++)
        kp_expr_slots(k->rules[i].expr, mark, &m);
    for (size_t i = 0; i < k->scope.n; i++) {
        const struct kp_scope_name *name = &k->scope.names[i];
        struct kp_str text = kp_str_from(name->name);
        if (kp_str_starts(text, prefix) && m.slots[name->slot])
            *used |= bit_of(kp_str_from(name->name + sizeof(prefix) - 1));
    }
    kp_free(m.slots);
    return KOPT_OK;
}

/* All of them fit: 12 names of at most 13 bytes. */
static void put_names(unsigned bits, const char *behind, char out[KP_LIMITS_NAMES])
{
    size_t at = 0;
    out[0] = 0;
    for (unsigned f = 0; f < N_FIELDS; f++)
        if (bits & (1U << f))
            at += (size_t)snprintf(out + at, KP_LIMITS_NAMES - at, "%s%s%s", at ? "," : "",
                                   fields[f].name, behind);
}

void kp_limits_names(unsigned bits, char out[KP_LIMITS_NAMES])
{
    put_names(bits, "", out);
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
    struct kp_device_ids ids;
    kopt_status st = kp_device_ids_parse(id, &ids, err);
    /* of several, which are of one kind, the first */
    return st == KOPT_OK ? ask(ids.backend, ids.index[0], out, err) : st;
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
        if (!kp_str_to_i64(kp_str_trim(value), &number) || number < fields[f].least)
            return kp_err(err, KOPT_EUSAGE,
                          "%s: '%.*s' is not a whole number of at least %" PRId64,
                          fields[f].name, KP_STR_FMT(value), fields[f].least);
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

static kopt_status missing(unsigned bits, kopt_error *err)
{
    char all[KP_LIMITS_NAMES];
    put_names(bits, "=NUMBER", all);
    kopt_status st = kp_err(err, KOPT_EUSAGE, "a rule uses device.%.*s, which is not given",
                            (int)strcspn(all, "="), all);
    kp_err_hint(err, "add %s", all);
    return st;
}

kopt_status kp_limits_read(unsigned used, const char *text, struct kp_limits *out,
                           kopt_error *err)
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
    return used & ~given ? missing(used & ~given, err) : KOPT_OK;
}

kopt_status kp_limits_by_hand(const struct kp_kernel *k, const char *text,
                              struct kp_limits *out, kopt_error *err)
{
    unsigned used = 0;
    *out = (struct kp_limits){0};
    kopt_status st = kp_limits_used(k, &used, err);
    return st == KOPT_OK ? kp_limits_read(used, text, out, err) : st;
}
