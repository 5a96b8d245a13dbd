/* SPDX-License-Identifier: MIT */
/* Runs triples of a .test file: source, question, answer.
 *
 *     # comment
 *     ! path.cu                 name of the kernel file for the next source (default k.cl)
 *     | one line of the source  (several lines: all of them)
 *     ? question
 *     = one line of the answer  (several lines: all of them)
 *
 * A source may be followed by several questions with their answers. Questions:
 *     eval [python] NAME=value..    the source is an expression; NAME=? is not yet known
 *     truth [python] NAME=value..   the same as a rule
 *     list [python]                 the source is a list
 *     beside NAME=value..           the source is a run of expressions
 *     load                          the source is a kernel file
 *     count|default|launch|args|macros|checks|rules BINDING..   about its space and default
 *     metric NAME time_ns BINDING..
 *     same                          does it have the hash of the source before?
 * Errors are answered as LINE:COLUMN: MESSAGE, the source line, a caret, and "hint: ..".
 * "--bless FILE" prints the file with the answers that the program gives. */
#include "base/alloc.h"
#include "base/hash.h"
#include "space/expr_impl.h"
#include "space/kernel.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdbool.h>

enum { LINE_MAX_BYTES = 8192, NAMES_MAX = 32, TEXT_MAX = 1 << 20 };

struct spec {
    const char *file;
    bool bless;
    int line;
    int failures;
    int cases;
    char path[256];
    struct kp_buf source;
    bool source_open; /* the next "|" continues it */
    struct kp_buf got;
    struct kp_buf want;
    char question[LINE_MAX_BYTES];
    int question_line;
    char last_hash[KP_SHA256_HEX + 1];
};

/* ---- answers ---- */

static void say_error(struct kp_buf *out, const kopt_error *e)
{
    if (e->line || e->column)
        kp_buf_addf(out, "%d:%d: ", e->line, e->column);
    kp_buf_addf(out, "%s\n", e->message);
    if (e->excerpt[0]) {
        kp_buf_addf(out, "%s\n", e->excerpt);
        if (e->column > 0)
            kp_buf_addf(out, "%*s\n", e->column, "^");
    }
    if (e->hint[0])
        kp_buf_addf(out, "hint: %s\n", e->hint);
}

static void say_value(struct kp_buf *out, struct kp_value v)
{
    kp_buf_addf(out, "%s ", kp_type_name(v.type));
    if (v.type == KP_STRING)
        kp_value_to_json(v, out);
    else
        kp_value_to_text(v, out);
}

/* ---- expressions ---- */

struct names {
    struct kp_scope scope;
    struct kp_value values[NAMES_MAX];
    unsigned char known[NAMES_MAX];
    char text[NAMES_MAX][256];
    size_t n;
    struct kp_arena arena;
    enum kp_dialect dialect;
};

static bool read_binding(struct names *n, const char *word)
{
    struct kp_str value;
    struct kp_str name = kp_str_cut(kp_str_from(word), '=', &value);
    const struct kp_expr *e = NULL;
    kopt_error err;
    struct kp_env none = {NULL, NULL};
    if (n->n == NAMES_MAX || name.len >= 256 || value.len == 0)
        return false;
    memcpy(n->text[n->n], name.ptr, name.len);
    n->text[n->n][name.len] = 0;
    if (!kp_str_is(value, "?")) {
        if (kp_expr_parse(value, NULL, KP_DIALECT_KOPT, NULL, &n->arena, &e, &err) != KOPT_OK ||
            kp_expr_eval(e, &none, &n->values[n->n], NULL) != KP_EVAL_VALUE)
            return false;
        n->known[n->n] = 1;
    }
    if (kp_scope_add(&n->scope, n->text[n->n], (uint32_t)n->n, &err) != KOPT_OK)
        return false;
    n->n++;
    return true;
}

static bool read_names(struct names *n, char *words)
{
    char *rest = NULL;
    n->arena = KP_ARENA_INIT(TEXT_MAX);
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        if (strcmp(w, "python") == 0)
            n->dialect = KP_DIALECT_PYTHON;
        else if (!read_binding(n, w))
            return false;
    }
    return true;
}

static struct kp_str source_text(const struct spec *s)
{
    struct kp_str text = {kp_buf_text(&s->source), s->source.len};
    if (text.len && text.ptr[text.len - 1] == '\n')
        text.len--;
    return text;
}

