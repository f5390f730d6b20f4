// fp2 = fp[u]/(u² + 1), the coordinates of G2 of both curves. Products are summed wide and reduced once a coordinate.
#ifndef CUZK_COMMON_FF_FP2_H
#define CUZK_COMMON_FF_FP2_H

// c0 + c1·u
typedef struct { fp_t c0, c1; } fp2_t;
typedef struct { fp_wide_t c0, c1; } fp2_wide_t;

CUZK_FN fp2_t fp2_zero(void) { fp2_t r; r.c0 = fp_zero(); r.c1 = fp_zero(); return r; }
CUZK_FN fp2_t fp2_one(void) { fp2_t r; r.c0 = fp_one(); r.c1 = fp_zero(); return r; }
CUZK_FN int fp2_is_zero(fp2_t a) { return fp_is_zero(a.c0) & fp_is_zero(a.c1); }
CUZK_FN int fp2_eq(fp2_t a, fp2_t b) { return fp_eq(a.c0, b.c0) & fp_eq(a.c1, b.c1); }
CUZK_FN fp2_t fp2_select(int choose, fp2_t a, fp2_t b) {
    fp2_t r;
    r.c0 = fp_select(choose, a.c0, b.c0);
    r.c1 = fp_select(choose, a.c1, b.c1);
    return r;
}
CUZK_FN fp2_t fp2_load(const CUZK_GLOBAL u32 *from) {
    fp2_t r;
    r.c0 = fp_load(from);
    r.c1 = fp_load(from + FP_LIMBS);
    return r;
}
CUZK_FN void fp2_store(CUZK_GLOBAL u32 *to, fp2_t a) { fp_store(to, a.c0); fp_store(to + FP_LIMBS, a.c1); }
CUZK_FN fp2_t fp2_add(fp2_t a, fp2_t b) { fp2_t r; r.c0 = fp_add(a.c0, b.c0); r.c1 = fp_add(a.c1, b.c1); return r; }
CUZK_FN fp2_t fp2_sub(fp2_t a, fp2_t b) { fp2_t r; r.c0 = fp_sub(a.c0, b.c0); r.c1 = fp_sub(a.c1, b.c1); return r; }
CUZK_FN fp2_t fp2_dbl(fp2_t a) { return fp2_add(a, a); }
CUZK_FN fp2_t fp2_neg(fp2_t a) { fp2_t r; r.c0 = fp_neg(a.c0); r.c1 = fp_neg(a.c1); return r; }
CUZK_FN fp2_t fp2_cneg(int negate, fp2_t a) { return fp2_select(negate, fp2_neg(a), a); }

// a, once all of `before`, whose top bit is zero, is known. ptxas would compute independent products at the same time, and keep
// their many carries, for which it has seven registers of one bit, in bits of other registers: a fifth of the instructions.
CUZK_FN fp_t fp_after(fp_t a, fp_wide_t before) { a.v[0] |= before.v[2 * FP_LIMBS - 1] >> 31; return a; }
CUZK_FN fp_wide_t fp_wide_after(fp_wide_t a, u32 before) { a.v[0] |= before >> 31; return a; }

// Karatsuba: three wide products. The factors' sums fit unreduced, both moduli leaving at least two bits of their limbs.
CUZK_FN fp2_wide_t fp2_mul_wide(fp2_t a, fp2_t b) {
    const fp_wide_t low = fp_mul_wide(a.c0, b.c0);
    const fp_wide_t high = fp_mul_wide(a.c1, fp_after(b.c1, low));
    const fp_t sum = fp_after(fp_add_lazy(b.c0, b.c1), high);
    const fp_wide_t cross = fp_mul_wide(fp_add_lazy(a.c0, a.c1), sum);
    fp2_wide_t r;
    r.c1 = fp_wide_sub(fp_wide_sub(cross, low), high);
    r.c0 = fp_wide_sub(low, high);
    return r;
}
CUZK_FN fp2_t fp2_redc(fp2_wide_t a) {
    fp2_t r;
    r.c0 = fp_redc(a.c0);
    r.c1 = fp_redc(fp_wide_after(a.c1, r.c0.v[FP_LIMBS - 1]));
    return r;
}
CUZK_FN fp2_t fp2_mul(fp2_t a, fp2_t b) { return fp2_redc(fp2_mul_wide(a, b)); }
CUZK_FN fp2_t fp2_sqr(fp2_t a) {
    const fp_wide_t high = fp_mul_wide(fp_add_lazy(a.c0, a.c0), a.c1);
    fp2_wide_t r;
    r.c0 = fp_mul_wide(fp_after(fp_add_lazy(a.c0, a.c1), high), fp_sub(a.c0, a.c1));
    r.c1 = high;
    r.c0 = fp_wide_after(r.c0, r.c0.v[2 * FP_LIMBS - 1]);
    return fp2_redc(r);
}
// a·b − c·d
CUZK_FN fp2_t fp2_mul_sub(fp2_t a, fp2_t b, fp2_t c, fp2_t d) {
    const fp2_wide_t ab = fp2_mul_wide(a, b), cd = fp2_mul_wide(c, d);
    fp2_t r;
    r.c0 = fp_redc(fp_wide_sub(ab.c0, cd.c0));
    r.c1 = fp_redc(fp_wide_sub(ab.c1, cd.c1));
    return r;
}
CUZK_FN_CALL fp2_t fp2_mul_call(fp2_t a, fp2_t b) { return fp2_mul(a, b); }
CUZK_FN_CALL fp2_t fp2_sqr_call(fp2_t a) { return fp2_sqr(a); }
// Two reductions more than fp2_mul_sub, but no code of its own: an addition of points then fits the instruction cache.
CUZK_FN fp2_t fp2_mul_sub_call(fp2_t a, fp2_t b, fp2_t c, fp2_t d) { return fp2_sub(fp2_mul_call(a, b), fp2_mul_call(c, d)); }
// a⁻¹ = (c0 − c1·u) / (c0² + c1²); 0 for 0.
CUZK_FN fp2_t fp2_inv(fp2_t a) {
    const fp_t norm = fp_add(fp_sqr_call(a.c0), fp_sqr_call(a.c1));
    const fp_t inverse = fp_inv(norm);
    fp2_t r;
    r.c0 = fp_mul_call(a.c0, inverse);
    r.c1 = fp_mul_call(a.c1, fp_neg(inverse));
    return r;
}

#endif
