/* SPDX-License-Identifier: MIT */
/* References written in C: a generated wrapper includes the user's file and calls its function
 * with each argument as the kernel declares it. */
#include "measure/data.h"

#include "base/alloc.h"
#include "measure/message.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;
enum { COMPILE_TIMEOUT_S = 60, CC_WORDS_MAX = 8 };

static const char *c_type(enum kp_elem e)
{
    static const char *const names[] = {"int8_t",   "uint8_t",  "int16_t", "uint16_t",
                                        "int32_t",  "uint32_t", "int64_t", "uint64_t",
                                        "uint16_t", "uint16_t", "float",   "double"};
    return names[e];
}

/* A path as a C string literal. */
static void quote(struct kp_buf *out, const char *s)
{
    kp_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            kp_buf_addc(out, '\\');
        kp_buf_addc(out, *s);
    }
    kp_buf_addc(out, '"');
}

static char *user_file(const struct kp_host_reference *h)
{
    const struct kp_kernel *k = h->bound->kernel;
    char *dir = kp_path_dir(k->path);
    char *path = dir ? kp_path_join(dir, k->checks[h->check].path) : NULL;
    char *full = path ? realpath(path, NULL) : NULL;
    char *copy = kp_strdup(full ? full : path ? path : "");
    free(full); /* realpath's own malloc */
    kp_free(path);
    kp_free(dir);
    return copy;
}

/* Put "check of y: " before what went wrong, and the check's place in the kernel file. */
static kopt_status at_check(const struct kp_kernel *k, size_t check, kopt_error *err)
{
    const struct kp_check_decl *c = &k->checks[check];
    kp_err_wrap(err, "check of %s", k->args[c->arg].name);
    kp_check_place(k, check, err);
    return err ? err->code : KOPT_EINPUT;
}

static int column_of(const char *line, size_t bytes, const char *part)
{
    int column = 1;
    const char *at = part && part[0] ? memmem(line, bytes, part, strlen(part)) : NULL;
    for (const char *p = line; at && p < at; p++)
        column += ((unsigned char)*p & 0xC0U) != 0x80; /* the rest of a character */
    return at ? column : 0;
}

void kp_line_place(const struct kp_kernel *k, int line, const char *part, kopt_error *err)
{
    bool same = k->source_path && strcmp(k->path, k->source_path) == 0;
    const char *text = same ? k->source.ptr : NULL;
    const char *end = text ? text + k->source.len : NULL;
    for (int i = 1; i < line && text; i++) {
        text = memchr(text, '\n', (size_t)(end - text));
        text = text ? text + 1 : NULL;
    }
    const char *stop = text ? memchr(text, '\n', (size_t)(end - text)) : NULL;
    size_t n = text ? (size_t)((stop ? stop : end) - text) : 0;
    kp_err_at(err, k->path, line, n ? column_of(text, n, part) : 0, text, (int)n);
}

void kp_check_place(const struct kp_kernel *k, size_t check, kopt_error *err)
{
    kp_line_place(k, k->checks[check].line, NULL, err);
}

static kopt_status only_look(void *user, const void *bytes, size_t n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return KOPT_OK;
}

kopt_status kp_host_reference_exists(const struct kp_bound *b, size_t check, kopt_error *err)
{
    const struct kp_kernel *k = b->kernel;
    struct kp_host_reference h = {.bound = b, .check = check};
    struct kp_file_id id;
    kopt_error why;
    char *path = user_file(&h);
    kopt_status st = path ? KOPT_OK : kp_err_nomem(err);
    if (st != KOPT_OK || kp_file_identify(path, &id) ||
        kp_file_walk(path, only_look, NULL, &why) == KOPT_OK)
        goto done;
    st = kp_err(err, KOPT_EINPUT, "its reference %s", why.message);
    st = err ? at_check(k, check, err) : st;
    kp_err_hint(err, "a reference's path counts from the kernel file's folder");
done:
    kp_free(path);
    return st;
}

/* "void f(float a, const float *x, float *y, int32_t N)": what the function has to be. */
static void prototype(const struct kp_host_reference *h, struct kp_buf *b)
{
    const struct kp_kernel *k = h->bound->kernel;
    size_t place = 0;
    kp_buf_addf(b, "void %s(", k->checks[h->check].name);
    for (size_t i = 0; i < k->n_args; i++) {
        const struct kp_arg *a = &k->args[i];
        if (a->kind == KP_ARG_LOCAL)
            continue;
        bool buffer = a->kind == KP_ARG_BUFFER;
        kp_buf_addf(b, "%s%s%s %s%s", place++ ? ", " : "",
                    buffer && a->dir == KP_DIR_IN ? "const " : "", c_type(a->elem),
                    buffer ? "*" : "", a->name);
    }
    kp_buf_addc(b, ')');
}

