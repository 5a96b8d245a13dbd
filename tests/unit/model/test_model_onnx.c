/* SPDX-License-Identifier: MIT */
/* Exported models, read back by a small reader of protocol buffers. That they answer right is
 * tests/onnx/check.py's to say. */
#include "support/test.h"

#include "model/onnx.h"
#include "os/file.h"
#include "unit/model/forests.h"
#include "unit/model/small_model.h"

#include <math.h>

enum { NAMES_MAX = 2048 };

/* --- reading --------------------------------------------------------------------------------
 */

struct field {
    unsigned number;
    unsigned wire;
    uint64_t value;      /* of a varint */
    struct kp_str bytes; /* of a text or message */
};

static uint64_t read_varint(struct kp_str *in)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        assert_true(in->len > 0);
        unsigned char c = (unsigned char)*in->ptr++;
        in->len--;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            assert_true(shift == 0 || c != 0); /* the shortest form */
            return v;
        }
    }
    fail_msg("a varint of more than ten bytes");
    return 0;
}

/* False at the end. */
static bool next(struct kp_str *in, struct field *f)
{
    if (in->len == 0)
        return false;
    uint64_t tag = read_varint(in);
    *f = (struct field){.number = (unsigned)(tag >> 3), .wire = (unsigned)(tag & 7)};
    if (f->wire == 0) {
        f->value = read_varint(in);
        return true;
    }
    assert_true(f->wire == 2 || f->wire == 5);
    uint64_t n = f->wire == 5 ? 4 : read_varint(in);
    assert_true(n <= in->len);
    f->bytes = (struct kp_str){in->ptr, (size_t)n};
    in->ptr += n;
    in->len -= (size_t)n;
    return true;
}

struct names {
    struct kp_str name[NAMES_MAX];
    size_t n;
};

static bool knows(const struct names *all, struct kp_str name)
{
    for (size_t i = 0; i < all->n; i++)
        if (kp_str_eq(all->name[i], name))
            return true;
    return false;
}

static void learn(struct names *all, struct kp_str name)
{
    assert_false(knows(all, name));
    assert_true(all->n < NAMES_MAX && name.len > 0);
    all->name[all->n++] = name;
}

struct read {
    struct names values; /* inputs, initializers, outputs of nodes */
    struct names nodes;
    struct names outputs; /* of the graph */
    size_t n_nodes;
    size_t n_weights; /* floats in tensors with names of the net's */
    size_t n_trees;   /* nodes that are groves */
    size_t n_tables;  /* inputs and outputs of two dimensions */
    size_t n_lists;   /* of another number */
    uint64_t trees_opset;
    struct names metadata;
    struct kp_str targets;
    struct kp_str ranking;
};

static void read_tensor(struct kp_str in, struct read *r)
{
    struct field f;
    uint64_t n = 1;
    uint64_t type = 0;
    struct kp_str raw = {0};
    struct kp_str name = {0};
    while (next(&in, &f)) {
        n *= f.number == 1 ? f.value : 1;
        type = f.number == 2 ? f.value : type;
        name = f.number == 8 ? f.bytes : name;
        raw = f.number == 9 ? f.bytes : raw;
    }
    assert_true(type == 1 || type == 7 || type == 11);
    assert_int_equal(raw.len, n * (type == 1 ? 4 : 8));
    if (kp_str_starts(name, "net"))
        r->n_weights += n;
    learn(&r->values, name);
}

static void read_node(struct kp_str in, struct read *r)
{
    struct field f;
    r->n_nodes++;
    while (next(&in, &f)) {
        if (f.number == 1 && f.bytes.len > 0 && !knows(&r->values, f.bytes))
            fail_msg("'%.*s' is used before it is there", KP_STR_FMT(f.bytes));
        if (f.number == 2)
            learn(&r->values, f.bytes);
        if (f.number == 3)
            learn(&r->nodes, f.bytes);
        if (f.number == 4)
            r->n_trees += kp_str_is(f.bytes, "TreeEnsembleRegressor");
    }
}

