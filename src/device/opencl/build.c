/* SPDX-License-Identifier: MIT */
/* Programs and images. Layer: device. */
#include "base/alloc.h"
#include "device/opencl/cl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_MAX = 4 << 20,
    PIECE_MAX = 64 << 20, /* bytes of one part of an image */
    HEADER = 8 + 4 * 4
};

static const char magic[8] = {'K', 'P', 'C', 'L', 'I', 'M', 'G', '1'};

static void put_u32(struct kp_buf *b, size_t v)
{
    unsigned char bytes[4] = {(unsigned char)v, (unsigned char)(v >> 8),
                              (unsigned char)(v >> 16), (unsigned char)(v >> 24)};
    kp_buf_add(b, bytes, sizeof(bytes));
}

static size_t get_u32(const unsigned char *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* --- building ------------------------------------------------------------------------------
 */

/* The build log in the user's terms, appended. */
static void read_log(struct kp_cl_session *s, cl_program program, const struct kp_cl_text *text,
                     const char *path, struct kp_buf *out)
{
    size_t n = 0;
    if (s->cl->clGetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) !=
            CL_SUCCESS ||
        n <= 1 || n > LOG_MAX)
        return;
    char *log = kp_calloc(1, n + 1);
    if (!log)
        return;
    if (s->cl->clGetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, n, log, NULL) ==
        CL_SUCCESS)
        kp_cl_log_clean(kp_str_from(log), path, text->lead_lines, out);
    kp_free(log);
}

/* Into `folder` and back. -1 in *back: it was not left. */
static kopt_status enter(const char *folder, int *back, kopt_error *err)
{
    *back = -1;
    if (!folder[0])
        return KOPT_OK;
    *back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*back >= 0 && chdir(folder) == 0)
        return KOPT_OK;
    int why = errno;
    if (*back >= 0)
        (void)close(*back);
    *back = -1;
    return kp_err(err, KOPT_EIO, "%s: %s", folder,
                  strerror(why)); /* NOLINT(concurrency-mt-unsafe): glibc's is safe */
}

static void leave(int back)
{
    if (back < 0)
        return;
    (void)fchdir(back); /* it was there a moment ago; nothing can be done if it is gone */
    (void)close(back);
}

static kopt_status build_failed(cl_int rc, const struct kp_compile_job *job, struct kp_str log,
                                kopt_error *err)
{
    if (rc == CL_BUILD_PROGRAM_FAILURE || rc == CL_COMPILE_PROGRAM_FAILURE ||
        rc == CL_INVALID_BUILD_OPTIONS || rc == CL_INVALID_COMPILER_OPTIONS)
        return kp_cl_log_error(log, job, err);
    return kp_cl_fail(err, rc, "build %s", job && job->path ? job->path : "a program");
}

struct request {
    const struct kp_cl_text *text;
    const struct kp_compile_job *job; /* for messages; may be NULL */
    bool front_end_only;
};

/* Build in the text's folder. */
static kopt_status build_there(struct kp_cl_session *s, const struct request *r,
                               cl_program program, struct kp_buf *log, kopt_error *err)
{
    const char *options = kp_buf_text(&r->text->options);
    int back;
    cl_int rc;
    kopt_status st = enter(kp_buf_text(&r->text->folder), &back, err);
    if (st != KOPT_OK)
        return st;
    if (!r->front_end_only)
        rc = s->cl->clBuildProgram(program, 1, &s->device, options, NULL, NULL);
    else
        rc =
            s->cl->clCompileProgram(program, 1, &s->device, options, 0, NULL, NULL, NULL, NULL);
    leave(back);
    read_log(s, program, r->text, r->job ? r->job->path : NULL, log);
    if (rc == CL_SUCCESS)
        return KOPT_OK;
    return build_failed(rc, r->job, (struct kp_str){kp_buf_text(log), log->len}, err);
}

static kopt_status build_text(struct kp_cl_session *s, const struct request *r, cl_program *out,
                              struct kp_buf *log_text, kopt_error *err)
{
    struct kp_buf log = KP_BUF_INIT(LOG_MAX);
    const char *source = kp_buf_text(&r->text->source);
    size_t bytes = r->text->source.len;
    cl_int rc;
    *out = NULL;
    cl_program program = s->cl->clCreateProgramWithSource(s->context, 1, &source, &bytes, &rc);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "make a program");
    kopt_status st = build_there(s, r, program, &log, err);
    if (log_text)
        kp_buf_add(log_text, kp_buf_text(&log), log.len);
    if (st == KOPT_OK)
        *out = program;
    else
        (void)s->cl->clReleaseProgram(program);
    kp_buf_deinit(&log);
    return st;
}

kopt_status kp_cl_build(struct kp_cl_session *s, const struct kp_cl_text *text,
                        const struct kp_compile_job *job, cl_program *out,
                        struct kp_buf *log_text, kopt_error *err)
{
    const struct request r = {text, job, false};
    return build_text(s, &r, out, log_text, err);
}

/* PoCL's binary of a program that is compiled, not linked, holds files, each as a length, a
 * name, a length and the content (32 bits, little-endian); program.bc is LLVM's bitcode. */
