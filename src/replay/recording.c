/* SPDX-License-Identifier: MIT */
#include "replay/recording.h"

#include "base/alloc.h"
#include "os/file.h"
#include "replay/recorder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CUTOFF 0.05 /* of the way from the optimum to the median */

enum {
    TEXT_MAX = 1 << 20,
    SPACE_BYTES = 256 << 20,        /* for the diagram, at least */
    SPACE_BYTES_PER_CELL = 64,      /* and for each value of each configuration */
    SPACE_STEPS = 100 * 1000 * 1000 /* the same */
};

/* --- figures -------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int descending(const void *a, const void *b)
{
    return ascending(b, a);
}

/* Of sorted values; NaN: there are none. */
static double median_of(const double *v, size_t n)
{
    if (n == 0)
        return (double)NAN;
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* Did it get as far as the device? */
static bool ran(unsigned char outcome)
{
    return outcome != KOPT_OUT_COMPILE_ERROR && outcome != KOPT_OUT_COMPILE_TIMEOUT &&
           outcome != KOPT_OUT_DEVICE_LIMIT;
}

/* Costs that are not known become the median of those that are, which is returned (NaN: none
 * is, and they become 0). `outcomes`, where not NULL, say which of them are nothing. */
static double fill_in(double *costs, size_t n, const unsigned char *outcomes, double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(costs[i]))
            scratch[known++] = costs[i];
    qsort(scratch, known, sizeof(*scratch), ascending);
    double median = median_of(scratch, known);
    for (size_t i = 0; i < n; i++)
        if (isnan(costs[i]))
            costs[i] = known && (!outcomes || ran(outcomes[i])) ? median : 0;
    return median;
}

static void tell_costs(struct kp_recording *r, double *scratch)
{
    size_t n = (size_t)r->info.n;
    double compile = 0;
    double all = 0;
    double median_compile = fill_in(r->compile_ns, n, NULL, scratch);
    double median_measure = fill_in(r->measure_ns, n, r->outcome, scratch);
    for (size_t i = 0; i < n; i++) {
        scratch[i] = r->compile_ns[i] + r->measure_ns[i];
        compile += r->compile_ns[i];
        all += scratch[i];
    }
    qsort(scratch, n, sizeof(*scratch), ascending);
    r->info.evaluation_s = median_of(scratch, n) / 1e9;
    r->info.compile_share = isnan(median_compile) || isnan(median_measure) || !(all > 0)
                                ? (double)NAN
                                : compile / all;
}

/* Evaluations after which random search is expected at the cutoff (Willemsen et al. 2024): with
 * i of the N ok ones worse than it, ceil(i / (N + 1 - i)). */
static uint64_t budget_of(const struct kp_recording *r)
{
    size_t i = 0;
    while (i < r->n_ok && r->sorted[i] > r->info.cutoff_ns)
        i++;
    double budget = ceil((double)i / (double)(r->n_ok + 1 - i));
    return budget > 1 ? (uint64_t)budget : 1;
}

static void tell_times(struct kp_recording *r)
{
    kopt_recording_info *info = &r->info;
    for (uint64_t i = 0; i < info->n; i++) {
        info->by_outcome[r->outcome[i]]++;
        if (isfinite(r->time_ns[i]))
            r->sorted[r->n_ok++] = r->time_ns[i];
    }
    qsort(r->sorted, r->n_ok, sizeof(*r->sorted), descending);
    info->best_ns = r->n_ok ? r->sorted[r->n_ok - 1] : (double)NAN;
    info->median_ns = median_of(r->sorted, r->n_ok);
    info->cutoff_ns = info->best_ns + CUTOFF * (info->median_ns - info->best_ns);
    info->budget = budget_of(r);
}

static kopt_status tell_best(struct kp_recording *r, kopt_error *err)
{
    uint32_t config[KP_PARAMS_MAX];
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX);
    uint64_t best = 0;
    while (best < r->info.n && !(r->time_ns[best] <= r->info.best_ns))
        best++;
    kp_buf_adds(&text, "");
    if (best < r->info.n) {
        (void)kp_space_at(r->space, best, config, NULL);
        kp_space_config_text(r->space, config, &text);
    }
    kopt_status st = kp_buf_status(&text, err);
    if (st == KOPT_OK && !(r->info.best_text = kp_buf_take(&text)))
        st = kp_err_nomem(err);
    kp_buf_deinit(&text);
    return st;
}

/* --- from what was gathered ----------------------------------------------------------------
 */

static kopt_status take_texts(struct kp_recording *r, kopt_error *err)
{
    const char **const to[] = {&r->info.path,   &r->info.format, &r->info.name,
                               &r->info.kernel, &r->info.device, &r->info.problem};
    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
        char *text = r->owner->text[i];
        *to[i] = text ? text : kp_strdup("");
        r->owner->text[i] = NULL;
        if (!*to[i])
            return kp_err_nomem(err);
    }
    return KOPT_OK;
}

