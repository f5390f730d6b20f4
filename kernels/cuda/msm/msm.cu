// Multi-scalar multiplication, the part that knows scalars but no points: digits, and the sort of (bucket, base) entries.
//
// The sort has two levels. msm_partition splits the entries by the high bits of their key into at most
// MSM_COARSE_BINS bins, msm_scatter puts each in its place. Both sort a tile in shared memory, reserve room for it with one
// atomic addition a bin, and write side by side what belongs together; so the time depends little on how the keys are spread.
// The order inside a bucket is left open: the sum does not depend on it.
#include "../../common/ff/ff.h"
#include "params.h"

#ifndef CUZK_DYNAMIC_SHARED
#define CUZK_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

// Entries that a block sorts in shared memory at a time, and bins that it sorts into: 8 bytes each. A block of the Turing
// architecture has 64 KiB at most.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TILE 4096
#define TILE_RANGE 2048
#else
#define TILE 8192
#define TILE_RANGE 4096
#endif
#define TILE_STEPS (TILE / MSM_SORT_BLOCK)

struct Entry { u32 key, value; };

// A scalar as digits: 9 limbs of (±s) + Σ 2^(c·w + c − 1), where the sign makes |s| at most (r − 1)/2. The offset makes the
// digits independent of each other: digit w is the field of c bits at c·w, less 2^(c−1), in [−2^(c−1), 2^(c−1)).
struct Digits { u32 v[9]; u32 negative; };

static __device__ __forceinline__ Digits digits_of(const u32 *scalar, const MsmParams &p) {
    const u32 modulus[FR_LIMBS] = FR_MODULUS;
    const fr_t s = fr_from_mont(fr_load(scalar));
    Digits d;
    u32 other[FR_LIMBS];
    other[0] = sub_cc(modulus[0], s.v[0]);
#pragma unroll
    for (int i = 1; i < FR_LIMBS; i++) other[i] = subc_cc(modulus[i], s.v[i]);
    // r − s < s: the sign of other − s.
    (void)sub_cc(other[0], s.v[0]);
#pragma unroll
    for (int i = 1; i < FR_LIMBS; i++) (void)subc_cc(other[i], s.v[i]);
    d.negative = subc(0, 0) != 0;
    d.v[0] = add_cc(d.negative ? other[0] : s.v[0], p.offset[0]);
#pragma unroll
    for (int i = 1; i < FR_LIMBS; i++) d.v[i] = addc_cc(d.negative ? other[i] : s.v[i], p.offset[i]);
    d.v[8] = addc(0, p.offset[8]);
    return d;
}

static __device__ __forceinline__ u32 field_at(const Digits &d, u32 bit, u32 c) {
    // Selects instead of an index, so that the limbs stay in registers.
    const u32 limb = bit >> 5;
    u32 lo = 0, hi = 0;
#pragma unroll
    for (int i = 0; i < 9; i++) {
        lo = limb == i ? d.v[i] : lo;
        hi = limb + 1 == i ? d.v[i] : hi;
    }
    return __funnelshift_r(lo, hi, bit & 31) & ((1u << c) - 1);
}

static __device__ __forceinline__ u32 list_length(const MsmParams &p, const u32 *counted) {
    return counted ? min(counted[MSM_COUNT_LIST], p.n) : p.n;
}

#define NO_DIGIT 0x7fffffffu

// Writes the digits of this pass's windows, digits[(set·levels + level)·n + i] = bucket in its set, bit 31 the sign, or NO_DIGIT
// for zero; and adds the numbers of entries to coarse[bin].
extern "C" __global__ void __launch_bounds__(MSM_SORT_BLOCK)
msm_digits(MsmParams p, const u32 *scalars, const u32 *scalar_index, const u32 *counters, u32 *coarse, u32 *digits) {
    __shared__ u32 bins[MSM_COARSE_BINS];
    const u32 n = list_length(p, scalar_index ? counters : nullptr);
    const u32 begin = blockIdx.x * p.tile, end = min(begin + p.tile, n);
    if (begin >= n) return;
    for (u32 i = threadIdx.x; i < p.coarse_bins; i += MSM_SORT_BLOCK) bins[i] = 0;
    __syncthreads();
    const u32 half = 1u << (p.c - 1);
    for (u32 i = begin + threadIdx.x; i < end; i += MSM_SORT_BLOCK) {
        const size_t s = scalar_index ? scalar_index[i] : i;
        const Digits d = digits_of(scalars + s * FR_LIMBS, p);
        u32 *to = digits + i;
        for (u32 set = 0; set < p.set_count; set++)
            for (u32 level = 0; level < p.levels; level++, to += p.n) {
                const u32 w = p.set_first + set + level * p.sets;
                const u32 field = w < p.windows ? field_at(d, p.c * w, p.c) : half;
                u32 digit = NO_DIGIT;
                if (field != half) {
                    const bool below = field < half;
                    const u32 bucket = (below ? half - field : field - half) - 1;
                    digit = bucket | (d.negative ^ (u32)below) << 31;
                    atomicAdd(&bins[(set * half + bucket) >> p.coarse_shift], 1);
                }
                *to = digit;
            }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < p.coarse_bins; i += MSM_SORT_BLOCK)
        if (bins[i]) atomicAdd(&coarse[i], bins[i]);
}

