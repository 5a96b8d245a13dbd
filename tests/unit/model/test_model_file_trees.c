/* SPDX-License-Identifier: MIT */
/* Files of models that have trees beside their networks. */
#include "model_files.h"

#include <math.h>

static const struct small_plan whole = {"factored", small_rules, "small.kopt", 2, 5};
#define PATH "model.safetensors"

/* They have a say in what is answered: of the ten best some are others. */
static void test_trees_are_heard(void **state)
{
    static const char *const nets[] = {"factored", "ranker"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct small_plan plan = whole;
        struct kp_prediction x;
        struct kp_prediction y;
        kopt_error err;
        plan.net = nets[i];
        struct kp_model *without = small_model(&plan);
        struct kp_model *m = with_trees(&plan);
        save(m, PATH);
        struct kp_model *loaded = load(PATH);
        assert_int_equal(small_ask(without, 10, true, &x, &err), KOPT_OK);
        assert_int_equal(small_ask(loaded, 10, true, &y, &err), KOPT_OK);
        assert_int_equal(x.n, y.n);
        assert_memory_not_equal(x.logp, y.logp, x.n * sizeof(*x.logp));
        assert_memory_not_equal(x.configs, y.configs, x.n * SMALL_TARGETS * sizeof(*x.configs));
        kp_prediction_deinit(&x);
        kp_prediction_deinit(&y);
        kp_model_free(without);
        kp_model_free(m);
        kp_model_free(loaded);
    }
}

/* --- trees ----------------------------------------------------------------------------------
 */

/* `header` with grove `g` of the forest's text as it should not be; row: "[..]". */
static struct kp_buf with_grove(struct kp_str header, const struct kp_forest *f, size_t g,
                                const char *row)
{
    const struct kp_grove *w = &f->groves[g];
    char own[128];
    (void)snprintf(own, sizeof(own), "[%zu,%zu,%zu,%zu,%zu]", w->n_inputs, w->n_outputs,
                   w->n_trees, w->n_nodes, w->n_leaves);
    return replaced(header, own, kp_str_from(row));
}

static void check_changed_grove(const struct parts *p, const struct kp_forest *f, size_t g,
                                struct kp_grove w, const char *message)
{
    char row[128];
    (void)snprintf(row, sizeof(row), "[%zu,%zu,%zu,%zu,%zu]", w.n_inputs, w.n_outputs,
                   w.n_trees, w.n_nodes, w.n_leaves);
    struct kp_buf h = with_grove(p->header, f, g, row);
    compose("bad.safetensors", (struct kp_str){kp_buf_text(&h), h.len}, p->data);
    assert_refused("bad.safetensors", message);
    kp_buf_deinit(&h);
}

/* Grove g with other sizes than the model's, or than the tensors'. */
static void check_groves(const char *net, size_t g)
{
    struct small_plan plan = whole;
    plan.net = net;
    struct kp_model *m = with_trees(&plan);
    const struct kp_forest *f = m->forest;
    const char *other = "the trees of 'forest' are not of such a model";
    save(m, PATH);
    struct parts p = split(PATH);
    struct kp_grove w = f->groves[g];
    w.n_inputs++;
    check_changed_grove(&p, f, g, w, other);
    w.n_inputs = 1;
    check_changed_grove(&p, f, g, w, other);
    w = f->groves[g];
    w.n_outputs++;
    w.n_leaves = 1;
    check_changed_grove(&p, f, g, w, other);
    w = f->groves[g];
    w.n_trees++;
    check_changed_grove(&p, f, g, w, "roots': its shape is not");
    w = f->groves[g];
    w.n_nodes--;
    check_changed_grove(&p, f, g, w, "nodes': its shape is not");
    w.n_nodes = 2;
    check_changed_grove(&p, f, g, w, "makes no sense");
    /* Without trees it asks for nothing, but then nothing may be there, and the others' room is
     * what all say that they need. */
    w = (struct kp_grove){.n_inputs = f->groves[g].n_inputs,
                          .n_outputs = f->groves[g].n_outputs};
    check_changed_grove(&p, f, g, w, "tensors");
    w.n_inputs = 0;
    check_changed_grove(&p, f, g, w, other);
    if (f->groves[g].n_outputs > 1) {
        w = f->groves[g];
        w.n_leaves++;
        check_changed_grove(&p, f, g, w, "leaves': its shape is not");
    }
    kp_buf_deinit(&p.file);
    kp_model_free(m);
}

