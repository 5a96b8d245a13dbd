/* SPDX-License-Identifier: MIT */
#include "device/cuda/compile_log.h"

#include <inttypes.h>
#include <stdlib.h>

/* ptxas takes no more static shared memory than this on any architecture. */
enum { STATIC_SHARED_MAX = 49152 };

/* NVRTC looks an entry up in a source of its own by this name. */
static const char lookup_file[] = "__nv_name_map";

enum kind {
    K_ERROR,
    K_LOOKUP_ERROR, /* the entry was not found */
    K_WARNING,      /* and notes, and whatever else is worth showing */
    K_PTXAS_INFO,
    K_NOISE
};

/* One message with the lines that belong to it. */
struct block {
    enum kind kind;
    struct kp_str file; /* empty when it has no position */
    int line;
    struct kp_str text; /* the message proper, of the first line */
    struct kp_str body; /* the lines behind the first */
    struct kp_str all;
};

static bool contains(struct kp_str s, const char *what)
{
    return s.len && memmem(s.ptr, s.len, what, strlen(what)) != NULL;
}

/* What stands behind the first `mark`; empty when there is none. */
static struct kp_str after(struct kp_str s, const char *mark)
{
    size_t n = strlen(mark);
    const char *p = s.len ? memmem(s.ptr, s.len, mark, n) : NULL;
    if (!p)
        return (struct kp_str){0};
    size_t at = (size_t)(p - s.ptr) + n;
    return (struct kp_str){s.ptr + at, s.len - at};
}

/* A number at the start, decimal or 0x; -1 when there is none. */
static int64_t number(struct kp_str s)
{
    char digits[32] = "";
    size_t n = s.len < sizeof(digits) - 1 ? s.len : sizeof(digits) - 1;
    memcpy(digits, s.len ? s.ptr : "", s.len ? n : 0);
    char *end;
    long long v = strtoll(digits, &end, digits[0] == '0' && digits[1] == 'x' ? 16 : 10);
    return end == digits ? -1 : (int64_t)v;
}