static void ask_eval(struct spec *s, struct names *n, bool truth)
{
    const struct kp_expr *e = NULL;
    kopt_error err;
    struct kp_env env = {n->values, n->known};
    struct kp_eval_error why;
    struct kp_value v;
    struct kp_arena arena = KP_ARENA_INIT(16 * TEXT_MAX);
    struct kp_str text = source_text(s);
    if (kp_expr_parse(text, &n->scope, n->dialect, NULL, &arena, &e, &err) != KOPT_OK) {
        say_error(&s->got, &err);
    } else if (truth) {
        int t = kp_expr_truth(e, &env, &why);
        if (why.what)
            kp_buf_addf(&s->got, "false (%s at %u)\n", why.what, why.pos + 1);
        else
            kp_buf_addf(&s->got, "%s\n", t < 0 ? "unknown" : t ? "true" : "false");
    } else {
        switch (kp_expr_eval(e, &env, &v, &why)) {
        case KP_EVAL_VALUE:
            say_value(&s->got, v);
            kp_buf_addc(&s->got, '\n');
            break;
        case KP_EVAL_UNKNOWN:
            kp_buf_adds(&s->got, "unknown\n");
            break;
        case KP_EVAL_ERROR:
            kp_buf_addf(&s->got, "error: %s at %u\n", why.what, why.pos + 1);
            break;
        }
    }
    kp_arena_deinit(&arena);
}

static void ask_list(struct spec *s, struct names *n)
{
    struct kp_value *values = NULL;
    size_t count = 0;
    size_t used = 0;
    kopt_error err;
    struct kp_env env = {n->values, n->known};
    struct kp_arena arena = KP_ARENA_INIT(64 * TEXT_MAX);
    struct kp_str text = source_text(s);
    if (kp_list_parse(text, &n->scope, &env, n->dialect, NULL, &arena, &values, &count, &used,
                      &err) != KOPT_OK) {
        say_error(&s->got, &err);
    } else {
        kp_buf_adds(&s->got, kp_type_name(values[0].type));
        for (size_t i = 0; i < count; i++) {
            kp_buf_addc(&s->got, ' ');
            kp_value_to_json(values[i], &s->got);
        }
        if (used < text.len)
            kp_buf_addf(&s->got, " | %.*s", (int)(text.len - used), text.ptr + used);
        kp_buf_addc(&s->got, '\n');
    }
    kp_arena_deinit(&arena);
}

static void ask_beside(struct spec *s, struct names *n)
{
    struct kp_env env = {n->values, n->known};
    struct kp_arena arena = KP_ARENA_INIT(16 * TEXT_MAX);
    struct kp_str rest = source_text(s);
    kopt_error err;
    while (kp_str_trim(rest).len > 0) {
        const struct kp_expr *e = NULL;
        size_t used = 0;
        struct kp_value v;
        const struct kp_parse_input in = {rest, &n->scope, n->dialect, NULL, &arena};
        if (kp_expr_parse_some(&in, true, &e, &used, &err) != KOPT_OK) {
            say_error(&s->got, &err);
            break;
        }
        if (kp_expr_eval(e, &env, &v, NULL) == KP_EVAL_VALUE)
            say_value(&s->got, v);
        kp_buf_addc(&s->got, '\n');
        rest = kp_str_trim((struct kp_str){rest.ptr + used, rest.len - used});
        if (rest.len && rest.ptr[0] == ',')
            rest = (struct kp_str){rest.ptr + 1, rest.len - 1};
    }
    kp_arena_deinit(&arena);
}

/* ---- kernels ---- */

struct about {
    const char *topic;
    const char *metric;
    double time_ns;
    const char *bindings[NAMES_MAX];
    size_t n_bindings;
};

static void say_macro(void *user, const char *name, const char *text)
{
    kp_buf_addf(user, "%s=%s\n", name, text);
}

