// Products with a factor known in advance (V. Shoup): beside w the table keeps q = floor(w·2^256 / r), so that
//   x·w mod r = x·w − floor(x·q / 2^256)·r  up to one r,
// of which only the high limbs of x·q and the low limbs of the two other products are needed: 86 wide multiply-adds and
// 14 narrow ones for BLS12-381 (whose r has the low limbs 1 and 2^32 − 1), against 112 of a Montgomery product; 99 and 16
// against 136 for BN254. x stays in Montgomery form: w is a plain integer, so the form is kept.
//
// Here elements are "lazy": right modulo r, but only below 2^256. Products are below 2r, which is less for both curves.
#ifndef CUZK_CUDA_NTT_SHOUP_H
#define CUZK_CUDA_NTT_SHOUP_H

#include "../../common/ff/ff.h"

// w below r and q = floor(w·2^256 / r).
typedef struct { fr_t w, q; } shoup_t;

#if CUZK_CARRY_CHAINS

// acc + a·b + carry, low limb.
#if defined(__CUDACC__)
CUZK_FN u32 madc_lo(u32 acc, u32 a, u32 b) {
    u32 r;
    asm volatile("madc.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(acc));
    return r;
}
#else
CUZK_FN u32 madc_lo(u32 acc, u32 a, u32 b) { return addc(acc, a * b); }
#endif

// floor(x·q / 2^256) or one less. The products below column 6 are left out: together they are below 2^227.
CUZK_FN fr_t shoup_high(fr_t x, fr_t q) {
    // The slot of column c is e[c], e[c + 1] for even c and o[c - 1], o[c] for odd c.
    u32 e[18], o[18];
    CUZK_UNROLL for (int i = 0; i < 18; i++) e[i] = o[i] = 0;
    CUZK_UNROLL for (int i = 0; i < 8; i++) {
        // Even columns: j of the parity of i.
        const int je = i <= 6 ? 6 - i : 1;
        if (i > 0) {
            mad_wide_cc(&e[i + je], &e[i + je + 1], x.v[je], q.v[i]);
            CUZK_UNROLL for (int j = je + 2; j < 8; j += 2) madc_wide_cc(&e[i + j], &e[i + j + 1], x.v[j], q.v[i]);
            if (i % 2 == 0) e[i + 8] = addc(0, 0);
        } else {
            const u64 p = (u64)x.v[6] * q.v[0];
            e[6] = (u32)p;
            e[7] = (u32)(p >> 32);
        }
        const int jo = 7 - i;
        if (i > 0) {
            mad_wide_cc(&o[i + jo - 1], &o[i + jo], x.v[jo], q.v[i]);
            CUZK_UNROLL for (int j = jo + 2; j < 8; j += 2) madc_wide_cc(&o[i + j - 1], &o[i + j], x.v[j], q.v[i]);
            if (i % 2 == 1) o[i + 7] = addc(0, 0);
        } else {
            const u64 p = (u64)x.v[7] * q.v[0];
            o[6] = (u32)p;
            o[7] = (u32)(p >> 32);
        }
    }
    fr_t r;
    (void)add_cc(e[7], o[6]);
    CUZK_UNROLL for (int i = 0; i < 7; i++) r.v[i] = addc_cc(e[8 + i], o[7 + i]);
    r.v[7] = addc(e[15], o[14]);
    return r;
}

// acc += x·y mod 2^256, where limbs of y below `first` are taken as zero. Slots as above; o[7] does not exist.
CUZK_FN void shoup_low(u32 *e, u32 *o, fr_t x, const u32 *y, const int first) {
    CUZK_UNROLL for (int i = 0; i < 8; i++) {
        // y[i]·x[j], columns i + j up to 7.
        if (i >= first) {
            const int je = i & 1, jo = 1 - je;
            if (i + je <= 6) {
                mad_wide_cc(&e[i + je], &e[i + je + 1], x.v[je], y[i]);
                CUZK_UNROLL for (int j = je + 2; i + j <= 6; j += 2) madc_wide_cc(&e[i + j], &e[i + j + 1], x.v[j], y[i]);
            }
            if (i + jo < 7) {
                mad_wide_cc(&o[i + jo - 1], &o[i + jo], x.v[jo], y[i]);
                CUZK_UNROLL for (int j = jo + 2; i + j < 7; j += 2) madc_wide_cc(&o[i + j - 1], &o[i + j], x.v[j], y[i]);
                o[6] = madc_lo(o[6], x.v[7 - i], y[i]);
            } else {
                o[6] += x.v[7 - i] * y[i];
            }
        }
    }
}

// x·w mod r below 2r, for any x below 2^256.
CUZK_FN fr_t shoup_mul(fr_t x, shoup_t y) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    // −r. With the low limbs 1 and 2^32 − 1, r = 1 − 2^32 + s·2^64 with s one more than its other limbs say: that is −s, whose
    // limbs are their complements, and the rest is done without products.
    const int first = FR_LOW_IS_ONE ? 2 : 0;
    u32 minus_p[FR_LIMBS];
    CUZK_UNROLL for (int i = 0; i < 8; i++) minus_p[i] = i < first ? 0 : i == 0 ? 0u - p[i] : ~p[i];
    const fr_t h = shoup_high(x, y.q);
    u32 e[8], o[8];
#if FR_LOW_IS_ONE
    // −h·(1 − 2^32) is where the sums begin; −h = ~h + 1, and the 1 comes in the end.
    CUZK_UNROLL for (int j = 0; j < 8; j++) {
        e[j] = ~h.v[j];
        o[j] = h.v[j];
    }
#else
    CUZK_UNROLL for (int j = 0; j < 8; j++) e[j] = o[j] = 0;
#endif
    shoup_low(e, o, x, y.w.v, 0);
    shoup_low(e, o, h, minus_p, first);
    fr_t r;
    r.v[0] = add_cc(e[0], FR_LOW_IS_ONE);
    CUZK_UNROLL for (int i = 1; i < 7; i++) r.v[i] = addc_cc(e[i], o[i - 1]);
    r.v[7] = addc(e[7], o[6]);
    return r;
}

