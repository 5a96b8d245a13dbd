/* SPDX-License-Identifier: MIT */
#include "tune/nearest.h"

#include "base/alloc.h"
#include "store/sizes.h"
#include "json/json.h"

#include <math.h>
#include <string.h>

enum {
    /* With fewer, what was fastest there is mostly what that search began with; and a list of
     * the usual length would be all of them, good or bad. */
    OK_MIN = 10,
    NEAR_MAX = 16, /* subjects that are looked at: some may have nothing in the space */
    RESULTS_MAX = 4 * KP_PRIOR_MAX
};
#define ARENA_BYTES_MAX ((size_t)64 << 20)
enum { TEXT_BYTES_MAX = 1 << 16 };

enum place { HOME, SAME_ARCH, ELSEWHERE };

struct near {
    int64_t subject;
    enum place place;
    double distance;
    int64_t n_ok;
    int64_t last_us;
};

struct finder {
    const struct kp_bound *bound;
    const struct kp_subject *own;
    struct kp_sizes sizes; /* of the own problem */
    bool has_sizes;
    struct kp_arena own_arena;
    struct kp_arena arena;      /* of one subject at a time */
    struct near near[NEAR_MAX]; /* the nearest first */
    size_t n;
    bool failed; /* out of memory */
};

/* --- which subjects ------------------------------------------------------------------------
 */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_own(const struct kp_subject *own, const struct kp_subject *s)
{
    return same(own->kernel_hash, s->kernel_hash) && same(own->backend, s->backend) &&
           same(own->device, s->device) && same(own->arch, s->arch) &&
           same(own->driver, s->driver) && same(own->compiler, s->compiler) &&
           same(own->problem, s->problem) && same(own->data, s->data);
}

static bool has_param(const struct kp_kernel *k, struct kp_str name)
{
    for (size_t i = 0; i < k->n_params; i++)
        if (kp_str_eq(kp_str_from(k->params[i].name), name))
            return true;
    return false;
}

/* Are `params` (["BM","BN"], distinct) the kernel's? Where a subject does not name them, its
 * results tell. */
static bool same_params(struct finder *f, const char *params)
{
    const struct kp_kernel *k = f->bound->kernel;
    struct kp_json *j = NULL;
    if (!params[0])
        return true;
    kopt_status st = kp_json_parse(kp_str_from(params), NULL, &j, NULL);
    f->failed = f->failed || st == KOPT_ENOMEM;
    bool ok = st == KOPT_OK && kp_json_size(j) == k->n_params;
    for (size_t i = 0; ok && i < k->n_params; i++) {
        struct kp_str name;
        ok = kp_json_as_str(kp_json_at(j, i), &name) && has_param(k, name);
    }
    kp_json_free(j);
    return ok;
}

static enum place place_of(const struct kp_subject *own, const struct kp_subject *s)
{
    if (same(own->device, s->device))
        return HOME;
    return s->arch[0] && same(own->arch, s->arch) ? SAME_ARCH : ELSEWHERE;
}

/* NaN: the problems cannot be compared. */
static double distance_to(struct finder *f, const struct kp_subject *s)
{
    size_t at[KP_SIZES_MAX];
    struct kp_sizes sizes;
    double d = (double)NAN;
    if (same(f->own->problem, s->problem))
        return 0;
    if (f->has_sizes && kp_sizes_read(&f->arena, s->problem, &sizes) &&
        kp_sizes_match(&sizes, &f->sizes, at))
        d = kp_sizes_distance(&sizes, &f->sizes, at);
    f->failed = f->failed || f->arena.failed;
    kp_arena_deinit(&f->arena);
    return d;
}

static bool is_nearer(const struct near *a, const struct near *b)
{
    if (a->place != b->place)
        return a->place < b->place;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if (a->n_ok != b->n_ok)
        return a->n_ok > b->n_ok;
    return a->last_us > b->last_us;
}

static void keep(struct finder *f, const struct near *x)
{
    size_t at = f->n;
    while (at > 0 && is_nearer(x, &f->near[at - 1]))
        at--;
    if (at == NEAR_MAX)
        return;
    if (f->n < NEAR_MAX)
        f->n++;
    memmove(&f->near[at + 1], &f->near[at], (f->n - 1 - at) * sizeof(*f->near));
    f->near[at] = *x;
}

static bool note_subject(void *user, const struct kp_subject *s)
{
    struct finder *f = user;
    if (s->n_ok < OK_MIN || is_own(f->own, s) || !same_params(f, s->params))
        return !f->failed;
    struct near x = {s->id, place_of(f->own, s), distance_to(f, s), s->n_ok, s->last_us};
    if (!isnan(x.distance))
        keep(f, &x);
    return !f->failed;
}

static kopt_status find(struct finder *f, struct kp_store *st, kopt_error *err)
{
    f->has_sizes = kp_sizes_read(&f->own_arena, f->own->problem, &f->sizes);
    f->failed = f->own_arena.failed;
    kopt_status code = kp_store_subjects(st, f->own->kernel, note_subject, f, err);
    return code == KOPT_OK && f->failed ? kp_err_nomem(err) : code;
}