static struct kp_str text_of(struct kp_str in, unsigned number)
{
    struct field f;
    while (next(&in, &f))
        if (f.number == number)
            return f.bytes;
    return (struct kp_str){0};
}

static struct kp_str first_text(struct kp_str in)
{
    return text_of(in, 1);
}

/* Of a graph's input or output: in the shape of its type, which is a tensor's. */
static size_t n_dims(struct kp_str info)
{
    struct kp_str shape = text_of(text_of(text_of(info, 2), 1), 2);
    struct field f;
    size_t n = 0;
    while (next(&shape, &f))
        n += f.number == 1;
    return n;
}

/* Inputs stand behind the nodes. */
static void read_graph(struct kp_str in, struct read *r)
{
    struct field f;
    for (struct kp_str again = in; next(&again, &f);)
        if (f.number == 11) {
            learn(&r->values, first_text(f.bytes));
            *(n_dims(f.bytes) == 2 ? &r->n_tables : &r->n_lists) += 1;
        }
    while (next(&in, &f)) {
        if (f.number == 1)
            read_node(f.bytes, r);
        if (f.number == 5)
            read_tensor(f.bytes, r);
        if (f.number == 12) {
            learn(&r->outputs, first_text(f.bytes));
            *(n_dims(f.bytes) == 2 ? &r->n_tables : &r->n_lists) += 1;
        }
    }
    for (size_t i = 0; i < r->outputs.n; i++)
        assert_true(knows(&r->values, r->outputs.name[i]));
}

static void read_entry(struct kp_str in, struct read *r)
{
    struct field f;
    const struct kp_str key = first_text(in);
    learn(&r->metadata, key);
    while (next(&in, &f))
        if (f.number == 2 && kp_str_is(key, "kopt.targets"))
            r->targets = f.bytes;
        else if (f.number == 2 && kp_str_is(key, "kopt.ranking"))
            r->ranking = f.bytes;
}

static void read_opset(struct kp_str in, struct read *r, uint64_t *opset)
{
    struct field f;
    bool trees = false;
    uint64_t version = 0;
    while (next(&in, &f)) {
        if (f.number == 1) {
            assert_true(kp_str_is(f.bytes, "ai.onnx.ml"));
            trees = true;
        } else {
            version = f.value;
        }
    }
    *(trees ? &r->trees_opset : opset) = version;
}

static void read_model(struct kp_str in, struct read *r)
{
    struct field f;
    uint64_t opset = 0;
    uint64_t version = 0;
    *r = (struct read){0};
    while (next(&in, &f)) {
        if (f.number == 1)
            version = f.value;
        if (f.number == 7)
            read_graph(f.bytes, r);
        if (f.number == 14)
            read_entry(f.bytes, r);
        if (f.number == 8)
            read_opset(f.bytes, r, &opset);
    }
    assert_int_equal(version, 8);
    assert_int_equal(opset, 17);
    assert_int_equal(r->trees_opset, r->n_trees ? 3 : 0);
}

/* --- what is right --------------------------------------------------------------------------
 */

static const char *const kinds[] = {"factored", "seq2seq", "attention", "hybrid1", "hybrid2"};
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds) };

static struct kp_buf exported(const struct kp_model *m)
{
    struct kp_buf b = KP_BUF_INIT(1 << 22);
    kopt_error err;
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_OK);
    return b;
}

