// Inputs of the checks and benchmarks of multi-scalar multiplication: scalars from a counter-based generator, discrete
// logarithms of the bases, and the scalar product that the result must be the multiple of.
#include "../../common/ff/ff.h"

static __device__ __forceinline__ u64 mix(u64 x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Uniform below 2^(bits − 1): any such limbs are a scalar's Montgomery form.
extern "C" __global__ void fill_random(u32 n, u64 seed, u32 *scalars) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        fr_t s;
        for (int k = 0; k < FR_LIMBS / 2; k++) {
            const u64 x = mix(seed + 4ull * i + k);
            s.v[2 * k] = (u32)x;
            s.v[2 * k + 1] = (u32)(x >> 32);
        }
        s.v[FR_LIMBS - 1] &= (1u << ((FR_BITS - 1) % 32)) - 1;
        fr_store(scalars + (size_t)i * FR_LIMBS, s);
    }
}

// i + 1 in Montgomery form.
extern "C" __global__ void fill_counting(u32 n, u32 *scalars) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        fr_t s = fr_zero();
        s.v[0] = i + 1;
        fr_store(scalars + (size_t)i * FR_LIMBS, fr_to_mont(s));
    }
}

// out[thread] = Σ a[i]·b[i] over the thread's i.
extern "C" __global__ void dot(u32 n, const u32 *a, const u32 *b, u32 *out) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    fr_t sum = fr_zero();
    for (u32 i = t; i < n; i += gridDim.x * blockDim.x)
        sum = fr_add(sum, fr_mul(fr_load(a + (size_t)i * FR_LIMBS), fr_load(b + (size_t)i * FR_LIMBS)));
    fr_store(out + (size_t)t * FR_LIMBS, sum);
}