// Limb i of 2^256 − r·2^s; the lowest limb of r·2^s is not zero.
#define LAZY_LIMB(p, i, s) (~((p)[i] << (s) | ((i) ? (p)[(i) ? (i) - 1 : 0] >> (32 - (s)) : 0)) + ((i) == 0))
#define LAZY_WRAP(p, i) LAZY_LIMB(p, i, 1)

// a − b, lazy, for b below 2r: what wraps around 2^256 has 2^256 − 2r taken off, which it is not less than.
CUZK_FN fr_t lazy_sub(fr_t a, fr_t b) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    a.v[0] = sub_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = subc_cc(a.v[i], b.v[i]);
    const u32 wrapped = subc(0, 0);
    a.v[0] = sub_cc(a.v[0], wrapped & LAZY_WRAP(p, 0));
    CUZK_UNROLL for (int i = 1; i < 7; i++) a.v[i] = subc_cc(a.v[i], wrapped & LAZY_WRAP(p, i));
    a.v[7] = subc(a.v[7], wrapped & LAZY_WRAP(p, 7));
    return a;
}

// a + b, lazy, for b below 2r: what wraps around 2^256 gets 2^256 − 2r, and does not wrap again.
CUZK_FN fr_t lazy_add(fr_t a, fr_t b) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    a.v[0] = add_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = addc_cc(a.v[i], b.v[i]);
    const u32 wrapped = 0u - addc(0, 0);
    a.v[0] = add_cc(a.v[0], wrapped & LAZY_WRAP(p, 0));
    CUZK_UNROLL for (int i = 1; i < 7; i++) a.v[i] = addc_cc(a.v[i], wrapped & LAZY_WRAP(p, i));
    a.v[7] = addc(a.v[7], wrapped & LAZY_WRAP(p, 7));
    return a;
}

// a + b below 2r, for a and b below 2r.
CUZK_FN fr_t lazy_sum(fr_t a, fr_t b) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t r;
    a.v[0] = add_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = addc_cc(a.v[i], b.v[i]);
    const u32 wrapped = addc(0, 0);
    r.v[0] = add_cc(a.v[0], LAZY_WRAP(p, 0));
    CUZK_UNROLL for (int i = 1; i < 8; i++) r.v[i] = addc_cc(a.v[i], LAZY_WRAP(p, i));
    return fr_select(addc(wrapped, 0), r, a);
}

// a less r·2^s, s = 1 or 2, unless it is below that.
CUZK_FN fr_t lazy_less(fr_t a, const int s) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t r;
    r.v[0] = add_cc(a.v[0], LAZY_LIMB(p, 0, s));
    CUZK_UNROLL for (int i = 1; i < 8; i++) r.v[i] = addc_cc(a.v[i], LAZY_LIMB(p, i, s));
    return fr_select(addc(0, 0), r, a);
}

// x·y mod 2^256.
CUZK_FN fr_t low_product(fr_t x, const u32 *y) {
    u32 e[8], o[8];
    CUZK_UNROLL for (int j = 0; j < 8; j++) e[j] = o[j] = 0;
    shoup_low(e, o, x, y, 0);
    fr_t r;
    r.v[0] = e[0];
    r.v[1] = add_cc(e[1], o[0]);
    CUZK_UNROLL for (int i = 2; i < 7; i++) r.v[i] = addc_cc(e[i], o[i - 1]);
    r.v[7] = addc(e[7], o[6]);
    return r;
}

#else // portable: the same numbers, limb by limb

