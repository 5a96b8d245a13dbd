/* SPDX-License-Identifier: MIT */
/* How fast the strategies find good configurations, by replaying recorded spaces:
 *
 *   bench_search [-r repeats] [-w window] [-s strategy,..] [-p quality] CACHE[=T1] ..
 *
 * CACHE is a Kernel Tuner cache file (not compressed) in which every configuration of a space
 * was measured. T1 is the description of the same kernel; of its conditions, those that all
 * recorded configurations satisfy become the rules of the space. A configuration that is valid
 * and not recorded counts as a failure.
 *
 * Score (after autotuning_methodology, over evaluations instead of time): with the N successful
 * configurations sorted from worst to best, random search is at the one numbered
 * round(M (N + 1) / (M + 1)) after M evaluations. The budget is the M at which that comes
 * within 5 % of the way from the median to the optimum. The score after M evaluations is
 * (random - found) / (random - optimum), averaged over M = 1 .. budget: 0 is random search, 1
 * the optimum at once. Until something was found, a run is taken to be at the median. A run
 * hits when it ends within those 5 %; the gap is how far its best is from the optimum; `near`
 * is after how many evaluations (the budget where never) it had 95 % of the optimum's speed.
 *
 * -p 0.9 gives the searches a prior, as a model would: the 20 configurations nearest to one, at
 * random, that has 0.9 of the optimum's speed. */
#include "base/alloc.h"
#include "base/arena.h"
#include "os/file.h"
#include "search/search.h"
#include "json/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    N_PRIOR = 20,
    MAX_STRATEGIES = 32,
    MAX_WINDOW = 256,
    MAX_COUNT = 50000000,
    MAX_FILE = 1 << 28
};

struct record {
    const char *name;
    struct kp_arena arena;
    struct kp_json *cache;
    struct kp_json *t1;
    struct kp_scope scope;
    struct kp_param *params;
    struct kp_rule *rules;
    struct kp_value *values; /* of an environment */
    unsigned char *known;
    struct kp_space_desc desc;
    size_t dropped; /* conditions that a recorded configuration breaks */
    struct kp_space *space;
    double *costs;     /* by rank */
    uint32_t *configs; /* recorded ones */
    double *times;
    size_t n_recorded;
    double *sorted; /* successful times, worst first */
    size_t n_ok;
    double median;
    double cut;
    size_t budget;
};

struct score {
    double mean;
    double error; /* standard error of the mean over repeats */
    double hits;
    double gap;
    double near;
    double ask_ns;
    double max_ask_ns;
};

struct options {
    int repeats;
    uint32_t window;
    double quality; /* of the prior; 0 = none */
    const char *strategies[MAX_STRATEGIES];
    size_t n_strategies;
};

/* ---- reading ---- */

static bool read_value(const struct kp_json *j, struct kp_value *v)
{
    struct kp_str s = {NULL, 0};
    switch (kp_json_type(j)) {
    case KP_JSON_INT:
        v->type = KP_INT;
        return kp_json_as_i64(j, &v->as.i);
    case KP_JSON_REAL:
        v->type = KP_FLOAT;
        return kp_json_as_f64(j, &v->as.f);
    case KP_JSON_BOOL:
        v->type = KP_BOOL;
        return kp_json_as_bool(j, &v->as.b);
    case KP_JSON_STRING:
        (void)kp_json_as_str(j, &s);
        *v = kp_string(s);
        return true;
    case KP_JSON_NULL:
    case KP_JSON_ARRAY:
    case KP_JSON_OBJECT:
        break;
    }
    return false;
}