// Exclusive prefix sum over a block of 1024 threads; `total` gets the sum.
static __device__ __forceinline__ u32 block_exclusive(u32 x, u32 *total) {
    __shared__ u32 warps[33];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 sum = x;
    for (u32 d = 1; d < 32; d <<= 1) {
        const u32 y = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += y;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        const u32 w = lane < blockDim.x / 32 ? warps[lane] : 0;
        u32 ws = w;
        for (u32 d = 1; d < 32; d <<= 1) {
            const u32 y = __shfl_up_sync(~0u, ws, d);
            if (lane >= d) ws += y;
        }
        warps[lane] = ws - w;
        if (lane == 31) warps[32] = ws;
    }
    __syncthreads();
    const u32 r = sum - x + warps[warp];
    *total = warps[32];
    __syncthreads();
    return r;
}

// Turns counts into offsets: one block of 1024 threads, any n. The sum goes to counters[MSM_COUNT_ENTRIES] if given.
extern "C" __global__ void __launch_bounds__(1024) msm_scan_small(u32 n, u32 *data, u32 *counters) {
    u32 base = 0;
    for (u32 start = 0; start < n; start += 4096) {
        const u32 i = start + 4 * threadIdx.x;
        u32 x[4], sum = 0, total;
#pragma unroll
        for (int k = 0; k < 4; k++) { x[k] = i + k < n ? data[i + k] : 0; sum += x[k]; }
        u32 at = base + block_exclusive(sum, &total);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (i + k < n) data[i + k] = at;
            at += x[k];
        }
        base += total;
    }
    if (counters && threadIdx.x == 0) counters[MSM_COUNT_ENTRIES] = base;
}

// Sorts a block's entries by bin in shared memory and writes each bin's side by side. `bin` maps a key to 0 .. range − 1,
// range ≤ TILE_RANGE; `reserve` (bin, how many) gives the place of a bin's first. Entries with key ~0 are none.
template <typename Bin, typename Reserve>
static __device__ __forceinline__ void sort_tile(const uint2 *mine, u32 range, Entry *out, Bin bin, Reserve reserve) {
    CUZK_DYNAMIC_SHARED(uint2, tile);
    u32 *start = (u32 *)(tile + TILE), *shift = start + TILE_RANGE;
    u32 rank[TILE_STEPS];
    for (u32 i = threadIdx.x; i < range; i += MSM_SORT_BLOCK) start[i] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE_STEPS; k++)
        if (mine[k].x != ~0u) rank[k] = atomicAdd(&start[bin(mine[k].x)], 1);
    __syncthreads();
    // Each thread scans its share of the bins.
    const u32 share = (range + MSM_SORT_BLOCK - 1) / MSM_SORT_BLOCK, first = threadIdx.x * share;
    u32 sum = 0, total;
    for (u32 i = first; i < min(first + share, range); i++) sum += start[i];
    u32 at = block_exclusive(sum, &total);
    for (u32 i = first; i < min(first + share, range); i++) {
        const u32 count = start[i];
        start[i] = at;
        if (count) shift[i] = reserve(i, count) - at;
        at += count;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE_STEPS; k++)
        if (mine[k].x != ~0u) tile[start[bin(mine[k].x)] + rank[k]] = mine[k];
    __syncthreads();
    for (u32 i = threadIdx.x; i < total; i += MSM_SORT_BLOCK) {
        const uint2 e = tile[i];
        *(uint2 *)&out[i + shift[bin(e.x)]] = e;
    }
    __syncthreads();
}

