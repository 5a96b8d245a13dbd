/* SPDX-License-Identifier: MIT */
/* What a driver's compiler gets. Layer: device.
 *
 * Macros and the user's -D options become #define lines in front of the source: no driver's way
 * of quoting options has to be guessed, and PoCL's own headers come before them. A #line behind
 * them makes messages name the user's file and its lines. Includes are found because the build
 * happens in the source's folder: PoCL cannot take a folder with a space in its name. */
#include "base/alloc.h"
#include "device/opencl/cl.h"
#include "os/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE_MAX = 64 << 20, OPTIONS_MAX = 64 << 10, FOLDER_MAX = 16 << 10 };

static const char macros_name[] = "<macros>";

void kp_cl_text_deinit(struct kp_cl_text *t)
{
    kp_buf_deinit(&t->source);
    kp_buf_deinit(&t->options);
    kp_buf_deinit(&t->binary_options);
    kp_buf_deinit(&t->folder);
}

/* `#line 1 "path"` */
static void add_line_mark(struct kp_buf *b, const char *path)
{
    kp_buf_adds(b, "#line 1 \"");
    for (; *path; path++) {
        if (*path == '"' || *path == '\\')
            kp_buf_addc(b, '\\');
        if ((unsigned char)*path < ' ')
            kp_buf_addc(b, '?');
        else
            kp_buf_addc(b, *path);
    }
    kp_buf_adds(b, "\"\n");
}

/* "NAME=VALUE", "NAME" (which is 1), "F(x)=VALUE". */
static kopt_status add_define(struct kp_buf *b, const char *macro, kopt_error *err)
{
    if (strpbrk(macro, "\r\n"))
        return kp_err(err, KOPT_EUSAGE, "macro '%s' contains a line break", macro);
    if (!macro[0] || macro[0] == '=')
        return kp_err(err, KOPT_EUSAGE, "macro '%s' has no name", macro);
    size_t name = strcspn(macro, "=");
    kp_buf_adds(b, "#define ");
    kp_buf_add(b, macro, name);
    kp_buf_addc(b, ' ');
    kp_buf_adds(b, macro[name] ? macro + name + 1 : "1");
    kp_buf_addc(b, '\n');
    return KOPT_OK;
}

/* An option as one word of the driver's line. PoCL has no quoting that works. */
static kopt_status add_option(struct kp_buf *b, const char *option, bool pocl, kopt_error *err)
{
    if (b->len)
        kp_buf_addc(b, ' ');
    if (!strpbrk(option, " \t\"'\\\r\n")) {
        kp_buf_adds(b, option);
        return KOPT_OK;
    }
    if (pocl || strpbrk(option, "\"\r\n")) {
        kopt_status st = kp_err(err, KOPT_EUSAGE, "%s cannot be given the option '%s'",
                                pocl ? "PoCL" : "OpenCL", option);
        kp_err_hint(err,
                    "use no spaces or quotes in it; a folder can be linked to another name");
        return st;
    }
    kp_buf_addf(b, "\"%s\"", option);
    return KOPT_OK;
}

/* The argument of an option that may stand in the same word or in the next. */
static const char *argument_of(const struct kp_compile_job *job, size_t *i, size_t prefix)
{
    const char *option = job->options[*i];
    if (option[prefix])
        return option + prefix;
    if (*i + 1 < job->n_options)
        return job->options[++*i];
    return NULL;
}

static kopt_status add_options(const struct kp_compile_job *job, bool pocl,
                               struct kp_cl_text *out, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    kp_buf_adds(&out->options, "-I. -cl-kernel-arg-info");
    kp_buf_adds(&out->binary_options, "-cl-kernel-arg-info");
    for (size_t i = 0; i < job->n_options && st == KOPT_OK; i++) {
        const char *option = job->options[i];
        int kind = option[0] == '-' ? option[1] : 0;
        if (strcmp(option, "-w") == 0)
            continue; /* a warning tells that a macro being tuned is undone */
        if (kind != 'D' && kind != 'U' && kind != 'I') {
            st = add_option(&out->options, option, pocl, err);
            if (st == KOPT_OK && strncmp(option, "-cl-", 4) == 0)
                st = add_option(&out->binary_options, option, pocl, err);
            continue;
        }
        const char *argument = argument_of(job, &i, 2);
        if (!argument)
            return kp_err(err, KOPT_EUSAGE, "compiler option %s has no argument", option);
        if (kind == 'D') {
            st = add_define(&out->source, argument, err);
        } else if (kind == 'U') {
            kp_buf_addf(&out->source, "#undef %s\n", argument);
        } else {
            char text[4096];
            int n = snprintf(text, sizeof(text), "-I%s", argument);
            if (n < 0 || (size_t)n >= sizeof(text))
                return kp_err(err, KOPT_EUSAGE, "compiler option -I is too long");
            st = add_option(&out->options, text, pocl, err);
        }
    }
    return st;
}

static void add_source(const struct kp_compile_job *job, struct kp_buf *out)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    struct kp_str text = job->source;
    if (kp_str_starts(text, byte_order_mark)) { /* allowed at the very beginning only */
        text.ptr += 3;
        text.len -= 3;
    }
    add_line_mark(out, job->path ? job->path : "source");
    kp_buf_add(out, text.ptr, text.len);
    kp_buf_addc(out, '\n');
}

/* The absolute path of the source's folder, since a process with another working directory may
 * load the image. A folder that is not there holds no includes: nothing. */
static kopt_status add_folder(const char *path, struct kp_buf *out, kopt_error *err)
{
    char whole[PATH_MAX];
    if (!path)
        return KOPT_OK;
    char *folder = kp_path_dir(path);
    if (!folder)
        return kp_err_nomem(err);
    if (realpath(folder, whole))
        kp_buf_adds(out, whole);
    kp_free(folder);
    return KOPT_OK;
}

static int count_lines(const struct kp_buf *b)
{
    int n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->ptr[i] == '\n';
    return n;
}

kopt_status kp_cl_text_make(const struct kp_compile_job *job, bool pocl, struct kp_cl_text *out,
                            kopt_error *err)
{
    *out = (struct kp_cl_text){.source = KP_BUF_INIT(SOURCE_MAX),
                               .options = KP_BUF_INIT(OPTIONS_MAX),
                               .binary_options = KP_BUF_INIT(OPTIONS_MAX),
                               .folder = KP_BUF_INIT(FOLDER_MAX)};
    kopt_status st = add_folder(job->path, &out->folder, err);
    add_line_mark(&out->source, macros_name);
    if (st == KOPT_OK)
        st = add_options(job, pocl, out, err);
    for (size_t i = 0; i < job->n_macros && st == KOPT_OK; i++)
        st = add_define(&out->source, job->macros[i], err);
    if (st == KOPT_OK) {
        out->lead_lines = count_lines(&out->source) + 1; /* and the #line */
        add_source(job, &out->source);
        st = kp_buf_status(&out->source, err);
    }
    if (st == KOPT_OK)
        st = kp_buf_status(&out->options, err);
    if (st == KOPT_OK)
        st = kp_buf_status(&out->binary_options, err);
    if (st == KOPT_OK)
        st = kp_buf_status(&out->folder, err);
    if (st != KOPT_OK)
        kp_cl_text_deinit(out);
    return st;
}