static void say_launch(struct spec *s, const struct kp_bound *b, const uint32_t *config)
{
    struct kp_geometry g;
    kopt_error err;
    if (kp_bound_geometry(b, config, &g, &err) != KOPT_OK) {
        say_error(&s->got, &err);
        return;
    }
    kp_buf_addf(&s->got,
                "block %" PRId64 " %" PRId64 " %" PRId64 " grid %" PRId64 " %" PRId64
                " %" PRId64 " shared %" PRId64 "\n",
                g.block[0], g.block[1], g.block[2], g.grid[0], g.grid[1], g.grid[2],
                g.shared_bytes);
    for (size_t r = 0; r < b->kernel->n_references; r++) {
        if (kp_bound_reference_geometry(b, r, &g, &err) != KOPT_OK) {
            say_error(&s->got, &err);
            return;
        }
        kp_buf_addf(&s->got,
                    "%s block %" PRId64 " %" PRId64 " %" PRId64 " grid %" PRId64 " %" PRId64
                    " %" PRId64 "\n",
                    b->kernel->references[r].name, g.block[0], g.block[1], g.block[2],
                    g.grid[0], g.grid[1], g.grid[2]);
    }
}

static void say_expr(struct spec *s, const struct kp_bound *b, const struct kp_expr *e,
                     const char *before)
{
    struct kp_value v;
    if (!e)
        return;
    kp_buf_adds(&s->got, before);
    if (kp_bound_eval(b, e, NULL, &v, NULL) == KP_EVAL_VALUE)
        kp_value_to_text(v, &s->got);
    else
        kp_buf_adds(&s->got, "?");
}

static void say_buffer(struct spec *s, const struct kp_bound *b, size_t i)
{
    static const char *const dirs[] = {"in", "out", "inout"};
    static const char *const fills[] = {"normal", "uniform", "constant", "generator", "file"};
    const struct kp_arg *a = &b->kernel->args[i];
    if (a->kind == KP_ARG_LOCAL) {
        kp_buf_adds(&s->got, " local\n");
        return;
    }
    kp_buf_addf(&s->got, " %s", dirs[a->dir]);
    if (a->dir != KP_DIR_OUT) {
        kp_buf_addf(&s->got, " %s", fills[a->fill]);
        say_expr(s, b, a->fill_a, " ");
        say_expr(s, b, a->fill_b, " ");
        if (a->fill_file)
            kp_buf_addf(&s->got, " %s", a->fill_file);
    }
    kp_buf_addc(&s->got, '\n');
}

static void say_args(struct spec *s, const struct kp_bound *b, const uint32_t *config)
{
    kopt_error err;
    for (size_t i = 0; i < b->kernel->n_args; i++) {
        const struct kp_arg *a = &b->kernel->args[i];
        struct kp_value v;
        int64_t n = 0;
        kopt_status st = a->kind == KP_ARG_SCALAR ? kp_bound_arg_value(b, i, config, &v, &err)
                                                  : kp_bound_arg_count(b, i, config, &n, &err);
        if (st != KOPT_OK) {
            say_error(&s->got, &err);
            continue;
        }
        kp_buf_addf(&s->got, "%s %s", a->name, kp_elem_name(a->elem));
        if (a->lanes > 1)
            kp_buf_addf(&s->got, "x%u", a->lanes);
        if (a->kind == KP_ARG_SCALAR) {
            kp_buf_adds(&s->got, " = ");
            kp_value_to_text(v, &s->got);
            kp_buf_addc(&s->got, '\n');
        } else {
            kp_buf_addf(&s->got, "[%" PRId64 "]", n);
            say_buffer(s, b, i);
        }
    }
}

static void say_checks(struct spec *s, const struct kp_bound *b)
{
    static const char *const kinds[] = {"kernel", "c", "file", "fill"};
    for (size_t i = 0; i < b->kernel->n_checks; i++) {
        const struct kp_check_decl *c = &b->kernel->checks[i];
        kp_buf_addf(&s->got, "%s %s %s", b->kernel->args[c->arg].name, kinds[c->kind], c->name);
        if (c->path)
            kp_buf_addf(&s->got, " %s", c->path);
        say_expr(s, b, c->fill_a, " ");
        say_expr(s, b, c->rtol, " rtol ");
        say_expr(s, b, c->atol, " atol ");
        kp_buf_addc(&s->got, '\n');
    }
}

static void say_rules(struct spec *s, const struct kp_kernel *k)
{
    for (size_t i = 0; i < k->n_rules; i++)
        kp_buf_addf(&s->got, "%d: %s%s%s\n", k->rules[i].line, k->rules[i].text,
                    k->rules[i].message ? " : " : "",
                    k->rules[i].message ? k->rules[i].message : "");
}

