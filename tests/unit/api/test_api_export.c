/* SPDX-License-Identifier: MIT */
/* Models and predictions for other programs: what is written is read again, every vector
 * satisfies the rules, and without memory the file stays as it was. */
#include "base/alloc.h"
#include "kopt/predict.h"
#include "store/miopen.h"
#include "support/test.h"

#include <stdbool.h>
#include <unistd.h>

/* The vector's order is that of the rules, not of names. */
static const char rules[] = "kernel Tiles\n"
                            "problem layout=\"NCHW\" data_type=\"FP32\" direction=\"F\"\n"
                            "problem spatial_dim=2 in_channels in_h in_w in_d=1\n"
                            "problem fil_h=1 fil_w=1 fil_d=1 out_channels batchsize=1\n"
                            "problem pad_h=0 pad_w=0 pad_d=0\n"
                            "problem conv_stride_h=1 conv_stride_w=1 conv_stride_d=0\n"
                            "problem dilation_h=1 dilation_w=1 dilation_d=0 bias=0\n"
                            "problem group_count=1\n"
                            "let out_h = (in_h - 1)//conv_stride_h + 1\n"
                            "let out_w = (in_w - 1)//conv_stride_w + 1\n"
                            "param tile {8,16,32,64}\n"
                            "param split {1,2,4}\n"
                            "param fast {false,true}\n"
                            "require tile <= in_channels && tile*split <= device.max_threads\n"
                            "require !fast || in_h % 2 == 0\n";

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void must(kopt_status st, const kopt_error *err)
{
    if (st != KOPT_OK)
        print_message("%s (%s)\n", err->message, err->hint);
    assert_int_equal(st, KOPT_OK);
}

static void write_rows(const char *path, int n, int from)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = from; i < from + n; i++) {
        int c = 8 << i % 6;
        int h = 7 + i % 9;
        int s = i % 3 && i % 7 == 0 ? 2 : 1;
        int to = (h - 1) / s + 1;
        (void)fprintf(f,
                      "%d-%d-%d-1x1-%d-%d-%d-%d-0x0-%dx%d-1x1-0-NCHW-FP%d-%c=Tiles:%d,%d,%d\n",
                      c, h, h, 16 << i % 5, to, to, 1 + i / 9 % 4, s, s, i % 4 ? 32 : 16,
                      i % 3 ? 'F' : 'B', c > 64 ? 64 : c, 1 << i % 3, h % 2 == 0);
    }
    assert_int_equal(fclose(f), 0);
}

static int make_model(void **state)
{
    kopt_train_options o;
    kopt_error err = {0};
    static const char *const where[] = {"data_type=FP32"};
    (void)state;
    write_file("tiles.kopt", rules);
    write_rows("train.txt", 200, 0);
    kopt_train_options_init(&o);
    o.data.path = "train.txt";
    o.data.rules = "tiles.kopt";
    o.data.where = where;
    o.data.n_where = 1;
    o.data.limits = "max_threads=128";
    o.out = "tiles.model";
    o.nets = 1;
    o.hidden = 16;
    o.epochs = 4;
    o.threads = 1;
    must(kopt_train(&o, &err), &err);
    return 0;
}

static kopt_model *open_model(void)
{
    kopt_model *m = NULL;
    kopt_error err = {0};
    must(kopt_model_open("tiles.model", &m, &err), &err);
    return m;
}

static kopt_export_options with_limits(const char *limits)
{
    kopt_export_options o;
    kopt_export_options_init(&o);
    o.limits = limits;
    return o;
}

struct seen {
    size_t n;
    long max_threads;
};

static kopt_status look(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct seen *s = user;
    (void)err;
    assert_string_equal(row->solver, "Tiles");
    assert_int_equal(row->n_values, 3);
    long tile = strtol(row->values[0], NULL, 10);
    long split = strtol(row->values[1], NULL, 10);
    long fast = strtol(row->values[2], NULL, 10);
    assert_true(tile >= 8 && tile <= strtol(kp_miopen_column(row, "in_channels"), NULL, 10));
    assert_true(split >= 1 && tile * split <= s->max_threads);
    assert_true(!fast || strtol(kp_miopen_column(row, "in_h"), NULL, 10) % 2 == 0);
    s->n++;
    return KOPT_OK;
}

static size_t read_again(const char *path, long max_threads)
{
    struct seen s = {.max_threads = max_threads};
    struct kp_miopen_count count;
    kopt_error err = {0};
    must(kp_miopen_read(path, NULL, look, &s, &count, &err), &err);
    assert_int_equal(count.skipped, 0);
    return s.n;
}

static void test_round_trip(void **state)
{
    kopt_model *m = open_model();
    kopt_export_count count;
    kopt_error err = {0};
    static const long threads[] = {8, 32, 128};
    (void)state;
    write_rows("ask.txt", 90, 150); /* some of them were learned, some not */
    for (size_t i = 0; i < 3; i++) {
        char limits[40];
        (void)snprintf(limits, sizeof(limits), "max_threads=%ld", threads[i]);
        kopt_export_options o = with_limits(limits);
        must(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err), &err);
        assert_int_equal(count.read, 90);
        assert_true(count.left_out >= 22); /* FP16: as in training */
        assert_int_equal(count.skipped, 0);
        assert_int_equal(count.written + count.repeated + count.left_out, 90);
        assert_int_equal(read_again("out.txt", threads[i]), count.written);
    }
    /* With an empty list of columns all rows count; here the model has seen one type only. */
    kopt_export_options all = with_limits("max_threads=128");
    all.where = (const char *const[]){NULL};
    must(kopt_model_export_miopen(m, "ask.txt", "out.txt", &all, &count, &err), &err);
    assert_int_equal(count.left_out, 0);
    assert_true(count.unseen >= 20);
    assert_string_equal(count.unseen_why, "data_type=FP16");
    assert_int_equal(count.unseen_line, 3); /* of row 152 */
    assert_int_equal(count.written + count.repeated + count.unseen, 90);
    kopt_model_close(m);
}

