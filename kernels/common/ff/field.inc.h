// A prime field in Montgomery form, instantiated by inclusion. The includer defines
//   FIELD            prefix of all names, fr or fp
//   FIELD_LIMBS      32-bit limbs, even
//   FIELD_MODULUS    initializer lists of limbs, least significant first: the modulus,
//   FIELD_ONE          R mod p with R = 2^(32 limbs),
//   FIELD_R2           R² mod p
//   FIELD_INV        −p⁻¹ mod 2^32
//   FIELD_LOW_IS_ONE 1 if the two lowest limbs of p are 1 and 2^32 − 1, else 0
// Elements are fully reduced, below p, and p is below 2^(32 limbs − 1).
//
// A product is a wide product of 2·limbs limbs followed by a Montgomery reduction, so that a·b ± c·d can be
// reduced once (`_mul_wide`, `_wide_sub`, `_redc`).

#define F(name) CUZK_PASTE(FIELD, name)
#define FN_LIMBS FIELD_LIMBS

// An element, Montgomery form, below p.
typedef struct { u32 v[FN_LIMBS]; } F(_t);
// A sum of products before its reduction, below p·R.
typedef struct { u32 v[2 * FN_LIMBS]; } F(_wide_t);

CUZK_FN F(_t) F(_zero)(void) {
    F(_t) r;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) r.v[i] = 0;
    return r;
}

CUZK_FN F(_t) F(_one)(void) {
    const u32 one[FN_LIMBS] = FIELD_ONE;
    F(_t) r;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) r.v[i] = one[i];
    return r;
}

CUZK_FN int F(_is_zero)(F(_t) a) {
    u32 any = 0;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) any |= a.v[i];
    return any == 0;
}

CUZK_FN int F(_eq)(F(_t) a, F(_t) b) {
    u32 any = 0;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) any |= a.v[i] ^ b.v[i];
    return any == 0;
}

// choose ? a : b
CUZK_FN F(_t) F(_select)(int choose, F(_t) a, F(_t) b) {
    F(_t) r;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) r.v[i] = choose ? a.v[i] : b.v[i];
    return r;
}

// Reads an element from an address that is a multiple of 16 bytes.
CUZK_FN F(_t) F(_load)(const CUZK_GLOBAL u32 *from) {
    F(_t) r;
#if defined(__CUDACC__)
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i += 4) {
        const uint4 q = *(const uint4 *)(from + i);
        r.v[i] = q.x; r.v[i + 1] = q.y; r.v[i + 2] = q.z; r.v[i + 3] = q.w;
    }
#else
    for (int i = 0; i < FN_LIMBS; i++) r.v[i] = from[i];
#endif
    return r;
}

// Writes an element to an address that is a multiple of 16 bytes.
CUZK_FN void F(_store)(CUZK_GLOBAL u32 *to, F(_t) a) {
#if defined(__CUDACC__)
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i += 4)
        *(uint4 *)(to + i) = make_uint4(a.v[i], a.v[i + 1], a.v[i + 2], a.v[i + 3]);
#else
    for (int i = 0; i < FN_LIMBS; i++) to[i] = a.v[i];
#endif
}

#if CUZK_CARRY_CHAINS

// a below 2p to a mod p.
CUZK_FN F(_t) F(_reduce_once)(F(_t) a) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    F(_t) r;
    r.v[0] = sub_cc(a.v[0], p[0]);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS; i++) r.v[i] = subc_cc(a.v[i], p[i]);
    const u32 borrow = subc(0, 0);
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) r.v[i] = borrow ? a.v[i] : r.v[i];
    return r;
}

// a + b as an integer; the caller knows that it fits.
CUZK_FN F(_t) F(_add_lazy)(F(_t) a, F(_t) b) {
    F(_t) r;
    r.v[0] = add_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS - 1; i++) r.v[i] = addc_cc(a.v[i], b.v[i]);
    r.v[FN_LIMBS - 1] = addc(a.v[FN_LIMBS - 1], b.v[FN_LIMBS - 1]);
    return r;
}