static void say_metric(struct spec *s, const struct kp_bound *b, const struct about *q,
                       const uint32_t *config)
{
    for (size_t i = 0; i < b->kernel->n_metrics; i++) {
        double v = 0;
        if (strcmp(b->kernel->metrics[i].name, q->metric) != 0)
            continue;
        if (kp_bound_metric(b, i, config, q->time_ns, &v))
            kp_value_to_text(kp_float(v), &s->got);
        else
            kp_buf_adds(&s->got, "none");
        kp_buf_adds(&s->got, b->kernel->metrics[i].maximise ? " max\n" : " min\n");
    }
}

static void answer_bound(struct spec *s, const struct kp_bound *b, const struct about *q)
{
    uint32_t config[KP_PARAMS_MAX];
    bool any = kp_bound_default(b, config);
    if (strcmp(q->topic, "count") == 0)
        kp_buf_addf(&s->got, "%" PRIu64 " of %.0f\n", kp_space_count(b->space),
                    kp_space_cartesian(b->space));
    else if (strcmp(q->topic, "rules") == 0)
        say_rules(s, b->kernel);
    else if (!any)
        kp_buf_adds(&s->got, "empty\n");
    else if (strcmp(q->topic, "default") == 0) {
        kp_space_config_text(b->space, config, &s->got);
        kp_buf_addc(&s->got, '\n');
    } else if (strcmp(q->topic, "launch") == 0)
        say_launch(s, b, config);
    else if (strcmp(q->topic, "args") == 0)
        say_args(s, b, config);
    else if (strcmp(q->topic, "checks") == 0)
        say_checks(s, b);
    else if (strcmp(q->topic, "metric") == 0)
        say_metric(s, b, q, config);
    else if (strcmp(q->topic, "macros") == 0) {
        kopt_error err;
        if (kp_bound_macros(b, config, say_macro, &s->got, &err) != KOPT_OK)
            say_error(&s->got, &err);
    }
}

