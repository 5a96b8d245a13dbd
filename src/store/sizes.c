/* SPDX-License-Identifier: MIT */
#include "store/sizes.h"

#include "json/json.h"

#include <math.h>
#include <string.h>

double kp_size_log(int64_t size)
{
    return size >= 1 ? log2((double)size) : (double)NAN;
}

/* --- reading -------------------------------------------------------------------------------
 */

struct reader {
    struct kp_arena *a;
    size_t n;
    const char **names;
    int64_t *values;
    double *logs;
};

static bool add_size(void *user, const char *name, const struct kp_json *value)
{
    struct reader *r = user;
    if (!kp_json_as_i64(value, &r->values[r->n]))
        return false;
    r->names[r->n] = kp_arena_strndup(r->a, name, strlen(name));
    r->logs[r->n] = kp_size_log(r->values[r->n]);
    r->n++;
    return true;
}

bool kp_sizes_read(struct kp_arena *a, const char *problem, struct kp_sizes *out)
{
    struct kp_json *j = NULL;
    *out = (struct kp_sizes){0};
    kopt_status st = kp_json_parse(kp_str_from(problem), NULL, &j, NULL);
    bool ok =
        st == KOPT_OK && kp_json_type(j) == KP_JSON_OBJECT && kp_json_size(j) <= KP_SIZES_MAX;
    if (st == KOPT_ENOMEM)
        a->failed = true;
    if (ok) {
        struct reader r = {.a = a};
        size_t n = kp_json_size(j);
        r.names = kp_arena_alloc(a, n + 1, sizeof(*r.names));
        r.values = kp_arena_alloc(a, n + 1, sizeof(*r.values));
        r.logs = kp_arena_alloc(a, n + 1, sizeof(*r.logs));
        ok = !a->failed && kp_json_each(j, add_size, &r) && !a->failed;
        if (ok)
            *out = (struct kp_sizes){r.n, r.names, r.values, r.logs};
    }
    kp_json_free(j);
    return ok;
}

/* --- comparing -----------------------------------------------------------------------------
 */

bool kp_sizes_match(const struct kp_sizes *a, const struct kp_sizes *b, size_t *at)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = 0;
        while (k < b->n && strcmp(a->names[i], b->names[k]) != 0)
            k++;
        if (k == b->n)
            return false;
        at[i] = k;
    }
    return true;
}

double kp_sizes_distance(const struct kp_sizes *a, const struct kp_sizes *b, const size_t *at)
{
    double sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = at[i];
        double d = a->values[i] == b->values[k] ? 0 : b->logs[k] - a->logs[i];
        sum += d * d;
    }
    return sqrt(sum);
}
