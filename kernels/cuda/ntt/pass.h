// One pass of a number-theoretic transform: up to ten of its log n stages, for tiles of up to 2048 elements that stay in
// shared memory meanwhile. docs/kernels.md explains the decomposition; here is what each thread does between two barriers.
//
// With n = 2^L, a pass covers stages `stage` .. `stage` + `k`. The elements then fall into 2^stage blocks, and element j of
// column c of block B stands at B·2^(L − stage) + j·S + c, S = 2^(L − stage − k). A strided pass works on 2^log_c adjacent
// columns of one block; the contiguous pass (S = 1) on 2^log_c blocks. Both call what they hold together a column: the
// pass transforms each column of 2^k elements for itself.
//
// A thread owns a few elements of a column at a time: those whose j differ in NTT_LOG_RADIX adjacent bits. A step does the
// stages of these bits in registers; between steps the elements change hands through shared memory.
#ifndef CUZK_CUDA_NTT_PASS_H
#define CUZK_CUDA_NTT_PASS_H

#include "shoup.h"

// log2 of the elements of a thread: with four instead of eight the exchanges cost more than the shorter code gains.
#define NTT_LOG_RADIX 3
#define NTT_RADIX (1 << NTT_LOG_RADIX)

// What a kernel is told; the host fills it in. All elements are in Montgomery form.
typedef struct {
    // Elements read and written; the same for a pass in place.
    const u32 *src;
    u32 *dst;
    // NTT_PRODUCT: what the elements read are multiplied by. NTT_DIFFERENCE: what the results are subtracted from.
    const u32 *operand;
    // Factors of the butterflies as Shoup pairs in the order of a heap: that of block b of stage s is number 2^s + b, which is
    // g^(n / 2^(s + 1)) · ω_{2^(s + 1)}^(b bit-reversed). The contiguous pass has a table of its own, with g = 1.
    const u32 *heap;
    // Contiguous pass: powers of ω_n: of e below 2^log_low, and of e·2^log_low.
    const u32 *roots_low;
    const u32 *roots_high;
    // Contiguous pass: f·g^u for u below 2^t, t = k - NTT_LOG_RADIX, f scaling all results, then g^(2^t); null for f = g = 1.
    const u32 *shift;
    u32 log_n;
    u32 stage;
    u32 k;
    u32 log_c;
    u32 log_low;
    u32 flags;
} ntt_pass_t;

// Contiguous pass: the elements are read (decimation in frequency: written) as if all of them were bit-reversed.
#define NTT_BIT_REVERSED 1u
#define NTT_PRODUCT 2u
#define NTT_DIFFERENCE 4u
// The results are fully reduced: the last pass.
#define NTT_CANONICAL 8u

#if !defined(__CUDACC__)
typedef struct { u32 x, y, z, w; } uint4;
#endif

CUZK_FN u32 reverse_bits(u32 x, u32 bits) {
#if defined(__CUDACC__)
    return bits ? __brev(x) >> (32 - bits) : 0;
#else
    u32 r = 0;
    for (u32 i = 0; i < bits; i++) r |= ((x >> i) & 1) << (bits - 1 - i);
    return r;
#endif
}

// log2 of the elements of a tile; a block has a thread for NTT_RADIX of them.
CUZK_FN u32 pass_log_tile(const ntt_pass_t *p) { return p->k + p->log_c; }

// Shared memory is two planes of 16-byte halves; the place of element i in them. Eight threads are served at once if their
// places differ modulo 8: adjacent elements do, and the exclusive-or makes elements at a distance of 8, or of a column, do
// as well.
CUZK_FN u32 pass_place(const ntt_pass_t *p, u32 i) { return i ^ (((i >> 3) ^ (i >> p->k)) & 7); }

CUZK_FN fr_t shared_load(const ntt_pass_t *p, const uint4 *shared, u32 i) {
    const u32 at = pass_place(p, i);
    const uint4 a = shared[at], b = shared[at + (1u << pass_log_tile(p))];
    fr_t r;
    r.v[0] = a.x; r.v[1] = a.y; r.v[2] = a.z; r.v[3] = a.w;
    r.v[4] = b.x; r.v[5] = b.y; r.v[6] = b.z; r.v[7] = b.w;
    return r;
}

CUZK_FN void shared_store(const ntt_pass_t *p, uint4 *shared, u32 i, fr_t x) {
    const u32 at = pass_place(p, i);
    uint4 a, b;
    a.x = x.v[0]; a.y = x.v[1]; a.z = x.v[2]; a.w = x.v[3];
    b.x = x.v[4]; b.y = x.v[5]; b.z = x.v[6]; b.w = x.v[7];
    shared[at] = a;
    shared[at + (1u << pass_log_tile(p))] = b;
}

