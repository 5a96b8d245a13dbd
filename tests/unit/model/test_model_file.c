/* SPDX-License-Identifier: MIT */
/* Files of models: written and read, and what is not a model.
 *
 *     test_unit_model_file --corpus DIR     writes a fuzzer's first inputs */
#include "model_files.h"
#include "support/folder.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

static const struct small_plan whole = {"factored", small_rules, "some/where/small.kopt", 2, 5};
#define PATH "model.safetensors"

/* --- round trips ----------------------------------------------------------------------------
 */

static void assert_same_texts(const struct kp_model *a, const struct kp_model *b)
{
    assert_string_equal(a->kernel, b->kernel);
    assert_int_equal(a->n_raw, b->n_raw);
    assert_int_equal(a->n_targets, b->n_targets);
    for (size_t p = 0; p < a->n_targets; p++) {
        assert_string_equal(a->targets[p].name, b->targets[p].name);
        assert_int_equal(a->targets[p].type, b->targets[p].type);
        assert_int_equal(a->targets[p].n_values, b->targets[p].n_values);
        for (uint32_t v = 0; v < a->targets[p].n_values; v++)
            assert_true(kp_value_same(a->targets[p].values[v], b->targets[p].values[v]));
    }
    assert_true(kp_str_eq(a->rules_text, b->rules_text));
    assert_int_equal(a->n_nets, b->n_nets);
    for (size_t k = 0; k < a->n_nets; k++)
        assert_ptr_equal(a->nets[k]->ops, b->nets[k]->ops);
    int64_t rows = 0;
    assert_true(kp_json_as_i64(kp_json_get(b->info, "rows"), &rows));
    assert_int_equal(rows, 60);
}

/* Frees `m`. */
static void round_trip(struct kp_model *m)
{
    save(m, PATH);
    struct kp_model *again = load(PATH);
    assert_same_texts(m, again);
    assert_same_answers(m, again);
    /* Used where it lies. */
    for (size_t k = 0; k < again->n_nets; k++) {
        assert_true(again->nets[k]->borrowed);
        const unsigned char *at = (const unsigned char *)again->nets[k]->values;
        assert_true(at > (unsigned char *)again->map &&
                    at < (unsigned char *)again->map + again->map_bytes);
    }
    assert_true(!m->forest == !again->forest);
    if (m->forest && again->forest)
        assert_true(again->forest->borrowed && again->forest->weight == m->forest->weight);
    /* The same model is the same bytes. */
    save(again, "again.safetensors");
    struct kp_buf a = content(PATH);
    struct kp_buf b = content("again.safetensors");
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
    kp_buf_deinit(&a);
    kp_buf_deinit(&b);
    kp_model_free(m);
    kp_model_free(again);
}

static void test_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; kp_net_at(i); i++) {
        struct small_plan plan = whole;
        plan.net = kp_net_at(i)->name;
        for (plan.n_nets = 1; plan.n_nets <= 3; plan.n_nets += 2) {
            round_trip(small_model(&plan));
            round_trip(with_trees(&plan));
        }
        plan.rules = NULL;
        round_trip(small_model(&plan));
        round_trip(with_trees(&plan));
    }
}

static struct kp_model *two_kinds(void)
{
    struct kp_model *m = with_trees(&whole);
    small_beside(m, "attention", 3);
    return m;
}

static void test_two_kinds(void **state)
{
    char network[KP_MODEL_NETWORK];
    (void)state;
    round_trip(two_kinds());
    struct kp_model *m = load(PATH);
    assert_int_equal(m->n_nets, 5);
    assert_int_equal(kp_model_n_first(m), 2);
    kp_model_network(m, network);
    assert_string_equal(network, "factored+attention");
    kp_model_free(m);
    struct kp_model *alone = small_model(&whole);
    kp_model_network(alone, network);
    assert_string_equal(network, "factored");
    assert_int_equal(kp_model_n_first(alone), 2);
    small_beside(alone, "seq2seq", 1);
    round_trip(alone);
}

static void test_rules_have_no_folder(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    save(m, PATH);
    struct kp_model *again = load(PATH);
    assert_string_equal(again->rules_path, "small.kopt");
    kp_model_free(m);
    kp_model_free(again);
}

