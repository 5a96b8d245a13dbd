/* SPDX-License-Identifier: MIT */
#include "search/history.h"

#include "base/alloc.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

kopt_status kp_history_init(struct kp_history *h, size_t n_params, size_t max, kopt_error *err)
{
    *h = (struct kp_history){.n_params = n_params, .max = max};
    h->configs = kp_calloc(max * n_params + 1, sizeof(*h->configs));
    h->costs = kp_calloc(max, sizeof(*h->costs));
    h->order = kp_calloc(max, sizeof(*h->order));
    if (h->configs && h->costs && h->order)
        return KOPT_OK;
    kp_history_deinit(h);
    return kp_err_nomem(err);
}

void kp_history_deinit(struct kp_history *h)
{
    kp_free(h->configs);
    kp_free(h->costs);
    kp_free(h->order);
    *h = (struct kp_history){0};
}

/* Forget one of the worse half; its place is free. */
static size_t make_room(struct kp_history *h, struct kp_rng *rng)
{
    size_t half = h->n / 2;
    size_t k = half + (size_t)kp_rng_below(rng, h->n - half);
    size_t place = h->order[k];
    if (isfinite(h->costs[place]))
        h->n_ok--;
    memmove(h->order + k, h->order + k + 1, (h->n - k - 1) * sizeof(*h->order));
    h->n--;
    return place;
}

static bool before(const struct kp_history *h, size_t a, size_t b)
{
    if (h->costs[a] < h->costs[b])
        return true;
    return !(h->costs[b] < h->costs[a]) && a < b;
}

size_t kp_history_add(struct kp_history *h, const uint32_t *config, double cost,
                      struct kp_rng *rng)
{
    size_t place = h->n < h->max ? h->n : make_room(h, rng);
    memcpy(h->configs + place * h->n_params, config, h->n_params * sizeof(*config));
    h->costs[place] = cost;
    size_t low = 0;
    size_t high = h->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (before(h, h->order[mid], place))
            low = mid + 1;
        else
            high = mid;
    }
    memmove(h->order + low + 1, h->order + low, (h->n - low) * sizeof(*h->order));
    h->order[low] = (uint32_t)place;
    h->n++;
    if (isfinite(cost))
        h->n_ok++;
    return place;
}

const uint32_t *kp_history_at(const struct kp_history *h, size_t place)
{
    return h->configs + place * h->n_params;
}

const uint32_t *kp_history_best(const struct kp_history *h, size_t k)
{
    return kp_history_at(h, h->order[k]);
}

void kp_history_targets(const struct kp_history *h, float *out)
{
    double best = kp_log2_portable(h->costs[h->order[0]]);
    float worst = 0;
    for (size_t k = 0; k < h->n_ok; k++) {
        uint32_t place = h->order[k];
        worst = (float)(kp_log2_portable(h->costs[place]) - best);
        out[place] = worst;
    }
    for (size_t k = h->n_ok; k < h->n; k++)
        out[h->order[k]] = worst > 1 ? worst : 1;
}
