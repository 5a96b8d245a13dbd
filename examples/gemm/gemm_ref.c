/* SPDX-License-Identifier: MIT */
/* C = A B as gemm.cl and gemm.cu compute it, accumulated in double precision. */

/* ROWS x COLS sums and the DEPTH rows of B that are added to them stay in the first cache, and
 * the loops over them have constant lengths, which even a cautious compiler vectorises. */
enum { ROWS = 8, COLS = 128, DEPTH = 4 };

struct block {
    double sum[ROWS][COLS];
    double a[ROWS][DEPTH];
    double b[DEPTH][COLS];
};

static void add_products(struct block *t)
{
    for (int r = 0; r < ROWS; r++) {
        double a0 = t->a[r][0], a1 = t->a[r][1], a2 = t->a[r][2], a3 = t->a[r][3];
        for (int j = 0; j < COLS; j++)
            t->sum[r][j] +=
                a0 * t->b[0][j] + a1 * t->b[1][j] + a2 * t->b[2][j] + a3 * t->b[3][j];
    }
}

static void block(const float *A, const float *B, float *C, int rows, int cols, int N, int K)
{
    struct block t = {{{0}}, {{0}}, {{0}}};

    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int d = 0; d < DEPTH; d++) {
            int k = k0 + d;
            for (int r = 0; r < rows; r++)
                t.a[r][d] = k < K ? A[(long long)r * K + k] : 0;
            for (int j = 0; j < cols; j++)
                t.b[d][j] = k < K ? B[(long long)k * N + j] : 0;
        }
        add_products(&t);
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < cols; j++)
            C[(long long)r * N + j] = (float)t.sum[r][j];
}

void gemm_ref(const float *A, const float *B, float *C, int M, int N, int K)
{
#pragma omp parallel for schedule(dynamic)
    for (int j = 0; j < N; j += COLS)
        for (int i = 0; i < M; i += ROWS)
            block(A + (long long)i * K, B + j, C + (long long)i * N + j,
                  M - i < ROWS ? M - i : ROWS, N - j < COLS ? N - j : COLS, N, K);
}