/* All that fill whole cache lines begin at one. */
static void test_alignment(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    save(m, PATH);
    struct kp_model *again = load(PATH);
    size_t n = 0;
    for (size_t k = 0; k < again->n_nets; k++) {
        const struct kp_net *net = again->nets[k];
        for (size_t i = 0; i < net->params.n_tensors; i++) {
            const struct kp_tensor *t = &net->params.tensors[i];
            const struct kp_tensor *from = &m->nets[k]->params.tensors[i];
            assert_memory_equal(net->values + t->offset, m->nets[k]->values + from->offset,
                                t->rows * t->cols * sizeof(float));
            if (t->rows * t->cols % 16 == 0) {
                assert_int_equal((uintptr_t)(net->values + t->offset) % 64, 0);
                n++;
            }
        }
    }
    assert_true(n > 4);
    kp_model_free(m);
    kp_model_free(again);
}

/* Who has a model loaded keeps it while another takes its place. */
static void test_replaced_while_loaded(void **state)
{
    (void)state;
    struct small_plan plan = whole;
    struct kp_model *m = small_model(&whole);
    plan.seed = 77;
    struct kp_model *other = small_model(&plan);
    save(m, PATH);
    struct kp_model *loaded = load(PATH);
    save(other, PATH);
    struct kp_model *newer = load(PATH);
    assert_same_answers(m, loaded);
    assert_same_answers(other, newer);
    kp_model_free(m);
    kp_model_free(other);
    kp_model_free(loaded);
    kp_model_free(newer);
}

/* --- files put together by hand -------------------------------------------------------------
 */

static void test_changed_headers(void **state)
{
    static const struct change all[] = {
        {"\"kopt-model\"", "\"other\"", "does not say that it is a kopt model"},
        {"__metadata__", "__metadatb__", "does not say that it is a kopt model"},
        {"\"kopt-model\"", "7", "does not say that it is a kopt model"},
        {"\"1\"", "\"2\"", "version 2"},
        {"\"kernel\"", "\"colonel\"", "'kernel'"},
        {"\"factored\"", "\"nonsense\"", "'nonsense' is unknown"},
        {"\"factored\"", "\"seq2seq\"", "tensors"},
        {"\"shape\":\"{", "\"shape\":\"[", "not valid JSON"},
        {"\\\"hidden\\\":8", "\\\"hidden\\\":4000000000", "no network can have these sizes"},
        {"\\\"hidden\\\":8", "\\\"hidden\\\":-8", "'hidden' is out of range"},
        {"\\\"hidden\\\":8", "\\\"hidden\\\":16", "its shape is not"},
        {"\\\"embed\\\":3", "\\\"embed\\\":8192", "its shape is not"},
        {"\\\"vocabulary\\\":", "\\\"vocabulary\\\":1", "not what the encoder gives"},
        {"\"fields\":\"3\"", "\"fields\":\"0\"", "'fields' is no number"},
        {"\"fields\":\"3\"", "\"fields\":\"97\"", "'fields' is no number"},
        {"\"fields\":\"3\"", "\"fields\":\"2\"", "field 'dtype' is none"},
        {"\"fields\":\"3\"", "\"fields\":\"x\"", "'fields' is no number"},
        {"\"encoder\":\"{", "\"encoder\":\"{}", "not valid JSON"},
        {"\\\"type\\\":\\\"int\\\"", "\\\"type\\\":\\\"bool\\\"", "value 1 is no bool"},
        {"\\\"type\\\":\\\"int\\\"", "\\\"type\\\":\\\"none\\\"", "its type is unknown"},
        {"[1,2,4]", "[1,2,1]", "value 3 stands there before"},
        {"[1,2,4]", "[1,2]", "outputs are not the targets'"},
        {"[1,2,4]", "[]", "0 values"},
        {"\\\"name\\\":\\\"BN\\\"", "\\\"name\\\":\\\"BM\\\"", "another one has its name"},
        {"\"small.kopt\"", "\"../small.kopt\"", "'rules_name' is no file's name"},
        {"\"small.kopt\"", "\"\"", "'rules_name' is no file's name"},
        {"\"rules_name\"", "\"rules_nam\"", "'rules_name'"},
        {"require BM", "requires BM", "its rules"},
        {"problem M N", "problem M N more", "the rules ask for 'more'"},
        {"let ratio", "let ration", "field 'ratio' is none"},
        {"\"info\":\"{", "\"info\":\"7{", "not valid JSON"},
        {"\"dtype\":\"F32\"", "\"dtype\":\"F16\"", "its dtype is not F32"},
        {"\"dtype\":\"F32\"", "\"dtype\":32", "its dtype is not F32"},
        {"\"data_offsets\":[0,", "\"data_offsets\":[64,", "offsets do not fit its shape"},
        {"\"data_offsets\":[0,", "\"data_offsets\":[-4,", "offsets do not fit its shape"},
        {"\"data_offsets\":[0,", "\"data_offsets\":[0.0,", "offsets do not fit its shape"},
        {"\"data_offsets\":[0,", "\"data_offsets\":[1,0,", "offsets do not fit its shape"},
        {"\"data_offsets\":[0,", "\"data_offset\":[0,", "offsets do not fit its shape"},
        {"\"net0.in.b\"", "\"net0.in.c\"", "tensor 'net0.in.b': it is missing"},
        {"\"net0.in.b\"", "\"net0.in.w\"", "duplicate object key"},
        {"\"net0.in.b\"", "\"more\":{},\"net0.in.b\"", "tensors"},
    };
    (void)state;
    refuse_changes(small_model(&whole), PATH, all, sizeof(all) / sizeof(*all));
}

