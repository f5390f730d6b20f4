// One pass of a number-theoretic transform: up to ten of its log n stages, for tiles of up to 2048 elements that stay
// in shared memory meanwhile. docs/kernels.md explains the decomposition; here is what each thread does between two
// barriers.
//
// With n = 2^L, a pass covers stages `stage` .. `stage` + `k`. The elements then fall into 2^stage blocks, and
// element j of column c of block B stands at B·2^(L − stage) + j·S + c, S = 2^(L − stage − k). A strided pass works
// on 2^log_c adjacent columns of one block; the contiguous pass (S = 1) on 2^log_c blocks. Both call what they hold
// together a column: the pass transforms each column of 2^k elements for itself.
//
// A thread owns a few elements of a column at a time: those whose j differ in NTT_LOG_RADIX adjacent bits. A step
// does the stages of these bits in registers; between steps the elements change hands through shared memory.
#ifndef CUZK_CUDA_NTT_PASS_H
#define CUZK_CUDA_NTT_PASS_H

#include "factor.h"

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
    // Factors of the butterflies (factor.h) in the order of a heap: that of block b of stage s is number 2^s + b,
    // which is g^(n / 2^(s + 1)) · ω_{2^(s + 1)}^(b bit-reversed).
    const u32 *heap;
    // Contiguous pass: the same for g = 1.
    const u32 *plain;
    // Contiguous pass: powers of ω_n, or of ω_2n: of e below 2^log_low, and, times f·2^32, of e·2^log_low. f scales
    // all results.
    const u32 *roots_low;
    const u32 *roots_high;
    // Contiguous pass: g^u for u below 2^(k - NTT_LOG_RADIX); null for g = 1 and for NTT_ODD_ELEMENTS.
    const u32 *shift;
    // Contiguous pass in time: the factors of the results with NTT_ODD_RESULTS.
    const u32 *results;
    u32 log_n;
    u32 stage;
    u32 k;
    u32 log_c;
    u32 log_low;
    u32 flags;
} ntt_pass_t;

// Contiguous pass: the elements are read (in time: written) as if all of them were bit-reversed.
#define NTT_BIT_REVERSED 1u
// First pass in time, if it is strided: elements are multiplied by those of `operand`.
#define NTT_PRODUCT 2u
// Last pass in time: results are subtracted from those of `operand`.
#define NTT_DIFFERENCE 4u
// Results are fully reduced: the last pass.
#define NTT_CANONICAL 8u
// Strided pass of stage 0 with g = 1: some factors of the step of the highest bits are 1.
#define NTT_UNIT 16u
// Contiguous pass in time: g is ω_2n, and so are the roots.
#define NTT_ODD_ELEMENTS 32u
// Contiguous pass in time, g = 1: result i is multiplied by ω_2n^i, and the roots are those of ω_2n. Number j of
// `results` is ω_2n^(2^stage · (j bit-reversed)).
#define NTT_ODD_RESULTS 64u

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

// Shared memory is two planes of 16-byte halves; the place of element i in them. Eight threads are served at once if
// their places differ modulo 8: adjacent elements do, and the exclusive-or makes elements at a distance of 8, or of a
// column, do as well.
CUZK_FN u32 pass_place(const ntt_pass_t *p, u32 i) { return i ^ (((i >> 3) ^ (i >> p->k)) & 7); }

CUZK_FN fr_t shared_load(const ntt_pass_t *p, const uint4 *shared, u32 place) {
    const uint4 a = shared[place], b = shared[place + (1u << pass_log_tile(p))];
    fr_t r;
    r.v[0] = a.x; r.v[1] = a.y; r.v[2] = a.z; r.v[3] = a.w;
    r.v[4] = b.x; r.v[5] = b.y; r.v[6] = b.z; r.v[7] = b.w;
    return r;
}

CUZK_FN void shared_store(const ntt_pass_t *p, uint4 *shared, u32 place, fr_t x) {
    uint4 a, b;
    a.x = x.v[0]; a.y = x.v[1]; a.z = x.v[2]; a.w = x.v[3];
    b.x = x.v[4]; b.y = x.v[5]; b.z = x.v[6]; b.w = x.v[7];
    shared[place] = a;
    shared[place + (1u << pass_log_tile(p))] = b;
}

// Where a thread stands: its column, and the bits of j that its elements share, without those that differ.
typedef struct { u32 c, u; } place_t;

