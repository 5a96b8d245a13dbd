/* SPDX-License-Identifier: MIT */
#include "device/cuda/compile.h"

#include "base/alloc.h"
#include "device/cuda/compile_log.h"
#include "device/cuda/driver.h"
#include "device/cuda/headers.h"
#include "device/cuda/image.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/options.h"
#include "device/ops.h"
#include "os/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SOURCE_MAX = 256 << 20,
    LOG_MAX = 64 << 20,
    CUBIN_MAX = 1 << 30,
    /* "Maximum amount of local memory per thread", CUDA C++ Programming Guide, technical
     * specifications per compute capability: the same for all. */
    LOCAL_BYTES_MAX = 512 << 10,
    ARCH_BYTES = 16
};

struct compiler {
    struct kp_compiler base;
    struct kp_nvrtc nvrtc;
    char arch[ARCH_BYTES];
    char version[32];
};

/* --- opening --------------------------------------------------------------------------- */

static kopt_status arch_of_device(int index, const struct kp_log *log, char out[ARCH_BYTES],
                                  kopt_error *err)
{
    struct kp_cuda_driver drv;
    int n = 0;
    int major = 0;
    int minor = 0;
    kp_cu_device device;
    kopt_status st = kp_cuda_driver_open(log, &drv, err);
    if (st != KOPT_OK)
        return st;
    if (drv.cuDeviceGetCount(&n) != KP_CUDA_SUCCESS || index < 0 || index >= n)
        st = kp_err(err, KOPT_ENOTFOUND, "there is no cuda device %d", index);
    else if (drv.cuDeviceGet(&device, index) != KP_CUDA_SUCCESS ||
             drv.cuDeviceGetAttribute(&major, KP_CU_DEVICE_COMPUTE_CAPABILITY_MAJOR, device) !=
                 KP_CUDA_SUCCESS ||
             drv.cuDeviceGetAttribute(&minor, KP_CU_DEVICE_COMPUTE_CAPABILITY_MINOR, device) !=
                 KP_CUDA_SUCCESS)
        st = kp_err(err, KOPT_EDEVICE, "cuda device %d does not tell its compute capability",
                    index);
    else
        (void)snprintf(out, ARCH_BYTES, "sm_%d%d", major, minor);
    kp_cuda_driver_close(&drv);
    return st;
}

/* "sm_90", "sm_90a", "sm_103f": the number, 0 when it is not one. */
static int arch_number(const char *arch)
{
    if (strncmp(arch, "sm_", 3) != 0 || strlen(arch) >= ARCH_BYTES)
        return 0;
    char *end;
    long n = strtol(arch + 3, &end, 10);
    bool whole = end > arch + 3 && (*end == 0 || ((*end == 'a' || *end == 'f') && end[1] == 0));
    return whole && n >= 10 && n < 1000 ? (int)n : 0;
}

static kopt_status check_arch(const struct compiler *c, kopt_error *err)
{
    int cc = arch_number(c->arch);
    char range[64];
    if (kp_nvrtc_knows(&c->nvrtc, cc, range, sizeof(range)))
        return KOPT_OK;
    kopt_status st = kp_err(err, KOPT_EENV, "%s (%s) makes no code for %s, only for sm_%s",
                            c->version, kp_dl_name(c->nvrtc.dl), c->arch, range);
    kp_err_hint(err,
                "install a version of CUDA that still or already knows %s; "
                "KOPT_NVRTC_LIBRARY names its libnvrtc.so",
                c->arch);
    return st;
}

kopt_status kp_cuda_compiler_open(int index, const char *arch, const struct kp_log *log,
                                  struct kp_compiler **out, kopt_error *err)
{
    *out = NULL;
    if (arch && !arch_number(arch)) {
        kopt_status st = kp_err(err, KOPT_EUSAGE, "\"%s\" is no CUDA architecture", arch);
        kp_err_hint(err, "write it as sm_90");
        return st;
    }
    struct compiler *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return kp_err_nomem(err);
    kopt_status st = KOPT_OK;
    if (arch)
        (void)snprintf(c->arch, sizeof(c->arch), "%s", arch);
    else
        st = arch_of_device(index, log, c->arch, err);
    if (st == KOPT_OK)
        st = kp_nvrtc_open(log, &c->nvrtc, err);
    if (st == KOPT_OK) {
        kp_nvrtc_version_text(&c->nvrtc, c->version, sizeof(c->version));
        st = check_arch(c, err);
    }
    if (st != KOPT_OK) {
        kp_cuda_compiler_close(&c->base);
        return st;
    }
    *out = &c->base;
    return KOPT_OK;
}

