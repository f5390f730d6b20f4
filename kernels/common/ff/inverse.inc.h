// The inverse in a prime field, part of field.inc.h: Bernstein and Yang, "Fast constant-time gcd computation and modular
// inversion" (CHES 2019), with the divisions by two of the "half delta" variant (Wuille, safegcd-bounds). Thirty steps look at the
// lowest limbs of f and g alone and give a matrix, which is then applied to f and g, exactly, and to d and e modulo p. On a device
// a thread needs a tenth of the time that a power p − 2 takes, whose products wait for each other.
//
// Numbers are F30 limbs of 30 bits, least significant first, the last one signed. 30·F30 bits hold values from −2p to 2p.

#define F30 ((32 * FN_LIMBS + 29) / 30)
#define F30_MASK 0x3fffffff

typedef struct { i32 v[F30]; } F(_30_t);

CUZK_FN F(_30_t) F(_to_30)(F(_t) a) {
    F(_30_t) r;
    CUZK_UNROLL for (int i = 0; i < F30; i++) {
        const int limb = 30 * i / 32, shift = 30 * i % 32;
        u32 x = a.v[limb] >> shift;
        if (shift > 2 && limb + 1 < FN_LIMBS) x |= a.v[limb + 1] << (32 - shift);
        r.v[i] = (i32)(x & F30_MASK);
    }
    return r;
}

// Of limbs that are not negative, of a number below 2^(32 limbs).
CUZK_FN F(_t) F(_from_30)(F(_30_t) a) {
    F(_t) r;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) {
        const int limb = 32 * i / 30, shift = 32 * i % 30;
        u32 x = (u32)a.v[limb] >> shift;
        if (limb + 1 < F30) x |= (u32)a.v[limb + 1] << (30 - shift);
        if (shift == 29 && limb + 2 < F30) x |= (u32)a.v[limb + 2] << 31;
        r.v[i] = x;
    }
    return r;
}

// 2^30 times the matrix of thirty steps: (f, g) becomes (u·f + v·g, q·f + r·g) / 2^30.
typedef struct { i32 u, v, q, r; } F(_steps_t);

CUZK_FN F(_steps_t) F(_steps)(i32 *zeta, u32 f, u32 g) {
    u32 u = 1, v = 0, q = 0, r = 1;
    i32 z = *zeta;
    CUZK_NO_UNROLL for (int i = 0; i < 30; i++) {
        // Masks: delta > 0, and g odd. z = −(delta + 1/2).
        u32 swap = (u32)(z >> 31);
        const u32 odd = 0u - (g & 1);
        g += ((f ^ swap) - swap) & odd;
        q += ((u ^ swap) - swap) & odd;
        r += ((v ^ swap) - swap) & odd;
        swap &= odd;
        z = (i32)((u32)z ^ swap) - 1;
        f += g & swap;
        u += q & swap;
        v += r & swap;
        g >>= 1;
        u <<= 1;
        v <<= 1;
    }
    *zeta = z;
    F(_steps_t) t;
    t.u = (i32)u; t.v = (i32)v; t.q = (i32)q; t.r = (i32)r;
    return t;
}

// Applies the matrix to f and g; the division is exact.
CUZK_FN void F(_step_fg)(F(_30_t) *f, F(_30_t) *g, F(_steps_t) t) {
    i64 a = (i64)t.u * f->v[0] + (i64)t.v * g->v[0];
    i64 b = (i64)t.q * f->v[0] + (i64)t.r * g->v[0];
    a >>= 30;
    b >>= 30;
    CUZK_UNROLL for (int i = 1; i < F30; i++) {
        a += (i64)t.u * f->v[i] + (i64)t.v * g->v[i];
        b += (i64)t.q * f->v[i] + (i64)t.r * g->v[i];
        f->v[i - 1] = (i32)a & F30_MASK;
        g->v[i - 1] = (i32)b & F30_MASK;
        a >>= 30;
        b >>= 30;
    }
    f->v[F30 - 1] = (i32)a;
    g->v[F30 - 1] = (i32)b;
}

