/* SPDX-License-Identifier: MIT */
/* MIOpen's databases: what is read out of each kind, and what bad files get. */
#include "base/alloc.h"
#include "base/arena.h"
#include "store/miopen.h"
#include "support/test.h"

#include <sqlite3.h>

#define KEY  "64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0-NCHW-FP32-F"
#define GOOD KEY "=S:1,2,3\n"

static const char *data_path(const char *name)
{
    static char path[4200];
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/data/miopen/%s", root ? root : ".", name);
    return path;
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wbe");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* All rows as one text: "key solver(algorithm) v v ..;". */
struct seen {
    struct kp_buf text;
    int n;
    int stop_at;
};

static kopt_status see(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct seen *s = user;
    if (++s->n == s->stop_at)
        return kp_err(err, KOPT_EINTR, "enough");
    kp_buf_addf(&s->text, "%s %s", row->key, row->solver);
    for (size_t i = 0; !row->algorithm && i < row->n_values; i++)
        kp_buf_addf(&s->text, " %s", row->values[i]);
    if (row->algorithm)
        kp_buf_addf(&s->text, " %s %g %d", row->algorithm, row->time_ms, (int)row->workspace);
    kp_buf_addc(&s->text, '\n');
    return KOPT_OK;
}

static struct kp_miopen_count read_all(const char *path, const char *solver, const char *want)
{
    struct seen s = {.text = KP_BUF_INIT(1 << 20)};
    struct kp_miopen_count count;
    kopt_error err = {0};
    if (kp_miopen_read(path, solver, see, &s, &count, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(count.rows, s.n);
    if (want)
        assert_string_equal(kp_buf_text(&s.text), want);
    kp_buf_deinit(&s.text);
    return count;
}

static kopt_error assert_fails(const char *path, kopt_status code, const char *message)
{
    struct seen s = {.text = KP_BUF_INIT(1 << 20)};
    struct kp_miopen_count count;
    kopt_error err = {0};
    assert_int_equal(kp_miopen_read(path, NULL, see, &s, &count, &err), code);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in '%s'", message, err.message);
    kp_buf_deinit(&s.text);
    return err;
}

static kopt_error assert_text_fails(const char *text, const char *message)
{
    write_text("bad.txt", text);
    return assert_fails("bad.txt", KOPT_EINPUT, message);
}

static struct kp_miopen_count read_text(const char *text, const char *want)
{
    write_text("text.txt", text);
    return read_all("text.txt", NULL, want);
}

/* --- good files ----------------------------------------------------------------------------
 */

static void the_sqlite_database_gives_problems_and_vectors(void **state)
{
    (void)state;
    struct kp_miopen_count c = read_all(
        data_path("perf.db"), "ConvAsm1x1U",
        "NCHW,FP32,F,2,48,20,20,1,1,1,1,96,6,0,0,0,1,1,0,1,1,0,0,1 ConvAsm1x1U 1 16 2 32 1 2 4 "
        "1\n"
        "NCHW,FP32,B,2,96,20,20,1,1,1,1,48,6,0,0,0,1,1,0,1,1,0,0,1 ConvAsm1x1U 2 8 4 16 1 2 1 "
        "2\n"
        "NCHW,FP32,F,2,40,36,36,1,1,1,1,56,3,0,0,0,2,2,0,1,1,0,0,1 ConvAsm1x1U 1 8 1 64 2 1 2 "
        "4\n");
    assert_int_equal(c.kind, KP_MIOPEN_SQLITE);
    assert_int_equal(c.skipped, 0);
    assert_int_equal(read_all(data_path("perf.db"), NULL, NULL).rows, 6);
    assert_int_equal(read_all(data_path("perf.db"), "None", "").rows, 0);
}

static void the_text_database_gives_the_same(void **state)
{
    (void)state;
    struct kp_miopen_count c = read_all(
        data_path("perf.txt"), "ConvAsm1x1U",
        "48-20-20-1x1-96-20-20-6-0x0-1x1-1x1-0-NCHW-FP32-F ConvAsm1x1U 1 16 2 32 1 2 4 1\n"
        "96-20-20-1x1-48-20-20-6-0x0-1x1-1x1-0-NCHW-FP32-B ConvAsm1x1U 2 8 4 16 1 2 1 2\n"
        "40-36-36-1x1-56-18-18-3-0x0-2x2-1x1-0-NCHW-FP32-F ConvAsm1x1U 1 8 1 64 2 1 2 4\n");
    assert_int_equal(c.kind, KP_MIOPEN_TEXT);
    assert_int_equal(c.skipped, 0);
    assert_int_equal(read_all(data_path("perf.txt"), NULL, NULL).rows, 6);
}

static void the_find_database_gives_times(void **state)
{
    (void)state;
    struct kp_miopen_count c =
        read_all(data_path("find.fdb.txt"), "Direct3",
                 "24-18-18-3x3-24-18-18-5-1x1-1x1-1x1-0-NCHW-FP16-F_g4 Direct3 "
                 "miopenConvolutionFwdAlgoDirect 1 0\n");
    assert_int_equal(c.kind, KP_MIOPEN_FIND);
    assert_int_equal(read_all(data_path("find.fdb.txt"), NULL, NULL).rows, 10);
}

struct columns {
    struct kp_buf names[2];
    struct kp_buf values[2];
    int which;
};

static kopt_status see_columns(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct columns *c = user;
    (void)err;
    for (size_t i = 0; i < row->n_columns; i++) {
        kp_buf_addf(&c->names[c->which], "%s ", row->columns[i]);
        kp_buf_addf(&c->values[c->which], "%s ", row->problem[i]);
    }
    return KOPT_OK;
}

static void both_kinds_have_the_same_columns(void **state)
{
    (void)state;
    struct columns c = {
        {KP_BUF_INIT(4000), KP_BUF_INIT(4000)}, {KP_BUF_INIT(4000), KP_BUF_INIT(4000)}, 0};
    struct kp_miopen_count count;
    kopt_error err;
    assert_int_equal(
        kp_miopen_read(data_path("perf.db"), "ConvOclDirectFwd", see_columns, &c, &count, &err),
        KOPT_OK);
    c.which = 1;
    assert_int_equal(kp_miopen_read(data_path("perf.txt"), "ConvOclDirectFwd", see_columns, &c,
                                    &count, &err),
                     KOPT_OK);
    assert_true(strncmp(kp_buf_text(&c.names[0]), kp_buf_text(&c.names[1]), c.names[0].len) ==
                0);
    assert_string_equal(kp_buf_text(&c.names[1]) + c.names[0].len, "out_h out_w ");
    assert_true(
        strncmp(kp_buf_text(&c.values[0]), kp_buf_text(&c.values[1]), c.values[0].len) == 0);
    assert_string_equal(kp_buf_text(&c.values[1]) + c.values[0].len, "18 18 ");
    for (int i = 0; i < 2; i++) {
        kp_buf_deinit(&c.names[i]);
        kp_buf_deinit(&c.values[i]);
    }
}

static void layouts_groups_and_line_ends_vary(void **state)
{
    (void)state;
    struct kp_miopen_count c = read_text(
        "1-2-3-4x5-6-7-8-9-10x11-12x13-14x15-0-NHWC-NCHW-NCHW-FP16FP32FP16-W_g3=A<16>:x+1\r\n"
        "\n" KEY "=S:1;T:2;\n",
        "1-2-3-4x5-6-7-8-9-10x11-12x13-14x15-0-NHWC-NCHW-NCHW-FP16FP32FP16-W_g3 A<16> x+1\n" KEY
        " S 1\n" KEY " T 2\n");
    assert_int_equal(c.skipped, 0);
}

/* --- lines that are skipped ----------------------------------------------------------------
 */

static void rubbish_lines_are_counted_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *reason;
    } cases[] = {
        {"rubbish", "no key and '='"},
        {"=S:1", "no key and '='"},
        {"a=S:1", "not the key of a convolution"},
        {"64-56-56-1x1-32=S:1", "not the key of a convolution"},
        {"64-56-56-1x-32-56-56-8-0x0-1x1-1x1-0-NCHW-FP32-F=S:1",
         "not the key of a convolution"},
        {"-64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0-NCHW-FP32-F=S:1",
         "not the key of a convolution"},
        {"64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0=S:1", "the key ends before its layout"},
        {"64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0-NCHW=S:1",
         "the key does not end in layout, type and direction"},
        {"64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0--FP32-F=S:1",
         "the key's layout or type is none"},
        {"64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0-NCHW-FP32-X=S:1",
         "the key's direction is none of F, B, W"},
        {"64-56-56-1x1-32-56-56-8-0x0-1x1-1x1-0-NCHW-FP32-F_x=S:1",
         "the key has something unknown behind its direction"},
        {"64-8-56-56-1x1x1-32-8-56-56-8-0x0x0-1x1x1-1x1x1-0-NCDHW-FP32-F=S:1",
         "a 3-D convolution: versions of MIOpen differ in the order of its sizes"},
        {KEY "=", "an entry without a name and ':'"},
        {KEY "=S", "an entry without a name and ':'"},
        {KEY "=:1", "an entry without a name and ':'"},
        {KEY "=S:", "a vector that is empty, has a gap or is too long"},
        {KEY "=S:1,,2", "a vector that is empty, has a gap or is too long"},
        {KEY "=miopenConvolutionFwdAlgoGEMM:G,1,0", "an entry of another kind of database"},
        {KEY "=\x01S:1", "bytes that are no text"},
    };
    char text[400];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text), GOOD "%s\n" GOOD, cases[i].line);
        struct kp_miopen_count c = read_text(text, KEY " S 1 2 3\n" KEY " S 1 2 3\n");
        assert_int_equal(c.skipped, 1);
        assert_int_equal(c.first_line, 2);
        assert_string_equal(c.reason, cases[i].reason);
    }
}