static void test_a_table(void **state)
{
    kopt_model *m = open_model();
    kopt_export_count count;
    kopt_error err = {0};
    kopt_export_options o = with_limits("max_threads=64");
    (void)state;
    write_file("table.csv",
               "in_channels,in_h,in_w,out_channels,data_type,conv_stride_h,"
               "conv_stride_w,direction\n"
               "64,28,28,64,FP32,1,1,F\n"
               "4,28,28,64,FP32,1,1,F\n"   /* no tile is that small */
               "64,28,28,64,FP32,2,2,B\n"  /* the output's size is not known */
               "64,28,28,64,FP32,1,1,F\n"  /* again */
               "64,28,28,64,FP16,1,1,F\n"  /* left out */
               "64,2 8,28,64,FP32,1,1,F\n" /* no number */
               "128,14,14,64,FP32,3,3,F\n" /* outside of 1 to 2, but no single value */
               "128,14,14,64,FP32,2,2,W\n" /* a word that was not learned */
               "128,14,14,64,FP32,2,2,F\n");
    must(kopt_model_export_miopen(m, "table.csv", "out.txt", &o, &count, &err), &err);
    assert_int_equal(count.read, 9);
    assert_int_equal(count.written, 3);
    assert_int_equal(count.unseen, 1);
    assert_int_equal(count.unseen_line, 9);
    assert_string_equal(count.unseen_why, "direction=W");
    assert_int_equal(count.skipped, 3);
    assert_int_equal(count.repeated, 1);
    assert_int_equal(count.left_out, 1);
    assert_int_equal(count.skipped_line, 3);
    assert_non_null(strstr(count.skipped_why, "no configuration for this problem is left"));
    assert_int_equal(read_again("out.txt", 64), 3);
    /* A single number of training is the only one: */
    write_file("other.csv", "in_channels,in_h,in_w,out_channels,fil_h\n"
                            "64,28,28,64,3\n"
                            "64,28,28,64,5\n");
    assert_int_equal(kopt_model_export_miopen(m, "other.csv", "out.txt", &o, &count, &err),
                     KOPT_EINPUT);
    assert_non_null(strstr(err.message, "no such problems: line 2: fil_h=3"));
    assert_int_equal(count.unseen, 2);
    assert_int_equal(count.written, 0);
    assert_int_equal(read_again("out.txt", 64), 3); /* as it was */
    kopt_model_close(m);
}

static void test_errors(void **state)
{
    kopt_model *m = open_model();
    kopt_export_count count;
    kopt_error err = {0};
    kopt_export_options o = with_limits("max_threads=64");
    (void)state;
    write_rows("ask.txt", 5, 1);
    write_file("out.txt", "before");
    assert_int_equal(kopt_model_export_miopen(m, "gone", "out.txt", &o, &count, &err),
                     KOPT_EIO);
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "no/out.txt", &o, &count, &err),
                     KOPT_EIO);
    assert_int_equal(count.written, 0);
    o.solver = "a:b";
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EINPUT);
    o.solver = NULL;
    o.width = 5000;
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EINPUT);
    o.width = 0;
    o.limits = "warp=32";
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EUSAGE);
    o.limits = NULL;
    static const char *const twice[] = {"in_h=3", "in_h=4"};
    static const char *const unknown[] = {"N=3"};
    static const char *const broken[] = {"in_h"};
    o.given = twice;
    o.n_given = 2;
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EUSAGE);
    o.n_given = 1;
    o.given = unknown;
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EUSAGE);
    o.given = broken;
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EUSAGE);
    o.struct_bytes--;
    assert_int_equal(kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err),
                     KOPT_EUSAGE);
    char text[16] = "";
    FILE *f = fopen("out.txt", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, "before");
    kopt_model_close(m);
}

static void test_every_failing_allocation_is_clean(void **state)
{
    kopt_model *m = open_model();
    kopt_export_count count;
    kopt_error err = {0};
    const kopt_export_options o = with_limits("max_threads=64");
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    (void)state;
    write_rows("ask.txt", 3, 1);
    (void)unlink("out.txt");
    while (st == KOPT_ENOMEM && n < 20000) {
        kp_alloc_fail_at(++n);
        st = kopt_model_export_miopen(m, "ask.txt", "out.txt", &o, &count, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(access("out.txt", F_OK), st == KOPT_OK ? 0 : -1);
    }
    must(st, &err);
    assert_true(n > 10);
    kopt_model_close(m);
}

static void test_onnx(void **state)
{
    kopt_model *m = open_model();
    kopt_error err = {0};
    (void)state;
    must(kopt_model_export_onnx(m, "tiles.onnx", &err), &err);
    assert_int_equal(access("tiles.onnx", R_OK), 0);
    assert_int_equal(kopt_model_export_onnx(m, "no/tiles.onnx", &err), KOPT_EIO);
    kopt_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_a_table),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_every_failing_allocation_is_clean),
        cmocka_unit_test(test_onnx)};
    return cmocka_run_group_tests(tests, make_model, NULL);
}