static void graphs_hang_together(void **state)
{
    static struct read r;
    (void)state;
    for (size_t i = 0; i < N_KINDS; i++)
        for (size_t n_nets = 1; n_nets <= 3; n_nets += 2) {
            const struct small_plan plan = {.net = kinds[i],
                                            .rules = small_rules,
                                            .rules_path = "s.kopt",
                                            .n_nets = n_nets,
                                            .seed = 5};
            struct kp_model *m = small_model(&plan);
            struct kp_buf b = exported(m);
            read_model((struct kp_str){kp_buf_text(&b), b.len}, &r);
            assert_int_equal(r.outputs.n, m->n_targets);
            assert_int_equal(r.n_tables, 3 + m->n_targets);
            assert_int_equal(r.n_lists, 0);
            for (size_t p = 0; p < m->n_targets; p++) {
                char name[80];
                (void)snprintf(name, sizeof(name), "logp.%s", m->targets[p].name);
                assert_true(kp_str_is(r.outputs.name[p], name));
            }
            /* All parameters, and as many zeros as an LSTM's biases again: ONNX has two. */
            size_t biases = i == 0 ? 0 : 8 * m->nets[0]->shape.hidden;
            assert_int_equal(r.n_weights, n_nets * (m->nets[0]->params.n_params + biases));
            kp_buf_deinit(&b);
            kp_model_free(m);
        }
}

static void a_forest_and_a_ranking_are_in_the_graph(void **state)
{
    static struct read r;
    static const char *const nets[] = {"factored", "attention", "ranker"};
    (void)state;
    for (size_t i = 0; i < sizeof(nets) / sizeof(*nets); i++) {
        const struct small_plan plan = {.net = nets[i],
                                        .rules = small_rules,
                                        .rules_path = "s.kopt",
                                        .n_nets = 2,
                                        .seed = 5};
        struct kp_model *m = small_model(&plan);
        forest_beside(m, 5, 0.4, 6);
        struct kp_buf b = exported(m);
        read_model((struct kp_str){kp_buf_text(&b), b.len}, &r);
        assert_int_equal(r.n_trees, m->ranking ? 1 : m->n_targets);
        assert_int_equal(r.outputs.n, m->ranking ? 1 : m->n_targets);
        if (m->ranking)
            assert_true(kp_str_is(r.outputs.name[0], "score"));
        assert_int_equal(r.n_tables, m->ranking ? 1 : 3 + m->n_targets);
        assert_int_equal(r.n_lists, m->ranking ? 2 : 0);
        assert_true(knows(&r.values, KP_STR("sites.field")) == (m->ranking != NULL));
        assert_true(knows(&r.metadata, KP_STR("kopt.rules")));
        assert_true(knows(&r.metadata, KP_STR("kopt.ranking")) == (m->ranking != NULL));
        kp_buf_deinit(&b);
        kp_model_free(m);
    }
}

/* As of problems whose words are too many for features: a table without columns is one. */
static void a_model_without_features(void **state)
{
    static struct read r;
    const struct small_plan plan = {.net = "factored", .n_nets = 1, .seed = 5};
    struct kp_model *m = small_model(&plan);
    struct kp_net_shape shape = m->nets[0]->shape;
    kopt_error err;
    (void)state;
    kp_net_free(m->nets[0]);
    shape.n_features = 0;
    assert_int_equal(kp_net_new(kp_net_find(plan.net), &shape, 5, &m->nets[0], &err), KOPT_OK);
    forest_beside(m, 5, 0.4, 6);
    struct kp_buf b = exported(m);
    read_model((struct kp_str){kp_buf_text(&b), b.len}, &r);
    assert_int_equal(r.n_trees, m->n_targets - 1); /* the first target's see nothing */
    assert_int_equal(r.n_tables, 3 + m->n_targets);
    assert_int_equal(r.n_lists, 0);
    kp_buf_deinit(&b);
    kp_model_free(m);
}

/* A forest in which no tree was grown, as such files may be. */
static void groves_without_trees(void **state)
{
    static struct read r;
    static const char *const nets[] = {"factored", "ranker"};
    (void)state;
    for (size_t i = 0; i < sizeof(nets) / sizeof(*nets); i++) {
        const struct small_plan plan = {.net = nets[i], .n_nets = 1, .seed = 5};
        struct kp_model *m = small_model(&plan);
        forest_beside(m, 5, 0.4, 6);
        for (size_t g = 0; g < m->forest->n_groves; g++)
            m->forest->groves[g].n_trees = 0;
        struct kp_buf b = exported(m);
        read_model((struct kp_str){kp_buf_text(&b), b.len}, &r);
        assert_int_equal(r.n_trees, 0);
        kp_buf_deinit(&b);
        kp_model_free(m);
    }
}

