/* SPDX-License-Identifier: MIT */
/* The fake driver's compiler and launches. Part of the shared object, see driver.c. */
#include "device/fake/driver.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic_text[] = "KOPTFAKE2\n";
enum { TRACE_LINE = 4096 };
static const double lucky_share = 0.7; /* of the true time */

/* --- compiler ------------------------------------------------------------------------------
 */

struct compile {
    struct fk_script *script;
    const struct fk_sink *image;
    const struct fk_sink *log;
    int status;
};

static void put(const struct fk_sink *s, const char *text, size_t n, int *status)
{
    if (*status == FK_OK && n && !s->put(s->user, text, n))
        *status = FK_NO_MEMORY;
}

static void complain(struct compile *c, const char *file, int line, const char *what)
{
    char text[3 * FK_TEXT];
    int n = snprintf(text, sizeof(text), "%s:%d:1: error: %s\n", file, line, what);
    int status = FK_OK;
    put(c->log, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, &status);
    c->status = FK_BAD_SOURCE;
}

/* The name in `#include "name"`, false when the line is none. */
static bool is_include(const char *line, size_t n, char name[FK_TEXT])
{
    static const char include_word[] = "include";
    const char *p = line;
    const char *end = line + n;
    while (p < end && isspace((unsigned char)*p))
        p++;
    if (p >= end || *p++ != '#')
        return false;
    while (p < end && isspace((unsigned char)*p))
        p++;
    if ((size_t)(end - p) < sizeof(include_word) - 1 ||
        memcmp(p, include_word, sizeof(include_word) - 1) != 0)
        return false;
    p = memchr(p, '"', (size_t)(end - p));
    const char *q = p ? memchr(p + 1, '"', (size_t)(end - p - 1)) : NULL;
    if (!q || (size_t)(q - p) > FK_TEXT)
        return false;
    memcpy(name, p + 1, (size_t)(q - p - 1));
    name[q - p - 1] = 0;
    return true;
}

static char *read_beside(const char *path, const char *name, char found[FK_TEXT], size_t *bytes)
{
    const char *slash = strrchr(path, '/');
    if (slash && name[0] != '/')
        (void)snprintf(found, FK_TEXT, "%.*s/%s", (int)(slash - path), path, name);
    else
        (void)snprintf(found, FK_TEXT, "%s", name);
    FILE *f = fopen(found, "re");
    if (!f)
        return NULL;
    size_t room = 1 << 20;
    char *text = malloc(room);
    *bytes = text ? fread(text, 1, room, f) : 0;
    (void)fclose(f);
    return text;
}

/* NOLINTNEXTLINE(misc-no-recursion): includes, at most FK_MAX_DEPTH deep */
static void scan(struct compile *c, const char *text, size_t bytes, const char *path, int depth)
{
    int line = 0;
    while (bytes && (c->status == FK_OK || c->status == FK_BAD_SOURCE)) {
        const char *eol = memchr(text, '\n', bytes);
        size_t n = eol ? (size_t)(eol - text) + 1 : bytes;
        char name[FK_TEXT];
        char why[FK_TEXT];
        line++;
        if (is_include(text, n, name)) {
            char found[FK_TEXT];
            size_t inner_bytes = 0;
            char *inner =
                depth < FK_MAX_DEPTH ? read_beside(path, name, found, &inner_bytes) : NULL;
            if (inner) {
                scan(c, inner, inner_bytes, found, depth + 1);
            } else {
                (void)snprintf(why, sizeof(why), "'%.200s' file not found", name);
                complain(c, path, line, why);
            }
            free(inner);
        } else {
            struct fk_place at = {path, line};
            if (!fk_script_line(c->script, text, n, at, why))
                complain(c, path, line, why);
            put(c->image, text, n, &c->status);
        }
        text += n;
        bytes -= n;
    }
}

static void compile_actions(struct compile *c, const struct fk_source *source)
{
    struct fk_effect effect;
    fk_script_effect(c->script, source->macros, source->n_macros, source->entry, &effect);
    if (effect.rule[FK_COMPILE_SLOW])
        fk_sleep_ns(effect.rule[FK_COMPILE_SLOW]->number * 1e6);
    if (effect.rule[FK_COMPILE_HANG]) {
        for (;;)
            (void)pause();
    }
    if (effect.rule[FK_COMPILE_ABORT]) {
        (void)signal(SIGABRT, SIG_DFL);
        abort();
    }
    if (effect.rule[FK_COMPILE_FULL])
        c->status = FK_NO_MEMORY;
    const struct fk_rule *error = effect.rule[FK_COMPILE_ERROR];
    if (error)
        complain(c, error->file, error->line, error->text);
}

