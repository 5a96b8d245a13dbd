/* SPDX-License-Identifier: MIT */
/* The plate of hotspot.cl and hotspot.cu, step after step in double precision. */
#include <math.h>
#include <stdlib.h>

struct plate {
    int W, H;
    double spread, loss, ambient, gain;
};

static void step(const struct plate *plate, const float *P, const double *old, double *now)
{
    long long W = plate->W, H = plate->H;
#pragma omp parallel for
    for (long long y = 0; y < H; y++) {
        const double *row = old + y * W;
        const double *above = y > 0 ? row - W : row;
        const double *below = y < H - 1 ? row + W : row;
        for (long long x = 0; x < W; x++) {
            double t = row[x];
            double west = x > 0 ? row[x - 1] : t, east = x < W - 1 ? row[x + 1] : t;
            now[y * W + x] = t + plate->spread * (above[x] + below[x] + west + east - 4 * t) +
                             plate->loss * (plate->ambient - t) + plate->gain * P[y * W + x];
        }
    }
}

void hotspot_ref(const float *T, const float *P, float *R, int W, int H, int STEPS,
                 float spread, float loss, float ambient, float gain)
{
    struct plate plate = {W, H, spread, loss, ambient, gain};
    size_t n = (size_t)W * (size_t)H;
    double *old = malloc(n * sizeof(*old));
    double *now = malloc(n * sizeof(*now));

    if (old && now) {
        for (size_t i = 0; i < n; i++)
            old[i] = T[i];
        for (int s = 0; s < STEPS; s++) {
            step(&plate, P, old, now);
            double *other = old;
            old = now;
            now = other;
        }
    }
    for (size_t i = 0; i < n; i++) /* without memory there is no answer */
        R[i] = old && now ? (float)old[i] : NAN;
    free(old);
    free(now);
}