static kopt_status read_params(struct record *r, kopt_error *err)
{
    const struct kp_json *keys = NULL;
    const struct kp_json *lists = NULL;
    kopt_status st = kp_json_need_array(r->cache, "tune_params_keys", &keys, err);
    if (st == KOPT_OK)
        st = kp_json_need_object(r->cache, "tune_params", &lists, err);
    if (st != KOPT_OK)
        return st;
    size_t n = kp_json_size(keys);
    r->params = kp_arena_alloc(&r->arena, n + 1, sizeof(*r->params));
    r->values = kp_arena_alloc(&r->arena, n + 1, sizeof(*r->values));
    r->known = kp_arena_alloc(&r->arena, n + 1, 1);
    for (size_t i = 0; i < n && st == KOPT_OK && !r->arena.failed; i++) {
        struct kp_str name = {"", 0};
        const struct kp_json *list = NULL;
        (void)kp_json_as_str(kp_json_at(keys, i), &name);
        st = kp_json_need_array(lists, name.ptr, &list, err);
        size_t n_values = kp_json_size(list);
        struct kp_value *v = kp_arena_alloc(&r->arena, n_values + 1, sizeof(*v));
        if (st != KOPT_OK || !v)
            break;
        for (size_t k = 0; k < n_values; k++) {
            if (!read_value(kp_json_at(list, k), &v[k]))
                return kp_err(err, KOPT_EINPUT, "%s: not a scalar", name.ptr);
        }
        r->params[i] = (struct kp_param){.name = name.ptr,
                                         .type = v[0].type,
                                         .values = v,
                                         .n_values = (uint32_t)n_values,
                                         .default_index = -1,
                                         .slot = (uint32_t)i};
        st = kp_scope_add(&r->scope, name.ptr, (uint32_t)i, err);
    }
    r->desc = (struct kp_space_desc){.params = r->params,
                                     .n_params = n,
                                     .values = r->values,
                                     .known = r->known,
                                     .n_slots = n};
    return r->arena.failed ? kp_err_nomem(err) : st;
}

static bool index_of(const struct kp_param *p, struct kp_value v, uint32_t *index)
{
    for (*index = 0; *index < p->n_values; (*index)++) {
        if (kp_value_same(p->values[*index], v))
            return true;
    }
    return false;
}

static bool read_entry(void *user, const char *key, const struct kp_json *entry)
{
    struct record *r = user;
    uint32_t *config = r->configs + r->n_recorded * r->desc.n_params;
    double time = 0;
    (void)key;
    for (size_t i = 0; i < r->desc.n_params; i++) {
        struct kp_value v;
        if (!read_value(kp_json_get(entry, r->params[i].name), &v) ||
            !index_of(&r->params[i], v, &config[i]))
            return false;
    }
    bool ok = kp_json_as_f64(kp_json_get(entry, "time"), &time) && time > 0;
    r->times[r->n_recorded++] = ok ? time : (double)INFINITY;
    return true;
}

static kopt_status read_entries(struct record *r, kopt_error *err)
{
    const struct kp_json *entries = NULL;
    kopt_status st = kp_json_need_object(r->cache, "cache", &entries, err);
    if (st != KOPT_OK)
        return st;
    size_t n = kp_json_size(entries);
    r->configs = kp_calloc(n * r->desc.n_params + 1, sizeof(*r->configs));
    r->times = kp_calloc(n + 1, sizeof(*r->times));
    if (!r->configs || !r->times)
        return kp_err_nomem(err);
    if (!kp_json_each(entries, read_entry, r))
        return kp_err(err, KOPT_EINPUT, "entry %zu does not fit the parameters", r->n_recorded);
    return KOPT_OK;
}

/* Does every recorded configuration satisfy it? */
static bool all_satisfy(struct record *r, const struct kp_expr *e)
{
    for (size_t k = 0; k < r->n_recorded; k++) {
        for (size_t i = 0; i < r->desc.n_params; i++) {
            uint32_t v = r->configs[k * r->desc.n_params + i];
            r->values[i] = r->params[i].values[v];
            r->known[i] = 1;
        }
        struct kp_env env = {r->values, r->known};
        if (kp_expr_truth(e, &env, NULL) != 1)
            return false;
    }
    return true;
}

static kopt_status read_rules(struct record *r, kopt_error *err)
{
    const struct kp_json *list =
        kp_json_get(kp_json_get(r->t1, "ConfigurationSpace"), "Conditions");
    size_t n = kp_json_size(list);
    r->rules = kp_arena_alloc(&r->arena, n + 1, sizeof(*r->rules));
    if (!r->rules)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct kp_str text = {"", 0};
        struct kp_rule *rule = &r->rules[r->desc.n_rules];
        (void)kp_json_as_str(kp_json_get(kp_json_at(list, i), "Expression"), &text);
        kopt_status st = kp_expr_parse(text, &r->scope, KP_DIALECT_PYTHON, NULL, &r->arena,
                                       &rule->expr, err);
        rule->text = text.ptr;
        if (st == KOPT_OK && all_satisfy(r, rule->expr))
            r->desc.n_rules++;
        else
            r->dropped++;
    }
    memset(r->known, 0, r->desc.n_params);
    r->desc.rules = r->rules;
    return KOPT_OK;
}