int fk_compile(const struct fk_source *source, const struct fk_sink *image,
               const struct fk_sink *log)
{
    struct compile c = {calloc(1, sizeof(struct fk_script)), image, log, FK_OK};
    if (!c.script)
        return FK_NO_MEMORY;
    put(image, magic_text, sizeof(magic_text) - 1, &c.status);
    for (size_t i = 0; i < source->n_macros; i++) {
        put(image, source->macros[i], strlen(source->macros[i]), &c.status);
        put(image, "\n", 1, &c.status);
    }
    put(image, "\n", 1, &c.status);
    scan(&c, source->text, source->bytes, source->path, 0);
    if (c.status == FK_OK)
        compile_actions(&c, source);
    free(c.script);
    return c.status;
}

/* --- modules -------------------------------------------------------------------------------
 */

void fk_unload(struct fk_device *d, struct fk_module *m)
{
    (void)d;
    if (!m)
        return;
    for (size_t i = 0; i < m->n_macros; i++)
        free(m->macros[i]);
    free(m->macros);
    free(m->script);
    free(m);
}

/* One line of `text`, which it steps over; without its end. */
static const char *take_line(const char **text, const char *end, size_t *n)
{
    const char *line = *text;
    const char *eol = memchr(line, '\n', (size_t)(end - line));
    *n = (size_t)((eol ? eol : end) - line);
    *text = eol ? eol + 1 : end;
    return line;
}

/* The macro lines of an image, up to the empty one. */
static int read_macros(struct fk_module *m, const char **text, const char *end)
{
    m->macros = calloc(FK_MAX_MACROS, sizeof(*m->macros));
    if (!m->macros)
        return FK_NO_MEMORY;
    while (*text < end) {
        size_t n;
        const char *line = take_line(text, end, &n);
        if (n == 0)
            return FK_OK;
        if (m->n_macros == FK_MAX_MACROS)
            return FK_BAD_IMAGE;
        m->macros[m->n_macros] = strndup(line, n);
        if (!m->macros[m->n_macros++])
            return FK_NO_MEMORY;
    }
    return FK_BAD_IMAGE;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *end, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (size_t)(end - p) >= n; p++) {
        if (memcmp(p, word, n) == 0 && (p == text || !is_name_char(p[-1])) &&
            (p + n == end || !is_name_char(p[n])))
            return true;
    }
    return false;
}

static int read_image(struct fk_module *m, const char *text, const char *end, const char *entry)
{
    size_t magic = sizeof(magic_text) - 1;
    if ((size_t)(end - text) < magic || memcmp(text, magic_text, magic) != 0)
        return FK_BAD_IMAGE;
    text += magic;
    m->script = calloc(1, sizeof(*m->script));
    if (!m->script)
        return FK_NO_MEMORY;
    int rc = read_macros(m, &text, end);
    if (rc != FK_OK)
        return rc;
    if (!has_word(text, end, entry))
        return FK_NO_KERNEL;
    while (text < end) {
        size_t n;
        char why[FK_TEXT];
        const char *line = take_line(&text, end, &n);
        struct fk_place at = {"image", 0};
        if (!fk_script_line(m->script, line, n, at, why))
            return FK_BAD_IMAGE;
    }
    fk_script_effect(m->script, (const char *const *)m->macros, m->n_macros, entry, &m->effect);
    return FK_OK;
}

int fk_load(struct fk_device *d, const void *image, size_t bytes, const char *entry,
            struct fk_module **out)
{
    *out = NULL;
    if (fk_is_lost(d->driver, d->index))
        return FK_LOST;
    if (fk_must_fail(d->driver, "load"))
        return FK_FAILED;
    struct fk_module *m = calloc(1, sizeof(*m));
    if (!m)
        return FK_NO_MEMORY;
    const char *text = image;
    int rc = read_image(m, text, text + bytes, entry);
    if (rc != FK_OK) {
        fk_unload(d, m);
        return rc;
    }
    *out = m;
    return FK_OK;
}