/* That x can be computed from it is tests/onnx/check.py's to say. */
static void metadata_of_a_ranking(void **state)
{
    static struct read r;
    const struct small_plan plan = {
        .net = "ranker", .rules = small_rules, .rules_path = "s.kopt", .n_nets = 1, .seed = 5};
    struct kp_model *m = small_model(&plan);
    struct kp_buf b = exported(m);
    struct kp_json *j;
    struct kp_str text;
    int64_t number;
    size_t n_lets = 0;
    kopt_error err;
    (void)state;
    read_model((struct kp_str){kp_buf_text(&b), b.len}, &r);
    assert_int_equal(kp_json_parse(r.ranking, NULL, &j, &err), KOPT_OK);
    const struct kp_json *columns = kp_json_get(j, "columns");
    assert_int_equal(kp_json_size(columns), m->nets[0]->shape.n_features);
    for (size_t i = 0; i < kp_json_size(columns); i++) {
        const struct kp_json *c = kp_json_at(columns, i);
        assert_true(kp_json_as_str(kp_json_get(c, "kind"), &text));
        assert_true(kp_str_is(text, "coordinate") == (i < m->ranking->n_coordinates));
        if (!kp_str_is(text, "let"))
            continue;
        assert_true(kp_json_as_str(kp_json_get(c, "let"), &text));
        assert_true(kp_str_is(text, m->rules->lets[n_lets++].name));
    }
    assert_int_equal(n_lets, m->rules->n_lets);
    const struct kp_json *configs = kp_json_get(j, "configs");
    assert_int_equal(kp_json_size(configs), m->ranking->n_configs);
    for (size_t i = 0; i < m->ranking->n_configs * m->n_targets; i++) {
        const struct kp_json *row = kp_json_at(configs, i / m->n_targets);
        assert_true(kp_json_as_i64(kp_json_at(row, i % m->n_targets), &number));
        assert_int_equal(number, m->ranking->configs[i]);
    }
    kp_json_free(j);
    kp_buf_deinit(&b);
    kp_model_free(m);
}

static void metadata_say_what_the_numbers_mean(void **state)
{
    static struct read r;
    const struct small_plan plan = {.net = "factored", .n_nets = 1, .seed = 5};
    struct kp_model *m = small_model(&plan);
    struct kp_buf b = exported(m);
    struct kp_json *j;
    struct kp_str text;
    double half = 0;
    kopt_error err;
    (void)state;
    read_model((struct kp_str){kp_buf_text(&b), b.len}, &r);
    assert_int_equal(r.metadata.n, 3);
    assert_true(kp_str_is(r.metadata.name[0], "kopt.kernel"));
    assert_true(kp_str_is(r.metadata.name[1], "kopt.targets"));
    assert_true(kp_str_is(r.metadata.name[2], "kopt.encoder"));
    assert_int_equal(kp_json_parse(r.targets, NULL, &j, &err), KOPT_OK);
    assert_int_equal(kp_json_size(j), SMALL_TARGETS);
    for (size_t p = 0; p < SMALL_TARGETS; p++) {
        assert_true(kp_json_as_str(kp_json_get(kp_json_at(j, p), "name"), &text));
        assert_true(kp_str_is(text, m->targets[p].name));
        assert_int_equal(kp_json_size(kp_json_get(kp_json_at(j, p), "values")),
                         m->targets[p].n_values);
    }
    const struct kp_json *extra = kp_json_get(kp_json_at(j, 2), "values");
    assert_true(kp_json_as_f64(kp_json_at(extra, 1), &half));
    assert_true(half == 0.5);
    assert_true(kp_json_as_str(kp_json_at(kp_json_get(kp_json_at(j, 3), "values"), 1), &text));
    assert_true(kp_str_is(text, "b"));
    kp_json_free(j);
    kp_buf_deinit(&b);
    kp_model_free(m);
}