CUZK_FN F(_t) F(_sub)(F(_t) a, F(_t) b) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    F(_t) r;
    r.v[0] = sub_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS; i++) r.v[i] = subc_cc(a.v[i], b.v[i]);
    const u32 borrow = subc(0, 0);
    r.v[0] = add_cc(r.v[0], p[0] & borrow);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS - 1; i++) r.v[i] = addc_cc(r.v[i], p[i] & borrow);
    r.v[FN_LIMBS - 1] = addc(r.v[FN_LIMBS - 1], p[FN_LIMBS - 1] & borrow);
    return r;
}

// Sum of the columns of even (limb 0 at place 0) and odd (limb 0 at place 1).
CUZK_FN F(_wide_t) F(_join)(const u32 *even, const u32 *odd) {
    F(_wide_t) r;
    r.v[0] = even[0];
    r.v[1] = add_cc(even[1], odd[0]);
    CUZK_UNROLL for (int i = 2; i < 2 * FN_LIMBS - 1; i++) r.v[i] = addc_cc(even[i], odd[i - 1]);
    r.v[2 * FN_LIMBS - 1] = addc(even[2 * FN_LIMBS - 1], odd[2 * FN_LIMBS - 2]);
    return r;
}

// Products of limbs whose places are even and odd go to two accumulators, so that each row is two uninterrupted carry
// chains of wide multiply-adds; a chain's last carry lands in a limb that nothing has reached yet.
CUZK_FN F(_wide_t) F(_mul_wide)(F(_t) a, F(_t) b) {
    u32 even[2 * FN_LIMBS], odd[2 * FN_LIMBS];
    CUZK_UNROLL for (int j = 0; j < FN_LIMBS; j += 2) {
        const u64 e = (u64)a.v[j] * b.v[0], o = (u64)a.v[j + 1] * b.v[0];
        even[j] = (u32)e; even[j + 1] = (u32)(e >> 32);
        odd[j] = (u32)o; odd[j + 1] = (u32)(o >> 32);
    }
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS; i += 2) {
        // Row i is odd: even limbs of a fall on odd places.
        mad_wide_cc(&odd[i - 1], &odd[i], a.v[0], b.v[i]);
        CUZK_UNROLL for (int j = 2; j < FN_LIMBS; j += 2) madc_wide_cc(&odd[i - 1 + j], &odd[i + j], a.v[j], b.v[i]);
        odd[i - 1 + FN_LIMBS] = addc(0, 0);
        odd[i + FN_LIMBS] = 0;
        even[i - 1 + FN_LIMBS] = i == 1 ? 0 : even[i - 1 + FN_LIMBS];
        even[i + FN_LIMBS] = 0;
        mad_wide_cc(&even[i + 1], &even[i + 2], a.v[1], b.v[i]);
        CUZK_UNROLL for (int j = 3; j < FN_LIMBS; j += 2) madc_wide_cc(&even[i + j], &even[i + j + 1], a.v[j], b.v[i]);
        if (i + 1 < FN_LIMBS) {
            // Row i + 1 is even.
            mad_wide_cc(&even[i + 1], &even[i + 2], a.v[0], b.v[i + 1]);
            CUZK_UNROLL for (int j = 2; j < FN_LIMBS; j += 2) madc_wide_cc(&even[i + 1 + j], &even[i + 2 + j], a.v[j], b.v[i + 1]);
            even[i + 1 + FN_LIMBS] = addc(0, 0);
            mad_wide_cc(&odd[i + 1], &odd[i + 2], a.v[1], b.v[i + 1]);
            CUZK_UNROLL for (int j = 3; j < FN_LIMBS; j += 2) madc_wide_cc(&odd[i + j], &odd[i + j + 1], a.v[j], b.v[i + 1]);
        }
    }
    return F(_join)(even, odd);
}