static kopt_status make_space(struct kp_recording *r, kopt_error *err)
{
    struct kp_recorder *o = r->owner;
    size_t cells = o->n * o->n_params;
    o->desc = (struct kp_space_desc){
        .params = o->params,
        .n_params = o->n_params,
        .n_slots = o->n_params,
        .max_bytes = SPACE_BYTES + SPACE_BYTES_PER_CELL * cells,
        .max_steps = SPACE_STEPS + cells,
        .listed = o->configs,
        .n_listed = o->n,
    };
    return kp_space_new(&o->desc, &r->space, err);
}

/* By rank; of several results of one configuration the last stays, but for costs that it does
 * not know. */
static kopt_status take_rows(struct kp_recording *r, double **scratch, kopt_error *err)
{
    const struct kp_recorder *o = r->owner;
    size_t n = (size_t)kp_space_count(r->space);
    r->info.n = n;
    r->time_ns = kp_calloc(n, sizeof(*r->time_ns));
    r->compile_ns = kp_calloc(n, sizeof(*r->compile_ns));
    r->measure_ns = kp_calloc(n, sizeof(*r->measure_ns));
    r->sorted = kp_calloc(n, sizeof(*r->sorted));
    r->outcome = kp_calloc(n, 1);
    *scratch = kp_calloc(n, sizeof(**scratch));
    if (!r->time_ns || !r->compile_ns || !r->measure_ns || !r->sorted || !r->outcome ||
        !*scratch)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++)
        r->compile_ns[i] = r->measure_ns[i] = (double)NAN;
    for (size_t i = 0; i < o->n; i++) {
        const struct kp_result_row *row = &o->rows[i];
        uint64_t rank = 0;
        KP_CHECK(kp_space_rank(r->space, o->configs + i * o->n_params, &rank));
        r->time_ns[rank] = row->time_ns;
        if (!isnan(row->compile_ns))
            r->compile_ns[rank] = row->compile_ns;
        if (!isnan(row->measure_ns))
            r->measure_ns[rank] = row->measure_ns;
        r->outcome[rank] = (unsigned char)row->outcome;
    }
    return KOPT_OK;
}

static kopt_status finish(struct kp_recording *r, kopt_error *err)
{
    struct kp_recorder *o = r->owner;
    double *scratch = NULL;
    kopt_status st = take_texts(r, err);
    if (st == KOPT_OK && o->n == 0)
        st = kp_err(err, KOPT_EINPUT, "%s: no configuration is recorded in it", r->info.path);
    if (st == KOPT_OK)
        st = kp_recorder_arrange(o, err);
    if (st == KOPT_OK)
        st = make_space(r, err);
    if (st == KOPT_OK)
        st = take_rows(r, &scratch, err);
    if (st == KOPT_OK) {
        r->info.n_params = o->n_params;
        r->info.cartesian = kp_space_cartesian(r->space);
        r->info.left_out = o->left_out;
        r->info.cut = o->cut;
        tell_times(r);
        tell_costs(r, scratch);
        st = tell_best(r, err);
    }
    kp_free(scratch);
    return st;
}

kopt_status kp_recorder_finish(struct kp_recorder *recorder, struct kp_recording **out,
                               kopt_error *err)
{
    *out = NULL;
    struct kp_recording *r = kp_calloc(1, sizeof(*r));
    if (!r) {
        kp_recorder_free(recorder);
        return kp_err_nomem(err);
    }
    r->owner = recorder;
    kopt_status st = finish(r, err);
    if (st == KOPT_OK)
        *out = r;
    else
        kp_recording_close(r);
    return st;
}

void kp_recording_close(struct kp_recording *r)
{
    if (!r)
        return;
    const char *const texts[] = {r->info.path,     r->info.format, r->info.name,
                                 r->info.kernel,   r->info.device, r->info.problem,
                                 r->info.best_text};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        kp_free((char *)(uintptr_t)texts[i]);
    kp_space_free(r->space);
    kp_free(r->time_ns);
    kp_free(r->compile_ns);
    kp_free(r->measure_ns);
    kp_free(r->outcome);
    kp_free(r->sorted);
    kp_recorder_free(r->owner);
    kp_free(r);
}

static bool said_alike(const char *a, const char *b)
{
    return a[0] && strcmp(a, b) == 0;
}

/* The file of "path" or "path#3". */
static bool find_file(const char *path, struct stat *st)
{
    if (stat(path, st) == 0)
        return true;
    const char *number = strrchr(path, '#');
    char *file = number ? kp_strndup(path, (size_t)(number - path)) : NULL;
    bool found = file && stat(file, st) == 0;
    kp_free(file);
    return found;
}