static struct kp_str cut_line(struct kp_str *rest)
{
    struct kp_str line = kp_str_cut(*rest, '\n', rest);
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* --- one message ----------------------------------------------------------------------- */

/* "error", "error #20-D", "catastrophic error", "Error", "warning #177-D", ... */
static bool severity(struct kp_str s, enum kind *out)
{
    static const struct {
        const char *word;
        enum kind kind;
    } words[] = {{"error", K_ERROR},          {"catastrophic error", K_ERROR},
                 {"internal error", K_ERROR}, {"fatal error", K_ERROR},
                 {"Error", K_ERROR},          {"warning", K_WARNING},
                 {"remark", K_WARNING},       {"note", K_WARNING}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (kp_str_starts(s, words[i].word)) {
            *out = words[i].kind;
            return true;
        }
    }
    return false;
}

/* "file(12): error: text". The file may hold anything, parentheses too. */
static bool parse_position(struct kp_str line, struct block *b)
{
    for (struct kp_str s = line; (s = after(s, "): ")).ptr;) {
        size_t close = (size_t)(s.ptr - line.ptr) - 3;
        size_t open = close;
        while (open > 0 && line.ptr[open - 1] >= '0' && line.ptr[open - 1] <= '9')
            open--;
        if (open == close || open == 0 || line.ptr[open - 1] != '(' || !severity(s, &b->kind))
            continue;
        b->file = (struct kp_str){line.ptr, open - 1};
        int64_t at = number((struct kp_str){line.ptr + open, close - open});
        b->line = at > 0 && at <= INT32_MAX ? (int)at : 0;
        b->text = after(s, ": ");
        if (kp_str_is(b->file, lookup_file))
            b->kind = b->kind == K_ERROR ? K_LOOKUP_ERROR : K_NOISE;
        return true;
    }
    return false;
}

/* "ptxas error   : text", "ptxas application ptx input, line 26; error   : text",
 * "ptxas info    : text", "ptxas         .     continued" */
static bool parse_ptxas(struct kp_str line, struct block *b)
{
    if (!kp_str_starts(line, "ptxas"))
        return false;
    struct kp_str rest;
    struct kp_str head = kp_str_trim(kp_str_cut(line, ':', &rest));
    b->text = kp_str_trim(head.len < line.len ? rest : after(line, "."));
    b->kind = K_PTXAS_INFO;
    if (head.len >= 5 && (memcmp(head.ptr + head.len - 5, "error", 5) == 0 ||
                          memcmp(head.ptr + head.len - 5, "fatal", 5) == 0))
        b->kind = K_ERROR;
    else if (kp_str_starts(head, "ptxas warning"))
        b->kind = K_WARNING;
    return true;
}

static bool parse_head(struct kp_str line, struct block *b)
{
    static const char *const plain_errors[] = {
        "nvrtc: error: ", "Command-line error: ", "nvrtc: fatal error: ", "error: "};
    if (parse_position(line, b) || parse_ptxas(line, b))
        return true;
    for (size_t i = 0; i < sizeof(plain_errors) / sizeof(plain_errors[0]); i++) {
        if (kp_str_starts(line, plain_errors[i])) {
            b->kind = K_ERROR;
            b->text = after(line, plain_errors[i]);
            return true;
        }
    }
    if (contains(line, "detected in the compilation of") ||
        kp_str_is(line, "Compilation terminated.") ||
        kp_str_starts(line, "Remark: The warnings can be suppressed")) {
        b->kind = K_NOISE;
        return true;
    }
    return false;
}

/* The next message; false at the end. A message ends where the next begins or at an empty
 * line. */
static bool next_block(struct kp_str *rest, struct block *b)
{
    struct kp_str line = {0};
    *b = (struct block){.kind = K_WARNING};
    while (rest->len && kp_str_trim(line).len == 0)
        line = cut_line(rest);
    if (kp_str_trim(line).len == 0)
        return false;
    if (!parse_head(line, b))
        b->text = line;
    const char *end = line.ptr + line.len;
    const char *body = rest->ptr;
    bool single = b->kind == K_NOISE && !b->file.len;
    while (rest->len && !single) {
        struct kp_str later = *rest;
        struct block other = {0};
        struct kp_str more = cut_line(&later);
        if (kp_str_trim(more).len == 0 || parse_head(more, &other))
            break;
        end = more.ptr + more.len;
        *rest = later;
    }
    b->all = (struct kp_str){line.ptr, (size_t)(end - line.ptr)};
    if (b->all.len > line.len && body < end)
        b->body = (struct kp_str){body, (size_t)(end - body)};
    return true;
}

/* The caret line and the source line over it; the compiler indents both by two blanks. */
static void find_caret(struct kp_str body, struct kp_str *source, int *column)
{
    struct kp_str above = {0};
    *source = (struct kp_str){0};
    *column = 0;
    while (body.len) {
        struct kp_str line = cut_line(&body);
        if (!kp_str_is(kp_str_trim(line), "^") || above.len < 2) {
            above = line;
            continue;
        }
        *source = (struct kp_str){above.ptr + 2, above.len - 2};
        size_t at = line.len - 1; /* the caret ends its line and counts bytes */
        while (line.ptr[at] != '^')
            at--;
        *column = 1;
        for (size_t i = 2; i < at && i < above.len; i++)
            *column += ((unsigned char)above.ptr[i] & 0xC0) != 0x80;
        return;
    }
}

static void set_position(const struct block *b, kopt_error *err)
{
    char file[sizeof(((kopt_error *)0)->file)];
    struct kp_str source;
    int column;
    if (!b->file.len)
        return;
    size_t n = b->file.len < sizeof(file) - 1 ? b->file.len : sizeof(file) - 1;
    memcpy(file, b->file.ptr, n);
    file[n] = 0;
    find_caret(b->body, &source, &column);
    int source_len = source.len > INT32_MAX ? 0 : (int)source.len;
    kp_err_at(err, file, b->line, column, source.ptr, source_len);
}

/* The number in front of " <what>" in "Used 34 registers, used 1 barriers, 1200 bytes smem". */
static int64_t amount(struct kp_str list, const char *what)
{
    struct kp_str rest = list;
    while (rest.len) {
        struct kp_str item = kp_str_trim(kp_str_cut(rest, ',', &rest));
        if (!contains(item, what))
            continue;
        if (kp_str_starts(item, "Used "))
            item = after(item, "Used ");
        return number(item);
    }
    return -1;
}

/* --- errors ---------------------------------------------------------------------------- */

/* "Entry function 'k' uses too much shared data (0x61a80 bytes, 0xc000 max)" and
 * "Formal parameter space overflowed (40008 bytes required, max 32764 bytes allowed) ..." */
static bool over_limit(struct kp_str text, kopt_error *err)
{
    struct kp_str what = after(text, "too much ");
    struct kp_str used = after(what, " (");
    struct kp_str most = after(used, "bytes, ");
    if (!what.len && contains(text, "Formal parameter space overflowed")) {
        what = KP_STR("parameter space (");
        used = after(text, "(");
        most = after(text, "max ");
    }
    int64_t n_used = number(used);
    int64_t n_most = number(most);
    if (!what.len || n_used < 0 || n_most < 0)
        return false;
    what = kp_str_trim(kp_str_cut(what, '(', &used));
    bool shared = kp_str_is(what, "shared data");
    (void)kp_err(err, KOPT_ERANGE, "%s%.*s %" PRId64 " of %" PRId64 " bytes",
                 shared ? "static shared memory" : "", shared ? 0 : (int)what.len, what.ptr,
                 n_used, n_most);
    if (shared)
        kp_err_hint(err, "an array of extern __shared__ (dynamic shared memory) may be larger");
    return true;
}

static void hint_for(struct kp_str text, kopt_error *err)
{
    if (contains(text, "open source file \"cuda_") ||
        contains(text, "open source file \"mma.h"))
        kp_err_hint(err,
                    "CUDA's headers are not installed: install the toolkit or set CUDA_HOME");
    else if (contains(text, "open source file"))
        kp_err_hint(err,
                    "NVRTC compiles device code alone: put what only host code needs between "
                    "#ifndef __CUDACC_RTC__ and #endif, or give -I");
    else if (contains(text, "is considered a host"))
        kp_err_hint(err, "put host code between #ifndef __CUDACC_RTC__ and #endif, or use the "
                         "compiler option -default-device");
    else if (contains(text, "unrecognized option"))
        kp_err_hint(err, "the options are NVRTC's, which has not all of nvcc's");
}

static kopt_status entry_error(struct kp_str text, const struct kp_compile_job *job,
                               kopt_error *err)
{
    const char *path = job->path ? job->path : "the source";
    if (contains(text, "function template")) {
        (void)kp_err(err, KOPT_EINPUT, "kernel %s is a template", job->entry);
        kp_err_hint(err, "name one of its instances, such as %s<float>", job->entry);
    } else if (contains(text, "overloaded")) {
        (void)kp_err(err, KOPT_EINPUT, "there are several kernels %s in %s", job->entry, path);
        kp_err_hint(err, "give each a name of its own");
    } else if (contains(text, "non-__global__") || contains(text, "constant value") ||
               contains(text, "must form address")) {
        (void)kp_err(err, KOPT_EINPUT, "%s in %s is no __global__ function", job->entry, path);
    } else {
        (void)kp_err(err, KOPT_EINPUT, "there is no kernel %s in %s", job->entry, path);
    }
    if (err && job->path)
        kp_err_at(err, job->path, 0, 0, NULL, 0);
    return KOPT_EINPUT;
}

/* With -v, ptxas 13.0 leaves out the message about too much static shared memory, but not the
 * size. */
static kopt_status too_much_shared(struct kp_str log, kopt_error *err)
{
    struct block b;
    while (next_block(&log, &b)) {
        int64_t n = b.kind == K_PTXAS_INFO ? amount(b.text, " bytes smem") : -1;
        if (n <= STATIC_SHARED_MAX)
            continue;
        (void)kp_err(err, KOPT_ERANGE, "static shared memory %" PRId64 " of %d bytes", n,
                     STATIC_SHARED_MAX);
        kp_err_hint(err, "an array of extern __shared__ (dynamic shared memory) may be larger");
        return KOPT_ERANGE;
    }
    return KOPT_ENOTFOUND;
}

kopt_status kp_cuda_log_error(struct kp_str log, const struct kp_compile_job *job,
                              kopt_error *err)
{
    struct kp_str rest = log;
    struct block b;
    struct block lookup = {0};
    while (next_block(&rest, &b)) {
        if (b.kind == K_LOOKUP_ERROR && !lookup.text.len)
            lookup = b;
        if (b.kind != K_ERROR)
            continue;
        if (over_limit(b.text, err)) {
            set_position(&b, err);
            return KOPT_ERANGE;
        }
        (void)kp_err(err, KOPT_EINPUT, "%.*s",
                     (int)(b.text.len < INT32_MAX ? b.text.len : INT32_MAX), b.text.ptr);
        set_position(&b, err);
        hint_for(b.text, err);
        return KOPT_EINPUT;
    }
    if (lookup.text.len)
        return entry_error(lookup.text, job, err);
    return too_much_shared(log, err);
}

/* Is `name` the name of one of the job's macros ("BM=64")? */
static bool is_macro(struct kp_str name, const struct kp_compile_job *job)
{
    for (size_t i = 0; i < job->n_macros && name.len; i++) {
        const char *m = job->macros[i];
        if (strncmp(m, name.ptr, name.len) == 0 &&
            (m[name.len] == 0 || m[name.len] == '=' || m[name.len] == '('))
            return true;
    }
    return false;
}

kopt_status kp_cuda_log_redefined(struct kp_str log, const struct kp_compile_job *job,
                                  kopt_error *err)
{
    struct block b;
    while (next_block(&log, &b)) {
        struct kp_str rest = after(b.text, "incompatible redefinition of macro \"");
        struct kp_str name = kp_str_cut(rest, '"', &rest);
        if (!is_macro(name, job))
            continue;
        (void)kp_err(err, KOPT_EINPUT,
                     "macro %.*s is defined again here, which undoes the value being tuned",
                     KP_STR_FMT(name));
        set_position(&b, err);
        kp_err_hint(err, "put #ifndef %.*s and #endif around that line", KP_STR_FMT(name));
        return KOPT_EINPUT;
    }
    return KOPT_OK;
}

/* --- what is shown and what is kept ---------------------------------------------------- */

/* "#pragma kopt ..", with blanks wherever they may stand. */
static bool is_kopts_pragma(struct kp_str line)
{
    static const char *const words[] = {"#", "pragma", "kopt"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);
        line = kp_str_trim(line);
        if (!kp_str_starts(line, words[i]))
            return false;
        line = (struct kp_str){line.ptr + n, line.len - n};
    }
    return line.len == 0 || line.ptr[0] == ' ' || line.ptr[0] == '\t' || line.ptr[0] == '\n';
}

