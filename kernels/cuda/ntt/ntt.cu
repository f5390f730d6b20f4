// Number-theoretic transforms over the scalar field. docs/kernels.md explains them; the host side that chooses the
// passes and builds the tables is crates/cuzk-backend-cuda/src/ntt.
#include "pass.h"
#include "elements.h"

// Blocks have 128 threads for tiles of 2^10 elements, 256 for 2^11; either way a multiprocessor holds 512.
#define NTT_KERNEL extern "C" __global__ void __launch_bounds__(256, 2)
extern __shared__ uint4 tile_memory[];

// Decimation in time, natural to bit-reversed order: strided passes from the top bits down, then the contiguous one.
NTT_KERNEL ntt_time_strided(const __grid_constant__ ntt_pass_t p) {
    u32 bit = p.k - NTT_LOG_RADIX;
#pragma unroll 1
    while (true) {
        strided_step(&p, blockIdx.x, threadIdx.x, tile_memory, bit, 0);
        if (bit == 0) break;
        bit = step_below(bit);
        __syncthreads();
    }
}

NTT_KERNEL ntt_time_contiguous(const __grid_constant__ ntt_pass_t p) {
    u32 bit = p.k - NTT_LOG_RADIX;
#pragma unroll 1
    while (true) {
        contiguous_step(&p, blockIdx.x, threadIdx.x, tile_memory, bit, 0);
        __syncthreads();
        if (bit == 0) break;
        bit = step_below(bit);
    }
    time_store(&p, blockIdx.x, threadIdx.x, tile_memory);
}

// Decimation in frequency, bit-reversed to natural order: the same backwards.
NTT_KERNEL ntt_frequency_strided(const __grid_constant__ ntt_pass_t p) {
    u32 bit = 0;
#pragma unroll 1
    while (true) {
        strided_step(&p, blockIdx.x, threadIdx.x, tile_memory, bit, 1);
        if (bit == p.k - NTT_LOG_RADIX) break;
        bit = step_above(&p, bit);
        __syncthreads();
    }
}

NTT_KERNEL ntt_frequency_contiguous(const __grid_constant__ ntt_pass_t p) {
    u32 bit = 0;
    frequency_load(&p, blockIdx.x, threadIdx.x, tile_memory);
#pragma unroll 1
    while (true) {
        __syncthreads();
        contiguous_step(&p, blockIdx.x, threadIdx.x, tile_memory, bit, 1);
        if (bit == p.k - NTT_LOG_RADIX) break;
        bit = step_above(&p, bit);
    }
}

// out[i] = first · base^i for i below `count`; squares[b] is base^(2^b).
extern "C" __global__ void ntt_powers(u32 *out, const u32 *squares, const u32 *first, u32 count) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) fr_store(out + 8 * (size_t)i, power_of(squares, fr_load(first), i));
}

// The table `heap` of ntt_pass_t with nodes 1 to 2^levels - 1; root[b] is ω_n^(2^b), shift[b] is g^(2^b), or shift is
// null.
extern "C" __global__ void ntt_heap(u32 *out, const u32 *root, const u32 *shift, u32 log_n, u32 levels) {
    const u32 node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node == 0 || node >> levels != 0) return;
    factor_store(out + FACTOR_LIMBS * (size_t)node, heap_entry(root, shift, log_n, node));
}

// The table `results` of ntt_pass_t for a pass of k stages.
extern "C" __global__ void ntt_results(u32 *out, const u32 *step, u32 k) {
    const u32 j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >> k == 0) factor_store(out + FACTOR_LIMBS * (size_t)j, results_entry(step, k, j));
}

// x[i] times g^(i bit-reversed), the powers of g given as those of e below 2^log_low and of e·2^log_low.
extern "C" __global__ void ntt_scale(u32 *x, const u32 *low, const u32 *high, u32 log_n, u32 log_low) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >> log_n != 0) return;
    fr_store(x + 8 * i, scaled(fr_load(x + 8 * i), low, high, reverse_bits((u32)i, log_n), log_low));
}

// Exchanges x[i] and x[i bit-reversed], log_n >= 8: for each middle part m of the index the 256 elements (h, m, l)
// with four-bit h and l change places with the (l reversed, m reversed, h reversed). One block a pair of middle
// parts.
extern "C" __global__ void __launch_bounds__(256) ntt_reverse(u32 *x, u32 log_n) {
    __shared__ uint4 here[512], there[512];
    const u32 middle_bits = log_n - 8, m = blockIdx.x, r = reverse_bits(m, middle_bits);
    if (m > r) return;
    const u32 h = threadIdx.x >> 4, l = threadIdx.x & 15;
    const size_t at_m = reverse_index(log_n, h, m, l), at_r = reverse_index(log_n, h, r, l);
    // The place of (h, l) once exchanged.
    const u32 to = reverse_bits(l, 4) * 16 + reverse_bits(h, 4);
    const uint4 *from = (const uint4 *)x;
    here[to] = from[2 * at_m];
    here[to + 256] = from[2 * at_m + 1];
    there[to] = from[2 * at_r];
    there[to + 256] = from[2 * at_r + 1];
    __syncthreads();
    uint4 *into = (uint4 *)x;
    into[2 * at_r] = here[threadIdx.x];
    into[2 * at_r + 1] = here[threadIdx.x + 256];
    into[2 * at_m] = there[threadIdx.x];
    into[2 * at_m + 1] = there[threadIdx.x + 256];
}

// The transform of up to 8 elements by its definition, in one block of n threads:
// out[k] = out_factor[k] · sum over j of in_factor[j] · x[j] · ω^(jk), the powers of ω given; null factors are 1.
extern "C" __global__ void ntt_small(u32 *x, const u32 *powers, const u32 *in_factor, const u32 *out_factor, u32 log_n,
                                     u32 reversed_in, u32 reversed_out) {
    const u32 k = threadIdx.x;
    const fr_t y = small_output(x, powers, in_factor, out_factor, log_n, reversed_in, k);
    __syncthreads();
    fr_store(x + 8 * (reversed_out ? reverse_bits(k, log_n) : k), y);
}

// out[i] = a[i] · b[i]
extern "C" __global__ void ntt_product(u32 *out, const u32 *a, const u32 *b, size_t n) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) fr_store(out + 8 * i, fr_mul(fr_load(a + 8 * i), fr_load(b + 8 * i)));
}

// out[i] = factor · (a[i] - b[i])
extern "C" __global__ void ntt_difference(u32 *out, const u32 *a, const u32 *b, const u32 *factor, size_t n) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) fr_store(out + 8 * i, fr_mul(fr_sub(fr_load(a + 8 * i), fr_load(b + 8 * i)), fr_load(factor)));
}