CUZK_FN fr_t shoup_high(fr_t x, fr_t q) {
    u32 column[17] = { 0 };
    for (int i = 0; i < 8; i++) {
        u64 carry = 0;
        for (int j = i <= 6 ? 6 - i : 0; j < 8; j++) {
            carry += (u64)x.v[j] * q.v[i] + column[i + j];
            column[i + j] = (u32)carry;
            carry >>= 32;
        }
        for (int c = i + 8; carry; c++) {
            carry += column[c];
            column[c] = (u32)carry;
            carry >>= 32;
        }
    }
    fr_t r;
    for (int i = 0; i < 8; i++) r.v[i] = column[8 + i];
    return r;
}

CUZK_FN fr_t low_product(fr_t x, const u32 *y) {
    fr_t r = fr_zero();
    for (int i = 0; i < 8; i++) {
        u64 carry = 0;
        for (int j = 0; i + j < 8; j++) {
            carry += (u64)x.v[j] * y[i] + r.v[i + j];
            r.v[i + j] = (u32)carry;
            carry >>= 32;
        }
    }
    return r;
}

// a += b, and the carry.
CUZK_FN u32 portable_add(fr_t *a, fr_t b) {
    u64 carry = 0;
    for (int i = 0; i < 8; i++) {
        carry += (u64)a->v[i] + b.v[i];
        a->v[i] = (u32)carry;
        carry >>= 32;
    }
    return (u32)carry;
}

// a -= b, and the borrow.
CUZK_FN u32 portable_sub(fr_t *a, fr_t b) {
    u64 borrow = 0;
    for (int i = 0; i < 8; i++) {
        const u64 d = (u64)a->v[i] - b.v[i] - borrow;
        a->v[i] = (u32)d;
        borrow = (d >> 32) & 1;
    }
    return (u32)borrow;
}

// r·2^s for s = 1 or 2
CUZK_FN fr_t portable_multiple(const int s) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t r;
    for (int i = 0; i < 8; i++) r.v[i] = p[i] << s | (i ? p[i - 1] >> (32 - s) : 0);
    return r;
}

CUZK_FN fr_t shoup_mul(fr_t x, shoup_t y) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t r = low_product(x, y.w.v);
    portable_sub(&r, low_product(shoup_high(x, y.q), p));
    return r;
}

CUZK_FN fr_t lazy_sub(fr_t a, fr_t b) {
    if (portable_sub(&a, b)) portable_add(&a, portable_multiple(1));
    return a;
}

CUZK_FN fr_t lazy_add(fr_t a, fr_t b) {
    if (portable_add(&a, b)) portable_sub(&a, portable_multiple(1));
    return a;
}

CUZK_FN fr_t lazy_sum(fr_t a, fr_t b) {
    const u32 wrapped = portable_add(&a, b);
    fr_t r = a;
    return portable_sub(&r, portable_multiple(1)) && !wrapped ? a : r;
}

CUZK_FN fr_t lazy_less(fr_t a, const int s) {
    fr_t r = a;
    return portable_sub(&r, portable_multiple(s)) ? a : r;
}

#endif

// Lazy to fully reduced: 2^256 is less than 3r for BLS12-381, and less than 6r for BN254.
CUZK_FN fr_t lazy_reduce(fr_t a) {
    if (FR_BITS < 255) a = lazy_less(a, 2);
    return fr_reduce_once(lazy_less(a, 1));
}

// The pair of a factor in Montgomery form, fully reduced. With m = w·2^256 mod r, which is that form, w·2^256 − m is
// q·r, hence q = −m·r⁻¹ mod 2^256.
CUZK_FN shoup_t shoup_from_mont(fr_t m) {
    const u32 minus_inverse[FR_LIMBS] = FR_INV_WIDE;
    shoup_t r;
    r.w = fr_from_mont(m);
    r.q = low_product(m, minus_inverse);
    return r;
}

// Reads a pair from an address that is a multiple of 16 bytes: w, then q.
CUZK_FN shoup_t shoup_load(const CUZK_GLOBAL u32 *from) {
    shoup_t r;
#if defined(__CUDACC__)
    CUZK_UNROLL for (int i = 0; i < 8; i += 4) {
        const uint4 a = __ldg((const uint4 *)(from + i)), b = __ldg((const uint4 *)(from + 8 + i));
        r.w.v[i] = a.x; r.w.v[i + 1] = a.y; r.w.v[i + 2] = a.z; r.w.v[i + 3] = a.w;
        r.q.v[i] = b.x; r.q.v[i + 1] = b.y; r.q.v[i + 2] = b.z; r.q.v[i + 3] = b.w;
    }
#else
    r.w = fr_load(from);
    r.q = fr_load(from + 8);
#endif
    return r;
}

CUZK_FN void shoup_store(CUZK_GLOBAL u32 *to, shoup_t a) {
    fr_store(to, a.w);
    fr_store(to + 8, a.q);
}

#endif