// Where a thread stands: its column, and the bits of j that its elements share, without those that differ.
typedef struct { u32 c, u; } place_t;

CUZK_FN place_t strided_place(const ntt_pass_t *p, u32 thread) {
    place_t r;
    r.c = thread & ((1u << p->log_c) - 1);
    r.u = thread >> p->log_c;
    return r;
}

CUZK_FN place_t contiguous_place(const ntt_pass_t *p, u32 thread) {
    place_t r;
    r.c = thread >> (p->k - NTT_LOG_RADIX);
    r.u = thread & ((1u << (p->k - NTT_LOG_RADIX)) - 1);
    return r;
}

// j of the thread's element i when its bits are those from `bit` on.
CUZK_FN u32 element(u32 u, u32 bit, u32 i) { return ((u >> bit) << (bit + NTT_LOG_RADIX)) | (i << bit) | (u & ((1u << bit) - 1)); }

// How many stages the step of the highest bits does; all others do NTT_LOG_RADIX.
CUZK_FN u32 pass_top_stages(const ntt_pass_t *p) { return (p->k - 1) % NTT_LOG_RADIX + 1; }
CUZK_FN u32 step_stages(const ntt_pass_t *p, u32 bit) { return bit == p->k - NTT_LOG_RADIX ? pass_top_stages(p) : NTT_LOG_RADIX; }
// The lowest bit of the next step: downwards from `bit`, which is not 0, and upwards, from below the highest.
CUZK_FN u32 step_below(const ntt_pass_t *p, u32 bit) { return bit - step_stages(p, bit); }
CUZK_FN u32 step_above(const ntt_pass_t *p, u32 bit) {
    const u32 top = p->k - NTT_LOG_RADIX, next = bit + NTT_LOG_RADIX;
    return next + pass_top_stages(p) <= top ? next : top;
}

// The block of a strided pass's tile, and the place of its element (j, c) among all.
CUZK_FN u32 strided_block(const ntt_pass_t *p, u32 tile) { return tile >> (p->log_n - p->stage - p->k - p->log_c); }
CUZK_FN size_t strided_index(const ntt_pass_t *p, u32 tile, u32 j, u32 c) {
    const u32 log_s = p->log_n - p->stage - p->k;
    const u32 columns = tile & ((1u << (log_s - p->log_c)) - 1);
    return ((size_t)strided_block(p, tile) << (p->log_n - p->stage)) + ((size_t)j << log_s) + (columns << p->log_c) + c;
}

// The block of column c of a contiguous pass's tile. When the elements are to be bit-reversed the tile holds those
// blocks that are adjacent then.
CUZK_FN u32 contiguous_block(const ntt_pass_t *p, u32 tile, u32 c) {
    const u32 b = (tile << p->log_c) + c;
    return p->flags & NTT_BIT_REVERSED ? reverse_bits(b, p->stage) : b;
}
// The place of the tile's element i, counted block by block, or, bit-reversed, column by column; at *in_tile goes its place
// in shared memory.
CUZK_FN size_t contiguous_index(const ntt_pass_t *p, u32 tile, u32 i, u32 *in_tile) {
    if (p->flags & NTT_BIT_REVERSED) {
        const u32 c = i & ((1u << p->log_c) - 1), j = i >> p->log_c;
        *in_tile = (c << p->k) | j;
        return ((size_t)reverse_bits(j, p->k) << p->stage) + (tile << p->log_c) + c;
    }
    *in_tile = i;
    return ((size_t)tile << pass_log_tile(p)) + i;
}

// Butterflies of decimation in time, (a, b) to (a + w·b, a − w·b), on the elements a and b of x.
CUZK_FN void time_butterfly(fr_t *a, fr_t *b, shoup_t w) {
    const fr_t t = shoup_mul(*b, w);
    *b = lazy_sub(*a, t);
    *a = lazy_add(*a, t);
}
// And of decimation in frequency, (a, b) to (a + b, (a − b)·w). Here sums meet sums, so they are kept below 2r.
CUZK_FN void frequency_butterfly(fr_t *a, fr_t *b, shoup_t w) {
    const fr_t t = lazy_sub(*a, *b);
    *a = lazy_sum(*a, *b);
    *b = shoup_mul(t, w);
}
// Either with w = 1, for b below 2r; the sum is kept there as well.
CUZK_FN void unit_butterfly(fr_t *a, fr_t *b) {
    const fr_t t = lazy_sub(*a, *b);
    *a = lazy_sum(*a, *b);
    *b = t;
}