/* The lines of the wrapper that can be wrong, and the name that they go by. */
enum { LINE_FUNCTION = 3, LINE_CALL = 8 };
static const char call_name[] = "kopt-call:";

static kopt_status write_wrapper(const struct kp_host_reference *h, const char *user,
                                 const char *path, kopt_error *err)
{
    const struct kp_kernel *k = h->bound->kernel;
    const char *name = k->checks[h->check].name;
    struct kp_buf b = KP_BUF_INIT(1 << 20);
    size_t place = 0;
    kp_buf_adds(&b, "#include <stdint.h>\n#include ");
    quote(&b, user);
    kp_buf_addf(&b,
                "\n#line 1 \"kopt-call\"\n"
                "void kopt_reference_entry(void *const *a);\n"
                "#ifndef %s\n"
                "static const void *const kopt_reference_is = (const void *)&%s;\n"
                "#endif\n"
                "#pragma GCC diagnostic error \"-Wint-conversion\"\n"
                "void kopt_reference_entry(void *const *a)\n{\n    %s(",
                name, name, name);
    for (size_t i = 0; i < k->n_args; i++) {
        const struct kp_arg *a = &k->args[i];
        if (a->kind == KP_ARG_LOCAL)
            continue;
        kp_buf_adds(&b, place ? ", " : "");
        if (a->kind == KP_ARG_SCALAR)
            kp_buf_addf(&b, "*(const %s *)a[%zu]", c_type(a->elem), place);
        else
            kp_buf_addf(&b, "a[%zu]", place);
        place++;
    }
    kp_buf_adds(&b, ");\n}\n");
    kopt_status st = kp_buf_status(&b, err);
    if (st == KOPT_OK)
        st = kp_file_put(path, b.ptr, b.len, err);
    kp_buf_deinit(&b);
    return st;
}

static void tick(const struct kp_host_reference *h)
{
    if (h->tick)
        h->tick(h->user);
}

/* Wait for a process that speaks no frames. True: it ended with status 0. */
static bool wait_quiet(const struct kp_host_reference *h, struct kp_proc *p, int64_t timeout_ns,
                       char *how, size_t how_bytes)
{
    int64_t deadline = kp_clock_ns() + timeout_ns;
    while (!kp_proc_ended(p, how, how_bytes)) {
        if (kp_clock_ns() > deadline || kp_readable(h->wake_fd)) {
            kp_proc_kill(p);
            (void)snprintf(how, how_bytes, "it did not end in time");
            return false;
        }
        tick(h);
        kp_clock_sleep_ns(2000000);
    }
    return strcmp(how, "exit status 0") == 0;
}

/* The first line that tells an error, else the first line. */
static void first_error_line(const char *path, char *out, size_t bytes)
{
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    (void)kp_file_read(path, &text, NULL);
    const char *t = kp_buf_text(&text);
    const char *at = strstr(t, "error: ");
    while (at && at > t && at[-1] != '\n')
        at--;
    at = at ? at : t;
    (void)snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    kp_buf_deinit(&text);
}

/* The words of $CC ("ccache gcc"), "cc" when it is not set. `text` is where they lie. */
static size_t compiler_words(char *text, size_t bytes, const char **words)
{
    const char *cc = getenv("CC"); /* NOLINT(concurrency-mt-unsafe): never set by us */
    size_t n = 0;
    (void)snprintf(text, bytes, "%s", cc ? cc : "");
    for (char *p = text; *p && n < CC_WORDS_MAX;) {
        p += strspn(p, " \t");
        if (*p)
            words[n++] = p;
        p += strcspn(p, " \t");
        if (*p)
            *p++ = 0;
    }
    if (n == 0)
        words[n++] = "cc";
    return n;
}

/* What the compiler said: of the user's file as it is; of the wrapper, which is ours and soon
 * gone, in words of the kernel file. */
static kopt_status compile_error(const struct kp_host_reference *h, const char *how,
                                 const char *line, kopt_error *err)
{
    const struct kp_check_decl *c = &h->bound->kernel->checks[h->check];
    struct kp_buf b = KP_BUF_INIT(1 << 16);
    bool ours = strncmp(line, call_name, sizeof(call_name) - 1) == 0;
    long at = ours ? strtol(line + sizeof(call_name) - 1, NULL, 10) : 0;
    const char *said = ours ? strstr(line, "error: ") : NULL;
    said = said ? said + strlen("error: ") : line;
    prototype(h, &b);
    if (at == LINE_FUNCTION) {
        (void)kp_err(err, KOPT_EINPUT, "%s has no function '%s'; it is called as %s", c->path,
                     c->name, kp_buf_text(&b));
        kp_err_hint(err, "another name stands behind the file's: %s:NAME", c->path);
    } else if (at == LINE_CALL) {
        (void)kp_err(err, KOPT_EINPUT, "%s() of %s does not take the kernel's arguments: %s",
                     c->name, c->path, said);
        kp_err_hint(err, "it is called as %s", kp_buf_text(&b));
    } else {
        (void)kp_err(err, KOPT_EINPUT, "its reference %s does not compile (%s): %s", c->path,
                     how, said);
    }
    kp_buf_deinit(&b);
    return KOPT_EINPUT;
}