static void test_changed_kinds(void **state)
{
    static const struct change all[] = {
        {"\"beside\"", "\"inside\"", "tensor"},
        {"\"beside\":\"{", "\"beside\":\"[", "not valid JSON"},
        {"\"beside\":\"{", "\"beside\":\"7\",\"more\":\"{", "beside"},
        {"\\\"attention\\\"", "\\\"nonsense\\\"", "beside: 'model': 'nonsense' is unknown"},
        {"\\\"attention\\\"", "\\\"factored\\\"", "beside: its networks do not go with"},
        {"\\\"attention\\\"", "\\\"ranker\\\"", "beside: its networks do not go with"},
        {"\\\"attention\\\"", "\\\"hybrid2\\\"", "tensor"},
        {"\\\"nets\\\":3", "\\\"nets\\\":2", "tensor"},
        {"\\\"nets\\\":3", "\\\"nets\\\":0", "beside: its networks do not go with"},
        {"\\\"nets\\\":3", "\\\"nets\\\":-1", "beside: its networks do not go with"},
        {"\\\"nets\\\":3", "\\\"nets\\\":4000000000", "beside: its networks do not go with"},
        {"\\\"nets\\\":3", "\\\"knots\\\":3", "beside: 'nets' is missing"},
        {"\\\"hidden\\\":6", "\\\"hidden\\\":4000000000", "no network can have these sizes"},
        {"\\\"hidden\\\":6", "\\\"hidden\\\":12", "its shape is not"},
        {"\"net4.attention.q\"", "\"net5.attention.q\"",
         "tensor 'net4.attention.q': it is missing"},
    };
    (void)state;
    refuse_changes(two_kinds(), PATH, all, sizeof(all) / sizeof(*all));
}

/* "net1.in.b" of the header gets the offsets of another tensor of its size, or others that are
 * wrong in some way. */
static void with_offsets(const struct parts *p, size_t begin, size_t end, struct kp_str data,
                         const char *message)
{
    static const char key[] =
        "\"net1.in.b\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[";
    const char *at = memmem(p->header.ptr, p->header.len, key, sizeof(key) - 1);
    struct kp_buf h = KP_BUF_INIT(1 << 20);
    assert_non_null(at);
    const char *close = memchr(at, '}', p->header.len - (size_t)(at - p->header.ptr));
    assert_non_null(close);
    kp_buf_add(&h, p->header.ptr, (size_t)(at - p->header.ptr));
    kp_buf_addf(&h, "%s%zu,%zu]", key, begin, end);
    kp_buf_add(&h, close, p->header.len - (size_t)(close - p->header.ptr));
    compose("bad.safetensors", (struct kp_str){kp_buf_text(&h), h.len}, data);
    assert_refused("bad.safetensors", message);
    kp_buf_deinit(&h);
}