int fk_module_info(const struct fk_module *m, struct fk_module_info *out)
{
    const struct fk_rule *limit = m->effect.rule[FK_LIMIT];
    *out = (struct fk_module_info){.registers = 32, .max_threads = 1024};
    if (limit)
        out->shared_bytes = isnan(limit->number) ? 96 << 10 : (int64_t)limit->number;
    return FK_OK;
}

/* --- launches ------------------------------------------------------------------------------
 */

/* A hash of 64 bits to a number in [-1, 1): the finaliser of splitmix64 (Steele et al., 2014).
 */
static double noise(uint64_t n)
{
    uint64_t z = (n + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) /* FNV-1a */
        h = (h ^ p[i]) * 0x100000001b3U;
    return h;
}

/* The right answer: bytes of another buffer, repeated, or 4-byte words that are the floats 1,
 * 2,
 * .. 1021, 1, .. */
static void write_right(struct fk_memory *out, const struct fk_memory *from, size_t n)
{
    if (from) {
        for (size_t at = 0; at < n; at += from->bytes) {
            size_t part = n - at < from->bytes ? n - at : from->bytes;
            memmove(out->data + at, from->data, part);
        }
        return;
    }
    for (size_t at = 0; at < n; at += sizeof(float)) {
        float f = (float)(at / sizeof(float) % 1021 + 1);
        memcpy(out->data + at, &f, n - at < sizeof(f) ? n - at : sizeof(f));
    }
}

/* Spoil 8 bytes in the middle: wrong as a number of any type and size. */
static void spoil(struct fk_memory *out, uint64_t word)
{
    size_t at = out->bytes / 2 & ~(size_t)7;
    size_t n = out->bytes - at < sizeof(word) ? out->bytes - at : sizeof(word);
    memcpy(out->data + at, &word, n);
}

/* In the middle, where it does harm to whoever owns it. */
static void write_out_of_bounds(struct fk_memory *out)
{
    struct fk_memory *other = out->next ? out->next : out->prev;
    if (other)
        spoil(other, 0xdbdbdbdbdbdbdbdbU);
}

/* Is this the module's launch `number`, counted from 1? */
static bool is_launch(const struct fk_module *m, double number)
{
    return (double)m->n_launches + 1 == number;
}

static void write_output(struct fk_device *d, const struct fk_module *m, struct fk_memory *out,
                         const struct fk_memory *from, bool same_content)
{
    const struct fk_rule *const *rule = m->effect.rule;
    write_right(out, from, rule[FK_PARTIAL] ? out->bytes / 2 : out->bytes);
    if (rule[FK_NAN])
        spoil(out, 0x7fffffff7fffffffU); /* NaN as f64, two f32, and in f16 and bf16 */
    if (rule[FK_WRONG] || (rule[FK_FIRST_ONLY] && m->n_launches > 0) ||
        (rule[FK_WRONG_AT] && is_launch(m, rule[FK_WRONG_AT]->number)) ||
        (rule[FK_DIRTY] && !same_content))
        spoil(out, 0xf149f2caf149f2caU); /* -1e30 as f32 */
    if (rule[FK_UNSTEADY])
        spoil(out, 0x5149f2ca5149f2caU + d->n_launches * 0x0001000100010001U);
    if (rule[FK_OOB])
        write_out_of_bounds(out);
}

/* The outputs that the source names, or the last buffer; 0 when an argument is no buffer. */
static int find_outputs(const struct fk_module *m, const struct fk_arg *args, size_t n_args,
                        struct fk_memory *outs[FK_MAX_OUTS],
                        struct fk_memory *from[FK_MAX_OUTS])
{
    int n = 0;
    for (int i = 0; i < m->script->n_outs; i++) {
        const struct fk_out *o = &m->script->outs[i];
        if ((size_t)o->arg >= n_args || args[o->arg].kind != FK_ARG_MEMORY)
            return -1;
        if (o->from >= 0 && ((size_t)o->from >= n_args || args[o->from].kind != FK_ARG_MEMORY))
            return -1;
        outs[n] = args[o->arg].memory;
        from[n++] = o->from >= 0 ? args[o->from].memory : NULL;
    }
    for (size_t i = n_args; n == 0 && i-- > 0;) {
        if (args[i].kind == FK_ARG_MEMORY) {
            outs[n] = args[i].memory;
            from[n++] = NULL;
        }
    }
    return n;
}