static kopt_status run_cc(const struct kp_host_reference *h, const char *source,
                          const char *library, const char *output, bool openmp, kopt_error *err)
{
    char how[64];
    char line[512];
    char cc[512];
    const char *argv[CC_WORDS_MAX + 16];
    size_t n = 0;
    argv[n++] = "env";      /* finds the compiler in PATH */
    argv[n++] = "LC_ALL=C"; /* its messages are read */
    n += compiler_words(cc, sizeof(cc), argv + n);
    const char *const fixed[] = {
        "-std=gnu17", "-O3",   "-march=native", "-fPIC", "-shared",
        "-o",         library, source,          "-lm",   openmp ? "-fopenmp" : NULL,
        NULL};
    memcpy(argv + n, fixed, sizeof(fixed));
    struct kp_proc_options o = {.path = "/usr/bin/env", .argv = argv, .output_path = output};
    struct kp_proc p;
    (void)unlink(output);
    kopt_status st = kp_proc_start(&o, &p, err);
    if (st != KOPT_OK)
        return st;
    if (wait_quiet(h, &p, COMPILE_TIMEOUT_S * second_ns, how, sizeof(how)))
        return KOPT_OK;
    if (kp_readable(h->wake_fd))
        return kp_err(err, KOPT_EINTR, "interrupted");
    if (strcmp(how, "exit status 127") == 0) {
        st = kp_err(err, KOPT_EENV, "no C compiler (%s) to build the reference with", argv[2]);
        kp_err_hint(err, "install gcc, set CC, or check against a kernel instead");
        return st;
    }
    first_error_line(output, line, sizeof(line));
    return compile_error(h, how, line, err);
}

/* {"bytes": n, "file": path, "save": path} for each argument that the function takes. */
static struct kp_json *arguments(const struct kp_host_reference *h, const char *out_path,
                                 kopt_error *err)
{
    const struct kp_kernel *k = h->bound->kernel;
    struct kp_json *args = kp_json_new_array();
    bool ok = args != NULL;
    for (size_t i = 0; i < k->n_args && ok; i++) {
        size_t bytes = 0;
        char path[4096];
        const char *file = h->files[i];
        if (k->args[i].kind == KP_ARG_LOCAL)
            continue;
        if (k->args[i].kind == KP_ARG_SCALAR) {
            unsigned char value[16];
            (void)snprintf(path, sizeof(path), "%s/scalar%zu.bin", h->scratch, i);
            file = path;
            ok = kp_data_scalar(h->bound, i, NULL, value, &bytes, err) == KOPT_OK &&
                 kp_file_put(path, value, bytes, err) == KOPT_OK;
        } else {
            ok = kp_data_bytes(h->bound, i, NULL, &bytes, err) == KOPT_OK;
        }
        struct kp_json *j = kp_json_new_object();
        ok = ok && kp_json_set_i64(j, "bytes", (int64_t)bytes) &&
             kp_json_set_str(j, "file", file ? file : "") &&
             kp_json_set_str(j, "save", i == k->checks[h->check].arg ? out_path : "");
        ok = kp_json_push(args, j) && ok;
    }
    if (ok)
        return args;
    kp_json_free(args);
    return NULL;
}

static kopt_status read_answer(const struct kp_host_reference *h, const struct kp_buf *frame,
                               kopt_error *err)
{
    struct kp_message m;
    kopt_status st = kp_message_parse(frame, &m, err);
    if (st == KOPT_OK && strcmp(kp_message_what(&m, "is"), "done") != 0) {
        kopt_error e;
        kp_message_get_error(&m, &e);
        const char *said = strstr(e.message, ".so: "); /* the loader's, behind our file */
        st = e.code == KOPT_EENV && said
                 ? kp_err(err, KOPT_EINPUT, "its reference %s cannot be loaded: %s",
                          h->bound->kernel->checks[h->check].path, said + strlen(".so: "))
                 : kp_err(err, e.code, "%s", e.message);
    }
    kp_message_deinit(&m);
    return st;
}