// Adjacent threads in adjacent columns: then a warp needs few different factors.
CUZK_FN place_t column_place(const ntt_pass_t *p, u32 thread) {
    place_t r;
    r.c = thread & ((1u << p->log_c) - 1);
    r.u = thread >> p->log_c;
    return r;
}

// Adjacent threads at adjacent elements of a column: what is adjacent in memory in a contiguous pass.
CUZK_FN place_t row_place(const ntt_pass_t *p, u32 thread) {
    place_t r;
    r.c = thread >> (p->k - NTT_LOG_RADIX);
    r.u = thread & ((1u << (p->k - NTT_LOG_RADIX)) - 1);
    return r;
}

// j of the thread's element 0 when the bits that differ are those from `bit` on; element i adds i·2^bit.
CUZK_FN u32 first_element(u32 u, u32 bit) {
    return ((u >> bit) << (bit + NTT_LOG_RADIX)) | (u & ((1u << bit) - 1));
}
// Element j of column c, counted in the tile.
CUZK_FN u32 in_tile(const ntt_pass_t *p, u32 j, u32 c) { return (j << p->log_c) | c; }

// Places of the thread's elements in shared memory. A place is an exclusive-or of what the bits of j and c contribute.
typedef struct { u32 first, bit[NTT_LOG_RADIX]; } places_t;

CUZK_FN places_t element_places(const ntt_pass_t *p, place_t at, u32 bit) {
    places_t r;
    r.first = pass_place(p, in_tile(p, first_element(at.u, bit), at.c));
    CUZK_UNROLL for (int b = 0; b < NTT_LOG_RADIX; b++) r.bit[b] = pass_place(p, in_tile(p, 1u << (bit + b), 0));
    return r;
}

CUZK_FN u32 element_place(places_t s, u32 i) {
    CUZK_UNROLL for (int b = 0; b < NTT_LOG_RADIX; b++) s.first ^= (i >> b) & 1 ? s.bit[b] : 0;
    return s.first;
}

CUZK_FN void elements_load(const ntt_pass_t *p, const uint4 *shared, place_t at, u32 bit, fr_t *x) {
    const places_t places = element_places(p, at, bit);
    CUZK_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) x[i] = shared_load(p, shared, element_place(places, i));
}

CUZK_FN void elements_store(const ntt_pass_t *p, uint4 *shared, place_t at, u32 bit, const fr_t *x) {
    const places_t places = element_places(p, at, bit);
    CUZK_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) shared_store(p, shared, element_place(places, i), x[i]);
}

// The lowest bit of the step of the highest bits.
CUZK_FN u32 pass_top(const ntt_pass_t *p) { return p->k - NTT_LOG_RADIX; }
// How many stages the step of the lowest bits does; all others do NTT_LOG_RADIX.
CUZK_FN u32 step_stages(const ntt_pass_t *p, u32 bit) { return bit ? NTT_LOG_RADIX : (p->k - 1) % NTT_LOG_RADIX + 1; }
// The lowest bit of the next step, downwards and upwards.
CUZK_FN u32 step_below(u32 bit) { return bit > NTT_LOG_RADIX ? bit - NTT_LOG_RADIX : 0; }
CUZK_FN u32 step_above(const ntt_pass_t *p, u32 bit) { return bit + step_stages(p, bit); }

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
// The place among all of the tile's element i, counted row by row as they lie there; at *where goes its place in the
// tile.
CUZK_FN size_t contiguous_index(const ntt_pass_t *p, u32 tile, u32 i, u32 *where) {
    if (p->flags & NTT_BIT_REVERSED) {
        *where = i;
        const u32 row = reverse_bits(i >> p->log_c, p->k);
        return ((size_t)row << p->stage) + (tile << p->log_c) + (i & ((1u << p->log_c) - 1));
    }
    *where = in_tile(p, i & ((1u << p->k) - 1), i >> p->k);
    return ((size_t)tile << pass_log_tile(p)) + i;
}

// Butterflies of decimation in time, (a, b) to (a + w·b, a − w·b).
CUZK_FN void time_butterfly(fr_t *a, fr_t *b, const u32 *w) {
    const fr_t t = factor_mul(*b, w);
    *b = lazy_sub(*a, t);
    *a = lazy_add(*a, t);
}
// And of decimation in frequency, (a, b) to (a + b, (a − b)·w). Here sums meet sums, so they are kept below 2r.
CUZK_FN void frequency_butterfly(fr_t *a, fr_t *b, const u32 *w) {
    const fr_t t = lazy_sub(*a, *b);
    *a = lazy_sum(*a, *b);
    *b = factor_mul(t, w);
}
// Either with w = 1, for b below 2r; the sum is kept there as well.
CUZK_FN void unit_butterfly(fr_t *a, fr_t *b) {
    const fr_t t = lazy_sub(*a, *b);
    *a = lazy_sum(*a, *b);
    *b = t;
}