void kp_cuda_compiler_close(struct kp_compiler *base)
{
    struct compiler *c = (struct compiler *)base;
    if (!c)
        return;
    kp_nvrtc_close(&c->nvrtc);
    kp_free(c);
}

const char *kp_cuda_compiler_version(const struct kp_compiler *base)
{
    const struct compiler *c = (const struct compiler *)base;
    return c->version;
}

/* --- the text that is compiled --------------------------------------------------------- */

static bool is_word(char ch, bool first)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' ||
           (!first && ch >= '0' && ch <= '9');
}

/* "BM=64", "BM", "F(x)=2*(x)" as a line of its own. */
static kopt_status add_macro(const char *macro, struct kp_buf *text, kopt_error *err)
{
    size_t n = 0;
    while (is_word(macro[n], n == 0))
        n++;
    bool named = n > 0;
    if (macro[n] == '(') {
        n += strcspn(macro + n, ")");
        named = named && macro[n] == ')';
        n += macro[n] == ')';
    }
    if (!named || (macro[n] != '=' && macro[n] != 0) || strpbrk(macro, "\r\n"))
        return kp_err(err, KOPT_EUSAGE, "\"%s\" defines no macro", macro);
    kp_buf_adds(text, "#define ");
    kp_buf_add(text, macro, n);
    kp_buf_addf(text, " %s\n", macro[n] == '=' ? macro + n + 1 : "1");
    return KOPT_OK;
}

/* The macros, then the source as line 1. A byte order mark, which NVRTC does not know, is left
 * out. */
static kopt_status build_text(const struct kp_compile_job *job, struct kp_buf *text,
                              kopt_error *err)
{
    struct kp_str source = job->source;
    for (size_t i = 0; i < job->n_macros; i++) {
        kopt_status st = add_macro(job->macros[i], text, err);
        if (st != KOPT_OK)
            return st;
    }
    if (source.len >= 3 && memcmp(source.ptr, "\xEF\xBB\xBF", 3) == 0)
        source = (struct kp_str){source.ptr + 3, source.len - 3};
    kp_buf_adds(text, "#line 1\n");
    kp_buf_add(text, source.ptr, source.len);
    kp_buf_addc(text, '\n');
    if (text->failed == KOPT_ERANGE) /* which would read as a limit of the device */
        return kp_err(err, KOPT_EINPUT, "%s is larger than %d bytes",
                      job->path ? job->path : "the source", SOURCE_MAX);
    return kp_buf_status(text, err);
}

/* --- one run of the compiler ----------------------------------------------------------- */

struct work {
    struct compiler *c;
    const struct kp_compile_job *job;
    struct kp_buf text;
    struct kp_buf raw_log;
    struct kp_cuda_options options;
    kp_nvrtc_program program;
};

static kopt_status nvrtc_failed(const struct work *w, kp_nvrtc_result rc, const char *what,
                                kopt_error *err)
{
    if (rc == KP_NVRTC_ERROR_OUT_OF_MEMORY)
        return kp_err_nomem(err);
    if (rc == KP_NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID)
        return kp_err(err, KOPT_EINPUT, "\"%s\" is no name of a kernel", w->job->entry);
    const char *name = w->c->nvrtc.nvrtcGetErrorString(rc);
    kopt_status st = kp_err(err, KOPT_EDEVICE, "%s: %s: %s", w->c->version, what,
                            name ? name : "unknown error");
    if (rc == KP_NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)
        kp_err_hint(err, "libnvrtc-builtins.so must lie beside %s", kp_dl_name(w->c->nvrtc.dl));
    return st;
}

