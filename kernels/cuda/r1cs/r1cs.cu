// A sparse matrix times a packed assignment. docs/kernels.md explains the layout.
#include "row.h"

// One row a thread; long rows are left to r1cs_long_rows. Zeros behind the last row.
extern "C" __global__ void __launch_bounds__(256) r1cs_rows(const __grid_constant__ r1cs_product_t p) {
    const u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= p.out_len) return;
    row_sum_t s = row_zero();
    if (row < p.n_rows) {
        const u64 first = row_offset(&p, row), end = row_offset(&p, row + 1);
        if (end - first > p.long_row) return;
#pragma unroll 1
        for (u64 at = first; at < end; at++) row_term(&p, &s, at);
    }
    fr_store(p.out + 8 * row, row_value(s));
}

static __device__ __forceinline__ fr_t from_lane_below(fr_t x, u32 distance) {
#pragma unroll
    for (int i = 0; i < FR_LIMBS; i++) x.v[i] = __shfl_down_sync(0xffffffffu, x.v[i], distance);
    return x;
}

// One long row a warp.
extern "C" __global__ void __launch_bounds__(256) r1cs_long_rows(const __grid_constant__ r1cs_product_t p) {
    const u32 number = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (number >= p.n_long_rows) return;
    const u64 row = p.long_rows[number], first = row_offset(&p, row), end = row_offset(&p, row + 1);
    row_sum_t s = row_zero();
#pragma unroll 1
    for (u64 at = first + lane; at < end; at += 32) row_term(&p, &s, at);
#pragma unroll 1
    for (u32 distance = 16; distance > 0; distance >>= 1) {
        s.integer += __shfl_down_sync(0xffffffffu, s.integer, distance);
        s.rest = fr_add(s.rest, from_lane_below(s.rest, distance));
    }
    s.has_rest = 1;
    if (lane == 0) fr_store(p.out + 8 * row, row_value(s));
}
