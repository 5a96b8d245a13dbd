/* SPDX-License-Identifier: MIT */
#include "device/cuda/nvrtc.h"

#include "base/alloc.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MAX = 64, ARCHS_MAX = 128 };

/* Newest first: a newer one knows every architecture that is still supported. */
static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                      "libnvrtc.so"};
enum { N_SONAMES = sizeof(sonames) / sizeof(sonames[0]) };

/* Where toolkits keep it, and where Python's packages do within site-packages. */
static const char *const toolkit_dirs[] = {"/usr/local/cuda/lib64",
                                           "/usr/local/cuda/targets/x86_64-linux/lib"};
static const char *const named_dirs[] = {
    "", "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

static const char install_hint[] =
    "install CUDA's NVRTC (Debian: apt install nvidia-cuda-toolkit), or pip install "
    "nvidia-cuda-nvrtc and set KOPT_NVRTC_LIBRARY to site-packages";

/* Nothing in libkopt changes the environment. */
static const char *env_text(const char *name)
{
    const char *s = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
    return s && s[0] ? s : NULL;
}

static bool is_dir(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* "a/b/c" in memory of its own; NULL when out of memory. */
static char *join3(const char *a, const char *b, const char *c)
{
    char *ab = kp_path_join(a, b);
    char *abc = ab ? kp_path_join(ab, c) : NULL;
    kp_free(ab);
    return abc;
}

/* --- finding the library --------------------------------------------------------------- */

struct names {
    const char *list[NAMES_MAX];
    char *owned[NAMES_MAX];
    size_t n;
    size_t n_owned;
};

static void names_deinit(struct names *names)
{
    for (size_t i = 0; i < names->n_owned; i++)
        kp_free(names->owned[i]);
}

/* The libraries that lie in the folder. False when out of memory. */
static bool add_dir(struct names *names, const char *dir, const char *sub)
{
    for (size_t i = 0; i < N_SONAMES && names->n < NAMES_MAX; i++) {
        char *path = join3(dir, sub, sonames[i]);
        if (!path)
            return false;
        if (kp_file_exists(path)) {
            names->owned[names->n_owned++] = path;
            names->list[names->n++] = path;
        } else {
            kp_free(path);
        }
    }
    return true;
}

static kopt_status open_in_folder(const char *folder, struct kp_dl **out, kopt_error *err)
{
    struct names names = {0};
    kopt_status st;
    for (size_t i = 0; i < sizeof(named_dirs) / sizeof(named_dirs[0]); i++) {
        if (!add_dir(&names, folder, named_dirs[i])) {
            st = kp_err_nomem(err);
            goto done;
        }
    }
    if (names.n)
        st = kp_dl_open(names.list, names.n, NULL, out, err);
    else
        st = kp_err(err, KOPT_EENV,
                    "no libnvrtc.so in %s or in its lib64, lib, nvidia/cu13/lib or "
                    "nvidia/cuda_nvrtc/lib (named by KOPT_NVRTC_LIBRARY)",
                    folder);
done:
    names_deinit(&names);
    return st;
}

static kopt_status open_anywhere(struct kp_dl **out, kopt_error *err)
{
    struct names names = {0};
    kopt_status st;
    for (size_t i = 0; i < N_SONAMES; i++)
        names.list[names.n++] = sonames[i];
    for (size_t i = 0; i < sizeof(toolkit_dirs) / sizeof(toolkit_dirs[0]); i++) {
        if (!add_dir(&names, toolkit_dirs[i], "")) {
            st = kp_err_nomem(err);
            goto done;
        }
    }
    st = kp_dl_open(names.list, names.n, "KOPT_NVRTC_LIBRARY", out, err);
done:
    names_deinit(&names);
    return st;
}

static kopt_status open_library(struct kp_dl **out, kopt_error *err)
{
    const char *named = env_text("KOPT_NVRTC_LIBRARY");
    kopt_status st =
        named && is_dir(named) ? open_in_folder(named, out, err) : open_anywhere(out, err);
    if (st == KOPT_EENV) {
        kp_err_wrap(err, "NVRTC");
        kp_err_hint(err, "%s", install_hint);
    }
    return st;
}

static kopt_status find_symbols(struct kp_nvrtc *n, kopt_error *err)
{
    const char *missing = NULL;
    enum { O, R };
#define X(need, field, type, params)                                     \
    if (!KP_DL_GET(n->dl, #field, &n->field) && (need) == R && !missing) \
        missing = #field;
    KP_NVRTC_FUNCTIONS(X)
#undef X
    if (!missing)
        return KOPT_OK;
    kopt_status st =
        kp_err(err, KOPT_EENV, "NVRTC: %s has no function %s", kp_dl_name(n->dl), missing);
    kp_err_hint(err, "NVRTC of CUDA 11.2 or later is needed");
    return st;
}

/* --- CUDA's own headers ---------------------------------------------------------------- */

/* Take `dir`/`sub` when the headers are there. KOPT_ENOTFOUND without a message: they are not.
 */
static kopt_status try_includes(struct kp_nvrtc *n, const char *dir, const char *sub)
{
    char *folder = kp_path_join(dir, sub);
    char *probe = join3(dir, sub, "cuda_fp16.h");
    char *cccl = join3(dir, sub, "cccl");
    kopt_status st = KOPT_ENOTFOUND;
    if (!folder || !probe || !cccl) {
        st = KOPT_ENOMEM;
    } else if (kp_file_exists(probe)) {
        n->includes[0] = folder;
        folder = NULL;
        if (is_dir(cccl)) {
            n->includes[1] = cccl;
            cccl = NULL;
        }
        st = KOPT_OK;
    }
    kp_free(folder);
    kp_free(probe);
    kp_free(cccl);
    return st;
}

/* A library opened by its path has its headers near: <toolkit>/lib64 beside <toolkit>/include,
 * and Python's nvidia/cuda_nvrtc/lib beside nvidia/cuda_runtime/include. */
static kopt_status try_beside(struct kp_nvrtc *n)
{
    static const char *const from_lib[] = {"../include", "../../../include",
                                           "../../cuda_runtime/include"};
    if (!strchr(kp_dl_name(n->dl), '/'))
        return KOPT_ENOTFOUND;
    char *dir = kp_path_dir(kp_dl_name(n->dl));
    if (!dir)
        return KOPT_ENOMEM;
    kopt_status st = KOPT_ENOTFOUND;
    for (size_t i = 0; i < sizeof(from_lib) / sizeof(from_lib[0]) && st == KOPT_ENOTFOUND; i++)
        st = try_includes(n, dir, from_lib[i]);
    kp_free(dir);
    return st;
}

static kopt_status find_includes(struct kp_nvrtc *n, kopt_error *err)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    static const char *const places[] = {"/usr/local/cuda", "/usr/lib/cuda", "/usr"};
    kopt_status st = KOPT_ENOTFOUND;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *dir = env_text(variables[i]);
        if (dir && st == KOPT_ENOTFOUND)
            st = try_includes(n, dir, "include");
    }
    if (st == KOPT_ENOTFOUND)
        st = try_beside(n);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && st == KOPT_ENOTFOUND; i++)
        st = try_includes(n, places[i], "include");
    return st == KOPT_ENOMEM ? kp_err_nomem(err) : KOPT_OK;
}

/* --- opening --------------------------------------------------------------------------- */

kopt_status kp_nvrtc_open(const struct kp_log *log, struct kp_nvrtc *out, kopt_error *err)
{
    memset(out, 0, sizeof(*out));
    kopt_status st = open_library(&out->dl, err);
    if (st == KOPT_OK)
        st = find_symbols(out, err);
    if (st == KOPT_OK)
        st = find_includes(out, err);
    if (st != KOPT_OK)
        goto done;
    if (out->nvrtcVersion(&out->version[0], &out->version[1]) != KP_NVRTC_SUCCESS) {
        st = kp_err(err, KOPT_EENV, "NVRTC: %s does not tell its version", kp_dl_name(out->dl));
        goto done;
    }
    kp_log(log, KP_LOG_DEBUG, "NVRTC %d.%d: %s, headers in %s", out->version[0],
           out->version[1], kp_dl_name(out->dl), out->includes[0] ? out->includes[0] : "none");
done:
    if (st != KOPT_OK)
        kp_nvrtc_close(out);
    return st;
}

void kp_nvrtc_close(struct kp_nvrtc *n)
{
    kp_dl_close(n->dl);
    kp_free(n->includes[0]);
    kp_free(n->includes[1]);
    memset(n, 0, sizeof(*n));
}

void kp_nvrtc_version_text(const struct kp_nvrtc *n, char *out, size_t bytes)
{
    (void)snprintf(out, bytes, "NVRTC %d.%d", n->version[0], n->version[1]);
}

bool kp_nvrtc_knows(const struct kp_nvrtc *n, int cc, char *range, size_t range_bytes)
{
    int archs[ARCHS_MAX];
    int count = 0;
    bool found = false;
    range[0] = 0;
    if (!n->nvrtcGetNumSupportedArchs || !n->nvrtcGetSupportedArchs ||
        n->nvrtcGetNumSupportedArchs(&count) != KP_NVRTC_SUCCESS || count < 1 ||
        count > ARCHS_MAX || n->nvrtcGetSupportedArchs(archs) != KP_NVRTC_SUCCESS)
        return true;
    for (int i = 0; i < count; i++)
        found = found || archs[i] == cc;
    (void)snprintf(range, range_bytes, "%d to %d", archs[0], archs[count - 1]);
    return found;
}
