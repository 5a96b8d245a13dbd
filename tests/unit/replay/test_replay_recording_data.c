/* SPDX-License-Identifier: MIT */
/* Published spaces (in the folder that KOPT_DATA_DIR names): what is recorded, and the figures
 * that other programs found for them. */
#include "replay/recording.h"
#include "support/test.h"

#include <math.h>

struct published {
    const char *name;
    uint64_t n;
    uint64_t n_ok;
    double median; /* over the optimum, to three digits */
    uint64_t budget;
    double cartesian; /* of the values that were recorded */
};

static const struct published spaces[] = {
    {"pnpoly_RTX_3090", 4092, 3762, 1.79, 179, 4092},
    {"convolution_RTX_2080_Ti", 6768, 5256, 3.18, 228, 15360},
    {"convolution_milo_A4000", 4362, 4201, 3.24, 323, 10240},
    {"convolution_milo_MI250X", 4362, 4362, 30.1, 51, 10240},
    {"dedispersion_milo_MI250X", 11130, 11130, 2.38, 371, 22272},
    {"gemm_RTX_Titan", 17956, 17956, 2.43, 598, 82944},
};

static void check(const char *folder, const struct published *p)
{
    char path[1024];
    struct kp_recording *r = NULL;
    kopt_error err = {0};
    (void)snprintf(path, sizeof(path), "%s/spaces/%s.json.gz", folder, p->name);
    if (kp_recording_open(path, &r, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    const kopt_recording_info *i = &r->info;
    assert_string_equal(i->name, p->name);
    assert_string_equal(i->format, "Kernel Tuner");
    assert_true(i->n == p->n && i->by_outcome[KOPT_OUT_OK] == p->n_ok && r->n_ok == p->n_ok);
    assert_true(i->left_out == 0 && i->cut == 0 && i->cartesian == p->cartesian);
    double digit = p->median < 10 ? 0.005 : 0.05; /* the figures are rounded */
    if (fabs(i->median_ns / i->best_ns - p->median) > digit || i->budget != p->budget)
        fail_msg("%s: %.4f %d", p->name, i->median_ns / i->best_ns, (int)i->budget);
    assert_true(r->sorted[0] >= i->median_ns && r->sorted[r->n_ok - 1] == i->best_ns);
    kp_recording_close(r);
}

static void published_spaces_have_their_known_figures(void **state)
{
    (void)state;
    const char *folder = getenv("KOPT_DATA_DIR");
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        check(folder, &spaces[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_spaces_have_their_known_figures),
    };
    if (!getenv("KOPT_DATA_DIR")) {
        (void)printf("KOPT_DATA_DIR is not set: it names a folder with published spaces\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