/* It ended without an answer, or has none in time. */
static kopt_status no_answer(const struct kp_host_reference *h, struct kp_proc *p, bool ended,
                             const char *log, kopt_error *err)
{
    const struct kp_check_decl *c = &h->bound->kernel->checks[h->check];
    char how[64] = "";
    struct kp_buf text = KP_BUF_INIT(1 << 12);
    if (!ended) {
        (void)kp_err(err, KOPT_ETIMEOUT, "%s() of %s did not return within %.3g s", c->name,
                     c->path, (double)h->timeout_ns / (double)second_ns);
        kp_err_hint(err, "take a smaller problem, or check against a kernel or a file");
        return KOPT_ETIMEOUT;
    }
    for (int i = 0; i < 200 && !kp_proc_ended(p, how, sizeof(how)); i++)
        kp_clock_sleep_ns(1000000);
    (void)kp_err(err, KOPT_ECRASH, "%s() of %s crashed or ended its process: %s", c->name,
                 c->path, how);
    if (kp_file_read(log, &text, NULL) == KOPT_OK && text.len > 0) { /* an assertion's text */
        const char *t = kp_buf_text(&text);
        kp_err_hint(err, "it wrote: %.*s", (int)strcspn(t, "\n"), t);
    }
    kp_buf_deinit(&text);
    return KOPT_ECRASH;
}

static kopt_status call_library(const struct kp_host_reference *h, const char *library,
                                const char *out_path, kopt_error *err)
{
    struct kp_proc p = {.fd = -1};
    char *worker = NULL;
    struct kp_buf frame = KP_BUF_INIT(1 << 20);
    char log[4096];
    (void)snprintf(log, sizeof(log), "%s/reference.out", h->scratch);
    const char *argv[] = {"kopt-worker", "reference", NULL};
    struct kp_json *j = kp_message_new("do", "call", 1);
    if (err)
        *err = (kopt_error){0};
    struct kp_json *args = arguments(h, out_path, err);
    bool ok = kp_json_set(j, "args", args) && kp_json_set_str(j, "library", library);
    kopt_status st = ok ? KOPT_OK : err && err->code ? err->code : kp_err_nomem(err);
    if (st == KOPT_OK)
        st = kp_proc_find("kopt-worker", &worker, err);
    struct kp_proc_options o = {.path = worker, .argv = argv, .output_path = log};
    if (st == KOPT_OK)
        st = kp_proc_start(&o, &p, err);
    if (st == KOPT_OK) {
        st = kp_message_send(p.fd, j, NULL, 0, err);
        j = NULL;
    }
    int64_t deadline = kp_clock_ns() + h->timeout_ns;
    int got = 0;
    struct kp_proc *procs[] = {&p};
    while (st == KOPT_OK && (got = kp_proc_frame(&p, &frame)) == 0 &&
           kp_clock_ns() < deadline && !kp_readable(h->wake_fd)) {
        kp_proc_wait(procs, 1, h->wake_fd, 200);
        tick(h);
    }
    if (st == KOPT_OK && got == 0 && kp_readable(h->wake_fd))
        st = kp_err(err, KOPT_EINTR, "interrupted");
    else if (st == KOPT_OK && got == KP_FRAME_NO_MEMORY)
        st = kp_err_nomem(err);
    else if (st == KOPT_OK && got <= 0)
        st = no_answer(h, &p, got < 0, log, err);
    else if (st == KOPT_OK)
        st = read_answer(h, &frame, err);
    kp_json_free(j);
    kp_proc_kill(&p);
    kp_free(worker);
    kp_buf_deinit(&frame);
    return st;
}

kopt_status kp_host_reference_run(const struct kp_host_reference *h, const char *out_path,
                                  kopt_error *err)
{
    char source[4096];
    char library[4096];
    char output[4096];
    (void)snprintf(source, sizeof(source), "%s/reference%zu.c", h->scratch, h->check);
    (void)snprintf(library, sizeof(library), "%s/reference%zu.so", h->scratch, h->check);
    (void)snprintf(output, sizeof(output), "%s/reference%zu.log", h->scratch, h->check);
    char *user = user_file(h);
    kopt_status st = user ? write_wrapper(h, user, source, err) : kp_err_nomem(err);
    if (st == KOPT_OK)
        st = run_cc(h, source, library, output, true, err);
    if (st == KOPT_EINPUT) /* a compiler without OpenMP, perhaps */
        st = run_cc(h, source, library, output, false, err);
    if (st == KOPT_OK)
        st = call_library(h, library, out_path, err);
    if (err &&
        (st == KOPT_EINPUT || st == KOPT_ECRASH || st == KOPT_ETIMEOUT || st == KOPT_EENV) &&
        !err->file[0])
        st = at_check(h->bound->kernel, h->check, err);
    kp_free(user);
    return st;
}