static void a_file_has_the_same_bytes(void **state)
{
    const struct small_plan plan = {.net = "hybrid2", .n_nets = 2, .seed = 5};
    struct kp_model *m = small_model(&plan);
    struct kp_buf a = exported(m);
    struct kp_buf b = KP_BUF_INIT(1 << 22);
    kopt_error err;
    (void)state;
    assert_int_equal(kp_onnx_save(m, "model.onnx", &err), KOPT_OK);
    assert_int_equal(kp_file_read("model.onnx", &b, &err), KOPT_OK);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
    kp_buf_deinit(&a);
    kp_buf_deinit(&b);
    kp_model_free(m);
}

/* --- what is wrong --------------------------------------------------------------------------
 */

static void what_cannot_be_exported_is_refused(void **state)
{
    const struct small_plan plan = {.net = "attention", .n_nets = 2, .seed = 5};
    struct kp_model *m = small_model(&plan);
    struct kp_buf b = KP_BUF_INIT(1 << 22);
    struct kp_net_ops strange = *m->nets[1]->ops;
    const struct kp_net_ops *ops = m->nets[1]->ops;
    const char *name = m->targets[0].name;
    char long_name[200];
    kopt_error err = {0};
    (void)state;
    strange.name = "strange";
    m->nets[1]->ops = &strange;
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "strange"));
    m->nets[1]->ops = ops;

    float *last = &m->nets[1]->values[m->nets[1]->params.n_floats - 16];
    float before = *last;
    *last = NAN;
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "not finite"));
    *last = before;

    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = 0;
    m->targets[0].name = long_name;
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_EINPUT);
    m->targets[0].name = name;
    assert_int_equal(b.len, 0);

    assert_int_equal(kp_onnx_save(m, "no/such/folder/model.onnx", &err), KOPT_EIO);
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_OK);
    kp_buf_deinit(&b);
    kp_model_free(m);
}

/* A translator of a ranker's kind, and the other way round. */
static void networks_of_the_other_kind_are_refused(void **state)
{
    const struct small_plan plans[] = {{.net = "ranker", .n_nets = 1, .seed = 5},
                                       {.net = "factored", .n_nets = 1, .seed = 5}};
    struct kp_model *ranker = small_model(&plans[0]);
    struct kp_model *other = small_model(&plans[1]);
    struct kp_buf b = KP_BUF_INIT(1 << 22);
    struct kp_ranking *r = ranker->ranking;
    kopt_error err = {0};
    (void)state;
    ranker->ranking = NULL;
    assert_int_equal(kp_onnx_export(ranker, &b, &err), KOPT_EINPUT);
    other->ranking = r;
    assert_int_equal(kp_onnx_export(other, &b, &err), KOPT_EINPUT);
    ranker->ranking = r;
    other->ranking = NULL;
    assert_int_equal(b.len, 0);
    kp_buf_deinit(&b);
    kp_model_free(ranker);
    kp_model_free(other);
}

/* The first number of a tensor that is not of the networks. */
static void refused_with(struct kp_model *m, float *number, float bad, const char *why)
{
    struct kp_buf b = KP_BUF_INIT(1 << 22);
    kopt_error err = {0};
    float before = *number;
    *number = bad;
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, why));
    assert_int_equal(b.len, 0);
    *number = before;
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_OK);
    kp_buf_deinit(&b);
}

