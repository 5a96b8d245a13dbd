/* SPDX-License-Identifier: MIT */
/* The softmax of each row, as softmax.cl and softmax.cu compute it, in double precision. */
#include <math.h>

void softmax_ref(const float *x, float *y, int R, int C)
{
#pragma omp parallel for
    for (long long r = 0; r < R; r++) {
        const float *from = x + r * C;
        float *to = y + r * C;
        double max = from[0], sum = 0;

        for (int c = 1; c < C; c++)
            max = from[c] > max ? from[c] : max;
        for (int c = 0; c < C; c++)
            sum += exp(from[c] - max);
        for (int c = 0; c < C; c++)
            to[c] = (float)(exp(from[c] - max) / sum);
    }
}
