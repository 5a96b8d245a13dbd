/* SPDX-License-Identifier: MIT */
#include "device/cuda/options.h"

#include "base/alloc.h"
#include "os/file.h"

#include <string.h>

enum { OPTIONS_MAX = 4096, OPTION_BYTES_MAX = 65536 };

enum kind {
    PASS,       /* as it is */
    VALUE,      /* takes a value */
    PATH,       /* takes a path that begins at the source's folder */
    PTXAS,      /* takes a comma list for ptxas */
    STANDARD,   /* takes a C++ standard */
    ARCH,       /* takes an architecture */
    DROP,       /* concerns host code */
    DROP_VALUE, /* the same, with a value */
    SILENCE,    /* asks for no warnings: one of them tells that a tuned macro is undone */
    REFUSE
};

struct rule {
    const char *name;
    enum kind kind;
    bool glued;        /* the value may follow without '=' */
    const char *nvrtc; /* its name there; NULL = the same */
};

/* What is not listed goes to NVRTC unchanged. */
static const struct rule rules[] = {
    {"-D", VALUE, true, "--define-macro"},
    {"--define-macro", VALUE, false, NULL},
    {"-U", VALUE, true, "--undefine-macro"},
    {"--undefine-macro", VALUE, false, NULL},
    {"-I", PATH, true, "--include-path"},
    {"--include-path", PATH, false, NULL},
    {"-include", PATH, false, "--pre-include"},
    {"--pre-include", PATH, false, NULL},
    {"-maxrregcount", VALUE, false, "--maxrregcount"},
    {"--maxrregcount", VALUE, false, NULL},
    {"-diag-suppress", VALUE, false, NULL},
    {"--diag-suppress", VALUE, false, NULL},
    {"-diag-error", VALUE, false, NULL},
    {"--diag-error", VALUE, false, NULL},
    {"-diag-warn", VALUE, false, NULL},
    {"--diag-warn", VALUE, false, NULL},
    {"-std", STANDARD, false, "--std"},
    {"--std", STANDARD, false, NULL},
    {"-Xptxas", PTXAS, false, "--ptxas-options"},
    {"--ptxas-options", PTXAS, false, NULL},
    {"-arch", ARCH, false, NULL},
    {"--gpu-architecture", ARCH, false, NULL},
    {"-w", SILENCE, false, NULL},
    {"--disable-warnings", SILENCE, false, NULL},
    {"-O", DROP, false, NULL},
    {"-O0", DROP, false, NULL},
    {"-O1", DROP, false, NULL},
    {"-O2", DROP, false, NULL},
    {"-O3", DROP, false, NULL},
    {"-g", DROP, false, NULL},
    {"-Wall", DROP, false, NULL},
    {"-Wextra", DROP, false, NULL},
    {"-Wno-deprecated-gpu-targets", DROP, false, NULL},
    {"-allow-unsupported-compiler", DROP, false, NULL},
    {"--allow-unsupported-compiler", DROP, false, NULL},
    {"-Xcompiler", DROP_VALUE, false, NULL},
    {"--compiler-options", DROP_VALUE, false, NULL},
    {"-ccbin", DROP_VALUE, false, NULL},
    {"--compiler-bindir", DROP_VALUE, false, NULL},
    {"-Xlinker", DROP_VALUE, false, NULL},
    {"-gencode", REFUSE, false, NULL},
    {"--generate-code", REFUSE, false, NULL},
    {"-code", REFUSE, false, NULL},
    {"--gpu-code", REFUSE, false, NULL},
    {"-dlto", REFUSE, false, NULL},
    {"--dlink-time-opt", REFUSE, false, NULL},
    {"-rdc", REFUSE, false, NULL},
    {"--relocatable-device-code", REFUSE, false, NULL},
    {"-dc", REFUSE, false, NULL},
    {"--device-c", REFUSE, false, NULL},
    {"-ptx", REFUSE, false, NULL},
    {"-cubin", REFUSE, false, NULL},
    {"-o", REFUSE, false, NULL},
};

