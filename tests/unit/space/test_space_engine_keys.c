/* SPDX-License-Identifier: MIT */
/* The spaces that other tuners searched by brute force: the same keys, no more and no less. The
 * data is not part of the repository; without it (KOPT_SHARED_DATA, or ../shared/data beside
 * the sources) the test is skipped. */
#include "test_space_engine.h"

#include "base/map.h"
#include "space/kernel.h"

#include <unistd.h>

struct stored {
    const char *cache; /* in spaces/ */
    const char *t1;    /* in t1/: its rules, the first n_rules of them */
    int n_rules;
    uint64_t count;
};

static const struct stored spaces[] = {
    {"convolution_RTX_2080_Ti.json.gz", "convolution.json", 3, 6768},
    {"convolution_milo_A4000.json.gz", "convolution_milo.json", 4, 4362},
    {"convolution_milo_MI250X.json.gz", "convolution_milo.json", 4, 4362},
    {"dedispersion_milo_MI250X.json.gz", "dedispersion_milo.json", 3, 11130},
    {"gemm_RTX_Titan.json.gz", "gemm_milo.json", 7, 17956},
    {"pnpoly_RTX_3090.json.gz", "pnpoly.json", 0, 4092},
};

static char data_dir[1024];

static char script[1024];

static bool find_data(void)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): before anything else runs */
    const char *given = getenv("KOPT_SHARED_DATA");
    const char *source = getenv("KOPT_SOURCE_DIR");
    /* NOLINTEND(concurrency-mt-unsafe) */
    char probe[1100];
    source = source ? source : ".";
    if (given)
        (void)snprintf(data_dir, sizeof(data_dir), "%s", given);
    else
        (void)snprintf(data_dir, sizeof(data_dir), "%s/../shared/data", source);
    (void)snprintf(script, sizeof(script), "%s/tests/unit/space/space_keys.py", source);
    (void)snprintf(probe, sizeof(probe), "%s/t1/pnpoly.json", data_dir);
    return access(probe, R_OK) == 0;
}

/* The parameters and rules of a stored space into `m`, its keys into `keys`. */
static void read_stored(const struct stored *space, struct made *m, struct kp_map *keys)
{
    char command[8192];
    static char line[1 << 16];
    (void)snprintf(command, sizeof(command), "python3 '%s' '%s/spaces/%s' '%s/t1/%s' %d",
                   script, data_dir, space->cache, data_dir, space->t1, space->n_rules);
    FILE *f = popen(command, "r"); /* NOLINT(cert-env33-c): our own script, quoted */
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        size_t n = strcspn(line, "\n");
        char *text = line + 2;
        line[n] = 0;
        if (line[0] == 'P') {
            char *list = strchr(text, ' ');
            assert_non_null(list);
            *list = 0;
            made_param(m, text, list + 1);
        } else if (line[0] == 'R') {
            made_rule(m, python_dialect, text);
        } else {
            assert_non_null(kp_map_put(keys, text, n - 2, NULL));
        }
    }
    assert_int_equal(pclose(f), 0);
}

static void check_stored(const struct stored *space)
{
    struct made m;
    struct kp_map keys = {0};
    struct kp_space_iter it;
    uint32_t config[KP_PARAMS_MAX];
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    made_init(&m);
    read_stored(space, &m, &keys);
    assert_int_equal(keys.n, space->count);
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), keys.n);
    kp_space_iter_init(&it, s, 0);
    while (kp_space_iter_next(&it, config)) {
        kp_buf_clear(&text);
        for (size_t i = 0; i < m.desc.n_params; i++) {
            kp_buf_adds(&text, i ? "," : "");
            kp_value_to_text(m.params[i].values[config[i]], &text);
        }
        uint64_t *seen = kp_map_get(&keys, text.ptr, text.len);
        if (seen)
            assert_int_equal((*seen)++, 0);
        else
            fail_msg("%s: %s is no key", space->cache, kp_buf_text(&text));
    }
    kp_buf_deinit(&text);
    kp_map_deinit(&keys);
    kp_space_free(s);
    made_deinit(&m);
}

static void stored_spaces_are_reproduced_key_by_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        check_stored(&spaces[i]);
}

static void check_count(const char *t1, double candidates, uint64_t count)
{
    struct kp_kernel *k = NULL;
    struct kp_bound *b = NULL;
    struct kp_limits limits = {.max_threads = 1024, .shared_bytes = 49152, .warp = 32};
    kopt_error err = {0};
    char path[1100];
    (void)snprintf(path, sizeof(path), "%s/t1/%s", data_dir, t1);
    if (kp_kernel_load(path, false, &k, &err) != KOPT_OK ||
        kp_kernel_bind(k, NULL, 0, &limits, &b, &err) != KOPT_OK) {
        fail_msg("%s: %s", t1, err.message);
        return;
    }
    /* Both are whole numbers below 2^53. */
    assert_true(kp_space_cartesian(b->space) == candidates);
    assert_int_equal(kp_space_count(b->space), count);
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void t1_files_have_their_known_counts(void **state)
{
    (void)state;
    check_count("hotspot_milo.json", 4440000, 82984);
    check_count("gemm_milo.json", 663552, 116928);
    check_count("convolution_milo.json", 10240, 4362);
    check_count("dedispersion_milo.json", 22272, 11130);
    check_count("convolution.json", 16896, 6768);
    check_count("pnpoly.json", 4092, 4092);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_spaces_are_reproduced_key_by_key),
        cmocka_unit_test(t1_files_have_their_known_counts),
    };
    if (!find_data()) {
        (void)printf("skipped: no data in %s\n", data_dir);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