static void test_groves_of_other_sizes(void **state)
{
    (void)state;
    check_groves("factored", 0);
    check_groves("factored", 3);
    check_groves("ranker", 0);
}

/* All groves without trees and without inputs: nothing is there that could be out of place. */
static void test_a_forest_of_nothing(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_grove none[SMALL_TARGETS] = {0};
    for (size_t g = 0; g < SMALL_TARGETS; g++)
        none[g] = (struct kp_grove){.n_inputs = m->nets[0]->shape.n_features + g,
                                    .n_outputs = m->targets[g].n_values};
    m->forest = forest_of(none, SMALL_TARGETS, 0.4);
    save(m, PATH);
    struct kp_model *loaded = load(PATH);
    assert_same_answers(m, loaded);
    kp_model_free(loaded);
    for (size_t g = 0; g < SMALL_TARGETS; g++)
        m->forest->groves[g].n_inputs = 0;
    save(m, PATH);
    assert_refused(PATH, "the trees of 'forest' are not of such a model");
    /* Groves for more targets than there are, and for fewer. */
    for (size_t g = 0; g < SMALL_TARGETS; g++)
        m->forest->groves[g].n_inputs = none[g].n_inputs;
    m->forest->n_groves = SMALL_TARGETS - 1;
    save(m, PATH);
    assert_refused(PATH, "the trees of 'forest' are not of such a model");
    m->forest->n_groves = SMALL_TARGETS + 1;
    m->forest->groves[SMALL_TARGETS] = m->forest->groves[0];
    save(m, PATH);
    assert_refused(PATH, "the trees of 'forest' are not of such a model");
    kp_model_free(m);
}

/* A grove of numbers gives no probabilities of a target with one value. */
static void test_numbers_for_a_target(void **state)
{
    static const float roots[] = {0};
    static const float nodes[] = {-1, -5, 0};
    (void)state;
    struct kp_model *m = with_trees(&whole);
    struct kp_grove groves[SMALL_TARGETS];
    memcpy(groves, m->forest->groves, sizeof(groves));
    groves[2].n_outputs = 1;
    groves[2].n_leaves = 0;
    groves[2].n_trees = groves[2].n_nodes = 1;
    groves[2].roots = roots;
    groves[2].nodes = nodes;
    struct kp_forest *own = m->forest;
    m->forest = forest_of(groves, SMALL_TARGETS, 0.4);
    kp_forest_free(own);
    save(m, PATH);
    kp_model_free(m);
    assert_refused(PATH, "the trees of 'forest' are not of such a model");
}

static void test_changed_forests(void **state)
{
    static const struct change all[] = {
        {"\\\"weight\\\":0.4", "\\\"weight\\\":1", "'weight' or the number"},
        {"\\\"weight\\\":0.4", "\\\"weight\\\":-1e-9", "'weight' or the number"},
        {"\\\"weight\\\":0.4", "\\\"weight\\\":NaN", "not valid JSON"},
        {"\\\"weight\\\":0.4", "\\\"weight\\\":1e999", ""},
        {"\\\"weight\\\":0.4", "\\\"weight\\\":\\\"0.4\\\"", "weight"},
        {"\\\"weight\\\":0.4", "\\\"height\\\":0.4", "weight"},
        {"\\\"groves\\\"", "\\\"graves\\\"", "groves"},
        {"\"forest\":\"{", "\"forest\":\"[{", "not valid JSON"},
        {"\"forest\":\"{", "\"forest\":\"7\",\"more\":\"{", "forest"},
        /* Tensors without the text, under another name, twice. */
        {"\"forest\":", "\"florist\":", "tensors"},
        {"\"trees0.roots\"", "\"trees9.roots\"", "tensor 'trees0.roots': it is missing"},
        {"\"trees1.leaves\"", "\"trees1.roots\"", "duplicate object key"},
        {"\"trees0.nodes\":{\"dtype\":\"F32\"", "\"trees0.nodes\":{\"dtype\":\"I32\"",
         "tensor 'trees0.nodes': its dtype is not F32"},
    };
    (void)state;
    refuse_changes(with_trees(&whole), PATH, all, sizeof(all) / sizeof(*all));
}