/* The rule for one option; *value is the part behind it, NULL when there is none. */
static const struct rule *find_rule(const char *option, const char **value)
{
    const struct rule *glued = NULL;
    *value = NULL;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        size_t n = strlen(rules[i].name);
        if (strncmp(option, rules[i].name, n) != 0)
            continue;
        if (option[n] == 0)
            return &rules[i];
        /* a whole option between quotes: "-Xptxas -O1" */
        if (option[n] == '=' || option[n] == ' ') {
            *value = option + n + 1;
            return &rules[i];
        }
        if (rules[i].glued) {
            glued = &rules[i];
            *value = option + n;
        }
    }
    return glued;
}

/* Takes `text`, which may be NULL (out of memory). */
static kopt_status take(struct kp_cuda_options *o, char *text, kopt_error *err)
{
    if (text && kp_grow((void **)&o->list, &o->cap, o->n, sizeof(*o->list), OPTIONS_MAX)) {
        o->list[o->n++] = text;
        return KOPT_OK;
    }
    kp_free(text);
    if (text && o->n >= OPTIONS_MAX)
        return kp_err(err, KOPT_EINPUT, "more than %d compiler options", OPTIONS_MAX);
    return kp_err_nomem(err);
}

/* "name=value", or the name alone. */
static kopt_status add(struct kp_cuda_options *o, const char *name, struct kp_str value,
                       kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(OPTION_BYTES_MAX);
    kp_buf_adds(&text, name);
    if (value.ptr) {
        kp_buf_addc(&text, '=');
        kp_buf_add(&text, value.ptr, value.len);
    }
    kopt_status st = kp_buf_status(&text, err);
    if (st == KOPT_OK)
        return take(o, kp_buf_take(&text), err);
    kp_buf_deinit(&text);
    if (st == KOPT_ERANGE)
        return kp_err(err, KOPT_EINPUT, "a compiler option of more than %d bytes",
                      OPTION_BYTES_MAX);
    return st;
}

static kopt_status add_path(struct kp_cuda_options *o, const char *name, const char *path,
                            const struct kp_compile_job *job, kopt_error *err)
{
    char *dir = job->path ? kp_path_dir(job->path) : kp_strdup("");
    char *full = dir ? kp_path_join(dir, path) : NULL;
    kopt_status st = full ? add(o, name, kp_str_from(full), err) : kp_err_nomem(err);
    kp_free(dir);
    kp_free(full);
    return st;
}

/* nvcc splits the list at commas, NVRTC does not. */
static kopt_status add_ptxas(struct kp_cuda_options *o, const char *name, const char *value,
                             kopt_error *err)
{
    struct kp_str rest = kp_str_from(value);
    kopt_status st = KOPT_OK;
    while (rest.len && st == KOPT_OK) {
        struct kp_str one = kp_str_trim(kp_str_cut(rest, ',', &rest));
        if (kp_str_is(one, "-v") || kp_str_is(one, "--verbose"))
            o->ptxas_verbose = true;
        else if (one.len)
            st = add(o, name, one, err);
    }
    return st;
}

/* Only another flavour of the same architecture will do: "sm_90a" for "sm_90". It takes the
 * first place of the list, where ours stood. */
static kopt_status set_arch(struct kp_cuda_options *o, const char *arch, const char *value,
                            kopt_error *err)
{
    size_t digits = 3 + strspn(arch + 3, "0123456789");
    if (strncmp(value, arch, digits) == 0 &&
        strspn(value + digits, "af") == strlen(value + digits)) {
        kopt_status st = add(o, "--gpu-architecture", kp_str_from(value), err);
        if (st == KOPT_OK) {
            kp_free(o->list[0]);
            o->list[0] = o->list[--o->n];
        }
        return st;
    }
    kopt_status st =
        kp_err(err, KOPT_EINPUT, "compiler option -arch=%s: the device is %s", value, arch);
    kp_err_hint(err, "leave it out: kopt compiles for the device that it measures on");
    return st;
}