static struct kp_str find_bitcode(struct kp_str binary)
{
    static const char name[] = "program.bc";
    static const unsigned char bitcode[4] = {'B', 'C', 0xC0, 0xDE};
    size_t n = sizeof(name) - 1;
    const char *p = memmem(binary.ptr, binary.len, name, n);
    struct kp_str none = {"", 0};
    if (!p)
        return none;
    p += n;
    size_t left = binary.len - (size_t)(p - binary.ptr);
    if (left < 4 + sizeof(bitcode) || memcmp(p + 4, bitcode, sizeof(bitcode)) != 0)
        return none;
    size_t bytes = get_u32((const unsigned char *)p);
    return bytes <= left - 4 ? (struct kp_str){p + 4, bytes} : none;
}

kopt_status kp_cl_build_ir(struct kp_cl_session *s, const struct kp_cl_text *text,
                           const struct kp_compile_job *job, struct kp_buf *ir,
                           struct kp_buf *log_text, kopt_error *err)
{
    cl_program program = NULL;
    struct kp_buf binary = KP_BUF_INIT(PIECE_MAX);
    const struct request r = {text, job, true};
    kopt_status st = build_text(s, &r, &program, log_text, err);
    if (st != KOPT_OK)
        return st;
    if (kp_cl_binary(s, program, &binary, NULL) == KOPT_OK) {
        struct kp_str bitcode = find_bitcode((struct kp_str){kp_buf_text(&binary), binary.len});
        kp_buf_add(ir, bitcode.ptr, bitcode.len);
    }
    st = kp_buf_status(ir, err);
    kp_buf_deinit(&binary);
    (void)s->cl->clReleaseProgram(program);
    return st;
}

kopt_status kp_cl_build_binary(struct kp_cl_session *s, struct kp_str binary,
                               const char *options, cl_program *out, kopt_error *err)
{
    const unsigned char *bytes = (const unsigned char *)binary.ptr;
    cl_int status = CL_SUCCESS;
    cl_int rc;
    *out = NULL;
    cl_program program = s->cl->clCreateProgramWithBinary(s->context, 1, &s->device,
                                                          &binary.len, &bytes, &status, &rc);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "load a program binary");
    rc = s->cl->clBuildProgram(program, 1, &s->device, options, NULL, NULL);
    if (rc != CL_SUCCESS) {
        (void)s->cl->clReleaseProgram(program);
        return kp_cl_fail(err, rc, "build a program binary");
    }
    *out = program;
    return KOPT_OK;
}

kopt_status kp_cl_binary(struct kp_cl_session *s, cl_program program, struct kp_buf *out,
                         kopt_error *err)
{
    size_t n = 0;
    cl_int rc = s->cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(n), &n, NULL);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "ask for the size of a program's binary");
    if (n == 0 || n > PIECE_MAX)
        return kp_err(err, KOPT_EDEVICE, "the driver's binary has %zu bytes", n);
    if (!kp_buf_reserve(out, n))
        return kp_buf_status(out, err);
    unsigned char *to = out->ptr + out->len;
    rc = s->cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(to), (void *)&to, NULL);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "ask for a program's binary");
    out->len += n;
    out->ptr[out->len] = 0;
    return KOPT_OK;
}

/* --- images --------------------------------------------------------------------------------
 */

/* The magic, four lengths (source, options, folder, binary), then the four texts. */
void kp_cl_image_write(struct kp_buf *image, const struct kp_cl_text *text,
                       struct kp_str binary)
{
    static const struct kp_buf none;
    const struct kp_buf *parts[3] = {&text->source, &text->options, &text->folder};
    if (binary.len) {
        parts[0] = &none;
        parts[1] = &text->binary_options;
        parts[2] = &none;
    }
    kp_buf_add(image, magic, sizeof(magic));
    for (int i = 0; i < 3; i++)
        put_u32(image, parts[i]->len);
    put_u32(image, binary.len);
    for (int i = 0; i < 3; i++)
        kp_buf_add(image, kp_buf_text(parts[i]), parts[i]->len);
    kp_buf_add(image, binary.ptr, binary.len);
}

kopt_status kp_cl_image_read(const void *image, size_t bytes, struct kp_cl_text *text,
                             struct kp_str *binary, kopt_error *err)
{
    const unsigned char *p = image;
    size_t n[4] = {0};
    *text = (struct kp_cl_text){.source = KP_BUF_INIT(PIECE_MAX),
                                .options = KP_BUF_INIT(PIECE_MAX),
                                .folder = KP_BUF_INIT(PIECE_MAX)};
    *binary = (struct kp_str){"", 0};
    bool good = bytes >= HEADER && memcmp(p, magic, sizeof(magic)) == 0;
    size_t left = good ? bytes - HEADER : 0;
    for (int i = 0; i < 4 && good; i++) {
        n[i] = get_u32(p + sizeof(magic) + 4 * (size_t)i);
        good = n[i] <= PIECE_MAX && n[i] <= left;
        left -= good ? n[i] : 0;
    }
    if (!good || left || (n[0] == 0) == (n[3] == 0))
        return kp_err(err, KOPT_EDEVICE, "not a program image for OpenCL");
    p += HEADER;
    kp_buf_add(&text->source, p, n[0]);
    kp_buf_add(&text->options, p + n[0], n[1]);
    kp_buf_add(&text->folder, p + n[0] + n[1], n[2]);
    *binary = (struct kp_str){(const char *)p + n[0] + n[1] + n[2], n[3]};
    if (text->source.failed != KOPT_OK || text->options.failed != KOPT_OK ||
        text->folder.failed != KOPT_OK) {
        kp_cl_text_deinit(text);
        return kp_err_nomem(err);
    }
    return KOPT_OK;
}