/* --- their results -------------------------------------------------------------------------
 */

struct gathered {
    const struct kp_space *space;
    size_t n_params;
    uint32_t *configs; /* [cap][n_params] */
    double *costs;
    size_t cap;
    size_t costs_cap;
    size_t n;
    size_t n_ok;
    bool failed; /* out of memory */
};

static bool gather(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct gathered *g = user;
    uint64_t rank;
    (void)subject;
    (void)run;
    void *configs = g->configs;
    void *costs = g->costs;
    bool room =
        kp_grow(&configs, &g->cap, g->n, g->n_params * sizeof(*g->configs), RESULTS_MAX) &&
        kp_grow(&costs, &g->costs_cap, g->n, sizeof(*g->costs), RESULTS_MAX);
    g->configs = configs;
    g->costs = costs;
    if (!room) {
        g->failed = true;
        return false;
    }
    uint32_t *config = g->configs + g->n * g->n_params;
    if (!kp_space_config_read(g->space, r->config, config) ||
        !kp_space_rank(g->space, config, &rank))
        return true;
    bool ok = r->outcome == KOPT_OUT_OK;
    g->costs[g->n++] = ok ? r->median_ns : (double)INFINITY;
    g->n_ok += ok;
    return true;
}

/* --- whose they are ------------------------------------------------------------------------
 */

struct naming {
    const struct kp_subject *own;
    struct kp_buf text;
};

static bool name_size(void *user, const char *name, const struct kp_json *value)
{
    struct kp_buf *b = user;
    struct kp_str word;
    kp_buf_addf(b, " %s=", name);
    if (kp_json_as_str(value, &word))
        kp_buf_add(b, word.ptr, word.len);
    else
        kp_json_dump(value, b);
    return true;
}

/* "gemm K=512 on NVIDIA A4000"; of what differs in neither, what does. */
static bool name_subject(void *user, const struct kp_subject *s)
{
    struct naming *n = user;
    struct kp_json *problem = NULL;
    kp_buf_adds(&n->text, s->kernel);
    if (kp_json_parse(kp_str_from(s->problem), NULL, &problem, NULL) == KOPT_OK)
        (void)kp_json_each(problem, name_size, &n->text);
    kp_json_free(problem);
    kp_buf_addf(&n->text, " on %s", s->device);
    if (same(n->own->problem, s->problem) && same(n->own->device, s->device))
        kp_buf_adds(&n->text, same(n->own->kernel_hash, s->kernel_hash)
                                  ? ", under other conditions"
                                  : ", of another source");
    return true;
}

static kopt_status name_it(struct kp_store *st, const struct finder *f, int64_t subject,
                           struct kp_predictions *out, kopt_error *err)
{
    struct naming n = {f->own, KP_BUF_INIT(TEXT_BYTES_MAX)};
    kopt_status code = kp_store_subject_get(st, subject, name_subject, &n, err);
    if (code == KOPT_OK)
        code = kp_buf_status(&n.text, err);
    if (code == KOPT_OK) {
        out->of = kp_buf_take(&n.text);
        code = out->of ? KOPT_OK : kp_err_nomem(err);
    }
    kp_buf_deinit(&n.text);
    return code;
}

/* Where the subject has enough results in the space, the prior is made of them. */
static kopt_status try_subject(struct kp_store *st, const struct finder *f, int64_t subject,
                               struct kp_predictions *out, kopt_error *err)
{
    const struct kp_space *space = f->bound->space;
    struct gathered g = {.space = space, .n_params = kp_space_n_params(space)};
    struct kp_result_filter filter = {.subject = subject,
                                      .outcome = -1,
                                      .once = true,
                                      .by_time = true,
                                      .no_samples = true,
                                      .limit = RESULTS_MAX};
    kopt_status code = kp_store_results(st, &filter, gather, &g, err);
    if (code == KOPT_OK && g.failed)
        code = kp_err_nomem(err);
    if (code == KOPT_OK && g.n_ok >= OK_MIN) {
        struct kp_results results = {g.configs, g.costs, g.n};
        code = kp_prior_of_results(&out->prior, space, &results, KP_PRIOR_MAX, err);
        if (code == KOPT_OK)
            code = name_it(st, f, subject, out, err);
    }
    kp_free(g.configs);
    kp_free(g.costs);
    return code;
}

kopt_status kp_nearest_prior(struct kp_store *st, const struct kp_bound *bound,
                             const struct kp_subject *own, struct kp_predictions *out,
                             kopt_error *err)
{
    struct finder f = {.bound = bound,
                       .own = own,
                       .own_arena = KP_ARENA_INIT(ARENA_BYTES_MAX),
                       .arena = KP_ARENA_INIT(ARENA_BYTES_MAX)};
    if (kp_space_count(bound->space) < OK_MIN)
        return KOPT_OK;
    kopt_status code = find(&f, st, err);
    for (size_t i = 0; i < f.n && code == KOPT_OK && out->prior.n == 0; i++)
        code = try_subject(st, &f, f.near[i].subject, out, err);
    kp_arena_deinit(&f.own_arena);
    return code;
}