// Block (k, window) writes the entries of tile k of a window of this pass, set·levels + level, from coarse[bin] on, which moves on.
// Value: bit 31 the sign, below it the place in the table of bases.
extern "C" __global__ void __launch_bounds__(MSM_SORT_BLOCK)
msm_partition(MsmParams p, const u32 *digits, const u32 *base_index, const u32 *counters, u32 *coarse, Entry *entries) {
    const u32 n = list_length(p, base_index ? counters : nullptr), f = p.coarse_shift;
    const u32 set = blockIdx.y / p.levels, level = blockIdx.y % p.levels;
    const u32 first_key = set << (p.c - 1);
    const u32 low = first_key >> f, high = (first_key + (1u << (p.c - 1)) - 1) >> f;
    for (u32 begin = blockIdx.x * TILE; begin < n; begin += gridDim.x * TILE) {
        uint2 mine[TILE_STEPS];
#pragma unroll
        for (int k = 0; k < TILE_STEPS; k++) {
            const u32 i = begin + k * MSM_SORT_BLOCK + threadIdx.x;
            mine[k].x = ~0u;
            if (i < n) {
                const u32 digit = digits[(size_t)blockIdx.y * p.n + i];
                if (digit != NO_DIGIT) {
                    mine[k].x = first_key + (digit & 0x7fffffff);
                    mine[k].y = (digit & 0x80000000) | (level * p.n_bases + (base_index ? base_index[i] : i));
                }
            }
        }
        sort_tile(mine, high - low + 1, entries, [=](u32 key) { return (key >> f) - low; },
                  [=](u32 bin, u32 count) { return atomicAdd(&coarse[low + bin], count); });
    }
}

// The keys that a tile of partitioned entries can hold: those of its first to its last bin.
static __device__ __forceinline__ void tile_keys(const MsmParams &p, const Entry *entries, u32 begin, u32 end, u32 *low, u32 *range) {
    *low = entries[begin].key >> p.coarse_shift << p.coarse_shift;
    *range = (((entries[end - 1].key >> p.coarse_shift) + 1) << p.coarse_shift) - *low;
}

// Adds the numbers of entries to bucket[key].
extern "C" __global__ void __launch_bounds__(MSM_SORT_BLOCK)
msm_fine_count(MsmParams p, const Entry *entries, const u32 *counters, u32 *bucket) {
    __shared__ u32 bins[TILE_RANGE];
    const u32 n = counters[MSM_COUNT_ENTRIES];
    for (u32 begin = blockIdx.x * TILE; begin < n; begin += gridDim.x * TILE) {
        const u32 end = min(begin + TILE, n);
        u32 low, range;
        tile_keys(p, entries, begin, end, &low, &range);
        if (range > TILE_RANGE) {
            for (u32 i = begin + threadIdx.x; i < end; i += MSM_SORT_BLOCK) atomicAdd(&bucket[entries[i].key], 1);
            continue;
        }
        for (u32 i = threadIdx.x; i < range; i += MSM_SORT_BLOCK) bins[i] = 0;
        __syncthreads();
        for (u32 i = begin + threadIdx.x; i < end; i += MSM_SORT_BLOCK) atomicAdd(&bins[entries[i].key - low], 1);
        __syncthreads();
        for (u32 i = threadIdx.x; i < range; i += MSM_SORT_BLOCK)
            if (bins[i]) atomicAdd(&bucket[low + i], bins[i]);
        __syncthreads();
    }
}