/* What never comes back, or not with an answer. */
static int fatal_actions(struct fk_device *d, const struct fk_module *m)
{
    const struct fk_rule *const *rule = m->effect.rule;
    if (rule[FK_CRASH] || (rule[FK_CRASH_AT] && is_launch(m, rule[FK_CRASH_AT]->number))) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    }
    if (rule[FK_HANG]) {
        for (;;)
            (void)pause();
    }
    if (rule[FK_GONE]) {
        fk_lose(d->driver, d->index);
        return FK_LOST;
    }
    if (rule[FK_HOST_FULL])
        return FK_NO_MEMORY;
    return rule[FK_LAUNCH_ERROR] ? FK_LAUNCH : FK_OK;
}

/* From 1 at the device's first launch down to 0 at launch n and after it. */
static double ramp(uint64_t done, double n)
{
    double left = n > 0 ? 1 - (double)done / n : 0;
    return left > 0 ? left : 0;
}

static double pass_time(struct fk_device *d, const struct fk_module *m)
{
    const struct fk_rule *const *rule = m->effect.rule;
    double t = m->effect.time_ns;
    if (rule[FK_NOISE])
        t *= 1 + rule[FK_NOISE]->number / 100 * noise(d->n_launches);
    if (rule[FK_RAMP])
        t *= 1 + rule[FK_RAMP]->number / 100 * ramp(d->n_launches, rule[FK_RAMP]->second);
    if (rule[FK_LUCKY] &&
        is_launch(m, isnan(rule[FK_LUCKY]->number) ? 1 : rule[FK_LUCKY]->number))
        t *= lucky_share;
    if (rule[FK_REAL] && rule[FK_REAL]->number != 0)
        fk_sleep_ns(t);
    d->energy_j += t > 0 ? t * 1e-9 * 100 : 0;
    if (rule[FK_LIE])
        t /= 2;
    if (rule[FK_ZERO_TIME])
        t = 0;
    if (rule[FK_NEGATIVE_TIME])
        t = -t;
    if (rule[FK_NAN_TIME])
        t = (double)NAN;
    return t;
}

/* Add a line to the file of KOPT_FAKE_TRACE, in one write: several processes may. */
static bool trace(const struct fk_device *d, const struct fk_module *m, size_t flushed,
                  double ns)
{
    char line[TRACE_LINE];
    if (!d->driver->trace[0])
        return true;
    int n = snprintf(line, sizeof(line), "device=%d flush=%zu ns=%.17g launch=%llu", d->index,
                     flushed, ns, (unsigned long long)m->n_launches);
    for (size_t i = 0; i < m->n_macros && n < TRACE_LINE; i++)
        n += snprintf(line + n, sizeof(line) - (size_t)n, " %s", m->macros[i]);
    if (n > TRACE_LINE - 1)
        n = TRACE_LINE - 1;
    line[n++] = '\n';
    int fd = open(d->driver->trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write(fd, line, (size_t)n) == n;
    if (fd >= 0)
        (void)close(fd);
    return good;
}

int fk_launch(struct fk_device *d, struct fk_module *m, const struct fk_arg *args,
              size_t n_args, double *time_ns)
{
    struct fk_memory *outs[FK_MAX_OUTS];
    struct fk_memory *from[FK_MAX_OUTS];
    *time_ns = (double)NAN;
    if (fk_is_lost(d->driver, d->index))
        return FK_LOST;
    if (fk_must_fail(d->driver, "launch"))
        return FK_FAILED;
    size_t flushed = d->flushed;
    d->flushed = 0;
    int n = find_outputs(m, args, n_args, outs, from);
    if (n < 0)
        return FK_BAD_ARGUMENT;
    int rc = fatal_actions(d, m);
    if (rc != FK_OK)
        return rc;
    uint64_t content = 0xcbf29ce484222325U;
    for (int i = 0; i < n && m->effect.rule[FK_DIRTY]; i++)
        content = hash_bytes(content, outs[i]->data, outs[i]->bytes);
    if (m->n_launches == 0)
        m->first_content = content;
    for (int i = 0; i < n; i++)
        write_output(d, m, outs[i], from[i], content == m->first_content);
    *time_ns = pass_time(d, m);
    m->n_launches++;
    d->n_launches++;
    return trace(d, m, flushed, *time_ns) ? FK_OK : FK_FAILED;
}
