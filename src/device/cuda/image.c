/* SPDX-License-Identifier: MIT */
#include "device/cuda/image.h"

#include <string.h>

static const char magic_text[8] = {'k', 'p', 'C', 'U', 'D', 'A', '1', '\n'};

enum {
    F_ENTRY_BYTES, /* names: without NUL */
    F_LOWERED_BYTES,
    F_CUBIN_BYTES,
    F_REGISTERS,
    F_SHARED_BYTES,
    F_STACK_BYTES,
    N_FIELDS,
    HEADER_BYTES = 8 + 8 * N_FIELDS,
    ALIGN = 16,
    NAME_BYTES_MAX = 1 << 20
};

static void put64(struct kp_buf *out, uint64_t v)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    kp_buf_add(out, bytes, sizeof(bytes));
}

/* Little-endian, `n` bytes. */
static uint64_t get(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

void kp_cuda_image_write(const struct kp_cuda_image *image, struct kp_buf *out)
{
    size_t n_entry = strlen(image->entry);
    size_t n_lowered = strlen(image->lowered);
    size_t used = HEADER_BYTES + n_entry + 1 + n_lowered + 1;
    static const char zeros[ALIGN] = {0};
    kp_buf_add(out, magic_text, sizeof(magic_text));
    put64(out, n_entry);
    put64(out, n_lowered);
    put64(out, image->cubin_bytes);
    put64(out, (uint64_t)image->resources.registers);
    put64(out, (uint64_t)image->resources.shared_bytes);
    put64(out, (uint64_t)image->resources.stack_bytes);
    kp_buf_add(out, image->entry, n_entry + 1);
    kp_buf_add(out, image->lowered, n_lowered + 1);
    kp_buf_add(out, zeros, (ALIGN - used % ALIGN) % ALIGN);
    kp_buf_add(out, image->cubin, image->cubin_bytes);
}

/* Is it a 64-bit ELF file whose header tables and sections lie within its bytes?
 * System V ABI, "ELF-64 Object File Format". */
static bool elf_is_whole(const unsigned char *p, size_t n)
{
    enum { ELF_HEADER = 64, SECTION_HEADER = 64, NOBITS = 8 };
    if (n < ELF_HEADER || memcmp(p, "\177ELF\2\1", 6) != 0)
        return false;
    uint64_t table = get(p + 40, 8);
    uint64_t entry_bytes = get(p + 58, 2);
    uint64_t count = get(p + 60, 2);
    if (entry_bytes < SECTION_HEADER || count == 0 || table > n ||
        count * entry_bytes > n - table)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *section = p + table + i * entry_bytes;
        uint64_t at = get(section + 24, 8);
        uint64_t bytes = get(section + 32, 8);
        if (get(section + 4, 4) != NOBITS && (at > n || bytes > n - at))
            return false;
    }
    return true;
}

bool kp_cuda_image_parse(const void *bytes, size_t n, struct kp_cuda_image *out)
{
    const unsigned char *p = bytes;
    uint64_t f[N_FIELDS];
    memset(out, 0, sizeof(*out));
    if (n < HEADER_BYTES || memcmp(p, magic_text, sizeof(magic_text)) != 0)
        return false;
    for (size_t i = 0; i < N_FIELDS; i++)
        f[i] = get(p + 8 + 8 * i, 8);
    if (f[F_ENTRY_BYTES] > NAME_BYTES_MAX || f[F_LOWERED_BYTES] > NAME_BYTES_MAX)
        return false;
    size_t lowered = HEADER_BYTES + (size_t)f[F_ENTRY_BYTES] + 1;
    size_t end = lowered + (size_t)f[F_LOWERED_BYTES] + 1;
    size_t cubin = (end + ALIGN - 1) / ALIGN * ALIGN;
    if (cubin > n || f[F_CUBIN_BYTES] != n - cubin || p[lowered - 1] != 0 || p[end - 1] != 0 ||
        !elf_is_whole(p + cubin, n - cubin))
        return false;
    out->entry = (const char *)p + HEADER_BYTES;
    out->lowered = (const char *)p + lowered;
    out->resources.registers = (int64_t)f[F_REGISTERS];
    out->resources.shared_bytes = (int64_t)f[F_SHARED_BYTES];
    out->resources.stack_bytes = (int64_t)f[F_STACK_BYTES];
    out->cubin = p + cubin;
    out->cubin_bytes = n - cubin;
    return true;
}