// The products of different limbs once, doubled, plus the squares: limbs·(limbs + 1)/2 products.
CUZK_FN F(_wide_t) F(_sqr_wide)(F(_t) a) {
    u32 even[2 * FN_LIMBS], odd[2 * FN_LIMBS];
    CUZK_UNROLL for (int i = 0; i < 2 * FN_LIMBS; i++) even[i] = odd[i] = 0;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS - 1; i++) {
        // Row i: a[j]·a[i] for j > i. Places i + j of the same parity as 2i + 1 are odd.
        {
            const int j0 = i + 1;
            mad_wide_cc(&odd[i + j0 - 1], &odd[i + j0], a.v[j0], a.v[i]);
            CUZK_UNROLL for (int j = j0 + 2; j < FN_LIMBS; j += 2) madc_wide_cc(&odd[i + j - 1], &odd[i + j], a.v[j], a.v[i]);
            const int top = i + j0 + 2 * ((FN_LIMBS - j0 + 1) / 2) - 1;
            odd[top] = addc(odd[top], 0);
        }
        if (i + 2 < FN_LIMBS) {
            const int j0 = i + 2;
            mad_wide_cc(&even[i + j0], &even[i + j0 + 1], a.v[j0], a.v[i]);
            CUZK_UNROLL for (int j = j0 + 2; j < FN_LIMBS; j += 2) madc_wide_cc(&even[i + j], &even[i + j + 1], a.v[j], a.v[i]);
            const int top = i + j0 + 2 * ((FN_LIMBS - j0 + 1) / 2);
            even[top] = addc(even[top], 0);
        }
    }
    F(_wide_t) r = F(_join)(even, odd);
    r.v[0] = add_cc(r.v[0], r.v[0]);
    CUZK_UNROLL for (int i = 1; i < 2 * FN_LIMBS - 1; i++) r.v[i] = addc_cc(r.v[i], r.v[i]);
    r.v[2 * FN_LIMBS - 1] = addc(r.v[2 * FN_LIMBS - 1], r.v[2 * FN_LIMBS - 1]);
    mad_wide_cc(&r.v[0], &r.v[1], a.v[0], a.v[0]);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS; i++) madc_wide_cc(&r.v[2 * i], &r.v[2 * i + 1], a.v[i], a.v[i]);
    return r;
}

// a / R mod p for a below p·R. Each row clears the lowest limb; the accumulators swap roles as the number moves
// down by one limb, and the carry of their lowest sum enters the next row's first chain.
CUZK_FN F(_t) F(_redc)(F(_wide_t) a) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    u32 acc[2][FN_LIMBS + 2];
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) acc[0][i] = a.v[i];
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) {
        u32 *even = acc[i & 1], *odd = acc[(i + 1) & 1];
        if (i > 0) {
            // `odd` was even one row before: two limbs lower now, and its limb 1 has the place of even's limb 0.
            const u32 low = odd[1];
            CUZK_UNROLL for (int j = 0; j < FN_LIMBS - 2; j++) odd[j] = odd[j + 2];
            odd[FN_LIMBS - 2] = odd[FN_LIMBS - 1] = 0;
            even[0] = add_cc(even[0], low);
        }
#if FIELD_LOW_IS_ONE
        // p = 1 + (2^32 − 1)·2^32 + … and −p⁻¹ = −1 mod 2^32: q = −even[0], and two of the products are additions.
        const u32 e = even[0], q = negate_limb(e);
        const u32 high = e == 0 ? 0 : ~e;
        if (i == 0) {
            odd[0] = e;
            odd[1] = high;
            CUZK_UNROLL for (int j = 3; j < FN_LIMBS; j += 2) {
                const u64 t = (u64)p[j] * q;
                odd[j - 1] = (u32)t;
                odd[j] = (u32)(t >> 32);
            }
        } else {
            odd[0] = addc_cc(odd[0], e);
            odd[1] = addc_cc(odd[1], high);
            CUZK_UNROLL for (int j = 3; j < FN_LIMBS; j += 2) madc_wide_cc(&odd[j - 1], &odd[j], p[j], q);
        }
        even[0] = add_cc(e, q);
        even[1] = addc_cc(even[1], 0);
#else
        const u32 q = even[0] * FIELD_INV;
        if (i == 0) {
            CUZK_UNROLL for (int j = 1; j < FN_LIMBS; j += 2) {
                const u64 t = (u64)p[j] * q;
                odd[j - 1] = (u32)t;
                odd[j] = (u32)(t >> 32);
            }
        } else {
            CUZK_UNROLL for (int j = 1; j < FN_LIMBS; j += 2) madc_wide_cc(&odd[j - 1], &odd[j], p[j], q);
        }
        mad_wide_cc(&even[0], &even[1], p[0], q);
#endif
        CUZK_UNROLL for (int j = 2; j < FN_LIMBS; j += 2) madc_wide_cc(&even[j], &even[j + 1], p[j], q);
        odd[FN_LIMBS - 1] = addc(odd[FN_LIMBS - 1], 0);
    }
    // The last row is odd, FN_LIMBS being even: its `even` is acc[1], whose limb 0 is now zero.
    F(_t) r;
    r.v[0] = add_cc(acc[0][0], acc[1][1]);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS - 1; i++) r.v[i] = addc_cc(acc[0][i], acc[1][i + 1]);
    r.v[FN_LIMBS - 1] = addc(acc[0][FN_LIMBS - 1], 0);
    r.v[0] = add_cc(r.v[0], a.v[FN_LIMBS]);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS - 1; i++) r.v[i] = addc_cc(r.v[i], a.v[FN_LIMBS + i]);
    r.v[FN_LIMBS - 1] = addc(r.v[FN_LIMBS - 1], a.v[2 * FN_LIMBS - 1]);
    return F(_reduce_once)(r);
}

