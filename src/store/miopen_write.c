/* SPDX-License-Identifier: MIT */
/* A text performance database as MIOpen reads it. Layer: store. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/str.h"
#include "store/miopen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row with the key it gets. */
struct line {
    char *key;
    const struct kp_miopen_row *row;
};

static kopt_status bad_row(const struct kp_miopen_row *row, const char *what, const char *name,
                           kopt_error *err)
{
    return kp_err(err, KOPT_EINPUT, "a problem of %s: %s: %s", row->solver, name, what);
}

/* --- the key -------------------------------------------------------------------------------
 */

static kopt_status number(const struct kp_miopen_row *row, const char *name, int64_t *out,
                          kopt_error *err)
{
    const char *text = kp_miopen_column(row, name);
    if (!text)
        return bad_row(row, "the column is missing", name, err);
    if (!kp_str_to_i64(kp_str_from(text), out) || *out < 0)
        return bad_row(row, "not an integer of 0 or more", name, err);
    return KOPT_OK;
}

static kopt_status word(const struct kp_miopen_row *row, const char *name, const char **out,
                        kopt_error *err)
{
    *out = kp_miopen_column(row, name);
    if (!*out)
        return bad_row(row, "the column is missing", name, err);
    bool fine = (*out)[0] && !strpbrk(*out, "=;:,_ \t\r\n");
    return fine ? KOPT_OK : bad_row(row, "not a word", name, err);
}

/* Sizes along one axis. */
struct axis {
    int64_t in;
    int64_t filter;
    int64_t out;
    int64_t pad;
    int64_t stride;
    int64_t dilation;
};

/* In backward rows `in` is the gradient of the convolution's output; of stride 1 there is one
 * size that the convolution makes it from. */
static bool compute_out(struct axis *a, bool forward)
{
    int64_t reach = 0;
    int64_t pads = 0;
    if (a->in < 1 || a->filter < 1 || a->stride < 1 || (!forward && a->stride != 1) ||
        !kp_mul_i64(a->dilation, a->filter - 1, &reach) || !kp_mul_i64(2, a->pad, &pads))
        return false;
    if (!kp_add_i64(a->in, forward ? pads : reach, &a->out) ||
        !kp_sub_i64(a->out, forward ? reach : pads, &a->out))
        return false;
    if (forward)
        a->out = (a->out - 1) / a->stride + 1;
    return a->out >= 1;
}

static kopt_status read_axis(const struct kp_miopen_row *row, char axis, bool forward,
                             struct axis *a, kopt_error *err)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"in", &a->in},
                   {"fil", &a->filter},
                   {"pad", &a->pad},
                   {"conv_stride", &a->stride},
                   {"dilation", &a->dilation}};
    char name[32];
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)snprintf(name, sizeof(name), "%s_%c", numbers[i].name, axis);
        kopt_status st = number(row, name, numbers[i].to, err);
        if (st != KOPT_OK)
            return st;
    }
    (void)snprintf(name, sizeof(name), "out_%c", axis);
    if (kp_miopen_column(row, name))
        return number(row, name, &a->out, err);
    if (compute_out(a, forward))
        return KOPT_OK;
    (void)bad_row(row, "missing, and it does not follow from the other sizes", name, err);
    kp_err_hint(err, "backward with a stride above 1 needs the columns out_h and out_w");
    return KOPT_EINPUT;
}

