/* SPDX-License-Identifier: MIT */
/* Properties of OpenCL devices. Layer: device. */
#include "base/hash.h"
#include "device/opencl/cl.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From extensions' specifications and OpenCL 3.0; asking an older device is harmless. */
enum {
    PREFERRED_GROUP_MULTIPLE = 0x1067, /* OpenCL 3.0 */
    WARP_SIZE_NV = 0x4003,             /* cl_nv_device_attribute_query */
    REGISTERS_PER_BLOCK_NV = 0x4002,
    WAVEFRONT_WIDTH_AMD = 0x4043, /* cl_amd_device_attribute_query */
    PCI_BUS_INFO_KHR = 0x410f,    /* cl_khr_pci_bus_info */
    UUID_KHR = 0x106a             /* cl_khr_device_uuid */
};

enum { TEXT_MAX = 1024, MAX_DIMENSIONS = 16 };

static void text_of(const struct kp_cl_api *cl, cl_device_id d, cl_device_info what,
                    char out[TEXT_MAX])
{
    out[0] = 0;
    size_t n = 0;
    if (cl->clGetDeviceInfo(d, what, TEXT_MAX - 1, out, &n) != CL_SUCCESS)
        n = 0;
    out[n < TEXT_MAX ? n : TEXT_MAX - 1] = 0;
}

static int64_t number_of(const struct kp_cl_api *cl, cl_device_id d, cl_device_info what)
{
    cl_ulong v = 0; /* large enough for every scalar, and little-endian */
    size_t n = 0;
    if (cl->clGetDeviceInfo(d, what, sizeof(v), &v, &n) != CL_SUCCESS || n > sizeof(v))
        return 0;
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* The first number in a small file of the kernel's, times 1024 where a K stands behind it. */
static int64_t read_number(const char *path)
{
    struct kp_buf text = KP_BUF_INIT(256);
    int64_t v = 0;
    if (kp_file_read(path, &text, NULL) == KOPT_OK) {
        char *end;
        v = strtoll(kp_buf_text(&text), &end, 10);
        if (*end == 'K')
            v *= 1024;
        else if (*end == 'M')
            v *= (int64_t)1024 * 1024;
    }
    kp_buf_deinit(&text);
    return v;
}

/* OpenCL reports little of a CPU's caches: the last level as the system knows it. */
static int64_t last_level_cache(void)
{
    int64_t best = 0;
    int64_t best_level = 0;
    for (int i = 0; i < 8; i++) {
        char path[96];
        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level",
                       i);
        int64_t level = read_number(path);
        if (level <= best_level)
            continue;
        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size",
                       i);
        best = read_number(path);
        best_level = level;
    }
    return best;
}

uint64_t kp_cl_host_available(void)
{
    static const char key[] = "MemAvailable:";
    struct kp_buf text = KP_BUF_INIT(64 << 10);
    uint64_t kib = 0;
    if (kp_file_read("/proc/meminfo", &text, NULL) == KOPT_OK) {
        const char *p = strstr(kp_buf_text(&text), key);
        if (p)
            kib = strtoull(p + sizeof(key) - 1, NULL, 10);
    }
    kp_buf_deinit(&text);
    return kib * 1024;
}