void kp_cuda_log_clean(struct kp_str log, bool verbose, struct kp_buf *out)
{
    struct block b;
    while (next_block(&log, &b)) {
        bool kopts_pragma = contains(b.text, "unrecognized #pragma") && is_kopts_pragma(b.body);
        if (b.kind == K_NOISE || b.kind == K_LOOKUP_ERROR || kopts_pragma ||
            (b.kind == K_PTXAS_INFO && !verbose))
            continue;
        kp_buf_add(out, b.all.ptr, b.all.len);
        kp_buf_addc(out, '\n');
    }
}

void kp_cuda_log_resources(struct kp_str log, const char *lowered_name,
                           struct kp_cuda_resources *out)
{
    struct block b;
    bool ours = false;
    *out = (struct kp_cuda_resources){-1, -1, -1};
    while (next_block(&log, &b)) {
        if (b.kind != K_PTXAS_INFO)
            continue;
        struct kp_str name = after(b.text, "Function properties for ");
        if (name.len)
            ours = kp_str_is(kp_str_trim(name), lowered_name);
        if (!ours)
            continue;
        /* the line behind that is a message of its own, or belongs to it (before CUDA 13) */
        struct kp_str frame = contains(b.body, " bytes stack frame") ? b.body : b.text;
        if (contains(frame, " bytes stack frame"))
            out->stack_bytes = amount(frame, " bytes stack frame");
        if (contains(b.text, " registers")) {
            int64_t shared = amount(b.text, " bytes smem");
            int64_t stack = amount(b.text, " bytes cumulative stack size");
            out->registers = amount(b.text, " registers");
            out->shared_bytes = shared < 0 ? 0 : shared;
            out->stack_bytes = stack > out->stack_bytes ? stack : out->stack_bytes;
        }
    }
}
