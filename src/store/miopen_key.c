/* SPDX-License-Identifier: MIT */
/* The keys of MIOpen's text databases,
 *   in_c-in_h-in_w-FhxFw-out_c-out_h-out_w-N-PhxPw-ShxSw-DhxDw-bias-layout-type-direction
 * with three layouts where they differ, and "_g" and the number of groups behind the direction
 * where it is not 1. In 3-D some versions of MIOpen write depths first and some last, so these
 * keys cannot be read. Layer: store. */
#include "store/miopen_impl.h"

#include <string.h>

/* In the order of the SQLite databases' table; the output's size is ours. */
enum column {
    LAYOUT,
    DATA_TYPE,
    DIRECTION,
    SPATIAL_DIM,
    IN_CHANNELS,
    IN_H,
    IN_W,
    IN_D,
    FIL_H,
    FIL_W,
    FIL_D,
    OUT_CHANNELS,
    BATCHSIZE,
    PAD_H,
    PAD_W,
    PAD_D,
    STRIDE_H,
    STRIDE_W,
    STRIDE_D,
    DILATION_H,
    DILATION_W,
    DILATION_D,
    BIAS,
    GROUP_COUNT,
    OUT_H,
    OUT_W
};

const char *const kp_miopen_key_columns[KP_MIOPEN_KEY_COLUMNS] = {
    [LAYOUT] = "layout",
    [DATA_TYPE] = "data_type",
    [DIRECTION] = "direction",
    [SPATIAL_DIM] = "spatial_dim",
    [IN_CHANNELS] = "in_channels",
    [IN_H] = "in_h",
    [IN_W] = "in_w",
    [IN_D] = "in_d",
    [FIL_H] = "fil_h",
    [FIL_W] = "fil_w",
    [FIL_D] = "fil_d",
    [OUT_CHANNELS] = "out_channels",
    [BATCHSIZE] = "batchsize",
    [PAD_H] = "pad_h",
    [PAD_W] = "pad_w",
    [PAD_D] = "pad_d",
    [STRIDE_H] = "conv_stride_h",
    [STRIDE_W] = "conv_stride_w",
    [STRIDE_D] = "conv_stride_d",
    [DILATION_H] = "dilation_h",
    [DILATION_W] = "dilation_w",
    [DILATION_D] = "dilation_d",
    [BIAS] = "bias",
    [GROUP_COUNT] = "group_count",
    [OUT_H] = "out_h",
    [OUT_W] = "out_w",
};

/* How the fields of a key come one after another. */
static const struct field {
    enum column h;
    enum column w; /* the same: a single number */
    bool joined;   /* by 'x' */
} fields[] = {
    {IN_CHANNELS, IN_CHANNELS, false},
    {IN_H, IN_W, false},
    {FIL_H, FIL_W, true},
    {OUT_CHANNELS, OUT_CHANNELS, false},
    {OUT_H, OUT_W, false},
    {BATCHSIZE, BATCHSIZE, false},
    {PAD_H, PAD_W, true},
    {STRIDE_H, STRIDE_W, true},
    {DILATION_H, DILATION_W, true},
    {BIAS, BIAS, false},
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), NUMBER_DIGITS_MAX = 18 };

/* The text up to the next `c`, which becomes its end; *rest is behind it, NULL at the end. */
static char *cut(char **rest, char c)
{
    char *start = *rest;
    char *end = start ? strchr(start, c) : NULL;
    if (end)
        *end = '\0';
    *rest = end ? end + 1 : NULL;
    return start;
}

static bool is_number(const char *s)
{
    size_t n = s ? strspn(s, "0123456789") : 0;
    return n > 0 && n <= NUMBER_DIGITS_MAX && s[n] == '\0';
}

static bool is_word(const char *s)
{
    size_t n =
        s ? strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") : 0;
    return n > 0 && s[n] == '\0';
}

/* Both behind the numbers: one layout or three, type, direction, groups. */
static const char *parse_words(char *rest, const char **problem)
{
    char *layout = rest;
    size_t dashes = 0;
    for (const char *p = rest; p && *p; p++)
        dashes += *p == '-';
    if (dashes != 2 && dashes != 4)
        return "the key does not end in layout, type and direction";
    for (size_t i = 2; i < dashes; i++)
        rest = strchr(rest, '-') + 1; /* the layouts stay one text */
    (void)cut(&rest, '-');
    char *type = cut(&rest, '-');
    char *direction = cut(&rest, '_');
    char *groups = rest;
    if (strspn(layout, "NCDHWc-0123456789") != strlen(layout) || layout[0] == '-' ||
        layout[0] == '\0' || !is_word(type))
        return "the key's layout or type is none";
    if (strlen(direction) != 1 || !strchr("FBW", direction[0]))
        return "the key's direction is none of F, B, W";
    if (groups && (groups[0] != 'g' || !is_number(groups + 1)))
        return "the key has something unknown behind its direction";
    problem[LAYOUT] = layout;
    problem[DATA_TYPE] = type;
    problem[DIRECTION] = direction;
    problem[GROUP_COUNT] = groups ? groups + 1 : "1";
    return NULL;
}

/* Do the numbers joined by 'x' come in threes? */
static bool is_3d(const char *key)
{
    const char *x = strchr(key, 'x');
    return x && x[1 + strspn(x + 1, "0123456789")] == 'x';
}

static bool parse_field(char **rest, const struct field *f, const char **problem)
{
    char *both = f->joined ? cut(rest, '-') : NULL;
    char *h = f->joined ? cut(&both, 'x') : cut(rest, '-');
    char *w = f->h == f->w ? h : f->joined ? both : cut(rest, '-');
    problem[f->h] = h;
    problem[f->w] = w;
    return is_number(h) && is_number(w);
}

const char *kp_miopen_parse_key(char *key, const char *problem[KP_MIOPEN_KEY_COLUMNS])
{
    char *rest = key;
    if (is_3d(key))
        return "a 3-D convolution: versions of MIOpen differ in the order of its sizes";
    problem[SPATIAL_DIM] = "2";
    problem[IN_D] = problem[FIL_D] = "1";
    problem[PAD_D] = problem[STRIDE_D] = problem[DILATION_D] = "0";
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (!parse_field(&rest, &fields[i], problem))
            return "not the key of a convolution";
    }
    return rest ? parse_words(rest, problem) : "the key ends before its layout";
}
