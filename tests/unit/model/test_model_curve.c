/* SPDX-License-Identifier: MIT */
/* Ten training steps against PyTorch's of the same networks: curve.py makes curve.json, and has
 * the formulas below too. */
#include "base/alloc.h"
#include "model/net.h"
#include "nets.h"
#include "nn/adam.h"
#include "os/file.h"
#include "support/test.h"
#include "json/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 10 };

static struct kp_json *read_curves(void)
{
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    struct kp_json *file = NULL;
    kopt_error err;
    char path[4096];
    const char *source = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/unit/model/curve.json", source ? source : ".");
    if (kp_file_read(path, &text, &err) != KOPT_OK ||
        kp_json_parse((struct kp_str){kp_buf_text(&text), text.len}, path, &file, &err) !=
            KOPT_OK)
        fail_msg("%s", err.message);
    kp_buf_deinit(&text);
    return file;
}

static void put_values(struct kp_net *net)
{
    for (size_t k = 0; k < net->params.n_tensors; k++) {
        const struct kp_tensor *t = &net->params.tensors[k];
        double around = t->init == KP_INIT_ONE ? 1 : 0;
        for (size_t i = 0; i < t->rows * t->cols; i++)
            net->values[t->offset + i] =
                (float)(around + 0.4 * sin(1.7 * (double)k + 0.9 * (double)i + 0.3));
    }
}

static void put_batch(struct small_batch *s)
{
    for (size_t b = 0; b < NET_B; b++) {
        for (size_t t = 0; t < NET_T; t++)
            s->tokens[t * NET_B + b] = (int32_t)((7 * b + 3 * t) % NET_VOCAB);
        for (size_t k = 0; k < NET_F; k++)
            s->features[b * NET_F + k] = (float)cos(1.1 * (double)(b * NET_F + k));
        for (size_t p = 0; p < NET_P; p++)
            s->targets[p * NET_B + b] = (int32_t)((5 * b + 3 * p + b / 3) % net_values[p]);
        s->weights[b] = 1.0F / (NET_B * NET_P);
    }
    s->b = (struct kp_batch){.B = NET_B,
                             .tokens = s->tokens,
                             .features = s->features,
                             .targets = s->targets,
                             .weights = s->weights};
}

/* |got - want| <= 1e-5 (1 + |want|): a loss is a mean of 24 logarithms near 1, a norm a root of
 * some thousand squares, each from sums of at most some tens of terms in float, about 1e-6 of
 * it. Ten steps carry that on: where a gradient is no larger than its rounding, Adam, which
 * divides by its size, may move the parameter the other way, but the loss hardly feels such a
 * parameter. A step with another rate, decay or norm differs by more than 1e-4. */
static void check(const struct kp_json *curve, const char *what, size_t i, double got)
{
    double want = 0;
    assert_true(kp_json_as_f64(kp_json_at(kp_json_get(curve, what), i), &want));
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
        fail_msg("step %zu: %s is %.9g, not %.9g", i + 1, what, got, want);
}

static void follow(const char *name)
{
    struct kp_json *file = read_curves();
    const struct kp_json *curve = kp_json_get(file, name);
    struct kp_net_shape shape = small_shape();
    struct kp_net *net = NULL;
    struct small_batch s;
    kopt_error err = {0};
    struct kp_adam adam = kp_adam_default();
    adam.rate = 0.01F;
    adam.decay = 0.05F;
    adam.clip = 0.2F;
    assert_non_null(curve);
    assert_int_equal(kp_net_new(kp_net_find(name), &shape, 1, &net, &err), KOPT_OK);
    put_values(net);
    put_batch(&s);
    size_t n = net->params.n_floats;
    float *grad = kp_slab_new(n);
    float *m = kp_slab_new(n);
    float *v = kp_slab_new(n);
    float *work = kp_slab_new(net->ops->work(net, NET_B, true));
    assert_true(grad && m && v && work);
    for (size_t i = 0; i < STEPS; i++) {
        struct kp_net_score score = {0};
        memset(grad, 0, n * sizeof(float));
        net->ops->run(net, &s.b, 0.1F, 0, grad, work, &score);
        double norm = kp_grad_norm(grad, n);
        check(curve, "losses", i, score.loss);
        check(curve, "norms", i, norm);
        kp_adam_step(&adam, i + 1, n, norm, net->values, grad, m, v);
    }
    kp_slab_free(grad);
    kp_slab_free(m);
    kp_slab_free(v);
    kp_slab_free(work);
    kp_net_free(net);
    kp_json_free(file);
}

static void test_attention(void **state)
{
    (void)state;
    follow("attention");
}

static void test_hybrid2(void **state)
{
    (void)state;
    follow("hybrid2");
}

static void test_factored(void **state)
{
    (void)state;
    follow("factored");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_hybrid2),
                                       cmocka_unit_test(test_factored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