// The stages of one step: the last `stages` of those of its bits, from the highest down in time, and up in frequency.
// `node` is the heap number of the factor of the highest bit. `unit`: it is node 1 of a table with g = 1, so that its
// factor and those of the nodes below it on the left are 1.
CUZK_FN void step_butterflies(fr_t *x, const u32 *heap, u32 node, u32 stages, const int frequency, int unit) {
    CUZK_UNROLL for (int t = 0; t < NTT_LOG_RADIX; t++) {
        const int s = frequency ? NTT_LOG_RADIX - 1 - t : t;
        const int half = NTT_RADIX >> (s + 1);
        if (s >= NTT_LOG_RADIX - (int)stages) {
            CUZK_UNROLL for (int h = 0; h < 1 << s; h++) {
                fr_t *first = x + 2 * half * h;
                const u32 *w = heap + FACTOR_LIMBS * (size_t)((node << s) + h);
                if (h == 0 && unit) {
                    CUZK_UNROLL for (int i = 0; i < half; i++) unit_butterfly(&first[i], &first[i + half]);
                } else {
                    CUZK_UNROLL for (int i = 0; i < half; i++) {
                        if (frequency) frequency_butterfly(&first[i], &first[i + half], w);
                        else time_butterfly(&first[i], &first[i + half], w);
                    }
                }
            }
        }
    }
}

// The thread's elements among all, `apart` limbs from each other.
CUZK_FN void elements_read(const u32 *from, size_t apart, fr_t *x) {
    CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) {
        x[i] = fr_load(from);
        from += apart;
    }
}

CUZK_FN void elements_write(u32 *to, size_t apart, const fr_t *x, const int canonical) {
    CUZK_UNROLL for (int i = 0; i < NTT_RADIX; i++) {
        fr_store(to, canonical ? lazy_reduce(x[i]) : x[i]);
        to += apart;
    }
}

// The thread's part of the step of the bits from `bit` on in a strided pass. The first step reads `src`, the last one
// writes `dst`; in between the elements are in shared memory.
CUZK_FN void strided_step(const ntt_pass_t *p, u32 tile, u32 thread, uint4 *shared, u32 bit, const int frequency) {
    const place_t at = column_place(p, thread);
    const u32 top = pass_top(p), log_s = p->log_n - p->stage - p->k;
    const u32 node = (((1u << p->stage) + strided_block(p, tile)) << (top - bit)) | at.u >> bit;
    const size_t first = 8 * strided_index(p, tile, first_element(at.u, bit), at.c), apart = (size_t)8 << (bit + log_s);
    fr_t x[NTT_RADIX];
    if (!frequency && bit == top && (p->flags & NTT_PRODUCT)) {
        const places_t places = element_places(p, at, bit);
        fr_t a = fr_load(p->src + first), b = fr_load(p->operand + first);
        CUZK_NO_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
            const fr_t this_a = a, this_b = b;
            // The next ones are on their way while these are being multiplied.
            if (i + 1 < NTT_RADIX) {
                a = fr_load(p->src + first + (i + 1) * apart);
                b = fr_load(p->operand + first + (i + 1) * apart);
            }
            shared_store(p, shared, element_place(places, i), lazy_mul(this_a, this_b));
        }
        elements_load(p, shared, at, bit, x);
    } else if (bit == (frequency ? 0 : top)) {
        elements_read(p->src + first, apart, x);
    } else {
        elements_load(p, shared, at, bit, x);
    }
    step_butterflies(x, p->heap, node, step_stages(p, bit), frequency, bit == top && (p->flags & NTT_UNIT));
    if (bit == (frequency ? top : 0)) elements_write(p->dst + first, apart, x, frequency && (p->flags & NTT_CANONICAL));
    else elements_store(p, shared, at, bit, x);
}