/* The tensors of equal sizes change places: numbers of one grove in another's, or two tensors
 * in one place. */
static void test_trees_out_of_place(void **state)
{
    (void)state;
    struct kp_model *m = with_trees(&whole);
    save(m, PATH);
    struct kp_model *loaded = load(PATH);
    struct parts p = split(PATH);
    for (size_t with = 1; with < 3; with++) {
        const size_t a = loaded->forest->params.tensors[0].offset * sizeof(float);
        const size_t b = loaded->forest->params.tensors[with].offset * sizeof(float);
        const size_t n = loaded->forest->groves[0].n_trees * sizeof(float);
        char from[64];
        char to[64];
        (void)snprintf(from, sizeof(from), "[%zu,%zu]", a, a + n);
        (void)snprintf(to, sizeof(to), "[%zu,%zu]", b, b + n);
        struct kp_buf h = replaced(p.header, from, kp_str_from(to));
        compose("bad.safetensors", (struct kp_str){kp_buf_text(&h), h.len}, p.data);
        assert_refused("bad.safetensors", "tensor '");
        kp_buf_deinit(&h);
    }
    kp_buf_deinit(&p.file);
    kp_model_free(m);
    kp_model_free(loaded);
}

/* Numbers of trees that are none, or lead elsewhere. */
static void damaged(const char *tensor, size_t at, float with, const char *message)
{
    struct kp_model *loaded = load(PATH);
    const struct kp_tensor *t = kp_params_find(&loaded->forest->params, tensor);
    assert_non_null(t);
    size_t offset = t->offset * sizeof(float) + at * sizeof(float);
    kp_model_free(loaded);
    struct parts p = split(PATH);
    memcpy(p.file.ptr + (p.data.ptr - (const char *)p.file.ptr) + offset, &with, sizeof(with));
    write_file("bad.safetensors", p.file.ptr, p.file.len);
    assert_refused("bad.safetensors", message);
    kp_buf_deinit(&p.file);
}

static void test_damaged_trees(void **state)
{
    static const char *const nets[] = {"factored", "ranker"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct small_plan plan = whole;
        plan.net = nets[i];
        struct kp_model *m = with_trees(&plan);
        save(m, PATH);
        kp_model_free(m);
        damaged("trees0.nodes", 2, 0, "grove 0 lead nowhere");
        damaged("trees0.nodes", 0, 1e6F, "grove 0 lead nowhere");
        damaged("trees0.nodes", 1, NAN, "tensor 'trees0.nodes': a number of it is not finite");
        damaged("trees0.roots", 0, 1, "grove 0 lead nowhere");
        damaged("trees0.roots", 2, INFINITY,
                "tensor 'trees0.roots': a number of it is not finite");
        if (i == 0)
            damaged("trees3.leaves", 1, -0.25F, "grove 3 give no probabilities");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees_are_heard),
        cmocka_unit_test(test_groves_of_other_sizes),
        cmocka_unit_test(test_a_forest_of_nothing),
        cmocka_unit_test(test_numbers_for_a_target),
        cmocka_unit_test(test_changed_forests),
        cmocka_unit_test(test_trees_out_of_place),
        cmocka_unit_test(test_damaged_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
