/* SPDX-License-Identifier: MIT */
#include "golden.h"

#include "base/alloc.h"
#include "os/file.h"
#include "support/test.h"

#include <math.h>

enum { FILE_MAX = 16 * 1024 * 1024 };

void golden_open(struct golden *g, const char *case_name)
{
    *g = (struct golden){.name = case_name};
    struct kp_buf text = KP_BUF_INIT(FILE_MAX);
    kopt_error err;
    char path[4096];
    const char *source = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/unit/nn/golden.json", source ? source : ".");
    if (kp_file_read(path, &text, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    if (kp_json_parse((struct kp_str){kp_buf_text(&text), text.len}, path, &g->file, &err) !=
        KOPT_OK)
        fail_msg("%s", err.message);
    kp_buf_deinit(&text);
    g->one = kp_json_get(g->file, case_name);
    if (!g->one)
        fail_msg("golden.json has no case '%s'", case_name);
}

void golden_close(struct golden *g)
{
    for (size_t i = 0; i < g->n_arrays; i++)
        kp_free(g->arrays[i]);
    kp_json_free(g->file);
    *g = (struct golden){0};
}

static const struct kp_json *find(const struct golden *g, const char *array, const char *member)
{
    const struct kp_json *j = kp_json_get(kp_json_get(g->one, array), member);
    if (!j)
        fail_msg("case '%s' has no array '%s'", g->name, array);
    return j;
}

size_t golden_shape(const struct golden *g, const char *array, size_t axis)
{
    int64_t n = 0;
    if (!kp_json_as_i64(kp_json_at(find(g, array, "shape"), axis), &n))
        fail_msg("case '%s', array '%s' has no axis %zu", g->name, array, axis);
    return (size_t)n;
}

static double number_at(const struct golden *g, const char *array, size_t i)
{
    double v = 0;
    if (!kp_json_as_f64(kp_json_at(find(g, array, "data"), i), &v))
        fail_msg("case '%s', array '%s' has no number %zu", g->name, array, i);
    return v;
}

static void *new_array(struct golden *g, size_t n)
{
    assert_true(g->n_arrays < GOLDEN_ARRAYS_MAX);
    void *p = kp_calloc(n ? n : 1, sizeof(float));
    assert_non_null(p);
    g->arrays[g->n_arrays++] = p;
    return p;
}

static void *copy_of(struct golden *g, const char *array, size_t n)
{
    size_t has = kp_json_size(find(g, array, "data"));
    if (has != n)
        fail_msg("case '%s', array '%s' has %zu elements, not %zu", g->name, array, has, n);
    return new_array(g, n);
}

float *golden_f32(struct golden *g, const char *array, size_t n)
{
    float *x = copy_of(g, array, n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)number_at(g, array, i);
    return x;
}

int32_t *golden_i32(struct golden *g, const char *array, size_t n)
{
    int32_t *x = copy_of(g, array, n);
    for (size_t i = 0; i < n; i++)
        x[i] = (int32_t)number_at(g, array, i);
    return x;
}

double golden_number(const struct golden *g, const char *array)
{
    return number_at(g, array, 0);
}

float *golden_zeros(struct golden *g, size_t n)
{
    return new_array(g, n);
}

void golden_check(struct golden *g, const char *array, const float *got, size_t n,
                  double tolerance)
{
    size_t has = kp_json_size(find(g, array, "data"));
    if (has != n)
        fail_msg("case '%s', array '%s' has %zu elements, not %zu", g->name, array, has, n);
    for (size_t i = 0; i < n; i++) {
        double want = number_at(g, array, i);
        if (!(fabs((double)got[i] - want) <= tolerance * (1 + fabs(want))))
            fail_msg("case '%s', array '%s': element %zu is %.9g, not %.9g", g->name, array, i,
                     (double)got[i], want);
    }
}
