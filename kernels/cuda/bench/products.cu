// Throughput kernels of the field products and group additions: each thread runs `rounds` dependent operations on
// `ways` independent values.
#include "../../common/ec/ec.h"

extern "C" __global__ void __launch_bounds__(128) bench_fp_mul(u32 *data, u32 rounds) {
    const size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    fp_t a = fp_load(data + t * FP_LIMBS), b = a;
    for (u32 i = 0; i < rounds; i++) { a = fp_mul(a, b); b = fp_mul(b, a); }
    fp_store(data + t * FP_LIMBS, fp_add(a, b));
}
extern "C" __global__ void __launch_bounds__(128) bench_fp_sqr(u32 *data, u32 rounds) {
    const size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    fp_t a = fp_load(data + t * FP_LIMBS);
    for (u32 i = 0; i < 2 * rounds; i++) a = fp_sqr(a);
    fp_store(data + t * FP_LIMBS, a);
}
extern "C" __global__ void __launch_bounds__(128) bench_fr_mul(u32 *data, u32 rounds) {
    const size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    fr_t a = fr_load(data + t * FR_LIMBS), b = a;
    for (u32 i = 0; i < rounds; i++) { a = fr_mul(a, b); b = fr_mul(b, a); }
    fr_store(data + t * FR_LIMBS, fr_add(a, b));
}
// Each thread adds `rounds` times the same few points to a sum; points: 8 affine.
extern "C" __global__ void __launch_bounds__(128) bench_g1_add_mixed(u32 *data, const u32 *points, u32 rounds) {
    const size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    g1_xyzz_t a = g1_infinity();
    for (u32 i = 0; i < rounds; i++) a = g1_add_mixed(a, g1_affine_load(points + (t + i) % 8 * 2 * FP_LIMBS), i & 1);
    g1_xyzz_store(data + t * 4 * FP_LIMBS, a);
}
extern "C" __global__ void __launch_bounds__(128) bench_fr_sqr(u32 *data, u32 rounds) {
    const size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    fr_t a = fr_load(data + t * FR_LIMBS);
    for (u32 i = 0; i < 2 * rounds; i++) a = fr_sqr(a);
    fr_store(data + t * FR_LIMBS, a);
}