static void test_offsets(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    save(m, PATH);
    kp_model_free(m);
    struct kp_model *loaded = load(PATH);
    const struct kp_tensor *own = kp_params_find(&loaded->nets[1]->params, "in.b");
    const struct kp_tensor *other = kp_params_find(&loaded->nets[0]->params, "in.b");
    size_t at = own->offset * sizeof(float);
    struct parts p = split(PATH);
    assert_int_equal(own->cols, 8);
    with_offsets(&p, other->offset * 4, other->offset * 4 + 32, p.data, "lies over another");
    with_offsets(&p, at + 1, at + 33, p.data, "no multiple of 4");
    with_offsets(&p, at, at, p.data, "offsets do not fit its shape");
    with_offsets(&p, at + 32, at, p.data, "offsets do not fit its shape");
    with_offsets(&p, p.data.len, p.data.len + 32, p.data, "beyond the end");
    with_offsets(&p, SIZE_MAX / 2 - 31, SIZE_MAX / 2 + 1, p.data, "");
    with_offsets(&p, INT64_MAX - 32, INT64_MAX, p.data, "beyond the end");
    /* More data than tensors, behind them and between them. */
    struct kp_buf more = KP_BUF_INIT(16 << 20);
    kp_buf_add(&more, p.data.ptr, p.data.len);
    kp_buf_add(&more, "0123456789abcdef0123456789abcdef", 32);
    struct kp_str longer = {kp_buf_text(&more), more.len};
    with_offsets(&p, at, at + 32, longer, "32 bytes at the end belong to no tensor");
    with_offsets(&p, p.data.len, p.data.len + 32, longer, "belong to no tensor");
    kp_buf_deinit(&more);
    kp_buf_deinit(&p.file);
    kp_model_free(loaded);
}

/* The header is read before anything is made of what it says. */
static void test_header_lengths(void **state)
{
    static const uint64_t lengths[] = {0,          1,          (16 << 20) + 1, 0xffffffff,
                                       1ULL << 62, UINT64_MAX, UINT64_MAX - 7};
    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        unsigned char file[64] = {0};
        memcpy(file, &lengths[i], 8);
        file[8] = '{';
        write_file("bad.safetensors", file, sizeof(file));
        assert_refused("bad.safetensors", "does not begin as a safetensors file");
    }
    const uint64_t long_one = 16 << 20;
    unsigned char file[64] = {0};
    memcpy(file, &long_one, 8);
    file[8] = '{';
    write_file("bad.safetensors", file, sizeof(file));
    assert_refused("bad.safetensors", "it is cut");
    write_file("bad.safetensors", "", 0);
    assert_refused("bad.safetensors", "0 bytes");
    write_file("bad.safetensors", "SQLite format 3", 16);
    assert_refused("bad.safetensors", "does not begin as");
    write_file("bad.safetensors", "\x0b\0\0\0\0\0\0\0{          ", 19);
    assert_refused("bad.safetensors", "no multiple of 4");
    write_file("bad.safetensors", "\x0c\0\0\0\0\0\0\0{\"a\": [1}   ", 20);
    assert_refused("bad.safetensors", "not valid JSON");
    write_file("bad.safetensors", "\x04\0\0\0\0\0\0\0{}  ", 12);
    assert_refused("bad.safetensors", "does not say");
}

/* A text that is far larger once it is parsed, or deeper than a stack. */
static void bomb(const struct parts *p, const char *from, const char *piece, size_t n,
                 const char *message)
{
    struct kp_buf b = KP_BUF_INIT(32 << 20);
    kp_buf_adds(&b, from);
    for (size_t i = 0; i < n; i++)
        kp_buf_adds(&b, piece);
    struct kp_buf h = replaced(p->header, from, (struct kp_str){kp_buf_text(&b), b.len});
    compose("bad.safetensors", (struct kp_str){kp_buf_text(&h), h.len}, p->data);
    assert_refused("bad.safetensors", message);
    kp_buf_deinit(&b);
    kp_buf_deinit(&h);
}

static void test_bombs(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    save(m, PATH);
    kp_model_free(m);
    struct parts p = split(PATH);
    bomb(&p, "\"info\":\"{", "\\\"a\\\":[{", 1000, "nested deeper");
    bomb(&p, "\"info\":\"{", "\\\"a\\\":[],", 400000, "info: too many values");
    bomb(&p, "\"info\":\"{", "\\\"a\\\":{},", 200000, "info: too many values");
    bomb(&p, "[1,2,4", ",1", 5000, "5003 values");
    bomb(&p, "\\\"known\\\":[", "1,", 70000, "");
    bomb(&p, "\"net0.in.b\":", "[[],[]],", 400000, "header: too many values");
    bomb(&p, "\"net0.in.b\":", "[", 300, "nested deeper");
    bomb(&p, "\"net0.in.b\":", "          ", 2000000, "does not begin as");
    kp_buf_deinit(&p.file);
}

/* --- numbers --------------------------------------------------------------------------------
 */