/* A header of the user's own with such a name, beside the source, goes before ours. */
static int choose_headers(const struct kp_compile_job *job,
                          const char *names[KP_CUDA_N_HEADERS],
                          const char *texts[KP_CUDA_N_HEADERS])
{
    int n = 0;
    char *dir = kp_path_dir(job->path ? job->path : "");
    for (int i = 0; i < KP_CUDA_N_HEADERS; i++) {
        char *own = dir ? kp_path_join(dir, kp_cuda_header_names[i]) : NULL;
        if (!own || !kp_file_exists(own)) {
            names[n] = kp_cuda_header_names[i];
            texts[n++] = kp_cuda_header_texts[i];
        }
        kp_free(own);
    }
    kp_free(dir);
    return n;
}

static void read_log(struct work *w)
{
    const struct kp_nvrtc *n = &w->c->nvrtc;
    size_t bytes = 0;
    kp_buf_clear(&w->raw_log);
    if (n->nvrtcGetProgramLogSize(w->program, &bytes) != KP_NVRTC_SUCCESS || bytes <= 1 ||
        !kp_buf_reserve(&w->raw_log, bytes))
        return;
    char *at = (char *)w->raw_log.ptr;
    at[0] = 0;
    if (n->nvrtcGetProgramLog(w->program, at) == KP_NVRTC_SUCCESS)
        w->raw_log.len = strnlen(at, bytes);
}

/* Make the program and compile it with the first `n_options`; the log is in w->raw_log. */
static kopt_status run_compiler(struct work *w, size_t n_options, kp_nvrtc_result *rc,
                                kopt_error *err)
{
    const struct kp_nvrtc *n = &w->c->nvrtc;
    const struct kp_compile_job *job = w->job;
    const char *names[KP_CUDA_N_HEADERS];
    const char *texts[KP_CUDA_N_HEADERS];
    int n_headers = choose_headers(job, names, texts);
    const char *options[64];
    const char **list = options;
    *rc = n->nvrtcCreateProgram(&w->program, kp_buf_text(&w->text),
                                job->path ? job->path : "source", n_headers, texts, names);
    if (*rc != KP_NVRTC_SUCCESS)
        return nvrtc_failed(w, *rc, "nvrtcCreateProgram", err);
    *rc = n->nvrtcAddNameExpression(w->program, job->entry);
    if (*rc != KP_NVRTC_SUCCESS)
        return nvrtc_failed(w, *rc, "nvrtcAddNameExpression", err);
    if (n_options > sizeof(options) / sizeof(options[0])) {
        list = kp_calloc(n_options, sizeof(*list));
        if (!list)
            return kp_err_nomem(err);
    }
    for (size_t i = 0; i < n_options; i++)
        list[i] = w->options.list[i];
    *rc = n->nvrtcCompileProgram(w->program, (int)n_options, list);
    if (list != options)
        kp_free((void *)list);
    read_log(w);
    return KOPT_OK;
}

static void drop_program(struct work *w)
{
    if (w->program)
        (void)w->c->nvrtc.nvrtcDestroyProgram(&w->program);
    w->program = NULL;
}

static struct kp_str log_of(const struct work *w)
{
    return (struct kp_str){kp_buf_text(&w->raw_log), w->raw_log.len};
}

/* What went wrong, from the log. */
static kopt_status explain(struct work *w, kp_nvrtc_result rc, kopt_error *err)
{
    kopt_status st;
    if (rc != KP_NVRTC_ERROR_COMPILATION && rc != KP_NVRTC_ERROR_INVALID_OPTION)
        return nvrtc_failed(w, rc, "nvrtcCompileProgram", err);
    st = kp_cuda_log_error(log_of(w), w->job, err);
    bool verbose = w->options.ask_resources || w->options.ptxas_verbose;
    if (st == KOPT_ENOTFOUND && rc == KP_NVRTC_ERROR_COMPILATION && verbose) {
        /* ptxas keeps some errors to itself under -v, which is the last option: once more
         * without */
        kopt_error ignored;
        drop_program(w);
        if (run_compiler(w, w->options.n - 1, &rc, &ignored) == KOPT_OK)
            st = kp_cuda_log_error(log_of(w), w->job, err);
    }
    if (st == KOPT_ENOTFOUND)
        st = kp_err(err, KOPT_EINPUT, "%s failed without saying why", w->c->version);
    if (rc == KP_NVRTC_ERROR_INVALID_OPTION)
        kp_err_wrap(err, "%s", w->c->version);
    return st;
}