// The stages of one step: the first `stages` of those of its bits, from the highest down in time, and up in frequency. `node`
// is the heap number of the factor of the highest bit. `unit`: it is node 1 of a table with g = 1, so that its factor and those
// of the nodes below it on the left are 1.
CUZK_FN void time_step(fr_t *x, const u32 *heap, u32 node, u32 stages, const int unit) {
    CUZK_UNROLL for (int s = 0; s < NTT_LOG_RADIX; s++) {
        const int half = NTT_RADIX >> (s + 1);
        if (s < (int)stages) {
            CUZK_UNROLL for (int h = 0; h < 1 << s; h++) {
                fr_t *first = x + 2 * half * h;
                if (unit && h == 0) {
                    CUZK_UNROLL for (int i = 0; i < half; i++) unit_butterfly(&first[i], &first[i + half]);
                } else {
                    const shoup_t w = shoup_load(heap + 16 * (size_t)((node << s) + h));
                    CUZK_UNROLL for (int i = 0; i < half; i++) time_butterfly(&first[i], &first[i + half], w);
                }
            }
        }
    }
}

CUZK_FN void frequency_step(fr_t *x, const u32 *heap, u32 node, u32 stages, const int unit) {
    CUZK_UNROLL for (int s = NTT_LOG_RADIX - 1; s >= 0; s--) {
        const int half = NTT_RADIX >> (s + 1);
        if (s < (int)stages) {
            CUZK_UNROLL for (int h = 0; h < 1 << s; h++) {
                fr_t *first = x + 2 * half * h;
                if (unit && h == 0) {
                    CUZK_UNROLL for (int i = 0; i < half; i++) unit_butterfly(&first[i], &first[i + half]);
                } else {
                    const shoup_t w = shoup_load(heap + 16 * (size_t)((node << s) + h));
                    CUZK_UNROLL for (int i = 0; i < half; i++) frequency_butterfly(&first[i], &first[i + half], w);
                }
            }
        }
    }
}

// The thread's part of the step of the bits from `bit` on in a strided pass: its elements come from `src` if this is the first
// step and from shared memory otherwise, and go to `dst` after the last.
CUZK_FN void strided_step(const ntt_pass_t *p, u32 tile, u32 thread, uint4 *shared, u32 bit, const int frequency, const int unit) {
    const place_t at = strided_place(p, thread);
    const u32 top = p->k - NTT_LOG_RADIX;
    const u32 stages = step_stages(p, bit);
    const u32 node = (((1u << p->stage) + strided_block(p, tile)) << (top - bit)) | at.u >> bit;
    const int first = frequency ? bit == 0 : bit == top, last = frequency ? bit == top : bit == 0;
    fr_t x[NTT_RADIX];
    CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) {
        const u32 j = element(at.u, bit, i);
        x[i] = first ? fr_load(p->src + 8 * strided_index(p, tile, j, at.c)) : shared_load(p, shared, (j << p->log_c) | at.c);
    }
    if (frequency) frequency_step(x, p->heap, node, stages, unit);
    else time_step(x, p->heap, node, stages, unit);
    if (frequency && last && (p->flags & NTT_CANONICAL)) {
        CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) {
            x[i] = lazy_reduce(x[i]);
            if (p->flags & NTT_DIFFERENCE) {
                const u32 j = element(at.u, bit, i);
                x[i] = fr_sub(fr_load(p->operand + 8 * strided_index(p, tile, j, at.c)), x[i]);
            }
        }
    }
    CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) {
        const u32 j = element(at.u, bit, i);
        if (last) fr_store(p->dst + 8 * strided_index(p, tile, j, at.c), x[i]);
        else shared_store(p, shared, (j << p->log_c) | at.c, x[i]);
    }
}

// The same in a contiguous pass, where everything lies in shared memory.
CUZK_FN void contiguous_step(const ntt_pass_t *p, u32 thread, uint4 *shared, u32 bit, const int frequency, const int unit) {
    const place_t at = contiguous_place(p, thread);
    const u32 top = p->k - NTT_LOG_RADIX;
    const u32 stages = step_stages(p, bit);
    const u32 node = (1u << (top - bit)) | at.u >> bit;
    fr_t x[NTT_RADIX];
    CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) x[i] = shared_load(p, shared, (at.c << p->k) | element(at.u, bit, i));
    if (frequency) frequency_step(x, p->heap, node, stages, unit);
    else time_step(x, p->heap, node, stages, unit);
    CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) shared_store(p, shared, (at.c << p->k) | element(at.u, bit, i), x[i]);
}