static void fill_limits(const struct kp_cl_api *cl, const struct kp_cl_found *f,
                        struct kp_limits *out)
{
    cl_device_id d = f->device;
    size_t sizes[MAX_DIMENSIONS] = {0};
    (void)cl->clGetDeviceInfo(d, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes, NULL);
    for (int i = 0; i < 3; i++)
        out->max_block[i] = sizes[i] > INT64_MAX ? INT64_MAX : (int64_t)sizes[i];
    out->max_threads = number_of(cl, d, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    out->shared_bytes = number_of(cl, d, CL_DEVICE_LOCAL_MEM_SIZE);
    out->registers = number_of(cl, d, REGISTERS_PER_BLOCK_NV);
    out->compute_units = number_of(cl, d, CL_DEVICE_MAX_COMPUTE_UNITS);
    out->global_bytes = number_of(cl, d, CL_DEVICE_GLOBAL_MEM_SIZE);
    out->clock_khz = 1000 * number_of(cl, d, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    out->l2_bytes = f->type & CL_DEVICE_TYPE_CPU ? last_level_cache() : 0;
    if (out->l2_bytes <= 0)
        out->l2_bytes = number_of(cl, d, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    static const cl_device_info widths[] = {WARP_SIZE_NV, WAVEFRONT_WIDTH_AMD,
                                            PREFERRED_GROUP_MULTIPLE};
    for (size_t i = 0; i < sizeof(widths) / sizeof(*widths) && out->warp <= 0; i++)
        out->warp = number_of(cl, d, widths[i]);
    if (out->warp <= 0)
        out->warp = 1;
}

static void fill_id(const struct kp_cl_api *cl, cl_device_id d, char *out, size_t size)
{
    cl_uint pci[4] = {0}; /* domain, bus, device, function */
    unsigned char uuid[16];
    size_t n = 0;
    if (cl->clGetDeviceInfo(d, PCI_BUS_INFO_KHR, sizeof(pci), pci, &n) == CL_SUCCESS &&
        n == sizeof(pci)) {
        (void)snprintf(out, size, "%04x:%02x:%02x.%x", pci[0], pci[1], pci[2], pci[3]);
    } else if (cl->clGetDeviceInfo(d, UUID_KHR, sizeof(uuid), uuid, &n) == CL_SUCCESS &&
               n == sizeof(uuid)) {
        for (size_t i = 0; i < sizeof(uuid) && 2 * i + 3 <= size; i++)
            (void)snprintf(out + 2 * i, 3, "%02x", uuid[i]);
    }
}

/* What images are made for. PoCL says it at the end of the device's version. */
static void fill_arch(bool pocl, const char *version, const char *name, char *out, size_t size)
{
    static const char key[] = "HSTR: ";
    const char *target = pocl ? strstr(version, key) : NULL;
    char text[2 * TEXT_MAX];
    if (target)
        (void)snprintf(text, sizeof(text), "%s", target + sizeof(key) - 1);
    else
        (void)snprintf(text, sizeof(text), "%s %s", version, name);
    size_t n = strlen(text);
    if (n < size) {
        memcpy(out, text, n + 1);
        return;
    }
    /* Two long names must not become the same key. */
    struct kp_sha256 *h = NULL;
    char hex[KP_SHA256_HEX + 1] = "";
    if (kp_sha256_new(&h, NULL) == KOPT_OK) {
        kp_sha256_add_text(h, text);
        kp_sha256_finish(h, hex);
    }
    (void)snprintf(out, size, "%.*s %.12s", (int)size - 14, text, hex);
}

/* "LLVM 15.0.6" out of a platform's version text. */
static void llvm_of(const char *version, char out[64])
{
    const char *p = strstr(version, "LLVM ");
    out[0] = 0;
    if (p)
        (void)snprintf(out, 64, ", %.*s", (int)strcspn(p, ","), p);
}

kopt_status kp_cl_info(const struct kp_cl_lib *lib, int index, struct kp_device_info *out,
                       kopt_error *err)
{
    if (index < 0 || (size_t)index >= lib->n_found)
        return kp_err(err, KOPT_EDEVICE, "there is no OpenCL device %d", index);
    const struct kp_cl_found *f = &lib->found[index];
    const struct kp_cl_api *cl = &lib->api;
    char name[TEXT_MAX];
    char version[TEXT_MAX];
    char driver[TEXT_MAX];
    char platform[TEXT_MAX] = "";
    char platform_version[TEXT_MAX] = "";
    char llvm[64];
    *out = (struct kp_device_info){.backend = KP_BACKEND_OPENCL, .index = index};
    text_of(cl, f->device, CL_DEVICE_NAME, name);
    text_of(cl, f->device, CL_DEVICE_VERSION, version);
    text_of(cl, f->device, CL_DRIVER_VERSION, driver);
    (void)cl->clGetPlatformInfo(f->platform, CL_PLATFORM_NAME, TEXT_MAX - 1, platform, NULL);
    (void)cl->clGetPlatformInfo(f->platform, CL_PLATFORM_VERSION, TEXT_MAX - 1,
                                platform_version, NULL);
    if (!name[0])
        return kp_err(err, KOPT_EDEVICE, "OpenCL device %d does not answer", index);
    llvm_of(platform_version, llvm);
    (void)snprintf(out->name, sizeof(out->name), "%.127s", name);
    (void)snprintf(out->driver, sizeof(out->driver), "%.80s %.40s", platform, driver);
    (void)snprintf(out->compiler, sizeof(out->compiler), "%.50s %.40s%.30s",
                   f->pocl ? "PoCL" : platform, driver, llvm);
    fill_arch(f->pocl, version, name, out->arch, sizeof(out->arch));
    fill_id(cl, f->device, out->id, sizeof(out->id));
    out->is_cpu = (f->type & CL_DEVICE_TYPE_CPU) != 0;
    fill_limits(cl, f, &out->limits);
    return KOPT_OK;
}
