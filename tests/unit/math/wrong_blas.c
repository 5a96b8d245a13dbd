/* SPDX-License-Identifier: MIT */
/* A library that looks like OpenBLAS and computes nonsense. */
#define EXPORT __attribute__((visibility("default")))

EXPORT void cblas_sgemm(void);
EXPORT void cblas_sgemv(void);
EXPORT void openblas_set_num_threads(void);

void cblas_sgemm(void)
{
}

void cblas_sgemv(void)
{
}

void openblas_set_num_threads(void)
{
}