// Applies the matrix to d and e modulo p: multiples of p make them divisible by 2^30 and keep them in (−2p, p).
CUZK_FN void F(_step_de)(F(_30_t) *d, F(_30_t) *e, F(_steps_t) t) {
    const u32 modulus[FN_LIMBS] = FIELD_MODULUS;
    F(_t) whole;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) whole.v[i] = modulus[i];
    const F(_30_t) p = F(_to_30)(whole);
    const u32 inverse = 0u - FIELD_INV;
    const i32 sd = d->v[F30 - 1] >> 31, se = e->v[F30 - 1] >> 31;
    i32 md = (t.u & sd) + (t.v & se), me = (t.q & sd) + (t.r & se);
    i64 a = (i64)t.u * d->v[0] + (i64)t.v * e->v[0];
    i64 b = (i64)t.q * d->v[0] + (i64)t.r * e->v[0];
    md -= (i32)((inverse * (u32)a + (u32)md) & F30_MASK);
    me -= (i32)((inverse * (u32)b + (u32)me) & F30_MASK);
    a += (i64)p.v[0] * md;
    b += (i64)p.v[0] * me;
    a >>= 30;
    b >>= 30;
    CUZK_UNROLL for (int i = 1; i < F30; i++) {
        a += (i64)t.u * d->v[i] + (i64)t.v * e->v[i] + (i64)p.v[i] * md;
        b += (i64)t.q * d->v[i] + (i64)t.r * e->v[i] + (i64)p.v[i] * me;
        d->v[i - 1] = (i32)a & F30_MASK;
        e->v[i - 1] = (i32)b & F30_MASK;
        a >>= 30;
        b >>= 30;
    }
    d->v[F30 - 1] = (i32)a;
    e->v[F30 - 1] = (i32)b;
}

// a + (add ? p : 0), negated if `negate`, with carries: limbs of 30 bits again, but for the last.
CUZK_FN F(_30_t) F(_settle)(F(_30_t) a, int add, int negate) {
    const u32 modulus[FN_LIMBS] = FIELD_MODULUS;
    F(_t) whole;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) whole.v[i] = modulus[i];
    const F(_30_t) p = F(_to_30)(whole);
    i32 carry = 0;
    CUZK_UNROLL for (int i = 0; i < F30; i++) {
        const i32 x = a.v[i] + (add ? p.v[i] : 0);
        carry += negate ? -x : x;
        a.v[i] = i + 1 < F30 ? carry & F30_MASK : carry;
        carry >>= 30;
    }
    return a;
}

// a⁻¹; 0 for 0.
CUZK_FN_CALL F(_t) F(_inv)(F(_t) a) {
    const u32 modulus[FN_LIMBS] = FIELD_MODULUS, r2[FN_LIMBS] = FIELD_R2;
    F(_t) x, square;
    CUZK_UNROLL for (int i = 0; i < FN_LIMBS; i++) { x.v[i] = modulus[i]; square.v[i] = r2[i]; }
    F(_30_t) f = F(_to_30)(x), g = F(_to_30)(a), d, e;
    CUZK_UNROLL for (int i = 0; i < F30; i++) d.v[i] = e.v[i] = 0;
    e.v[0] = 1;
    // f ≡ a·d and g ≡ a·e modulo p; at the end f is the greatest common divisor or its negative.
    i32 zeta = -1, rest = 1;
    CUZK_NO_UNROLL while (rest != 0) {
        const F(_steps_t) t = F(_steps)(&zeta, (u32)f.v[0] | (u32)f.v[1] << 30, (u32)g.v[0] | (u32)g.v[1] << 30);
        F(_step_de)(&d, &e, t);
        F(_step_fg)(&f, &g, t);
        rest = 0;
        CUZK_UNROLL for (int i = 0; i < F30; i++) rest |= g.v[i];
    }
    d = F(_settle)(d, d.v[F30 - 1] < 0, f.v[F30 - 1] < 0);
    d = F(_settle)(d, d.v[F30 - 1] < 0, 0);
    x = F(_from_30)(d);
    // The inverse of x·R as an integer is x⁻¹/R: times R² twice.
    return F(_mul_call)(F(_mul_call)(x, square), square);
}

#undef F30
#undef F30_MASK