static void test_numbers_that_are_not_finite(void **state)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    (void)state;
    struct kp_model *m = small_model(&whole);
    save(m, PATH);
    struct kp_model *loaded = load(PATH);
    size_t at = kp_params_find(&loaded->nets[1]->params, "in.w")->offset * 4 + 8;
    kp_model_free(loaded);
    struct kp_buf good = content(PATH);
    uint64_t n;
    memcpy(&n, good.ptr, 8);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memcpy(good.ptr + 8 + n + at, &bad[i], 4);
        write_file("bad.safetensors", good.ptr, good.len);
        assert_refused("bad.safetensors", "tensor 'net1.in.w': a number of it is not finite");
        /* Nor is such a model written. */
        kopt_error err = {0};
        m->nets[1]->values[kp_params_find(&m->nets[1]->params, "in.w")->offset] = bad[i];
        assert_int_equal(kp_model_save(m, "never.safetensors", &err), KOPT_EINPUT);
        assert_non_null(strstr(err.message, "'net1.in.w' has a number that is not finite"));
        assert_false(kp_file_exists("never.safetensors"));
    }
    kp_buf_deinit(&good);
    kp_model_free(m);
}

/* --- cut ------------------------------------------------------------------------------------
 */

/* Every `step`th of them. */
static void prefixes_are_errors(const char *net, size_t step, bool trees)
{
    struct small_plan plan = whole;
    plan.net = net;
    plan.n_nets = 1;
    struct kp_model *m = trees ? with_trees(&plan) : small_model(&plan);
    save(m, PATH);
    kp_model_free(m);
    struct kp_buf b = content(PATH);
    uint64_t n;
    memcpy(&n, b.ptr, 8);
    for (size_t len = b.len - 1; len > step; len -= step) {
        kopt_error err = {0};
        struct kp_model *loaded;
        assert_int_equal(truncate(PATH, (off_t)len), 0);
        assert_int_equal(kp_model_load(PATH, &loaded, &err), KOPT_EINPUT);
        assert_null(loaded);
        if (len >= 9 && len < 8 + n)
            assert_non_null(strstr(err.message, "it is cut"));
    }
    kp_buf_deinit(&b);
}

static void test_every_prefix_is_an_error(void **state)
{
    (void)state;
    prefixes_are_errors("factored", 1, false);
    prefixes_are_errors("factored", 7, true);
    prefixes_are_errors("ranker", 13, true);
}

/* --- another order --------------------------------------------------------------------------
 */

/* Other programs write the tensors in an order of their own. */
static void test_another_order(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    save(m, PATH);
    struct parts p = split(PATH);
    struct kp_buf h = KP_BUF_INIT(1 << 20);
    struct kp_buf data = KP_BUF_INIT(16 << 20);
    const char *end = memmem(p.header.ptr, p.header.len, "},\"net", 6);
    assert_non_null(end);
    kp_buf_add(&h, p.header.ptr, (size_t)(end - p.header.ptr) + 1);
    for (size_t k = m->n_nets; k-- > 0;) {
        const struct kp_net *net = m->nets[k];
        for (size_t i = net->params.n_tensors; i-- > 0;) {
            const struct kp_tensor *t = &net->params.tensors[i];
            kp_buf_addf(&h, ",\"net%zu.%s\":{\"shape\":[", k, t->name);
            if (t->rows > 1)
                kp_buf_addf(&h, "%zu,", t->rows);
            size_t n = t->rows * t->cols * sizeof(float);
            kp_buf_addf(&h, "%zu],\"data_offsets\":[%zu,%zu],\"dtype\":\"F32\"}", t->cols,
                        data.len, data.len + n);
            kp_buf_add(&data, net->values + t->offset, n);
        }
    }
    kp_buf_addc(&h, '}');
    compose("other.safetensors", (struct kp_str){kp_buf_text(&h), h.len},
            (struct kp_str){kp_buf_text(&data), data.len});
    struct kp_model *other = load("other.safetensors");
    assert_same_answers(m, other);
    kp_model_free(other);
    kp_model_free(m);
    kp_buf_deinit(&h);
    kp_buf_deinit(&data);
    kp_buf_deinit(&p.file);
}

/* --- the file system ------------------------------------------------------------------------
 */

/* Files in the working folder whose names hold `part`. */
static size_t count_files(const char *part)
{
    size_t n = 0;
    DIR *d = opendir(".");
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += strstr(e->d_name, part) != NULL;
    (void)closedir(d);
    return n;
}