// What element j of block B is multiplied by, f·(g·ω_n^(B bit-reversed))^j: the first of the thread's factors, for j = u, and
// the ratio of each to the one before.
typedef struct { fr_t factor, ratio; } twist_t;

CUZK_FN fr_t root_power(const ntt_pass_t *p, u32 e) {
    return fr_mul(fr_load(p->roots_low + 8 * (size_t)(e & ((1u << p->log_low) - 1))), fr_load(p->roots_high + 8 * (size_t)(e >> p->log_low)));
}

CUZK_FN twist_t contiguous_twist(const ntt_pass_t *p, u32 block, u32 u) {
    const u32 e = reverse_bits(block, p->stage), span = 1u << (p->k - NTT_LOG_RADIX);
    twist_t r;
    r.factor = root_power(p, e * u);
    r.ratio = root_power(p, e * span);
    if (p->shift) {
        r.factor = fr_mul(r.factor, fr_load(p->shift + 8 * (size_t)u));
        r.ratio = fr_mul(r.ratio, fr_load(p->shift + 8 * (size_t)span));
    }
    return r;
}

// The thread's elements of the highest bits, twisted: in time from `src` to shared memory before the first step, in
// frequency from shared memory to `dst` after the last. Loops that are not unrolled keep the code small.
CUZK_FN void time_load(const ntt_pass_t *p, u32 tile, u32 thread, uint4 *shared) {
    const place_t at = contiguous_place(p, thread);
    const u32 block = contiguous_block(p, tile, at.c), span = 1u << (p->k - NTT_LOG_RADIX);
    const u32 *src = p->src + 8 * (((size_t)block << p->k) + at.u);
    twist_t t = contiguous_twist(p, block, at.u);
    fr_t next = fr_load(src);
    CUZK_NO_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        const fr_t x = next;
        if (i + 1 < NTT_RADIX) next = fr_load(src + 8 * (size_t)(span * (i + 1)));
        shared_store(p, shared, (at.c << p->k) | at.u | span * i, fr_mul(x, t.factor));
        t.factor = fr_mul(t.factor, t.ratio);
    }
}

CUZK_FN void frequency_store(const ntt_pass_t *p, u32 tile, u32 thread, const uint4 *shared) {
    const place_t at = contiguous_place(p, thread);
    const u32 block = contiguous_block(p, tile, at.c), span = 1u << (p->k - NTT_LOG_RADIX);
    const size_t first = ((size_t)block << p->k) + at.u;
    twist_t t = contiguous_twist(p, block, at.u);
    CUZK_NO_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        fr_t x = fr_mul(shared_load(p, shared, (at.c << p->k) | at.u | span * i), t.factor);
        if (p->flags & NTT_DIFFERENCE) x = fr_sub(fr_load(p->operand + 8 * (first + span * i)), x);
        fr_store(p->dst + 8 * (first + span * i), x);
        t.factor = fr_mul(t.factor, t.ratio);
    }
}

// The other end of a contiguous pass: the tile row by row, each thread an element in each of NTT_RADIX parts of it.
CUZK_FN void frequency_load(const ntt_pass_t *p, u32 tile, u32 thread, uint4 *shared) {
    const u32 threads = 1u << (pass_log_tile(p) - NTT_LOG_RADIX);
    if (p->flags & NTT_PRODUCT) {
        CUZK_NO_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
            u32 in_tile;
            const size_t at = contiguous_index(p, tile, thread + threads * i, &in_tile);
            shared_store(p, shared, in_tile, fr_mul(fr_load(p->src + 8 * at), fr_load(p->operand + 8 * at)));
        }
        return;
    }
    CUZK_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        u32 in_tile;
        const size_t at = contiguous_index(p, tile, thread + threads * i, &in_tile);
        shared_store(p, shared, in_tile, fr_load(p->src + 8 * at));
    }
}

CUZK_FN void time_store(const ntt_pass_t *p, u32 tile, u32 thread, const uint4 *shared) {
    const u32 threads = 1u << (pass_log_tile(p) - NTT_LOG_RADIX);
    CUZK_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        u32 in_tile;
        const size_t at = contiguous_index(p, tile, thread + threads * i, &in_tile);
        fr_store(p->dst + 8 * at, lazy_reduce(shared_load(p, shared, in_tile)));
    }
}

#endif
