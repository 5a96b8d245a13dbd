/* SPDX-License-Identifier: MIT */
/* Layers that networks share. Layer: model. */
#include "model/models.h"

#include "math/thin.h"
#include "nn/layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

float kp_net_spread(size_t fan_in)
{
    return sqrtf(2.0F / (float)fan_in);
}

void kp_residual_declare(struct kp_net *net, size_t first)
{
    static const char *const parts[KP_RESIDUAL_COUNT] = {"norm.g", "norm.b", "w", "b"};
    size_t H = net->shape.hidden;
    char name[KP_TENSOR_NAME];
    for (size_t l = 0; l < net->shape.layers; l++) {
        for (size_t k = 0; k < KP_RESIDUAL_COUNT; k++) {
            bool w = k == KP_RESIDUAL_W;
            (void)snprintf(name, sizeof(name), "layer%zu.%s", l, parts[k]);
            kp_net_declare(net, first + KP_RESIDUAL_COUNT * l + k, name, w ? H : 1, H,
                           k == KP_RESIDUAL_NORM_G ? KP_INIT_ONE
                           : w                     ? KP_INIT_NORMAL
                                                   : KP_INIT_ZERO,
                           w ? kp_net_spread(H) : 0);
        }
    }
}

static struct kp_linear layer_at(const struct kp_net *net, size_t at, size_t B)
{
    size_t H = net->shape.hidden;
    return (struct kp_linear){B, H, H, kp_net_w(net, at + KP_RESIDUAL_W),
                              kp_net_w(net, at + KP_RESIDUAL_B)};
}

void kp_residual_pack(const struct kp_net *net, size_t first, kp_half *packed)
{
    size_t H = net->shape.hidden;
    for (size_t l = 0; l < net->shape.layers; l++)
        kp_pack(H, H, kp_net_w(net, first + KP_RESIDUAL_COUNT * l + KP_RESIDUAL_W), H, 1,
                packed + l * kp_pack_size(H, H));
}

void kp_residual_forward(const struct kp_net *net, const struct kp_residual *r, uint64_t key)
{
    size_t H = net->shape.hidden;
    size_t n = r->B * H;
    for (size_t l = 0; l < net->shape.layers; l++) {
        size_t at = r->first + KP_RESIDUAL_COUNT * l;
        const struct kp_linear lin = layer_at(net, at, r->B);
        const kp_half *packed = r->packed ? r->packed + l * kp_pack_size(H, H) : NULL;
        kp_layernorm_forward(r->B, H, r->h + l * n, kp_net_w(net, at + KP_RESIDUAL_NORM_G),
                             kp_net_w(net, at + KP_RESIDUAL_NORM_B), r->norm + l * n,
                             r->keep + l * r->B * 2);
        kp_linear_forward_packed(net->blas, &lin, packed, r->norm + l * n, r->pre + l * n);
        kp_silu_forward(r->pre + l * n, n, r->add);
        kp_net_drop(net, key, l + 1, r->add, n);
        for (size_t i = 0; i < n; i++)
            r->h[(l + 1) * n + i] = r->h[l * n + i] + r->add[i];
    }
}

void kp_residual_backward(const struct kp_net *net, const struct kp_residual *r, uint64_t key,
                          float *dh, float *grad)
{
    size_t H = net->shape.hidden;
    size_t n = r->B * H;
    for (size_t l = net->shape.layers; l-- > 0;) {
        size_t at = r->first + KP_RESIDUAL_COUNT * l;
        const struct kp_linear lin = layer_at(net, at, r->B);
        float *dpre = r->pre + l * n;
        memcpy(r->add, dh, n * sizeof(float));
        kp_net_drop(net, key, l + 1, r->add, n);
        kp_silu_backward(dpre, n, r->add, dpre);
        kp_linear_backward(net->blas, &lin, r->norm + l * n, dpre, r->add,
                           kp_net_g(net, grad, at + KP_RESIDUAL_W),
                           kp_net_g(net, grad, at + KP_RESIDUAL_B));
        kp_layernorm_backward(r->B, H, r->h + l * n, kp_net_w(net, at + KP_RESIDUAL_NORM_G),
                              r->keep + l * r->B * 2, r->add, dpre,
                              kp_net_g(net, grad, at + KP_RESIDUAL_NORM_G),
                              kp_net_g(net, grad, at + KP_RESIDUAL_NORM_B));
        for (size_t i = 0; i < n; i++)
            dh[i] += dpre[i];
    }
}