static kopt_status write_image(struct work *w, struct kp_buf *image, kopt_error *err)
{
    const struct kp_nvrtc *n = &w->c->nvrtc;
    struct kp_cuda_image im = {.entry = w->job->entry};
    kopt_status st = KOPT_OK;
    kp_nvrtc_result rc = n->nvrtcGetLoweredName(w->program, w->job->entry, &im.lowered);
    if (rc == KP_NVRTC_SUCCESS)
        rc = n->nvrtcGetCUBINSize(w->program, &im.cubin_bytes);
    if (rc != KP_NVRTC_SUCCESS)
        return nvrtc_failed(w, rc, "no cubin", err);
    if (im.cubin_bytes == 0 || im.cubin_bytes > CUBIN_MAX)
        return kp_err(err, KOPT_EINPUT, "%s made a cubin of %zu bytes", w->c->version,
                      im.cubin_bytes);
    kp_cuda_log_resources(log_of(w), im.lowered, &im.resources);
    if (im.resources.stack_bytes > LOCAL_BYTES_MAX) {
        st = kp_err(err, KOPT_ERANGE, "local memory of a thread %" PRId64 " of %d bytes",
                    im.resources.stack_bytes, LOCAL_BYTES_MAX);
        kp_err_hint(err, "private arrays and spilled registers of %s need that much",
                    w->job->entry);
        return st;
    }
    char *cubin = kp_calloc(im.cubin_bytes, 1);
    if (!cubin)
        return kp_err_nomem(err);
    rc = n->nvrtcGetCUBIN(w->program, cubin);
    if (rc == KP_NVRTC_SUCCESS) {
        im.cubin = cubin;
        kp_cuda_image_write(&im, image);
        st = kp_buf_status(image, err);
    } else {
        st = nvrtc_failed(w, rc, "nvrtcGetCUBIN", err);
    }
    kp_free(cubin);
    return st;
}

static bool is_plain(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    }
    return true;
}

kopt_status kp_cuda_compile(struct kp_compiler *base, const struct kp_compile_job *job,
                            struct kp_buf *image, struct kp_buf *log_text, kopt_error *err)
{
    struct work w = {.c = (struct compiler *)base,
                     .job = job,
                     .text = KP_BUF_INIT(SOURCE_MAX),
                     .raw_log = KP_BUF_INIT(LOG_MAX)};
    /* older ones are not known to pass options on to ptxas */
    const int *version = w.c->nvrtc.version;
    w.options.ask_resources = version[0] >= 12;
    w.options.no_cache = version[0] > 12 || (version[0] == 12 && version[1] >= 9);
    struct kp_buf notes = KP_BUF_INIT(LOG_MAX);
    kp_nvrtc_result rc = KP_NVRTC_SUCCESS;
    if (!job->entry[0] || !is_plain(job->entry))
        return kp_err(err, KOPT_EINPUT, "\"%s\" is no name of a kernel", job->entry);
    kopt_status st = build_text(job, &w.text, err);
    if (st == KOPT_OK)
        st =
            kp_cuda_options_build(job, w.c->arch, w.c->nvrtc.includes, &notes, &w.options, err);
    if (st == KOPT_OK)
        st = run_compiler(&w, w.options.n, &rc, err);
    if (st != KOPT_OK)
        goto done;
    if (rc != KP_NVRTC_SUCCESS)
        st = explain(&w, rc, err);
    else
        st = kp_cuda_log_redefined(log_of(&w), job, err);
    if (log_text) {
        kp_buf_add(log_text, notes.ptr, notes.len);
        kp_cuda_log_clean(log_of(&w), w.options.ptxas_verbose, log_text);
    }
    if (st == KOPT_OK)
        st = write_image(&w, image, err);
    if (st == KOPT_OK && job->compiled)
        job->compiled(job->user);
done:
    drop_program(&w);
    kp_cuda_options_deinit(&w.options);
    kp_buf_deinit(&w.text);
    kp_buf_deinit(&w.raw_log);
    kp_buf_deinit(&notes);
    return st;
}