bool kp_recording_same(const struct kp_recording *a, const struct kp_recording *b)
{
    struct stat x;
    struct stat y;
    if (a == b || strcmp(a->info.path, b->info.path) == 0)
        return true;
    if (said_alike(a->info.kernel, b->info.kernel) &&
        said_alike(a->info.device, b->info.device) &&
        said_alike(a->info.problem, b->info.problem))
        return true;
    return strcmp(a->info.name, b->info.name) == 0 && find_file(a->info.path, &x) &&
           find_file(b->info.path, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool kp_recording_alike(const struct kp_recording *a, const struct kp_recording *b)
{
    size_t n = kp_space_n_params(a->space);
    bool alike =
        strcmp(a->info.kernel, b->info.kernel) == 0 && n == kp_space_n_params(b->space);
    for (size_t i = 0; alike && i < n; i++) {
        size_t k = 0;
        while (k < n && strcmp(kp_space_param(a->space, i)->name,
                               kp_space_param(b->space, k)->name) != 0)
            k++;
        alike = k < n; /* no name is there twice */
    }
    return alike;
}

/* --- files ---------------------------------------------------------------------------------
 */

static kopt_status say_file(struct kp_recorder *r, const char *path, kopt_error *err)
{
    const char *slash = strrchr(path, '/');
    char *name = kp_strdup(slash ? slash + 1 : path);
    if (!name)
        return kp_err_nomem(err);
    static const char *const endings[] = {".gz", ".json"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t n = strlen(name);
        size_t cut = strlen(endings[i]);
        if (n > cut && strcmp(name + n - cut, endings[i]) == 0)
            name[n - cut] = '\0';
    }
    const kopt_recording_info texts = {.path = path, .name = name};
    kopt_status st = kp_recorder_say(r, &texts, err);
    kp_free(name);
    return st;
}

static kopt_status read_file(const char *path, struct kp_recorder *r, kopt_error *err)
{
    bool fits = false;
    kopt_status st = kp_recording_read_t4(path, &fits, r, err);
    if (st == KOPT_OK && !fits)
        st = kp_recording_read_kt(path, &fits, r, err);
    if (st != KOPT_OK || fits)
        return st;
    st = kp_err(err, KOPT_EINPUT, "%s is no recorded space", path);
    kp_err_hint(err, "expected a cache file of Kernel Tuner, T4 results or a store of kopt");
    return st;
}

/* "store.db#3": *file is what stands before it, the caller's. */
static kopt_status split(const char *path, char **file, int64_t *subject, kopt_error *err)
{
    const char *mark = strrchr(path, '#');
    *subject = 0;
    bool names_one = mark && mark > path && !kp_file_exists(path) &&
                     kp_str_to_i64(kp_str_from(mark + 1), subject) && *subject > 0;
    if (!names_one)
        *subject = 0;
    *file = kp_strndup(path, names_one ? (size_t)(mark - path) : strlen(path));
    return *file ? KOPT_OK : kp_err_nomem(err);
}

static kopt_status read_any(const char *path, struct kp_recorder *r, kopt_error *err)
{
    char *file = NULL;
    int64_t subject = 0;
    bool fits = false;
    kopt_status st = split(path, &file, &subject, err);
    if (st == KOPT_OK)
        st = kp_recording_read_store(file, subject, &fits, r, err);
    if (st == KOPT_OK && !fits && subject) {
        st = kp_err(err, KOPT_EUSAGE, "%s is no store, and has no subjects", file);
        kp_err_hint(err, "name the file alone");
    } else if (st == KOPT_OK && !fits) {
        st = read_file(path, r, err);
    }
    kp_free(file);
    return st;
}

kopt_status kp_recording_open(const char *path, struct kp_recording **out, kopt_error *err)
{
    struct kp_recorder *r = NULL;
    *out = NULL;
    kopt_status st = kp_recorder_new(&r, err);
    if (st == KOPT_OK)
        st = say_file(r, path, err);
    if (st == KOPT_OK)
        st = read_any(path, r, err);
    if (st == KOPT_OK)
        return kp_recorder_finish(r, out, err);
    kp_recorder_free(r);
    return st;
}

kopt_status kp_recording_subjects(const char *path, int64_t **ids, size_t *n, kopt_error *err)
{
    char *file = NULL;
    int64_t subject = 0;
    *ids = NULL;
    *n = 0;
    kopt_status st = split(path, &file, &subject, err);
    if (st == KOPT_OK && subject == 0)
        st = kp_recording_list_store(file, ids, n, err);
    kp_free(file);
    return st;
}
