// Lazy arithmetic in the scalar field: elements that are right modulo r, but only below 2^256. Products with factors
// are below 2r, which is less than 2^256 for both curves.
#ifndef CUZK_CUDA_NTT_LAZY_H
#define CUZK_CUDA_NTT_LAZY_H

#include "../../common/ff/ff.h"

#if CUZK_CARRY_CHAINS

// Limb i of r·2^s; and of 2^256 − r·2^s, the lowest limb of r·2^s being not zero.
#define MULTIPLE_LIMB(p, i, s) ((p)[i] << (s) | ((i) ? (p)[(i) ? (i) - 1 : 0] >> (32 - (s)) : 0))
#define LAZY_LIMB(p, i, s) (~MULTIPLE_LIMB(p, i, s) + ((i) == 0))

// a + c if `wrapped` is not 0.
CUZK_FN fr_t lazy_correct(fr_t a, fr_t c, u32 wrapped) {
#if defined(__CUDACC__)
    asm volatile("{\n.reg .pred w;\nsetp.ne.u32 w, %8, 0;\n"
                 "@w add.cc.u32 %0, %0, %9;\n@w addc.cc.u32 %1, %1, %10;\n"
                 "@w addc.cc.u32 %2, %2, %11;\n@w addc.cc.u32 %3, %3, %12;\n"
                 "@w addc.cc.u32 %4, %4, %13;\n@w addc.cc.u32 %5, %5, %14;\n"
                 "@w addc.cc.u32 %6, %6, %15;\n@w addc.u32 %7, %7, %16;\n}"
                 : "+r"(a.v[0]), "+r"(a.v[1]), "+r"(a.v[2]), "+r"(a.v[3]),
                   "+r"(a.v[4]), "+r"(a.v[5]), "+r"(a.v[6]), "+r"(a.v[7])
                 : "r"(wrapped), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]),
                   "r"(c.v[4]), "r"(c.v[5]), "r"(c.v[6]), "r"(c.v[7]));
    return a;
#else
    return wrapped ? fr_add_lazy(a, c) : a;
#endif
}

// a − b, lazy, for b below 2r: what wraps around 2^256 gets 2r, which makes it positive.
CUZK_FN fr_t lazy_sub(fr_t a, fr_t b) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t c;
    a.v[0] = sub_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = subc_cc(a.v[i], b.v[i]);
    const u32 wrapped = subc(0, 0);
    CUZK_UNROLL for (int i = 0; i < 8; i++) c.v[i] = MULTIPLE_LIMB(p, i, 1);
    return lazy_correct(a, c, wrapped);
}

// a + b, lazy, for b below 2r: what wraps around 2^256 gets 2^256 − 2r, and does not wrap again.
CUZK_FN fr_t lazy_add(fr_t a, fr_t b) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t c;
    a.v[0] = add_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = addc_cc(a.v[i], b.v[i]);
    const u32 wrapped = addc(0, 0);
    CUZK_UNROLL for (int i = 0; i < 8; i++) c.v[i] = LAZY_LIMB(p, i, 1);
    return lazy_correct(a, c, wrapped);
}

// a + b below 2r, for a and b below 2r: 2r is taken off, and added again if that was too much.
CUZK_FN fr_t lazy_sum(fr_t a, fr_t b) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t c;
    a.v[0] = add_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = addc_cc(a.v[i], b.v[i]);
    const u32 above = addc(0, 0);
    a.v[0] = add_cc(a.v[0], LAZY_LIMB(p, 0, 1));
    CUZK_UNROLL for (int i = 1; i < 8; i++) a.v[i] = addc_cc(a.v[i], LAZY_LIMB(p, i, 1));
    const u32 enough = addc(above, 0);
    CUZK_UNROLL for (int i = 0; i < 8; i++) c.v[i] = MULTIPLE_LIMB(p, i, 1);
    return lazy_correct(a, c, enough == 0);
}

// a less r·2^s, s = 1 or 2, unless it is below that.
CUZK_FN fr_t lazy_less(fr_t a, const int s) {
    const u32 p[FR_LIMBS] = FR_MODULUS;
    fr_t r;
    r.v[0] = add_cc(a.v[0], LAZY_LIMB(p, 0, s));
    CUZK_UNROLL for (int i = 1; i < 8; i++) r.v[i] = addc_cc(a.v[i], LAZY_LIMB(p, i, s));
    return fr_select(addc(0, 0), r, a);
}

#else // portable: the same numbers, limb by limb

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

#endif
