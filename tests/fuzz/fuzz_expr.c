/* SPDX-License-Identifier: MIT */
/* Any bytes as an expression, a run of expressions and a list. What is decided while some names
 * are unknown must stay as it is when they become known. The first byte picks the dialect. */
#include "base/error.h"
#include "space/expr_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_NAMES = 6, ARENA_MAX = 64 << 20 };

static const char *const NAMES[N_NAMES] = {"a", "b", "c", "s", "ProblemSize[0]", "device.warp"};

static void check_partial(const struct kp_expr *e, const struct kp_value *values)
{
    unsigned char known[N_NAMES] = {1, 1, 1, 1, 1, 1};
    struct kp_env env = {values, known};
    struct kp_value full;
    enum kp_outcome at_end = kp_expr_eval(e, &env, &full, NULL);
    int truth_at_end = kp_expr_truth(e, &env, NULL);
    KP_CHECK(at_end != KP_EVAL_UNKNOWN && truth_at_end >= 0);
    for (unsigned mask = 0; mask < 1U << N_NAMES; mask += 3) {
        struct kp_value v;
        struct kp_eval_error why;
        for (unsigned i = 0; i < N_NAMES; i++)
            known[i] = mask >> i & 1;
        enum kp_outcome o = kp_expr_eval(e, &env, &v, &why);
        int truth = kp_expr_truth(e, &env, NULL);
        KP_CHECK(o != KP_EVAL_VALUE || (at_end == o && kp_value_same(v, full)));
        KP_CHECK(o != KP_EVAL_ERROR || (at_end == o && why.what));
        KP_CHECK(truth < 0 || truth == truth_at_end);
    }
}

static void see_slot(void *user, uint32_t slot)
{
    (void)user;
    KP_CHECK(slot < N_NAMES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct kp_value values[2][N_NAMES] = {
        {{KP_INT, {.i = 4}},
         {KP_INT, {.i = 0}},
         {KP_FLOAT, {.f = 0.5}},
         {KP_STRING, {.s = {"row", 3}}},
         {KP_INT, {.i = 4096}},
         {KP_BOOL, {.b = true}}},
        {{KP_INT, {.i = INT64_MIN}},
         {KP_INT, {.i = -1}},
         {KP_FLOAT, {.f = -1e300}},
         {KP_STRING, {.s = {"", 0}}},
         {KP_INT, {.i = 7}},
         {KP_BOOL, {.b = false}}},
    };
    struct kp_scope scope = {0};
    kopt_error err;
    if (size == 0)
        return 0;
    enum kp_dialect dialect = data[0] & 1 ? KP_DIALECT_PYTHON : KP_DIALECT_KOPT;
    struct kp_str text = {(const char *)data + 1, size - 1};
    for (uint32_t i = 0; i < N_NAMES; i++)
        KP_CHECK(kp_scope_add(&scope, NAMES[i], i, &err) == KOPT_OK);
    struct kp_arena arena = KP_ARENA_INIT(ARENA_MAX);
    const struct kp_expr *e = NULL;
    size_t used = 0;
    if (kp_expr_parse(text, &scope, dialect, NULL, &arena, &e, &err) == KOPT_OK) {
        kp_expr_slots(e, see_slot, NULL);
        check_partial(e, values[0]);
        check_partial(e, values[1]);
    } else {
        KP_CHECK(err.message[0] && err.line > 0 && err.column > 0);
    }
    for (struct kp_str rest = text; rest.len > 0;) {
        const struct kp_parse_input in = {rest, &scope, dialect, NULL, &arena};
        if (kp_expr_parse_some(&in, true, &e, &used, &err) != KOPT_OK)
            break;
        KP_CHECK(used > 0 && used <= rest.len);
        rest = (struct kp_str){rest.ptr + used, rest.len - used};
    }
    struct kp_value *list = NULL;
    size_t n = 0;
    if (kp_list_parse(text, &scope, NULL, dialect, NULL, &arena, &list, &n, &used, &err) ==
        KOPT_OK)
        KP_CHECK(n > 0 && used <= text.len && list[n - 1].type == list[0].type);
    kp_arena_deinit(&arena);
    kp_scope_deinit(&scope);
    return 0;
}