static int worst_first(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Random search after m evaluations. */
static double baseline(const struct record *r, size_t m)
{
    double place = round((double)m * (double)(r->n_ok + 1) / (double)(m + 1));
    size_t k = place < 1 ? 1 : (size_t)place;
    return r->sorted[(k > r->n_ok ? r->n_ok : k) - 1];
}

static kopt_status fill_costs(struct record *r, kopt_error *err)
{
    uint64_t count = kp_space_count(r->space);
    if (count > MAX_COUNT)
        return kp_err(err, KOPT_ERANGE, "more than %d configurations", MAX_COUNT);
    r->costs = kp_calloc((size_t)count + 1, sizeof(*r->costs));
    r->sorted = kp_calloc(r->n_recorded + 1, sizeof(*r->sorted));
    if (!r->costs || !r->sorted)
        return kp_err_nomem(err);
    for (uint64_t i = 0; i < count; i++)
        r->costs[i] = (double)INFINITY;
    for (size_t k = 0; k < r->n_recorded; k++) {
        uint64_t rank = 0;
        if (!kp_space_rank(r->space, r->configs + k * r->desc.n_params, &rank))
            return kp_err(err, KOPT_EINPUT, "entry %zu is not in the space", k);
        r->costs[rank] = r->times[k];
        if (isfinite(r->times[k]))
            r->sorted[r->n_ok++] = r->times[k];
    }
    if (r->n_ok < 2)
        return kp_err(err, KOPT_EINPUT, "fewer than two configurations succeeded");
    qsort(r->sorted, r->n_ok, sizeof(*r->sorted), worst_first);
    double best = r->sorted[r->n_ok - 1];
    r->median = 0.5 * (r->sorted[r->n_ok / 2] + r->sorted[(r->n_ok - 1) / 2]);
    r->cut = best + 0.05 * (r->median - best);
    size_t worse = 0;
    while (r->sorted[worse] > r->cut)
        worse++;
    r->budget = (size_t)ceil((double)worse / (double)(r->n_ok + 1 - worse));
    r->budget = r->budget ? r->budget : 1;
    return KOPT_OK;
}

static void close_record(struct record *r)
{
    kp_space_free(r->space);
    kp_json_free(r->cache);
    kp_json_free(r->t1);
    kp_scope_deinit(&r->scope);
    kp_arena_deinit(&r->arena);
    kp_free(r->configs);
    kp_free(r->times);
    kp_free(r->costs);
    kp_free(r->sorted);
}

static kopt_status parse_file(const char *path, struct kp_json **out, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(MAX_FILE);
    kopt_status st = kp_file_read(path, &text, err);
    if (st == KOPT_OK)
        st = kp_json_parse((struct kp_str){kp_buf_text(&text), text.len}, path, out, err);
    kp_buf_deinit(&text);
    return st;
}

/* `spec`: "cache.json" or "cache.json=t1.json"; it is cut in two. */
static kopt_status open_record(struct record *r, char *spec, kopt_error *err)
{
    *r = (struct record){.arena = KP_ARENA_INIT((size_t)64 << 20)};
    char *t1 = strchr(spec, '=');
    if (t1)
        *t1++ = '\0';
    const char *slash = strrchr(spec, '/');
    r->name = slash ? slash + 1 : spec;
    kopt_status st = parse_file(spec, &r->cache, err);
    if (st == KOPT_OK && t1)
        st = parse_file(t1, &r->t1, err);
    if (st == KOPT_OK)
        st = read_params(r, err);
    if (st == KOPT_OK)
        st = read_entries(r, err);
    if (st == KOPT_OK)
        st = read_rules(r, err);
    if (st == KOPT_OK)
        st = kp_space_new(&r->desc, &r->space, err);
    if (st == KOPT_OK)
        st = fill_costs(r, err);
    if (st != KOPT_OK)
        kp_err_wrap(err, "%s", spec);
    return st;
}

/* ---- a prior ---- */

static double steps_between(const struct record *r, const uint32_t *a, const uint32_t *b)
{
    double d = 0;
    for (size_t i = 0; i < r->desc.n_params; i++)
        if (a[i] != b[i])
            d += 1 + fabs((double)a[i] - (double)b[i]) / r->params[i].n_values;
    return d;
}

/* A recorded configuration whose speed is nearest to `quality` of the optimum's, of 200. */
static const uint32_t *centre_of(const struct record *r, double quality, struct kp_rng *rng)
{
    const uint32_t *found = r->configs;
    double least = (double)INFINITY;
    for (int i = 0; i < 200; i++) {
        size_t k = (size_t)kp_rng_below(rng, r->n_recorded);
        double off = fabs(r->sorted[r->n_ok - 1] / r->times[k] - quality);
        if (off < least) {
            least = off;
            found = r->configs + k * r->desc.n_params;
        }
    }
    return found;
}

/* The nearest of all, one after another. */
static kopt_status make_prior(const struct record *r, double quality, uint64_t seed,
                              struct kp_prior *p, kopt_error *err)
{
    struct kp_rng rng;
    kp_rng_init(&rng, seed);
    const uint32_t *centre = centre_of(r, quality, &rng);
    kopt_status st = kp_prior_init(p, r->space, N_PRIOR, err);
    while (st == KOPT_OK && p->n < N_PRIOR && p->n < r->n_recorded) {
        const uint32_t *nearest = NULL;
        double least = (double)INFINITY;
        for (size_t k = 0; k < r->n_recorded; k++) {
            const uint32_t *c = r->configs + k * r->desc.n_params;
            double d = steps_between(r, c, centre);
            if (d < least && kp_prior_find(p, r->space, c) == p->n) {
                least = d;
                nearest = c;
            }
        }
        (void)kp_prior_add(p, r->space, nearest, -least);
    }
    return st;
}

/* ---- replaying ---- */

/* Processor time of this thread: an ask takes no other, and what else runs does not count. */
static double cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One run to the end of the budget: its own score and best. */
static kopt_status replay(const struct record *r, const char *strategy,
                          const struct options *with, uint64_t seed, struct score *out,
                          kopt_error *err)
{
    uint32_t window = with->window;
    struct kp_prior prior = {0};
    struct kp_search_options o = {
        .seed = seed, .budget = r->budget, .window = window, .prior = &prior};
    struct kp_search *s = NULL;
    uint32_t config[KP_PARAMS_MAX];
    double flight[MAX_WINDOW];
    double best = (double)INFINITY;
    double optimum = r->sorted[r->n_ok - 1];
    size_t asked = 0;
    size_t told = 0;
    kopt_status st = KOPT_OK;
    *out = (struct score){0};
    if (with->quality > 0)
        st = make_prior(r, with->quality, seed, &prior, err);
    else
        o.prior = NULL;
    if (st == KOPT_OK)
        st = kp_search_new(strategy, r->space, &o, &s, err);
    while (st == KOPT_OK && told < r->budget) {
        bool waiting = false;
        double start = cpu_ns();
        if (asked < r->budget && kp_search_ask(s, config, &waiting)) {
            double ns = cpu_ns() - start;
            uint64_t rank = 0;
            (void)kp_space_rank(r->space, config, &rank);
            flight[asked++ % window] = r->costs[rank];
            out->ask_ns += ns / (double)r->budget;
            out->max_ask_ns = fmax(out->max_ask_ns, ns);
            continue;
        }
        if (told == asked) /* every configuration was asked */
            break;
        double cost = flight[told++ % window];
        kp_search_tell(s, cost);
        best = fmin(best, cost);
        out->near += best > optimum / 0.95;
        double random = baseline(r, told);
        double found = isfinite(best) ? best : r->median;
        out->mean += (random - found) / (random - optimum) / (double)r->budget;
    }
    kp_search_free(s);
    kp_prior_deinit(&prior);
    out->hits = best <= r->cut;
    out->gap = ((isfinite(best) ? best : r->median) - optimum) / optimum;
    return st;
}

static kopt_status score_of(const struct record *r, const char *strategy,
                            const struct options *o, struct score *out, kopt_error *err)
{
    double squares = 0;
    double n = o->repeats;
    *out = (struct score){0};
    for (int k = 0; k < o->repeats; k++) {
        struct score one;
        kopt_status st = replay(r, strategy, o, (uint64_t)k + 1, &one, err);
        if (st != KOPT_OK)
            return st;
        out->mean += one.mean / n;
        squares += one.mean * one.mean / n;
        out->hits += one.hits / n;
        out->gap += one.gap / n;
        out->near += one.near / n;
        out->ask_ns += one.ask_ns / n;
        out->max_ask_ns = fmax(out->max_ask_ns, one.max_ask_ns);
    }
    double variance = fmax(0, squares - out->mean * out->mean);
    out->error = o->repeats > 1 ? sqrt(variance / (n - 1)) : 0;
    return KOPT_OK;
}

static kopt_status bench_record(char *spec, const struct options *o, struct score *totals,
                                kopt_error *err)
{
    struct record r;
    kopt_status st = open_record(&r, spec, err);
    if (st != KOPT_OK)
        goto done;
    printf(
        "%s: %llu configurations (%zu recorded, %zu ok), %zu rules, %zu conditions left out, "
        "budget %zu\n",
        r.name, (unsigned long long)kp_space_count(r.space), r.n_recorded, r.n_ok,
        r.desc.n_rules, r.dropped, r.budget);
    for (size_t k = 0; k < o->n_strategies; k++) {
        struct score s;
        st = score_of(&r, o->strategies[k], o, &s, err);
        if (st != KOPT_OK)
            goto done;
        printf("  %-12s score %6.3f +- %.3f  hits %3.0f %%  gap %6.2f %%  near %5.1f  "
               "ask %.3f ms, at most %.3f ms\n",
               o->strategies[k], s.mean, s.error, 100 * s.hits, 100 * s.gap, s.near,
               s.ask_ns * 1e-6, s.max_ask_ns * 1e-6);
        (void)fflush(stdout);
        totals[k].mean += s.mean;
        totals[k].error += s.error * s.error;
        totals[k].hits += s.hits;
        totals[k].gap += s.gap;
        totals[k].near += s.near;
    }
done:
    close_record(&r);
    return st;
}

/* ---- the command line ---- */

static int usage(void)
{
    (void)fputs("usage: bench_search [-r repeats] [-w window] [-s strategy,..] [-p quality] "
                "CACHE[=T1] ..\n",
                stderr);
    return 2;
}

static void set_strategies(struct options *o, char *list)
{
    char *rest = NULL;
    o->n_strategies = 0;
    for (char *s = strtok_r(list, ",", &rest); s && o->n_strategies < MAX_STRATEGIES;
         s = strtok_r(NULL, ",", &rest))
        o->strategies[o->n_strategies++] = s;
}

/* Returns the index of the first operand, or 0. */
static int read_options(struct options *o, int argc, char **argv)
{
    size_t n = 0;
    *o = (struct options){.repeats = 30, .window = 1, .n_strategies = 2};
    o->strategies[0] = kp_search_list(&n)[0].name;
    o->strategies[1] = "random";
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "-r") == 0)
            o->repeats = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "-w") == 0)
            o->window = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "-p") == 0)
            o->quality = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "-s") == 0)
            set_strategies(o, argv[i + 1]);
        else
            return 0;
    }
    bool ok = o->repeats > 0 && o->window > 0 && o->window <= MAX_WINDOW && o->n_strategies;
    return ok && i < argc ? i : 0;
}

int main(int argc, char **argv)
{
    struct options o;
    struct score totals[MAX_STRATEGIES] = {{0}};
    kopt_error err = {0};
    int first = read_options(&o, argc, argv);
    if (!first)
        return usage();
    printf("%d repeats, window %u\n", o.repeats, o.window);
    for (int i = first; i < argc; i++) {
        if (bench_record(argv[i], &o, totals, &err) != KOPT_OK) {
            (void)fprintf(stderr, "bench_search: %s\n", err.message);
            return 1;
        }
    }
    double n = argc - first;
    puts("mean");
    for (size_t k = 0; k < o.n_strategies; k++) {
        printf("  %-12s score %6.3f +- %.3f  hits %3.0f %%  gap %6.2f %%  near %5.1f\n",
               o.strategies[k], totals[k].mean / n, sqrt(totals[k].error) / n,
               100 * totals[k].hits / n, 100 * totals[k].gap / n, totals[k].near / n);
    }
    return 0;
}