// a + b of wide numbers whose sum is below p·R.
CUZK_FN F(_wide_t) F(_wide_add)(F(_wide_t) a, F(_wide_t) b) {
    F(_wide_t) r;
    r.v[0] = add_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 2 * FN_LIMBS - 1; i++) r.v[i] = addc_cc(a.v[i], b.v[i]);
    r.v[2 * FN_LIMBS - 1] = addc(a.v[2 * FN_LIMBS - 1], b.v[2 * FN_LIMBS - 1]);
    return r;
}

// a − b of wide numbers, plus p·R if that is negative.
CUZK_FN F(_wide_t) F(_wide_sub)(F(_wide_t) a, F(_wide_t) b) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    F(_wide_t) r;
    r.v[0] = sub_cc(a.v[0], b.v[0]);
    CUZK_UNROLL for (int i = 1; i < 2 * FN_LIMBS; i++) r.v[i] = subc_cc(a.v[i], b.v[i]);
    const u32 borrow = subc(0, 0);
    r.v[FN_LIMBS] = add_cc(r.v[FN_LIMBS], p[0] & borrow);
    CUZK_UNROLL for (int i = 1; i < FN_LIMBS - 1; i++) r.v[FN_LIMBS + i] = addc_cc(r.v[FN_LIMBS + i], p[i] & borrow);
    r.v[2 * FN_LIMBS - 1] = addc(r.v[2 * FN_LIMBS - 1], p[FN_LIMBS - 1] & borrow);
    return r;
}

#else // portable

CUZK_FN F(_t) F(_reduce_once)(F(_t) a) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    F(_t) r;
    u64 borrow = 0;
    for (int i = 0; i < FN_LIMBS; i++) {
        const u64 d = (u64)a.v[i] - p[i] - borrow;
        r.v[i] = (u32)d;
        borrow = (d >> 32) & 1;
    }
    return borrow ? a : r;
}

CUZK_FN F(_t) F(_add_lazy)(F(_t) a, F(_t) b) {
    F(_t) r;
    u64 carry = 0;
    for (int i = 0; i < FN_LIMBS; i++) {
        carry += (u64)a.v[i] + b.v[i];
        r.v[i] = (u32)carry;
        carry >>= 32;
    }
    return r;
}

CUZK_FN F(_t) F(_sub)(F(_t) a, F(_t) b) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    F(_t) r;
    u64 borrow = 0, carry = 0;
    for (int i = 0; i < FN_LIMBS; i++) {
        const u64 d = (u64)a.v[i] - b.v[i] - borrow;
        r.v[i] = (u32)d;
        borrow = (d >> 32) & 1;
    }
    for (int i = 0; i < FN_LIMBS; i++) {
        carry += (u64)r.v[i] + (borrow ? p[i] : 0);
        r.v[i] = (u32)carry;
        carry >>= 32;
    }
    return r;
}

CUZK_FN F(_wide_t) F(_mul_wide)(F(_t) a, F(_t) b) {
    F(_wide_t) r;
    for (int i = 0; i < 2 * FN_LIMBS; i++) r.v[i] = 0;
    for (int i = 0; i < FN_LIMBS; i++) {
        u64 carry = 0;
        for (int j = 0; j < FN_LIMBS; j++) {
            carry += (u64)a.v[j] * b.v[i] + r.v[i + j];
            r.v[i + j] = (u32)carry;
            carry >>= 32;
        }
        r.v[i + FN_LIMBS] = (u32)carry;
    }
    return r;
}

