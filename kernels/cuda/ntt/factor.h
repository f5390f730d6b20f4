// Products with a factor known in advance. Let x = x_0 + x_1·2^64 + x_2·2^128 + x_3·2^192. If a table has, beside w
// itself, the numbers w_i = w·2^(64i + 96) mod r, then
//   x·w = (x_0·w_0 + x_1·w_1 + x_2·w_2 + x_3·w_3) / 2^96  mod r,
// a sum of 64 limb products that is only 66 bits longer than r, so that three rows of Montgomery's reduction are
// enough: together 82 wide multiply-adds for BLS12-381 (whose r has the low limbs 1 and 2^32 − 1: a row has six) and
// 88 for BN254, against 112 and 128 of Montgomery's product. The sum is below 4·2^64·r, so the result is below (1 +
// 2^-30)·r. x may be any number below 2^256, and keeps its Montgomery form, w being a plain number.
//
// Factors that are used for a few products only come in two parts, w·2^160 and w·2^288: five rows, 94 and 104
// multiply-adds. With one part and eight rows it is Montgomery's product.
#ifndef CUZK_CUDA_NTT_FACTOR_H
#define CUZK_CUDA_NTT_FACTOR_H

#include "lazy.h"

// Limbs of a factor in the tables: w_0 to w_3.
#define FACTOR_LIMBS 32

// A factor in two parts.
typedef struct { fr_t low, high; } factor_t;

#if CUZK_CARRY_CHAINS

// A number as sums by column. Limb products of even columns and of odd ones go to accumulators of their own, so that
// each row is two uninterrupted carry chains; a pair of limbs stays where it is. Column c has even[c], odd[c] (a
// product's limbs: c and c + 1) and the carries of the chains that ended below it.
typedef struct { u32 even[18], odd[18], carry[18]; } columns_t;

CUZK_FN void columns_zero(columns_t *s) {
    CUZK_UNROLL for (int i = 0; i < 18; i++) s->even[i] = s->odd[i] = s->carry[i] = 0;
}

// s += a·w·2^(32·at), w below r. Rows are added for at = 0, 1, … up to the `widest`, then again from 0; `before` says
// how often before.
CUZK_FN void columns_row(columns_t *s, const u32 *w, u32 a, const int at, const int before, const int widest) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    u32 *same = at & 1 ? s->odd : s->even, *other = at & 1 ? s->even : s->odd;
    mad_wide_cc(&same[at], &same[at + 1], a, w[0]);
    CUZK_UNROLL for (int j = 2; j < 8; j += 2) madc_wide_cc(&same[at + j], &same[at + j + 1], a, w[j]);
    if (before > 0 || at > 0) s->carry[at + 8] = addc(s->carry[at + 8], 0);
    mad_wide_cc(&other[at + 1], &other[at + 2], a, w[1]);
    CUZK_UNROLL for (int j = 3; j < 8; j += 2) madc_wide_cc(&other[at + j], &other[at + j + 1], a, w[j]);
    // The highest pair of the widest rows has only products by w's highest limb; the other rows meet more there.
    const int room = widest ? (u64)(before + 1) * (p[7] + 2) >> 32 == 0 : before == 0;
    if (!room) s->carry[at + 9] = addc(s->carry[at + 9], 0);
}

// Row i of Montgomery's reduction: adds q·r·2^(32i) so that column i becomes zero.
CUZK_FN void columns_reduce(columns_t *s, const int i, const int last) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    u32 *same = i & 1 ? s->odd : s->even, *other = i & 1 ? s->even : s->odd;
    const u32 limb = i ? add_cc(same[i], other[i]) : same[0];
#if FR_LOW_IS_ONE
    // r = 1 + (2^32 − 1)·2^32 + … and −r⁻¹ = −1 mod 2^32: q = −limb, and the products by the two lowest limbs are
    // additions.
    const u32 q = negate_limb(limb), high = limb == 0 ? 0 : ~limb;
    if (i) {
        same[i + 1] = addc_cc(same[i + 1], 0);
        madc_wide_cc(&same[i + 2], &same[i + 3], p[2], q);
    } else {
        mad_wide_cc(&same[i + 2], &same[i + 3], p[2], q);
    }
    CUZK_UNROLL for (int j = 4; j < 8; j += 2) madc_wide_cc(&same[i + j], &same[i + j + 1], p[j], q);
    s->carry[i + 8] = addc(s->carry[i + 8], 0);
    (void)add_cc(limb, q);
    other[i + 1] = addc_cc(other[i + 1], limb);
    other[i + 2] = addc_cc(other[i + 2], high);
    CUZK_UNROLL for (int j = 3; j < 8; j += 2) madc_wide_cc(&other[i + j], &other[i + j + 1], p[j], q);
#else
    const u32 q = limb * FR_INV;
    if (i) madc_wide_cc(&other[i + 1], &other[i + 2], p[1], q);
    else mad_wide_cc(&other[i + 1], &other[i + 2], p[1], q);
    CUZK_UNROLL for (int j = 3; j < 8; j += 2) madc_wide_cc(&other[i + j], &other[i + j + 1], p[j], q);
#endif
    // The highest pair of the last row has room: it meets one product by w's highest limb at most.
    if (!last) s->carry[i + 9] = addc(s->carry[i + 9], 0);
#if !FR_LOW_IS_ONE
    same[i] = limb;
    mad_wide_cc(&same[i], &same[i + 1], p[0], q);
    CUZK_UNROLL for (int j = 2; j < 8; j += 2) madc_wide_cc(&same[i + j], &same[i + j + 1], p[j], q);
    s->carry[i + 8] = addc(s->carry[i + 8], 0);