static void ask_kernel(struct spec *s, const struct about *q)
{
    static const struct kp_limits limits = {.max_threads = 1024,
                                            .max_block = {1024, 1024, 64},
                                            .shared_bytes = 49152,
                                            .registers = 65536,
                                            .warp = 32,
                                            .compute_units = 132,
                                            .l2_bytes = 52428800,
                                            .global_bytes = INT64_C(150000000000),
                                            .clock_khz = 1980000,
                                            .cc = 90};
    struct kp_kernel *k = NULL;
    struct kp_bound *b = NULL;
    kopt_error err;
    char hash[KP_SHA256_HEX + 1];
    struct kp_str text = {kp_buf_text(&s->source), s->source.len};
    if (kp_kernel_parse(s->path, text, &k, &err) != KOPT_OK) {
        say_error(&s->got, &err);
        return;
    }
    if (strcmp(q->topic, "load") == 0) {
        kp_buf_addf(&s->got, "ok %s %s\n", k->name,
                    k->lang == KP_LANG_CUDA ? "cuda" : "opencl");
    } else if (strcmp(q->topic, "same") == 0) {
        if (kp_kernel_hash(k, hash, &err) != KOPT_OK)
            say_error(&s->got, &err);
        else
            kp_buf_adds(&s->got, strcmp(hash, s->last_hash) == 0 ? "yes\n" : "no\n");
    } else if (kp_kernel_bind(k, q->bindings, q->n_bindings, &limits, &b, &err) != KOPT_OK) {
        say_error(&s->got, &err);
    } else {
        answer_bound(s, b, q);
    }
    if (kp_kernel_hash(k, hash, &err) == KOPT_OK)
        memcpy(s->last_hash, hash, sizeof(hash));
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void read_about(struct about *q, char *words)
{
    char *rest = NULL;
    char *w = strtok_r(words, " ", &rest);
    if (w && strcmp(q->topic, "metric") == 0) {
        q->metric = w;
        w = strtok_r(NULL, " ", &rest);
        q->time_ns = w ? strtod(w, NULL) : 0;
        w = strtok_r(NULL, " ", &rest);
    }
    for (; w && q->n_bindings < NAMES_MAX; w = strtok_r(NULL, " ", &rest))
        q->bindings[q->n_bindings++] = w;
}

/* ---- the file ---- */

static void ask(struct spec *s)
{
    char copy[LINE_MAX_BYTES];
    (void)snprintf(copy, sizeof(copy), "%s", s->question);
    char *space = strchr(copy, ' ');
    char *words = space ? space + 1 : copy + strlen(copy);
    if (space)
        *space = 0;
    kp_buf_clear(&s->got);
    bool truth = strcmp(copy, "truth") == 0;
    if (truth || strcmp(copy, "eval") == 0 || strcmp(copy, "list") == 0 ||
        strcmp(copy, "beside") == 0) {
        struct names *n = kp_calloc(1, sizeof(*n));
        if (!n || !read_names(n, words))
            kp_buf_adds(&s->got, "bad binding in the question\n");
        else if (strcmp(copy, "list") == 0)
            ask_list(s, n);
        else if (strcmp(copy, "beside") == 0)
            ask_beside(s, n);
        else
            ask_eval(s, n, truth);
        if (n) {
            kp_scope_deinit(&n->scope);
            kp_arena_deinit(&n->arena);
        }
        kp_free(n);
    } else {
        struct about q = {.topic = copy};
        read_about(&q, words);
        ask_kernel(s, &q);
    }
}

static void print_answer(const char *mark, const struct kp_buf *text)
{
    struct kp_str rest = {kp_buf_text(text), text->len};
    while (rest.len > 0) {
        struct kp_str line = kp_str_cut(rest, '\n', &rest);
        (void)printf("%s%s%.*s\n", mark, line.len ? " " : "", KP_STR_FMT(line));
    }
}

/* The question so far has all of its answer. */
static void finish_case(struct spec *s)
{
    if (!s->question[0])
        return;
    s->cases++;
    ask(s);
    if (s->bless) {
        print_answer("=", &s->got);
    } else if (strcmp(kp_buf_text(&s->got), kp_buf_text(&s->want)) != 0) {
        s->failures++;
        (void)printf("%s:%d: %s\n", s->file, s->question_line, s->question);
        print_answer("  want", &s->want);
        print_answer("  got ", &s->got);
    }
    s->question[0] = 0;
    kp_buf_clear(&s->want);
}

static void add_line(struct kp_buf *to, const char *line)
{
    /* "| text" and "|" alone */
    kp_buf_adds(to, line[1] == ' ' ? line + 2 : line + 1);
    kp_buf_addc(to, '\n');
}

static void read_line(struct spec *s, const char *line)
{
    char kind = line[0];
    if (kind != '=')
        finish_case(s);
    if (s->bless && kind != '=')
        (void)printf("%s\n", line);
    if (kind == '|') {
        if (!s->source_open)
            kp_buf_clear(&s->source);
        add_line(&s->source, line);
    } else if (kind == '?') {
        (void)snprintf(s->question, sizeof(s->question), "%s", line[1] ? line + 2 : "");
        s->question_line = s->line;
    } else if (kind == '=') {
        add_line(&s->want, line);
    } else if (kind == '!') {
        (void)snprintf(s->path, sizeof(s->path), "%.255s", line[1] ? line + 2 : "");
    } else if (kind != '#' && kind != 0) {
        s->failures++;
        (void)printf("%s:%d: a line of no kind: %s\n", s->file, s->line, line);
    }
    s->source_open = kind == '|';
    if (kind == 0)
        (void)snprintf(s->path, sizeof(s->path), "k.cl");
}

static int run_file(const char *file, bool bless, int *cases)
{
    struct spec s = {.file = file,
                     .bless = bless,
                     .path = "k.cl",
                     .source = KP_BUF_INIT(TEXT_MAX),
                     .got = KP_BUF_INIT(TEXT_MAX),
                     .want = KP_BUF_INIT(TEXT_MAX)};
    static char line[LINE_MAX_BYTES];
    FILE *f = fopen(file, "re");
    if (!f) {
        (void)printf("%s: cannot be opened\n", file);
        return 1;
    }
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        s.line++;
        read_line(&s, line);
    }
    finish_case(&s);
    (void)fclose(f);
    kp_buf_deinit(&s.source);
    kp_buf_deinit(&s.got);
    kp_buf_deinit(&s.want);
    *cases += s.cases;
    return s.failures;
}

int main(int argc, char **argv)
{
    int failures = 0;
    int cases = 0;
    if (argc == 3 && strcmp(argv[1], "--bless") == 0)
        return run_file(argv[2], true, &cases) ? 1 : 0;
    for (int i = 1; i < argc; i++)
        failures += run_file(argv[i], false, &cases);
    (void)printf("%d questions, %d wrong answers\n", cases, failures);
    return failures || cases == 0 ? 1 : 0;
}