static void entries_of_find_databases_have_times(void **state)
{
    (void)state;
    static const char *const bad[] = {"G", "G,1", "G,x,0", "G,0,0", "G,-1,0", "G,1,-1", ",1,0"};
    char text[600];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(
            text, sizeof(text),
            KEY "=miopenConvolutionFwdAlgoGEMM:%s;miopenConvolutionFwdAlgoFFT:F,2,8\n", bad[i]);
        struct kp_miopen_count c = read_text(text, KEY " F miopenConvolutionFwdAlgoFFT 2 8\n");
        assert_int_equal(c.kind, KP_MIOPEN_FIND);
        assert_int_equal(c.skipped, 1);
        assert_string_equal(c.reason, "an entry without solver, time and workspace");
    }
}

static void a_line_without_end_is_taken_for_cut(void **state)
{
    (void)state;
    struct kp_miopen_count c = read_text(GOOD KEY "=S:1,2", KEY " S 1 2 3\n");
    assert_int_equal(c.skipped, 1);
    assert_int_equal(c.first_line, 2);
    assert_string_equal(c.reason, "the file ends within this line");
    kopt_error err = assert_text_fails(KEY "=S:1,2", "cut in its first line");
    assert_int_equal(err.line, 1);
}

static void long_lines_and_vectors_have_limits(void **state)
{
    (void)state;
    struct kp_buf text = KP_BUF_INIT(8 << 20);
    kp_buf_adds(&text, KEY "=S:1");
    for (int i = 0; i < (KP_MIOPEN_LINE_MAX - 60) / 2; i++)
        kp_buf_adds(&text, ",1"); /* a line that fits, a vector that does not */
    kp_buf_adds(&text, "\n" GOOD);
    for (int i = 0; i < KP_MIOPEN_LINE_MAX + 1; i++)
        kp_buf_addc(&text, 'x');
    kp_buf_adds(&text, "\n" GOOD KEY "=V:1");
    for (int i = 1; i < KP_MIOPEN_VALUES_MAX; i++)
        kp_buf_adds(&text, ",1");
    kp_buf_adds(&text, "\n");
    assert_int_equal(text.failed, KOPT_OK);
    struct kp_miopen_count c = read_text(kp_buf_text(&text), NULL);
    assert_int_equal(c.rows, 3);
    assert_int_equal(c.skipped, 2);
    assert_int_equal(c.first_line, 1);
    kp_buf_deinit(&text);
}

