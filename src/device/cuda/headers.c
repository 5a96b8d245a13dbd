/* SPDX-License-Identifier: MIT */
#include "device/cuda/headers.h"

/* 64-bit types are `long long`, as in CUDA's own C++ library under NVRTC: the two can then be
 * included together. */
static const char stdint_header[] =
    "#pragma once\n"
    "#include <limits.h>\n"
    "typedef signed char int8_t;\n"
    "typedef signed short int16_t;\n"
    "typedef signed int int32_t;\n"
    "typedef signed long long int64_t;\n"
    "typedef unsigned char uint8_t;\n"
    "typedef unsigned short uint16_t;\n"
    "typedef unsigned int uint32_t;\n"
    "typedef unsigned long long uint64_t;\n"
    "typedef int64_t intptr_t;\n"
    "typedef uint64_t uintptr_t;\n"
    "typedef int64_t intmax_t;\n"
    "typedef uint64_t uintmax_t;\n"
    "#define INT8_MIN SCHAR_MIN\n"
    "#define INT16_MIN SHRT_MIN\n"
    "#define INT32_MIN INT_MIN\n"
    "#define INT64_MIN LLONG_MIN\n"
    "#define INT8_MAX SCHAR_MAX\n"
    "#define INT16_MAX SHRT_MAX\n"
    "#define INT32_MAX INT_MAX\n"
    "#define INT64_MAX LLONG_MAX\n"
    "#define UINT8_MAX UCHAR_MAX\n"
    "#define UINT16_MAX USHRT_MAX\n"
    "#define UINT32_MAX UINT_MAX\n"
    "#define UINT64_MAX ULLONG_MAX\n"
    "#define SIZE_MAX UINT64_MAX\n"
    "namespace std {\n"
    "using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;\n"
    "using ::uint8_t; using ::uint16_t; using ::uint32_t;\n"
    "using ::uint64_t; using ::intptr_t; using ::uintptr_t;\n"
    "}\n";

static const char limits_header[] = "#pragma once\n"
                                    "#define CHAR_BIT 8\n"
                                    "#define SCHAR_MIN (-128)\n"
                                    "#define SCHAR_MAX 127\n"
                                    "#define UCHAR_MAX 255\n"
                                    "#define SHRT_MIN (-32768)\n"
                                    "#define SHRT_MAX 32767\n"
                                    "#define USHRT_MAX 65535\n"
                                    "#define INT_MIN (-2147483647 - 1)\n"
                                    "#define INT_MAX 2147483647\n"
                                    "#define UINT_MAX 4294967295U\n"
                                    "#define LONG_MIN (-9223372036854775807L - 1)\n"
                                    "#define LONG_MAX 9223372036854775807L\n"
                                    "#define ULONG_MAX 18446744073709551615UL\n"
                                    "#define LLONG_MIN (-9223372036854775807LL - 1)\n"
                                    "#define LLONG_MAX 9223372036854775807LL\n"
                                    "#define ULLONG_MAX 18446744073709551615ULL\n";

static const char float_header[] = "#pragma once\n"
                                   "#define FLT_RADIX 2\n"
                                   "#define FLT_DIG 6\n"
                                   "#define FLT_MANT_DIG 24\n"
                                   "#define FLT_MAX_EXP 128\n"
                                   "#define FLT_MIN_EXP (-125)\n"
                                   "#define FLT_MAX 3.402823466e+38F\n"
                                   "#define FLT_MIN 1.175494351e-38F\n"
                                   "#define FLT_EPSILON 1.192092896e-07F\n"
                                   "#define DBL_DIG 15\n"
                                   "#define DBL_MANT_DIG 53\n"
                                   "#define DBL_MAX_EXP 1024\n"
                                   "#define DBL_MIN_EXP (-1021)\n"
                                   "#define DBL_MAX 1.7976931348623157e+308\n"
                                   "#define DBL_MIN 2.2250738585072014e-308\n"
                                   "#define DBL_EPSILON 2.2204460492503131e-16\n";

/* The functions are built in; the constants are not. */
static const char math_header[] =
    "#pragma once\n"
    "#define INFINITY __int_as_float(0x7f800000)\n"
    "#define NAN __int_as_float(0x7fffffff)\n"
    "#define HUGE_VALF INFINITY\n"
    "#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)\n"
    "#define M_E 2.7182818284590452354\n"
    "#define M_LOG2E 1.4426950408889634074\n"
    "#define M_LOG10E 0.43429448190325182765\n"
    "#define M_LN2 0.69314718055994530942\n"
    "#define M_LN10 2.30258509299404568402\n"
    "#define M_PI 3.14159265358979323846\n"
    "#define M_PI_2 1.57079632679489661923\n"
    "#define M_PI_4 0.78539816339744830962\n"
    "#define M_1_PI 0.31830988618379067154\n"
    "#define M_2_PI 0.63661977236758134308\n"
    "#define M_SQRT2 1.41421356237309504880\n"
    "#define M_SQRT1_2 0.70710678118654752440\n";

static const char stddef_header[] =
    "#pragma once\n"
    "#define offsetof(type, member) ((size_t)&(((type *)0)->member))\n"
    "typedef decltype(nullptr) nullptr_t;\n";

/* printf, assert, malloc, memcpy and their like are built in. */
static const char empty_header[] = "#pragma once\n";

const char *const kp_cuda_header_names[KP_CUDA_N_HEADERS] = {
    "stdint.h", "cstdint", "inttypes.h", "cinttypes", "limits.h", "climits",  "float.h",
    "cfloat",   "math.h",  "cmath",      "stddef.h",  "cstddef",  "stdio.h",  "cstdio",
    "stdlib.h", "cstdlib", "string.h",   "cstring",   "assert.h", "stdbool.h"};

const char *const kp_cuda_header_texts[KP_CUDA_N_HEADERS] = {stdint_header,
                                                             "#include <stdint.h>\n",
                                                             "#include <stdint.h>\n",
                                                             "#include <stdint.h>\n",
                                                             limits_header,
                                                             "#include <limits.h>\n",
                                                             float_header,
                                                             "#include <float.h>\n",
                                                             math_header,
                                                             "#include <math.h>\n",
                                                             stddef_header,
                                                             "#include <stddef.h>\n",
                                                             empty_header,
                                                             empty_header,
                                                             empty_header,
                                                             empty_header,
                                                             empty_header,
                                                             empty_header,
                                                             empty_header,
                                                             empty_header};
