/* SPDX-License-Identifier: MIT */
/* What a strategy itself costs: processor time for an evaluation (one ask and one tell) on
 * made-up spaces of a thousand to a million valid configurations.
 *
 *   bench_strategies [-n evaluations] [-w window] [strategy ..]
 *
 * The spaces have ten parameters, some of them no powers of two, and a rule; the cost is a
 * bumpy function with a tenth of failures. Times are those of this thread, so that what else
 * the machine does counts little. */
#include "base/alloc.h"
#include "base/arena.h"
#include "os/clock.h"
#include "search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PARAMS = 10, EVALUATIONS = 2000, MAX_WINDOW = 256, N_SPACES = 4 };

struct made {
    struct kp_arena arena;
    struct kp_scope scope;
    struct kp_param params[N_PARAMS];
    struct kp_value values[N_PARAMS];
    unsigned char known[N_PARAMS];
    struct kp_rule rule;
    struct kp_space_desc desc;
    struct kp_space *space;
};

/* How many values each parameter has. */
static const uint32_t shapes[N_SPACES][N_PARAMS] = {{4, 4, 3, 3, 2, 2, 2, 2, 1, 1},
                                                    {8, 8, 4, 4, 3, 3, 2, 2, 1, 1},
                                                    {12, 12, 6, 6, 4, 3, 3, 2, 2, 1},
                                                    {16, 16, 8, 8, 5, 4, 2, 2, 2, 1}};

static kopt_status make(struct made *m, const uint32_t *shape, kopt_error *err)
{
    static const char *const names[N_PARAMS] = {"BX",     "BY",     "TX",  "TY",     "VEC",
                                                "UNROLL", "STAGES", "PAD", "SHARED", "ORDER"};
    static const char text[] = "BX * BY <= 1024 and TX * TY <= 24";
    *m = (struct made){.arena = KP_ARENA_INIT(1 << 20)};
    kopt_status st = KOPT_OK;
    for (uint32_t i = 0; i < N_PARAMS && st == KOPT_OK; i++) {
        struct kp_value *values = kp_arena_alloc(&m->arena, shape[i], sizeof(*values));
        if (!values)
            return kp_err_nomem(err);
        for (uint32_t k = 0; k < shape[i]; k++)
            values[k] = kp_int(i < 2 ? 4 * (int64_t)(k + 1) : (int64_t)(k + 1));
        m->params[i] = (struct kp_param){.name = names[i],
                                         .type = KP_INT,
                                         .values = values,
                                         .n_values = shape[i],
                                         .default_index = -1,
                                         .slot = i};
        st = kp_scope_add(&m->scope, names[i], i, err);
    }
    if (st == KOPT_OK)
        st = kp_expr_parse(kp_str_from(text), &m->scope, KP_DIALECT_KOPT, NULL, &m->arena,
                           &m->rule.expr, err);
    m->rule.text = text;
    m->desc = (struct kp_space_desc){.params = m->params,
                                     .n_params = N_PARAMS,
                                     .rules = &m->rule,
                                     .n_rules = 1,
                                     .values = m->values,
                                     .known = m->known,
                                     .n_slots = N_PARAMS};
    return st == KOPT_OK ? kp_space_new(&m->desc, &m->space, err) : st;
}

static void unmake(struct made *m)
{
    kp_space_free(m->space);
    kp_scope_deinit(&m->scope);
    kp_arena_deinit(&m->arena);
}

/* A bowl with bumps; one in ten fails. */
static double cost_of(const uint32_t *shape, const uint32_t *config)
{
    double cost = 1;
    uint32_t mix = 0;
    for (uint32_t i = 0; i < N_PARAMS; i++) {
        double d = ((double)config[i] + 0.5) / (double)shape[i] - 0.7;
        cost += d * d;
        mix = (mix + config[i] + i) * 2654435761U;
    }
    if ((mix >> 16) % 10 == 0)
        return (double)INFINITY;
    return cost + 0.1 * (double)((mix >> 8) % 16) / 16;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds of each evaluation, in `us`; returns how many there were. */
static size_t measure(struct kp_search *s, const uint32_t *shape, size_t n, uint32_t window,
                      double *us)
{
    double flight[MAX_WINDOW];
    uint32_t config[KP_PARAMS_MAX];
    size_t asked = 0;
    size_t told = 0;
    while (told < n) {
        bool waiting = false;
        int64_t begun = kp_clock_thread_ns();
        bool got = asked < n && asked - told < window && kp_search_ask(s, config, &waiting);
        if (got) {
            us[asked] = (double)(kp_clock_thread_ns() - begun) / 1e3;
            flight[asked++ % window] = cost_of(shape, config);
            continue;
        }
        if (told == asked)
            break;
        begun = kp_clock_thread_ns();
        kp_search_tell(s, flight[told % window]);
        us[told++] += (double)(kp_clock_thread_ns() - begun) / 1e3;
    }
    return told;
}

static kopt_status bench(const char *strategy, const struct made *m, const uint32_t *shape,
                         size_t n, uint32_t window, double *us, kopt_error *err)
{
    struct kp_search *s = NULL;
    struct kp_search_options o = {.seed = 1, .budget = n, .window = window};
    double sum = 0;
    kopt_status st = kp_search_new(strategy, m->space, &o, &s, err);
    if (st != KOPT_OK)
        return st;
    size_t done = measure(s, shape, n, window, us);
    kp_search_free(s);
    for (size_t i = 0; i < done; i++)
        sum += us[i];
    qsort(us, done, sizeof(*us), ascending);
    printf("| %s | %llu | %zu | %.1f | %.1f | %.1f | %.1f |\n", strategy,
           (unsigned long long)kp_space_count(m->space), done, sum / (double)done, us[done / 2],
           us[done - 1 - done / 100], us[done - 1]);
    return KOPT_OK;
}

int main(int argc, char **argv)
{
    size_t n = EVALUATIONS;
    uint32_t window = 1;
    size_t n_strategies = 0;
    const struct kp_strategy *list = kp_search_list(&n_strategies);
    kopt_error err = {0};
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "-n") == 0)
            n = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "-w") == 0)
            window = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    }
    double *us = n ? kp_calloc(n, sizeof(*us)) : NULL;
    if (!us || window == 0 || window > MAX_WINDOW) {
        (void)fputs("usage: bench_strategies [-n evaluations] [-w window] [strategy ..]\n",
                    stderr);
        return 2;
    }
    printf("window %u; microseconds of processor time for an evaluation\n\n"
           "| strategy | valid | evaluations | mean | median | 99 of 100 within | largest |\n"
           "| --- | --- | --- | --- | --- | --- | --- |\n",
           window);
    size_t chosen = i < argc ? (size_t)(argc - i) : n_strategies;
    kopt_status st = KOPT_OK;
    for (size_t k = 0; k < chosen && st == KOPT_OK; k++) {
        for (size_t s = 0; s < N_SPACES && st == KOPT_OK; s++) {
            struct made m;
            st = make(&m, shapes[s], &err);
            if (st == KOPT_OK)
                st = bench(i < argc ? argv[i + (int)k] : list[k].name, &m, shapes[s], n, window,
                           us, &err);
            unmake(&m);
        }
    }
    kp_free(us);
    if (st != KOPT_OK)
        (void)fprintf(stderr, "bench_strategies: %s\n", err.message);
    return st == KOPT_OK ? 0 : 1;
}