static void test_places_that_are_none(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_model *none;
    kopt_error err = {0};
    assert_true(make_folder("folder"));
    assert_int_equal(kp_model_save(m, "nowhere/model", &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "nowhere/model"));
    assert_int_equal(kp_model_save(m, "folder", &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "not a plain file"));
    assert_int_equal(kp_model_save(m, "/dev/null", &err), KOPT_EIO);
    assert_int_equal(kp_model_load("nowhere/model", &none, &err), KOPT_EIO);
    assert_int_equal(kp_model_load("folder", &none, &err), KOPT_EIO);
    assert_int_equal(kp_model_load("/dev/zero", &none, &err), KOPT_EIO);
    assert_null(none);
    assert_int_equal(count_files(".tmp"), 0);
    kp_model_free(m);
}

/* A large file without content takes no time and no memory. */
static void test_too_large(void **state)
{
    (void)state;
    write_file("large.safetensors", "", 0);
    assert_int_equal(truncate("large.safetensors", (off_t)1 << 40), 0);
    assert_refused("large.safetensors", "larger than any model");
    assert_int_equal(unlink("large.safetensors"), 0);
}

static void test_texts_that_are_not_utf8(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    kopt_error err = {0};
    m->kernel = "sm\xffll";
    assert_int_equal(kp_model_save(m, "never.safetensors", &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "'kernel' is not UTF-8"));
    m->kernel = "small";
    m->targets[0].name = "B\xc3";
    assert_int_equal(kp_model_save(m, "never.safetensors", &err), KOPT_EINPUT);
    assert_false(kp_file_exists("never.safetensors"));
    kp_model_free(m);
}

static void test_every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct small_plan plan = whole;
    struct kp_model *m = small_model(&whole);
    plan.seed = 99;
    struct kp_model *other = with_trees(&plan);
    small_beside(other, "attention", 1);
    kopt_error err;
    kopt_status st = KOPT_ENOMEM;
    save(m, PATH);
    for (long n = 1; st == KOPT_ENOMEM && n < 10000; n++) {
        /* What is there stays. */
        struct kp_model *loaded = load(PATH);
        assert_same_answers(m, loaded);
        kp_model_free(loaded);
        kp_alloc_fail_at(n);
        st = kp_model_save(other, PATH, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(count_files(".tmp"), 0);
    }
    assert_int_equal(st, KOPT_OK);
    st = KOPT_ENOMEM;
    for (long n = 1; st == KOPT_ENOMEM && n < 10000; n++) {
        struct kp_model *loaded;
        kp_alloc_fail_at(n);
        st = kp_model_load(PATH, &loaded, &err);
        kp_alloc_fail_at(0);
        assert_true((st == KOPT_OK) == (loaded != NULL));
        if (loaded)
            assert_same_answers(other, loaded);
        kp_model_free(loaded);
    }
    assert_int_equal(st, KOPT_OK);
    kp_model_free(m);
    kp_model_free(other);
}

/* --- a fuzzer's first inputs ----------------------------------------------------------------
 */

static int write_model(const char *folder, const char *name, struct kp_model *m)
{
    char path[4096];
    kopt_error err;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    kopt_status st = kp_model_save(m, path, &err);
    kp_model_free(m);
    if (st != KOPT_OK)
        (void)fprintf(stderr, "%s\n", err.message);
    return st != KOPT_OK;
}

static int write_corpus(const char *folder)
{
    int failed = 0;
    for (size_t i = 0; kp_net_at(i) && !failed; i++) {
        struct small_plan plan = {kp_net_at(i)->name, i % 2 ? NULL : small_rules, "small.kopt",
                                  1 + i % 2, 5};
        failed = write_model(folder, plan.net, small_model(&plan));
        if (!failed && strcmp(plan.net, "factored") == 0)
            failed = write_model(folder, "factored_trees", with_trees(&plan)) ||
                     write_model(folder, "two_kinds", two_kinds());
        if (!failed && strcmp(plan.net, "ranker") == 0)
            failed = write_model(folder, "ranker_trees", with_trees(&plan));
    }
    return failed;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_two_kinds),
        cmocka_unit_test(test_changed_kinds),
        cmocka_unit_test(test_rules_have_no_folder),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_replaced_while_loaded),
        cmocka_unit_test(test_changed_headers),
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_header_lengths),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_numbers_that_are_not_finite),
        cmocka_unit_test(test_every_prefix_is_an_error),
        cmocka_unit_test(test_another_order),
        cmocka_unit_test(test_places_that_are_none),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_texts_that_are_not_utf8),
        cmocka_unit_test(test_every_failing_allocation_is_clean),
    };
    if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
        return write_corpus(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