/* --- files that are none -------------------------------------------------------------------
 */

static void foreign_files_get_one_clear_line(void **state)
{
    (void)state;
    assert_fails("none.db", KOPT_EIO, "No such file");
    assert_fails(".", KOPT_EIO, "is a folder");
    assert_text_fails("", "the file is empty");
    assert_text_fails("BZh91AY&SY....", "a compressed file");
    assert_text_fails("\x1f\x8b\x08\n", "a compressed file");
    kopt_error err = assert_text_fails("\nname,value\n1,2\n", "no database of MIOpen");
    assert_int_equal(err.line, 2);
    assert_text_fails(KEY "=S:,\n", "has no row that can be used; line 1");
    assert_text_fails("\n\n", "there is nothing in it");
}

/* One line of another kind after the other ends early, but not among good ones. */
static void a_long_foreign_file_is_not_read_to_its_end(void **state)
{
    (void)state;
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    for (int i = 0; i < 100; i++)
        kp_buf_adds(&text, "rubbish\n");
    kp_buf_adds(&text, GOOD);
    assert_text_fails(kp_buf_text(&text), "no database of MIOpen: no key and '='");
    kp_buf_clear(&text);
    kp_buf_adds(&text, GOOD);
    for (int i = 0; i < 200; i++)
        kp_buf_adds(&text, "rubbish\n");
    assert_int_equal(read_text(kp_buf_text(&text), NULL).skipped, 200);
    kp_buf_deinit(&text);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    (void)remove(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define CONFIG                                                                      \
    "CREATE TABLE config (id INTEGER PRIMARY KEY, data_type TEXT, direction TEXT, " \
    "in_channels INT, out_channels INT);"
#define PERF "CREATE TABLE perf_db (id INTEGER PRIMARY KEY, solver, config, params);"

static void foreign_databases_get_one_clear_line(void **state)
{
    (void)state;
    run_sql("sql.db", "CREATE TABLE results (a INT)");
    assert_fails("sql.db", KOPT_EINPUT, "it has other tables");
    run_sql("sql.db", "CREATE TABLE a (b); CREATE VIEW config AS SELECT * FROM a; "
                      "CREATE VIEW perf_db AS SELECT * FROM a");
    assert_fails("sql.db", KOPT_EINPUT, "it has other tables");
    run_sql("sql.db", "CREATE TABLE config (a INT); CREATE TABLE perf_db (a INT)");
    assert_fails("sql.db", KOPT_EINPUT, "no such column");
    run_sql("sql.db", "CREATE TABLE config (id INT, a INT);" PERF);
    assert_fails("sql.db", KOPT_EINPUT, "config does not describe convolutions");
    run_sql("sql.db", CONFIG PERF);
    assert_fails("sql.db", KOPT_EINPUT, "has no rows");
}

static void rows_with_gaps_are_counted(void **state)
{
    (void)state;
    run_sql("sql.db", CONFIG PERF "INSERT INTO config VALUES (1, 'FP32', 'F', 8, 16), "
                                  "(2, NULL, 'F', 8, 16);"
                                  "INSERT INTO perf_db VALUES (1, 'S', 1, '1,2'), "
                                  "(2, 'S', 2, '1,2'), (3, 'S', 9, '1'), (4, NULL, 1, '1'), "
                                  "(5, 'S', 1, NULL), (6, 'S', 1, '1,'), (7, 'S', 1, 5)");
    struct kp_miopen_count c = read_all("sql.db", NULL, "FP32,F,8,16 S 1 2\nFP32,F,8,16 S 5\n");
    assert_int_equal(c.skipped, 5);
    assert_int_equal(c.first_line, 2);
    assert_string_equal(c.reason, "its problem is missing or has a gap");
}

static void a_cut_database_is_an_error(void **state)
{
    (void)state;
    char bytes[65536];
    FILE *f = fopen(data_path("perf.db"), "rbe");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    assert_int_equal(fclose(f), 0);
    write_bytes("cut.db", bytes, n / 2);
    assert_fails("cut.db", KOPT_EINPUT, "cut or damaged");
    write_bytes("cut.db", bytes, 50);
    assert_fails("cut.db", KOPT_EINPUT, "no database of MIOpen");
}

static void a_locked_database_says_so(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    run_sql("locked.db", CONFIG PERF);
    assert_int_equal(sqlite3_open("locked.db", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_fails("locked.db", KOPT_EBUSY, "keeps the database locked");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_visitors_status_ends_the_walk(void **state)
{
    (void)state;
    static const char *const names[] = {"perf.db", "perf.txt", "find.fdb.txt"};
    for (size_t i = 0; i < 3; i++) {
        struct seen s = {.text = KP_BUF_INIT(1 << 20), .stop_at = 2};
        struct kp_miopen_count count;
        kopt_error err = {0};
        assert_int_equal(kp_miopen_read(data_path(names[i]), NULL, see, &s, &count, &err),
                         KOPT_EINTR);
        assert_int_equal(s.n, 2);
        assert_string_equal(err.message, "enough");
        kp_buf_deinit(&s.text);
    }
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    static const char *const names[] = {"perf.db", "perf.txt", "find.fdb.txt"};
    for (size_t i = 0; i < 3; i++) {
        kopt_status st = KOPT_ENOMEM;
        long n = 0;
        while (st != KOPT_OK && n < 1000) {
            struct seen s = {.text = KP_BUF_INIT(1 << 20)};
            struct kp_miopen_count count;
            kopt_error err = {0};
            kp_buf_reserve(&s.text, 8000); /* what fails is the reader's */
            kp_alloc_fail_at(++n);
            st = kp_miopen_read(data_path(names[i]), NULL, see, &s, &count, &err);
            kp_alloc_fail_at(0);
            assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
            kp_buf_deinit(&s.text);
        }
        assert_int_equal(st, KOPT_OK);
        assert_true(n > 2);
    }
}

/* --- writing -------------------------------------------------------------------------------
 */

enum { ROWS = 8 };

struct kept {
    struct kp_miopen_row rows[ROWS];
    const char *columns[ROWS][KP_MIOPEN_COLUMNS_MAX];
    const char *problem[ROWS][KP_MIOPEN_COLUMNS_MAX];
    const char *values[ROWS][16];
    size_t n;
    struct kp_arena arena;
};

static const char *keep_text(struct kept *k, const char *s)
{
    const char *copy = kp_arena_strndup(&k->arena, s, strlen(s));
    assert_non_null(copy);
    return copy;
}

static kopt_status keep(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    struct kept *k = user;
    size_t n = k->n++;
    (void)err;
    assert_true(n < ROWS && row->n_values < 16);
    for (size_t i = 0; i < row->n_columns; i++) {
        k->columns[n][i] = keep_text(k, row->columns[i]);
        k->problem[n][i] = keep_text(k, row->problem[i]);
    }
    for (size_t i = 0; i < row->n_values; i++)
        k->values[n][i] = keep_text(k, row->values[i]);
    k->rows[n] = (struct kp_miopen_row){.columns = k->columns[n],
                                        .problem = k->problem[n],
                                        .n_columns = row->n_columns,
                                        .solver = keep_text(k, row->solver),
                                        .values = k->values[n],
                                        .n_values = row->n_values};
    return KOPT_OK;
}

static void load(struct kept *k, const char *name)
{
    struct kp_miopen_count count;
    kopt_error err = {0};
    memset(k, 0, sizeof(*k));
    k->arena = KP_ARENA_INIT(1 << 20);
    if (kp_miopen_read(data_path(name), NULL, keep, k, &count, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static const char sorted[] =
    "24-18-18-3x3-24-18-18-5-1x1-1x1-1x1-0-NCHW-FP16-F_g4=ConvOclDirectFwd:8,16,16,16,2,1,4,2,"
    "1\n"
    "40-36-36-1x1-56-18-18-3-0x0-2x2-1x1-0-NCHW-FP32-F=ConvAsm1x1U:1,8,1,64,2,1,2,4\n"
    "48-20-20-1x1-96-20-20-6-0x0-1x1-1x1-0-NCHW-FP32-F=ConvAsm1x1U:1,16,2,32,1,2,4,1;Other:7\n"
    "80-12-12-1x1-160-12-12-9-0x0-1x1-1x1-0-NCHW-FP32-W=ConvAsmBwdWrW1x1:2,8,4,4,2,1,2,4,0,1\n"
    "96-20-20-1x1-48-20-20-6-0x0-1x1-1x1-0-NCHW-FP32-B=ConvAsm1x1U:2,8,4,16,1,2,1,2\n";

static void what_is_written_reads_back(void **state)
{
    (void)state;
    static const char *const names[] = {"perf.db", "perf.txt"}; /* without and with out_h */
    for (size_t i = 0; i < 2; i++) {
        struct kept k;
        struct kp_buf out = KP_BUF_INIT(1 << 20);
        kopt_error err = {0};
        load(&k, names[i]);
        if (kp_miopen_write(k.rows, k.n, &out, &err) != KOPT_OK)
            fail_msg("%s", err.message);
        assert_string_equal(kp_buf_text(&out), sorted);
        assert_int_equal(read_text(kp_buf_text(&out), NULL).rows, 6);
        kp_buf_deinit(&out);
        kp_arena_deinit(&k.arena);
    }
}

static void a_solvers_last_row_counts(void **state)
{
    (void)state;
    struct kept k;
    struct kp_buf out = KP_BUF_INIT(1 << 20);
    kopt_error err = {0};
    load(&k, "perf.db");
    k.rows[1] = k.rows[0];
    k.rows[1].n_values = 2;
    assert_int_equal(kp_miopen_write(k.rows, 2, &out, &err), KOPT_OK);
    assert_string_equal(kp_buf_text(&out),
                        "48-20-20-1x1-96-20-20-6-0x0-1x1-1x1-0-NCHW-FP32-F=ConvAsm1x1U:1,16\n");
    kp_buf_clear(&out);
    assert_int_equal(kp_miopen_write(NULL, 0, &out, &err), KOPT_OK);
    assert_int_equal(out.len, 0);
    kp_buf_deinit(&out);
    kp_arena_deinit(&k.arena);
}

/* The first row with one column's text replaced (NULL: the column is gone). */
static void assert_write_fails(const char *column, const char *text, const char *message)
{
    struct kept k;
    struct kp_buf out = KP_BUF_INIT(1 << 20);
    kopt_error err = {0};
    load(&k, "perf.db");
    for (size_t i = 0; i < k.rows[0].n_columns; i++) {
        if (strcmp(k.columns[0][i], column) == 0 && text)
            k.problem[0][i] = text;
        else if (strcmp(k.columns[0][i], column) == 0)
            k.columns[0][i] = "gone";
    }
    assert_int_equal(kp_miopen_write(k.rows, 1, &out, &err), KOPT_EINPUT);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in '%s'", message, err.message);
    assert_int_equal(out.len, 0);
    kp_buf_deinit(&out);
    kp_arena_deinit(&k.arena);
}

static void what_the_format_cannot_hold_is_refused(void **state)
{
    (void)state;
    assert_write_fails("batchsize", NULL, "batchsize: the column is missing");
    assert_write_fails("batchsize", "-1", "batchsize: not an integer of 0 or more");
    assert_write_fails("batchsize", "many", "batchsize: not an integer of 0 or more");
    assert_write_fails("layout", "N;C", "layout: not a word");
    assert_write_fails("direction", NULL, "direction: the column is missing");
    assert_write_fails("spatial_dim", "3", "only 2-D problems can be written");
    assert_write_fails("conv_stride_h", "0", "out_h: missing, and it does not follow");
    assert_write_fails("fil_w", "99", "out_w: missing, and it does not follow");
    assert_write_fails("pad_h", "9223372036854775807", "out_h: missing");
}

static void backward_with_a_stride_needs_the_outputs_size(void **state)
{
    (void)state;
    struct kept k;
    struct kp_buf out = KP_BUF_INIT(1 << 20);
    kopt_error err = {0};
    load(&k, "perf.txt");
    size_t row = 0;
    while (strcmp(kp_miopen_column(&k.rows[row], "direction"), "B") != 0)
        row++;
    for (size_t i = 0; i < k.rows[row].n_columns; i++) {
        if (strncmp(k.columns[row][i], "conv_stride", 11) == 0 && k.problem[row][i][0] == '1')
            k.problem[row][i] = "2";
    }
    assert_int_equal(kp_miopen_write(&k.rows[row], 1, &out, &err), KOPT_OK);
    k.rows[row].n_columns -= 2;
    assert_int_equal(kp_miopen_write(&k.rows[row], 1, &out, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.hint, "out_h"));
    kp_buf_deinit(&out);
    kp_arena_deinit(&k.arena);
}

static void every_failing_allocation_of_writing_is_clean(void **state)
{
    (void)state;
    struct kept k;
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    load(&k, "perf.db");
    while (st == KOPT_ENOMEM && n < 1000) {
        struct kp_buf out = KP_BUF_INIT(1 << 20);
        kopt_error err = {0};
        kp_alloc_fail_at(++n);
        st = kp_miopen_write(k.rows, k.n, &out, &err);
        kp_alloc_fail_at(0);
        kp_buf_deinit(&out);
    }
    assert_int_equal(st, KOPT_OK);
    assert_true(n > 6);
    kp_arena_deinit(&k.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sqlite_database_gives_problems_and_vectors),
        cmocka_unit_test(the_text_database_gives_the_same),
        cmocka_unit_test(the_find_database_gives_times),
        cmocka_unit_test(both_kinds_have_the_same_columns),
        cmocka_unit_test(layouts_groups_and_line_ends_vary),
        cmocka_unit_test(rubbish_lines_are_counted_with_a_reason),
        cmocka_unit_test(entries_of_find_databases_have_times),
        cmocka_unit_test(a_line_without_end_is_taken_for_cut),
        cmocka_unit_test(long_lines_and_vectors_have_limits),
        cmocka_unit_test(foreign_files_get_one_clear_line),
        cmocka_unit_test(a_long_foreign_file_is_not_read_to_its_end),
        cmocka_unit_test(foreign_databases_get_one_clear_line),
        cmocka_unit_test(rows_with_gaps_are_counted),
        cmocka_unit_test(a_cut_database_is_an_error),
        cmocka_unit_test(a_locked_database_says_so),
        cmocka_unit_test(a_visitors_status_ends_the_walk),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_solvers_last_row_counts),
        cmocka_unit_test(what_the_format_cannot_hold_is_refused),
        cmocka_unit_test(backward_with_a_stride_needs_the_outputs_size),
        cmocka_unit_test(every_failing_allocation_of_writing_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
