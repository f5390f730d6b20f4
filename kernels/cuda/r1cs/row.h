// Terms of a row of a sparse matrix times a packed assignment.
#ifndef CUZK_CUDA_R1CS_ROW_H
#define CUZK_CUDA_R1CS_ROW_H

#include "../../common/ff/ff.h"

// A matrix and an assignment; the host fills it in.
typedef struct {
    // n_rows + 1 offsets of 4 or 8 bytes.
    const void *offsets;
    const u32 *columns;
    // For each non-zero the index of its coefficient in 1, 2 or 4 bytes.
    const void *coefficients;
    // The coefficients in Montgomery form, and those that are integers of up to 30 bits as such, 0 for all others.
    const u32 *dictionary;
    const int *weights;
    // The assignment: bit v of `ones` and `wide`, how many bits of `wide` are set before each word, and the wide values.
    const u64 *ones;
    const u64 *wide;
    const u32 *rank;
    const u32 *scalars;
    // Rows of more terms than `long_row`, ascending: a warp does each of them.
    const u32 *long_rows;
    u32 *out;
    u64 n_rows;
    u64 out_len;
    u32 n_long_rows;
    u32 long_row;
    u32 offset_bytes;
    u32 coefficient_bytes;
} r1cs_product_t;

CUZK_FN u64 row_offset(const r1cs_product_t *p, u64 i) {
    return p->offset_bytes == 4 ? ((const u32 *)p->offsets)[i] : ((const u64 *)p->offsets)[i];
}

CUZK_FN u32 coefficient_index(const r1cs_product_t *p, u64 i) {
    if (p->coefficient_bytes == 1) return ((const unsigned char *)p->coefficients)[i];
    if (p->coefficient_bytes == 2) return ((const unsigned short *)p->coefficients)[i];
    return ((const u32 *)p->coefficients)[i];
}

CUZK_FN u32 count_bits(u64 x) {
#if defined(__CUDACC__)
    return (u32)__popcll(x);
#else
    return (u32)__builtin_popcountll(x);
#endif
}

// A sum: integer multiples of 1 apart from everything else, so that most rows need no field arithmetic.
typedef struct {
    long long integer;
    fr_t rest;
    int has_rest;
} row_sum_t;

CUZK_FN row_sum_t row_zero(void) {
    row_sum_t s;
    s.integer = 0;
    s.rest = fr_zero();
    s.has_rest = 0;
    return s;
}

// Dictionary entries 0 and 1 are 1 and −1. A row has fewer than 2^32 terms of up to 2^30, so the integer does not overflow.
CUZK_FN void row_term(const r1cs_product_t *p, row_sum_t *s, u64 at) {
    const u32 column = p->columns[at], word = column >> 6, bit = column & 63;
    if ((p->ones[word] >> bit) & 1) {
        const u32 k = coefficient_index(p, at);
        const int weight = p->weights[k];
        s->integer += weight;
        if (weight == 0) {
            s->rest = fr_add(s->rest, fr_load(p->dictionary + 8 * (size_t)k));
            s->has_rest = 1;
        }
        return;
    }
    const u64 wide = p->wide[word];
    if (!((wide >> bit) & 1)) return;
    const u32 number = p->rank[word] + count_bits(wide & ((1ull << bit) - 1));
    const fr_t value = fr_load(p->scalars + 8 * (size_t)number);
    const u32 k = coefficient_index(p, at);
    s->has_rest = 1;
    if (k == 0) s->rest = fr_add(s->rest, value);
    else if (k == 1) s->rest = fr_sub(s->rest, value);
    else s->rest = fr_add(s->rest, fr_mul(value, fr_load(p->dictionary + 8 * (size_t)k)));
}

CUZK_FN fr_t row_value(row_sum_t s) {
    if (s.integer == 0) return s.rest;
    const u64 magnitude = s.integer < 0 ? 0ull - (u64)s.integer : (u64)s.integer;
    fr_t k = fr_one();
    if (magnitude != 1) {
        k = fr_zero();
        k.v[0] = (u32)magnitude;
        k.v[1] = (u32)(magnitude >> 32);
        k = fr_to_mont(k);
    }
    k = fr_cneg(s.integer < 0, k);
    return s.has_rest ? fr_add(s.rest, k) : k;
}

#endif