#endif
}

// The eight limbs from column `rows` on, which are all that is left.
CUZK_FN fr_t columns_join(columns_t *s, const int rows) {
    fr_t r;
    s->even[8] = add_cc(s->even[8], s->carry[8]);
    CUZK_UNROLL for (int c = 9; c < rows + 8; c++) s->even[c] = addc_cc(s->even[c], s->carry[c]);
    r.v[0] = add_cc(s->even[rows], s->odd[rows]);
    CUZK_UNROLL for (int i = 1; i < 7; i++) r.v[i] = addc_cc(s->even[rows + i], s->odd[rows + i]);
    r.v[7] = addc(s->even[rows + 7], s->odd[rows + 7]);
    return r;
}

#else // portable: the same numbers

typedef struct { u32 v[18]; } columns_t;

CUZK_FN void columns_zero(columns_t *s) {
    for (int i = 0; i < 18; i++) s->v[i] = 0;
}

CUZK_FN void columns_row(columns_t *s, const u32 *w, u32 a, int at, int before, int widest) {
    (void)before;
    (void)widest;
    u64 carry = 0;
    for (int j = 0; at + j < 18; j++) {
        carry += (u64)s->v[at + j] + (j < 8 ? (u64)a * w[j] : 0);
        s->v[at + j] = (u32)carry;
        carry >>= 32;
    }
}

CUZK_FN void columns_reduce(columns_t *s, int i, int last) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    columns_row(s, p, s->v[i] * FR_INV, i, 0, last);
}

CUZK_FN fr_t columns_join(columns_t *s, int rows) {
    fr_t r;
    for (int i = 0; i < 8; i++) r.v[i] = s->v[rows + i];
    return r;
}

#endif

// Reads part i of a factor.
CUZK_FN void factor_part(u32 *w, const CUZK_GLOBAL u32 *factor, const int i) {
#if defined(__CUDACC__)
    CUZK_UNROLL for (int j = 0; j < 8; j += 4) {
        const uint4 q = __ldg((const uint4 *)(factor + 8 * i + j));
        w[j] = q.x; w[j + 1] = q.y; w[j + 2] = q.z; w[j + 3] = q.w;
    }
#else
    for (int j = 0; j < 8; j++) w[j] = factor[8 * i + j];
#endif
}

// x·w mod r, below (1 + 2^-30)·r, for any x below 2^256; `factor` are w_0 to w_3 of w, at a multiple of 16 bytes.
CUZK_FN fr_t factor_mul(fr_t x, const CUZK_GLOBAL u32 *factor) {
    columns_t s;
    columns_zero(&s);
    CUZK_UNROLL for (int i = 0; i < 4; i++) {
        u32 w[8];
        factor_part(w, factor, i);
        columns_row(&s, w, x.v[2 * i], 0, i, 0);
        columns_row(&s, w, x.v[2 * i + 1], 1, i, 1);
    }
    CUZK_UNROLL for (int i = 0; i < 3; i++) columns_reduce(&s, i, i == 2);
    return columns_join(&s, 3);
}

// The same with a factor in two parts.
CUZK_FN fr_t factor_mul_twice(fr_t x, factor_t w) {
    columns_t s;
    columns_zero(&s);
    CUZK_UNROLL for (int j = 0; j < 4; j++) columns_row(&s, w.low.v, x.v[j], j, 0, j == 3);
    CUZK_UNROLL for (int j = 0; j < 4; j++) columns_row(&s, w.high.v, x.v[4 + j], j, 1, j == 3);
    CUZK_UNROLL for (int i = 0; i < 5; i++) columns_reduce(&s, i, i == 4);
    return columns_join(&s, 5);
}

// x·y / 2^256 mod r below 2r, for x below 2^256 and y below r.
CUZK_FN fr_t lazy_mul(fr_t x, fr_t y) {
    columns_t s;
    columns_zero(&s);
    CUZK_UNROLL for (int j = 0; j < 8; j++) columns_row(&s, y.v, x.v[j], j, 0, j == 7);
    CUZK_UNROLL for (int i = 0; i < 8; i++) columns_reduce(&s, i, i == 7);
    return columns_join(&s, 8);
}

// The two parts of the factor of which w·2^288 mod r is given, below r.
CUZK_FN factor_t factor_in_two(fr_t high) {
    factor_t r;
    columns_t s;
    columns_zero(&s);
#if CUZK_CARRY_CHAINS
    CUZK_UNROLL for (int j = 0; j < 8; j++) s.even[j] = high.v[j];
#else
    for (int j = 0; j < 8; j++) s.v[j] = high.v[j];
#endif
    CUZK_UNROLL for (int i = 0; i < 4; i++) columns_reduce(&s, i, i == 3);
    r.low = columns_join(&s, 4);
    r.high = high;
    return r;
}

// Writes w_0 to w_3 of the factor whose Montgomery form is m: m·2^(64i + 96) / 2^256.
CUZK_FN void factor_store(CUZK_GLOBAL u32 *to, fr_t m) {
    CUZK_UNROLL for (int i = 0; i < 4; i++) {
        fr_t shift = fr_zero();
        shift.v[(2 * i + 3) % 8] = 1;
        if (i == 3) shift = fr_to_mont(shift); // 2^288 from 2^32
        fr_store(to + 8 * i, fr_mul(m, shift));
    }
}

#endif
