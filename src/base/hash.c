/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include "base/alloc.h"

#include <string.h>

#include <openssl/evp.h>
#include <xxhash.h>

struct kp_sha256 {
    EVP_MD_CTX *ctx;
};

kopt_status kp_sha256_new(struct kp_sha256 **out, kopt_error *err)
{
    *out = NULL;
    struct kp_sha256 *h = kp_calloc(1, sizeof(*h));
    if (!h)
        return kp_err_nomem(err);
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        kp_sha256_free(h);
        return kp_err_nomem(err);
    }
    *out = h;
    return KOPT_OK;
}

void kp_sha256_add(struct kp_sha256 *h, const void *bytes, size_t n)
{
    /* SHA-256 of libcrypto fails for no input; the context was checked when it was made. */
    KP_CHECK(EVP_DigestUpdate(h->ctx, bytes, n) == 1);
}

void kp_sha256_add_field(struct kp_sha256 *h, const void *bytes, size_t n)
{
    unsigned char len[8];
    for (int i = 0; i < 8; i++)
        len[i] = (unsigned char)((uint64_t)n >> (8 * i));
    kp_sha256_add(h, len, sizeof(len));
    kp_sha256_add(h, bytes, n);
}

void kp_sha256_add_text(struct kp_sha256 *h, const char *s)
{
    kp_sha256_add_field(h, s, strlen(s));
}

void kp_sha256_finish(struct kp_sha256 *h, char out[KP_SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    KP_CHECK(EVP_DigestFinal_ex(h->ctx, md, &n) == 1 && n == KP_SHA256_HEX / 2);
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[md[i] >> 4];
        out[2 * i + 1] = digits[md[i] & 15];
    }
    out[KP_SHA256_HEX] = 0;
    kp_sha256_free(h);
}

void kp_sha256_free(struct kp_sha256 *h)
{
    if (!h)
        return;
    EVP_MD_CTX_free(h->ctx);
    kp_free(h);
}

uint64_t kp_hash64(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}
