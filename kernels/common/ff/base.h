// What every device header starts from: fixed-width integers and function qualifiers.
//
// The headers below kernels/common are written in the subset of C that nvcc, OpenCL C and g++ share: structures go by
// value, no templates, no references, no 128-bit integers.
#ifndef CUZK_COMMON_FF_BASE_H
#define CUZK_COMMON_FF_BASE_H

#if defined(__CUDACC__)
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
#define CUZK_FN static __device__ __forceinline__
// Kept as a call: for code that is large and seldom run.
#define CUZK_FN_CALL static __device__ __noinline__
#define CUZK_GLOBAL
#define CUZK_UNROLL _Pragma("unroll")
#define CUZK_NO_UNROLL _Pragma("unroll 1")
#elif defined(__OPENCL_VERSION__)
typedef uint u32;
typedef int i32;
typedef ulong u64;
typedef long i64;
#define CUZK_FN static inline
#define CUZK_FN_CALL static
#define CUZK_GLOBAL __global
#define CUZK_UNROLL
#define CUZK_NO_UNROLL
#else
#include <stdint.h>
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
#define CUZK_FN static inline
#define CUZK_FN_CALL static
#define CUZK_GLOBAL
#define CUZK_UNROLL
#define CUZK_NO_UNROLL
#endif

#define CUZK_PASTE2(a, b) a##b
#define CUZK_PASTE(a, b) CUZK_PASTE2(a, b)

#endif
