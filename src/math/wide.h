/* SPDX-License-Identifier: MIT */
/* Loops compiled more than once, for each width of vector registers. Layer: math.
 *
 * KP_ALWAYS_INLINE void add_any(size_t n, const float *x, float *y) { the loop }
 * KP_WIDE(add, (size_t n, const float *x, float *y), (n, x, y))
 *
 * makes `static void add_best(..)`, which runs the loop with the widest registers that this
 * machine has. Each width gives the same bits: sources are compiled without contraction
 * (a * b + c is rounded twice), and compilers do not reorder sums. */
#ifndef KP_MATH_WIDE_H
#define KP_MATH_WIDE_H

#define KP_ALWAYS_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#    define KP_WIDE(name, parameters, arguments)                                \
        __attribute__((target("avx512f"))) static void name##_avx512 parameters \
        {                                                                       \
            name##_any arguments;                                               \
        }                                                                       \
        __attribute__((target("avx2"))) static void name##_avx2 parameters      \
        {                                                                       \
            name##_any arguments;                                               \
        }                                                                       \
        static void name##_plain parameters                                     \
        {                                                                       \
            name##_any arguments;                                               \
        }                                                                       \
        static void name##_best parameters                                      \
        {                                                                       \
            if (__builtin_cpu_supports("avx512f"))                              \
                name##_avx512 arguments;                                        \
            else if (__builtin_cpu_supports("avx2"))                            \
                name##_avx2 arguments;                                          \
            else                                                                \
                name##_plain arguments;                                         \
        }
#else
#    define KP_WIDE(name, parameters, arguments) \
        static void name##_best parameters       \
        {                                        \
            name##_any arguments;                \
        }
#endif

#endif
