/* SPDX-License-Identifier: MIT */
#include "space/kernel.h"

#include "base/alloc.h"
#include "space/kernel_impl.h"

#include <string.h>

/* The tolerance is that of sums of some thousand products of numbers near 1 in another order.
 */
static const struct element {
    const char *name;
    size_t bytes;
    bool is_float;
    double tolerance;
} elements[] = {
    [KP_I8] = {"i8", 1, false, 0},     [KP_U8] = {"u8", 1, false, 0},
    [KP_I16] = {"i16", 2, false, 0},   [KP_U16] = {"u16", 2, false, 0},
    [KP_I32] = {"i32", 4, false, 0},   [KP_U32] = {"u32", 4, false, 0},
    [KP_I64] = {"i64", 8, false, 0},   [KP_U64] = {"u64", 8, false, 0},
    [KP_F16] = {"f16", 2, true, 1e-2}, [KP_BF16] = {"bf16", 2, true, 5e-2},
    [KP_F32] = {"f32", 4, true, 1e-4}, [KP_F64] = {"f64", 8, true, 1e-10},
};

enum { N_ELEMENTS = sizeof(elements) / sizeof(elements[0]) };

size_t kp_elem_bytes(enum kp_elem e)
{
    return elements[e].bytes;
}

const char *kp_elem_name(enum kp_elem e)
{
    return elements[e].name;
}

bool kp_elem_is_float(enum kp_elem e)
{
    return elements[e].is_float;
}

bool kp_elem_fits(enum kp_elem e, int64_t v)
{
    switch (e) {
    case KP_I8:
        return v >= INT8_MIN && v <= INT8_MAX;
    case KP_U8:
        return v >= 0 && v <= UINT8_MAX;
    case KP_I16:
        return v >= INT16_MIN && v <= INT16_MAX;
    case KP_U16:
        return v >= 0 && v <= UINT16_MAX;
    case KP_I32:
        return v >= INT32_MIN && v <= INT32_MAX;
    case KP_U32:
        return v >= 0 && v <= UINT32_MAX;
    case KP_U64:
        return v >= 0;
    case KP_I64:
    case KP_F16:
    case KP_BF16:
    case KP_F32:
    case KP_F64:
        break;
    }
    return true;
}

double kp_elem_tolerance(enum kp_elem e)
{
    return elements[e].tolerance;
}

static bool parse_lanes(struct kp_str s, uint32_t *lanes)
{
    static const char *const counts[] = {"2", "3", "4", "8", "16"};
    static const uint32_t values[] = {2, 3, 4, 8, 16};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (kp_str_is(s, counts[i])) {
            *lanes = values[i];
            return true;
        }
    }
    return false;
}

bool kp_elem_parse(struct kp_str name, enum kp_elem *elem, uint32_t *lanes)
{
    struct kp_str count;
    struct kp_str base = kp_str_cut(name, 'x', &count);
    *lanes = 1;
    for (size_t i = 0; i < N_ELEMENTS; i++) {
        if (kp_str_is(base, elements[i].name)) {
            *elem = (enum kp_elem)i;
            return base.len == name.len || parse_lanes(count, lanes);
        }
    }
    return false;
}

static bool has_extension(const char *path, const char *extension)
{
    size_t n = strlen(path);
    size_t e = strlen(extension);
    return n > e && strcmp(path + n - e, extension) == 0;
}

static bool is_rules(const char *path)
{
    return has_extension(path, ".kopt");
}

static bool is_t1(const char *path)
{
    return has_extension(path, ".json");
}

static kopt_status build(struct kp_builder *b, struct kp_str text, bool from_disk,
                         bool need_source)
{
    struct kp_kernel *k = b->k;
    if (b->dialect == KP_DIALECT_PYTHON)
        return kp_kernel_read_t1(b, text, from_disk, need_source);
    const char *copy = NULL;
    kopt_status st = kp_builder_text(b, text, &copy);
    if (st != KOPT_OK)
        return st;
    k->source = (struct kp_str){copy, text.len};
    k->source_path = k->path;
    k->rules_only = is_rules(k->path);
    k->lang = has_extension(k->path, ".cu") || has_extension(k->path, ".cuh") ? KP_LANG_CUDA
                                                                              : KP_LANG_OPENCL;
    return kp_kernel_read_pragmas(b);
}

static kopt_status make(const char *path, struct kp_str text, bool from_disk, bool need_source,
                        struct kp_kernel **out, kopt_error *err)
{
    struct kp_builder b;
    kopt_status st =
        kp_builder_init(&b, path, is_t1(path) ? KP_DIALECT_PYTHON : KP_DIALECT_KOPT, err);
    if (st == KOPT_OK)
        st = build(&b, text, from_disk, need_source);
    if (st == KOPT_OK)
        st = kp_builder_finish(&b);
    if (st == KOPT_OK)
        *out = b.k;
    else
        kp_kernel_free(b.k);
    return st;
}

kopt_status kp_kernel_load(const char *path, bool need_source, struct kp_kernel **out,
                           kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(KP_KERNEL_FILE_MAX);
    *out = NULL;
    kopt_status st = kp_text_read(path, &text, err);
    if (st == KOPT_OK && need_source && is_rules(path)) {
        st = kp_err(err, KOPT_EINPUT, "%s: a rules file has no kernel that could be measured",
                    path);
        kp_err_hint(err, "give the kernel file or T1 file itself");
    }
    if (st == KOPT_OK)
        st = make(path, (struct kp_str){kp_buf_text(&text), text.len}, true, need_source, out,
                  err);
    kp_buf_deinit(&text);
    return st;
}

kopt_status kp_kernel_parse(const char *path, struct kp_str text, struct kp_kernel **out,
                            kopt_error *err)
{
    *out = NULL;
    if (text.len > KP_KERNEL_FILE_MAX)
        return kp_err(err, KOPT_EINPUT, "%s: larger than %d MiB", path,
                      KP_KERNEL_FILE_MAX >> 20);
    return make(path, text, false, false, out, err);
}

void kp_kernel_free(struct kp_kernel *k)
{
    if (!k)
        return;
    kp_scope_deinit(&k->scope);
    kp_arena_deinit(&k->arena);
    kp_free(k);
}