static kopt_status refuse(const char *option, kopt_error *err)
{
    kopt_status st = kp_err(err, KOPT_EINPUT, "compiler option %s cannot be used here", option);
    kp_err_hint(err, "leave it out: kopt makes one complete cubin for the device itself");
    return st;
}

/* One option of the user's; *i moves on when it takes the next one as its value. */
static kopt_status add_user(struct kp_cuda_options *o, const struct kp_compile_job *job,
                            const char *arch, size_t *i, struct kp_buf *notes, kopt_error *err)
{
    const char *option = job->options[*i];
    const char *value;
    const struct rule *r = find_rule(option, &value);
    enum kind kind = r ? r->kind : PASS;
    if (option[0] != '-')
        return kp_err(err, KOPT_EINPUT, "compiler option \"%s\" does not begin with '-'",
                      option);
    if (kind != PASS && kind != DROP && kind != SILENCE && kind != REFUSE && !value) {
        if (*i + 1 >= job->n_options)
            return kp_err(err, KOPT_EINPUT, "compiler option %s needs a value", option);
        value = job->options[++*i];
    }
    const char *name = r && r->nvrtc ? r->nvrtc : r ? r->name : option;
    switch (kind) {
    case PASS:
        return add(o, option, (struct kp_str){0}, err);
    case VALUE:
    case STANDARD:
        return add(o, name, kp_str_from(value), err);
    case PATH:
        return add_path(o, name, value, job, err);
    case PTXAS:
        return add_ptxas(o, name, value, err);
    case ARCH:
        return set_arch(o, arch, value, err);
    case DROP:
    case DROP_VALUE:
        kp_buf_addf(notes,
                    "kopt: %s is left out: it concerns host code, and device code is always "
                    "optimised in full\n",
                    option);
        return KOPT_OK;
    case SILENCE:
        return KOPT_OK;
    case REFUSE:
        break;
    }
    return refuse(option, err);
}

static bool chooses_standard(const struct kp_compile_job *job)
{
    for (size_t i = 0; i < job->n_options; i++) {
        const char *value;
        const struct rule *r = find_rule(job->options[i], &value);
        if (r && r->kind == STANDARD)
            return true;
    }
    return false;
}

kopt_status kp_cuda_options_build(const struct kp_compile_job *job, const char *arch,
                                  char *const includes[2], struct kp_buf *notes,
                                  struct kp_cuda_options *out, kopt_error *err)
{
    kopt_status st = add(out, "--gpu-architecture", kp_str_from(arch), err);
    if (st == KOPT_OK && !chooses_standard(job))
        st = add(out, "--std", KP_STR("c++17"), err);
    char *folder = kp_path_dir(job->path ? job->path : "");
    if (st == KOPT_OK)
        st = folder ? add(out, "--include-path", kp_str_from(folder), err) : kp_err_nomem(err);
    kp_free(folder);
    for (size_t i = 0; i < job->n_options && st == KOPT_OK; i++)
        st = add_user(out, job, arch, &i, notes, err);
    for (size_t i = 0; i < 2 && st == KOPT_OK; i++) {
        if (includes[i])
            st = add(out, "--include-path", kp_str_from(includes[i]), err);
    }
    if (st == KOPT_OK && out->no_cache)
        st = add(out, "--no-cache", (struct kp_str){0}, err);
    /* Registers, stack and spills are taken from what ptxas tells; see compile_log.h. */
    if (st == KOPT_OK && (out->ask_resources || out->ptxas_verbose))
        st = add(out, "--ptxas-options", KP_STR("-v"), err);
    return st;
}

void kp_cuda_options_deinit(struct kp_cuda_options *o)
{
    for (size_t i = 0; i < o->n; i++)
        kp_free(o->list[i]);
    kp_free(o->list);
    memset(o, 0, sizeof(*o));
}