// offset[i] = sum of count[j] over the j < i of the same tile; sums[tile] = sum of the tile.
extern "C" __global__ void __launch_bounds__(1024) msm_scan_local(u32 n, const u32 *count, u32 *offset, u32 *sums) {
    const u32 i = blockIdx.x * MSM_SCAN_TILE + 4 * threadIdx.x;
    u32 x[4], sum = 0, total;
#pragma unroll
    for (int k = 0; k < 4; k++) { x[k] = i + k < n ? count[i + k] : 0; sum += x[k]; }
    u32 at = block_exclusive(sum, &total);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (i + k < n) offset[i + k] = at;
        at += x[k];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Puts the entries in the order of their keys, behind those of the ones.
extern "C" __global__ void __launch_bounds__(MSM_SORT_BLOCK)
msm_scatter(MsmParams p, const Entry *entries, const u32 *counters, u32 *offset, const u32 *sums, Entry *sorted) {
    const u32 n = counters[MSM_COUNT_ENTRIES];
    if (p.with_ones) sorted += counters[MSM_COUNT_ONES];
    for (u32 begin = blockIdx.x * TILE; begin < n; begin += gridDim.x * TILE) {
        const u32 end = min(begin + TILE, n);
        u32 low, range;
        tile_keys(p, entries, begin, end, &low, &range);
        if (range > TILE_RANGE) {
            for (u32 i = begin + threadIdx.x; i < end; i += MSM_SORT_BLOCK) {
                const uint2 e = *(const uint2 *)&entries[i];
                *(uint2 *)&sorted[atomicAdd(&offset[e.x], 1) + sums[e.x / MSM_SCAN_TILE]] = e;
            }
            continue;
        }
        uint2 mine[TILE_STEPS];
#pragma unroll
        for (int k = 0; k < TILE_STEPS; k++) {
            const u32 i = begin + k * MSM_SORT_BLOCK + threadIdx.x;
            mine[k] = i < end ? *(const uint2 *)&entries[i] : make_uint2(~0u, 0);
        }
        sort_tile(mine, range, sorted, [=](u32 key) { return key - low; },
                  [=](u32 bin, u32 count) { return atomicAdd(&offset[low + bin], count) + sums[(low + bin) / MSM_SCAN_TILE]; });
    }
}

// A range of variables of a packed assignment, as words of its bitmaps.
struct PackedRange {
    u64 first;   // first variable
    u64 len;     // variables
    u32 word;    // first word that holds one
    u32 words;   // words that hold one
};

// The bits of the range in word k that have a base, split by their value.
static __device__ __forceinline__ void packed_word(const PackedRange &r, u32 k, const u64 *ones, const u64 *wide, const u64 *density,
                                                   u64 *dense, u64 *one, u64 *scalar) {
    const u64 at = (u64)(r.word + k) * 64;
    u64 mask = ~0ull;
    if (at < r.first) mask &= ~0ull << (r.first - at);
    if (at + 64 > r.first + r.len) mask &= ~0ull >> (at + 64 - (r.first + r.len));
    if (density) mask &= density[r.word + k];
    *dense = mask;
    *one = mask & ones[r.word + k];
    *scalar = mask & wide[r.word + k];
}

// tiles[k], tiles[m + k], tiles[2m + k]: variables of tile k (of m) with a base, those that are one, those in the list.
extern "C" __global__ void __launch_bounds__(MSM_PACKED_BLOCK)
msm_packed_count(PackedRange r, const u64 *ones, const u64 *wide, const u64 *density, u32 *tiles) {
    const u32 k = blockIdx.x * MSM_PACKED_BLOCK + threadIdx.x;
    u64 dense = 0, one = 0, scalar = 0;
    if (k < r.words) packed_word(r, k, ones, wide, density, &dense, &one, &scalar);
    u32 a = __popcll(dense), b = __popcll(one), c = __popcll(scalar), at = 0;
    block_exclusive(a, &at); a = at;
    block_exclusive(b, &at); b = at;
    block_exclusive(c, &at); c = at;
    if (threadIdx.x == 0) {
        tiles[blockIdx.x] = a;
        tiles[gridDim.x + blockIdx.x] = b;
        tiles[2 * gridDim.x + blockIdx.x] = c;
    }
}

// Turns the m counts of each kind into offsets and writes the totals to the counters; one block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) msm_packed_scan(u32 m, u32 *tiles, u32 *counters) {
    for (u32 kind = 0; kind < 3; kind++) {
        u32 base = 0;
        for (u32 start = 0; start < m; start += 1024) {
            const u32 i = start + threadIdx.x;
            const u32 x = i < m ? tiles[kind * m + i] : 0;
            u32 total;
            const u32 at = base + block_exclusive(x, &total);
            if (i < m) tiles[kind * m + i] = at;
            base += total;
        }
        if (threadIdx.x == 0) counters[kind == 0 ? MSM_COUNT_DENSE : kind == 1 ? MSM_COUNT_ONES : MSM_COUNT_LIST] = base;
    }
}

// Writes an entry of bucket `key` for each one, and the list of the wide scalars: place among the assignment's wide scalars,
// number of the base.
extern "C" __global__ void __launch_bounds__(MSM_PACKED_BLOCK)
msm_packed_emit(PackedRange r, const u64 *ones, const u64 *wide, const u64 *density, const u32 *rank, const u32 *tiles, u32 key,
                Entry *sorted, u32 *scalar_index, u32 *base_index) {
    const u32 k = blockIdx.x * MSM_PACKED_BLOCK + threadIdx.x;
    u64 dense = 0, one = 0, scalar = 0;
    if (k < r.words) packed_word(r, k, ones, wide, density, &dense, &one, &scalar);
    u32 total;
    const u32 first = tiles[blockIdx.x] + block_exclusive(__popcll(dense), &total);
    u32 at = tiles[gridDim.x + blockIdx.x] + block_exclusive(__popcll(one), &total);
    u32 list = tiles[2 * gridDim.x + blockIdx.x] + block_exclusive(__popcll(scalar), &total);
    for (; one; one &= one - 1) {
        const u64 below = (one & -one) - 1;
        *(uint2 *)&sorted[at++] = make_uint2(key, first + __popcll(dense & below));
    }
    for (; scalar; scalar &= scalar - 1) {
        const u64 below = (scalar & -scalar) - 1;
        scalar_index[list] = rank[r.word + k] + __popcll(wide[r.word + k] & below);
        base_index[list++] = first + __popcll(dense & below);
    }
}