static kopt_status make_key(const struct kp_miopen_row *row, struct kp_buf *out,
                            kopt_error *err)
{
    static const char *const names[] = {"spatial_dim", "in_channels", "out_channels",
                                        "batchsize",   "bias",        "group_count"};
    enum { DIM, IN, OUT, BATCH, BIAS, GROUPS, N_NUMBERS };
    static const char *const word_names[] = {"layout", "data_type", "direction"};
    int64_t v[N_NUMBERS] = {0};
    const char *words[3] = {"", "", ""};
    struct axis h = {0};
    struct axis w = {0};
    kopt_status st = KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < N_NUMBERS; i++)
        st = number(row, names[i], &v[i], err);
    for (size_t i = 0; st == KOPT_OK && i < 3; i++)
        st = word(row, word_names[i], &words[i], err);
    if (st == KOPT_OK && v[DIM] != 2)
        st = bad_row(row, "only 2-D problems can be written", "spatial_dim", err);
    bool forward = st == KOPT_OK && strcmp(words[2], "F") == 0;
    if (st == KOPT_OK)
        st = read_axis(row, 'h', forward, &h, err);
    if (st == KOPT_OK)
        st = read_axis(row, 'w', forward, &w, err);
    if (st != KOPT_OK)
        return st;
    kp_buf_addf(out, "%" PRId64 "-%" PRId64 "-%" PRId64, v[IN], h.in, w.in);
    kp_buf_addf(out, "-%" PRId64 "x%" PRId64, h.filter, w.filter);
    kp_buf_addf(out, "-%" PRId64 "-%" PRId64 "-%" PRId64, v[OUT], h.out, w.out);
    kp_buf_addf(out, "-%" PRId64 "-%" PRId64 "x%" PRId64, v[BATCH], h.pad, w.pad);
    kp_buf_addf(out, "-%" PRId64 "x%" PRId64, h.stride, w.stride);
    kp_buf_addf(out, "-%" PRId64 "x%" PRId64, h.dilation, w.dilation);
    kp_buf_addf(out, "-%" PRId64 "-%s-%s-%s", v[BIAS], words[0], words[1], words[2]);
    if (v[GROUPS] != 1)
        kp_buf_addf(out, "_g%" PRId64, v[GROUPS]);
    return kp_buf_status(out, err);
}

/* --- the lines -----------------------------------------------------------------------------
 */

/* By key, then solver, then as they came. */
static int by_key(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    int order = strcmp(x->key, y->key);
    if (order == 0)
        order = strcmp(x->row->solver, y->row->solver);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static bool writable(const char *s, const char *banned)
{
    return s[0] && !strpbrk(s, banned) && !strpbrk(s, "\r\n");
}

static kopt_status look_at(const struct kp_miopen_row *row, kopt_error *err)
{
    if (!row->solver || !writable(row->solver, "=:;,"))
        return kp_err(err, KOPT_EINPUT, "'%s' cannot be the name of a solver",
                      row->solver ? row->solver : "");
    if (row->n_values == 0)
        return bad_row(row, "nothing in it", "the vector", err);
    for (size_t i = 0; i < row->n_values; i++) {
        if (!writable(row->values[i], ";,"))
            return bad_row(row, "the format has no place for it", row->values[i], err);
    }
    return KOPT_OK;
}

static kopt_status make_line(const struct kp_miopen_row *row, struct line *out, kopt_error *err)
{
    struct kp_buf key = KP_BUF_INIT(KP_MIOPEN_TEXT_MAX);
    kopt_status st = look_at(row, err);
    if (st == KOPT_OK)
        st = make_key(row, &key, err);
    out->row = row;
    out->key = st == KOPT_OK ? kp_buf_take(&key) : NULL;
    kp_buf_deinit(&key);
    return st;
}

static bool same_key(const struct line *a, const struct line *b)
{
    return strcmp(a->key, b->key) == 0;
}

static void add_lines(const struct line *lines, size_t n, struct kp_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct line *l = &lines[i];
        bool more = i + 1 < n && same_key(l, l + 1);
        if (i == 0 || !same_key(l - 1, l))
            kp_buf_addf(out, "%s=", l->key);
        if (more && strcmp(l->row->solver, l[1].row->solver) == 0)
            continue; /* the later one counts */
        kp_buf_addf(out, "%s:", l->row->solver);
        for (size_t k = 0; k < l->row->n_values; k++)
            kp_buf_addf(out, "%s%s", k ? "," : "", l->row->values[k]);
        kp_buf_addc(out, more ? ';' : '\n');
    }
}

kopt_status kp_miopen_write(const struct kp_miopen_row *rows, size_t n, struct kp_buf *out,
                            kopt_error *err)
{
    kopt_status st = KOPT_OK;
    struct line *lines = n ? kp_calloc(n, sizeof(*lines)) : NULL;
    if (n && !lines)
        return kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < n; i++)
        st = make_line(&rows[i], &lines[i], err);
    if (st == KOPT_OK && n) {
        qsort(lines, n, sizeof(*lines), by_key);
        add_lines(lines, n, out);
        st = kp_buf_status(out, err);
    }
    for (size_t i = 0; i < n; i++)
        kp_free(lines[i].key);
    kp_free(lines);
    return st;
}
