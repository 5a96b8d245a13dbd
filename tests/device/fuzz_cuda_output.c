/* SPDX-License-Identifier: MIT */
/* Whatever stands in a compiler's log or in an image, nothing may be read outside of it. */
#include "device/cuda/compile_log.h"
#include "device/cuda/image.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_log(struct kp_str log)
{
    const char *macros[] = {"BM=64", "F(x)=x"};
    const struct kp_compile_job job = {
        .path = "k.cu", .entry = "k", .macros = macros, .n_macros = 2};
    struct kp_buf out = KP_BUF_INIT(1 << 20);
    struct kp_cuda_resources r;
    kopt_error err;
    kopt_status st = kp_cuda_log_error(log, &job, &err);
    KP_CHECK(st == KOPT_EINPUT || st == KOPT_ERANGE || st == KOPT_ENOTFOUND);
    KP_CHECK(st == KOPT_ENOTFOUND || (err.code == st && err.line >= 0 && err.column >= 0));
    st = kp_cuda_log_redefined(log, &job, &err);
    KP_CHECK(st == KOPT_OK || st == KOPT_EINPUT);
    kp_cuda_log_resources(log, "_Z1kPf", &r);
    kp_cuda_log_clean(log, true, &out);
    KP_CHECK(out.failed || out.len <= log.len + 1);
    kp_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_cuda_image image;
    read_log((struct kp_str){(const char *)data, size});
    if (kp_cuda_image_parse(data, size, &image)) {
        KP_CHECK(strlen(image.entry) + strlen(image.lowered) < size);
        KP_CHECK((const uint8_t *)image.cubin + image.cubin_bytes == data + size);
    }
    return 0;
}