CUZK_FN F(_wide_t) F(_sqr_wide)(F(_t) a) { return F(_mul_wide)(a, a); }

CUZK_FN F(_t) F(_redc)(F(_wide_t) a) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    u32 over = 0;
    for (int i = 0; i < FN_LIMBS; i++) {
        const u32 q = a.v[i] * FIELD_INV;
        u64 carry = 0;
        for (int j = 0; j < FN_LIMBS; j++) {
            carry += (u64)p[j] * q + a.v[i + j];
            a.v[i + j] = (u32)carry;
            carry >>= 32;
        }
        carry += (u64)a.v[i + FN_LIMBS] + over;
        a.v[i + FN_LIMBS] = (u32)carry;
        over = (u32)(carry >> 32);
    }
    F(_t) r;
    for (int i = 0; i < FN_LIMBS; i++) r.v[i] = a.v[FN_LIMBS + i];
    return F(_reduce_once)(r);
}

CUZK_FN F(_wide_t) F(_wide_add)(F(_wide_t) a, F(_wide_t) b) {
    u64 carry = 0;
    for (int i = 0; i < 2 * FN_LIMBS; i++) {
        carry += (u64)a.v[i] + b.v[i];
        a.v[i] = (u32)carry;
        carry >>= 32;
    }
    return a;
}

CUZK_FN F(_wide_t) F(_wide_sub)(F(_wide_t) a, F(_wide_t) b) {
    const u32 p[FN_LIMBS] = FIELD_MODULUS;
    u64 borrow = 0, carry = 0;
    for (int i = 0; i < 2 * FN_LIMBS; i++) {
        const u64 d = (u64)a.v[i] - b.v[i] - borrow;
        a.v[i] = (u32)d;
        borrow = (d >> 32) & 1;
    }
    for (int i = 0; i < FN_LIMBS; i++) {
        carry += (u64)a.v[FN_LIMBS + i] + (borrow ? p[i] : 0);
        a.v[FN_LIMBS + i] = (u32)carry;
        carry >>= 32;
    }
    return a;
}

#endif

CUZK_FN F(_t) F(_add)(F(_t) a, F(_t) b) { return F(_reduce_once)(F(_add_lazy)(a, b)); }
CUZK_FN F(_t) F(_dbl)(F(_t) a) { return F(_add)(a, a); }
CUZK_FN F(_t) F(_neg)(F(_t) a) { return F(_sub)(F(_zero)(), a); }
// negate ? −a : a
CUZK_FN F(_t) F(_cneg)(int negate, F(_t) a) { return F(_select)(negate, F(_neg)(a), a); }
CUZK_FN F(_t) F(_mul)(F(_t) a, F(_t) b) { return F(_redc)(F(_mul_wide)(a, b)); }
CUZK_FN F(_t) F(_sqr)(F(_t) a) { return F(_redc)(F(_sqr_wide)(a)); }
// a·b − c·d
CUZK_FN F(_t) F(_mul_sub)(F(_t) a, F(_t) b, F(_t) c, F(_t) d) {
    return F(_redc)(F(_wide_sub)(F(_mul_wide)(a, b), F(_mul_wide)(c, d)));
}

// The same as calls, where code size counts more than speed.
CUZK_FN_CALL F(_t) F(_mul_call)(F(_t) a, F(_t) b) { return F(_mul)(a, b); }
CUZK_FN_CALL F(_t) F(_sqr_call)(F(_t) a) { return F(_sqr)(a); }
CUZK_FN_CALL F(_t) F(_mul_sub_call)(F(_t) a, F(_t) b, F(_t) c, F(_t) d) { return F(_mul_sub)(a, b, c, d); }

// Integer below p to Montgomery form.
CUZK_FN F(_t) F(_to_mont)(F(_t) a) {
    const u32 r2[FN_LIMBS] = FIELD_R2;
    F(_t) r;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) r.v[i] = r2[i];
    return F(_mul)(a, r);
}

// Montgomery form to integer below p.
CUZK_FN F(_t) F(_from_mont)(F(_t) a) {
    F(_wide_t) w;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) { w.v[i] = a.v[i]; w.v[FN_LIMBS + i] = 0; }
    return F(_redc)(w);
}

#include "inverse.inc.h"

#undef F
#undef FN_LIMBS