// What elements u + 2^(k - NTT_LOG_RADIX)·i of block B are multiplied by besides, f·(g·ω_n^b)^u with b = B
// bit-reversed. The results of block B are those of numbers b and so on in steps of 2^stage, so that ω_2n^b is what
// NTT_ODD_RESULTS asks of all of them.
CUZK_FN factor_t contiguous_twist(const ntt_pass_t *p, u32 block, u32 u) {
    const u32 b = reverse_bits(block, p->stage), odd = p->flags & (NTT_ODD_ELEMENTS | NTT_ODD_RESULTS);
    const u32 e = odd ? 2 * b * u + (p->flags & NTT_ODD_ELEMENTS ? u : b) : b * u;
    const u32 *low = p->roots_low + 8 * (size_t)(e & ((1u << p->log_low) - 1));
    const u32 *high = p->roots_high + 8 * (size_t)(e >> p->log_low);
    fr_t r = fr_load(high);
    // One or two products, in one piece of code.
    CUZK_NO_UNROLL for (u32 i = 0; i < (p->shift ? 2u : 1u); i++)
        r = fr_mul(r, fr_load(i ? p->shift + 8 * (size_t)u : low));
    return factor_in_two(r);
}

// Multiplies the thread's elements of the highest bits, in shared memory. A loop that is not unrolled keeps the code
// small.
CUZK_FN void contiguous_twisted(const ntt_pass_t *p, u32 block, place_t at, uint4 *shared) {
    const factor_t w = contiguous_twist(p, block, at.u);
    const places_t places = element_places(p, at, pass_top(p));
    CUZK_NO_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        const u32 place = element_place(places, i);
        shared_store(p, shared, place, factor_mul_twice(shared_load(p, shared, place), w));
    }
}

// The same in a contiguous pass, where the elements are in shared memory. The step of the highest bits, the first in
// time and the last in frequency, has the factors of its block; to what it gives (in frequency: takes), factors are
// multiplied so that all other steps do the same for each block as for block 0 with g = 1. In time this step reads
// `src`, in frequency it writes `dst`.
CUZK_FN void contiguous_step(const ntt_pass_t *p, u32 tile, u32 thread, uint4 *shared, u32 bit, const int frequency) {
    const u32 top = pass_top(p);
    const int outer = bit == top;
    const place_t at = outer ? row_place(p, thread) : column_place(p, thread);
    const u32 block = contiguous_block(p, tile, at.c);
    const u32 node = outer ? (1u << p->stage) + block : (1u << (top - bit)) | at.u >> bit;
    const size_t first = 8 * (((size_t)block << p->k) + at.u), apart = (size_t)8 << top;
    if (frequency && outer) contiguous_twisted(p, block, at, shared);
    fr_t x[NTT_RADIX];
    if (!frequency && outer) elements_read(p->src + first, apart, x);
    else elements_load(p, shared, at, bit, x);
    step_butterflies(x, outer ? p->heap : p->plain, node, step_stages(p, bit), frequency, 0);
    if (frequency && outer) elements_write(p->dst + first, apart, x, p->flags & NTT_CANONICAL);
    else elements_store(p, shared, at, bit, x);
    if (!frequency && outer) contiguous_twisted(p, block, at, shared);
}

// The other end of a contiguous pass: the tile row by row, each thread an element in each of NTT_RADIX parts of it.
CUZK_FN void frequency_load(const ntt_pass_t *p, u32 tile, u32 thread, uint4 *shared) {
    const u32 threads = 1u << (pass_log_tile(p) - NTT_LOG_RADIX);
    u32 where;
    CUZK_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        const size_t at = contiguous_index(p, tile, thread + threads * i, &where);
        shared_store(p, shared, pass_place(p, where), fr_load(p->src + 8 * at));
    }
}

CUZK_FN void time_store(const ntt_pass_t *p, u32 tile, u32 thread, const uint4 *shared) {
    const u32 threads = 1u << (pass_log_tile(p) - NTT_LOG_RADIX);
    u32 where;
    fr_t minuend = fr_zero();
    if (p->flags & NTT_DIFFERENCE) minuend = fr_load(p->operand + 8 * contiguous_index(p, tile, thread, &where));
    CUZK_NO_UNROLL for (u32 i = 0; i < NTT_RADIX; i++) {
        const size_t at = contiguous_index(p, tile, thread + threads * i, &where);
        fr_t x = shared_load(p, shared, pass_place(p, where));
        if (p->flags & NTT_ODD_RESULTS) x = factor_mul(x, p->results + FACTOR_LIMBS * (size_t)(where >> p->log_c));
        x = lazy_reduce(x);
        if (p->flags & NTT_DIFFERENCE) {
            x = fr_sub(minuend, x);
            // The next one is on its way while this one is being computed.
            const u32 next = thread + threads * (i + 1);
            if (i + 1 < NTT_RADIX) minuend = fr_load(p->operand + 8 * contiguous_index(p, tile, next, &where));
        }
        fr_store(p->dst + 8 * at, x);
    }
}

#endif