static void trees_and_corrections_that_are_none(void **state)
{
    const struct small_plan plan = {.net = "ranker", .n_nets = 1, .seed = 5};
    struct kp_model *m = small_model(&plan);
    (void)state;
    forest_beside(m, 5, 0.4, 6);
    const struct kp_grove *w = &m->forest->groves[0];
    size_t split = (size_t)w->roots[1];
    while (w->nodes[3 * split] < 0 || w->nodes[3 * split + 3] < 0)
        split++; /* its left child is a split, too */
    float *nodes = m->forest->values + m->forest->params.tensors[1].offset;
    assert_ptr_equal(nodes, w->nodes);
    refused_with(m, &m->ranking->values[0], INFINITY, "not finite");
    refused_with(m, nodes + 1, NAN, "not finite");
    refused_with(m, nodes + 3 * split + 2, (float)w->n_nodes, "lead nowhere");
    /* Each tree ends, but one node has two parents and another none. */
    refused_with(m, nodes + 3 * split + 2, (float)split + 2, "not those of trees");
    kp_model_free(m);
}

static void rules_that_are_no_text(void **state)
{
    const struct small_plan plan = {.net = "factored",
                                    .rules = small_rules,
                                    .rules_path = "s.kopt",
                                    .n_nets = 1,
                                    .seed = 5};
    struct kp_model *m = small_model(&plan);
    struct kp_buf b = KP_BUF_INIT(1 << 22);
    struct kp_str before = m->rules_text;
    kopt_error err = {0};
    (void)state;
    m->rules_text = KP_STR("# \xff\n");
    assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "UTF-8"));
    m->rules_text = before;
    kp_buf_deinit(&b);
    kp_model_free(m);
}

/* Wherever the room ends. */
static void a_file_that_is_too_large_is_refused(void **state)
{
    const struct small_plan plans[] = {{.net = "factored", .n_nets = 1, .seed = 5},
                                       {.net = "ranker", .n_nets = 1, .seed = 5}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kp_model *m = small_model(&plans[i]);
        forest_beside(m, 5, 0.4, 6);
        struct kp_buf whole = exported(m);
        for (size_t max = 1; max < whole.len; max += 97) {
            struct kp_buf b = KP_BUF_INIT(max);
            kopt_error err = {0};
            assert_int_equal(kp_onnx_export(m, &b, &err), KOPT_ERANGE);
            assert_true(err.message[0] != 0);
            kp_buf_deinit(&b);
        }
        kp_buf_deinit(&whole);
        kp_model_free(m);
    }
}

static void every_failing_allocation_is_clean(void **state)
{
    const struct small_plan plans[] = {{.net = "hybrid1", .n_nets = 2, .seed = 5},
                                       {.net = "ranker", .n_nets = 2, .seed = 5}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kp_model *m = small_model(&plans[i]);
        kopt_status st = KOPT_ENOMEM;
        long n = 0;
        forest_beside(m, 5, 0.4, 6);
        while (st != KOPT_OK) {
            kopt_error err = {0};
            kp_alloc_fail_at(++n);
            st = kp_onnx_save(m, "faults.onnx", &err);
            kp_alloc_fail_at(0);
            assert_true(st == KOPT_OK || (st == KOPT_ENOMEM && err.message[0]));
            assert_true(n < 300);
            if (st != KOPT_OK)
                assert_false(kp_file_exists("faults.onnx"));
        }
        assert_true(n > 5);
        (void)remove("faults.onnx");
        kp_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_hang_together),
        cmocka_unit_test(a_forest_and_a_ranking_are_in_the_graph),
        cmocka_unit_test(a_model_without_features),
        cmocka_unit_test(groves_without_trees),
        cmocka_unit_test(metadata_say_what_the_numbers_mean),
        cmocka_unit_test(metadata_of_a_ranking),
        cmocka_unit_test(a_file_has_the_same_bytes),
        cmocka_unit_test(what_cannot_be_exported_is_refused),
        cmocka_unit_test(networks_of_the_other_kind_are_refused),
        cmocka_unit_test(trees_and_corrections_that_are_none),
        cmocka_unit_test(rules_that_are_no_text),
        cmocka_unit_test(a_file_that_is_too_large_is_refused),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    (void)remove("faults.onnx");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
