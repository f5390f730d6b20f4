// A group of points on y² = x³ + b in XYZZ coordinates, instantiated by inclusion. The includer defines
//   GROUP              prefix of all names, g1 or g2
//   GROUP_FIELD        prefix of the coordinates' field, fp or fp2
//   GROUP_FIELD_LIMBS  32-bit limbs of a coordinate
//
// XYZZ: x = X/ZZ, y = Y/ZZZ, ZZ³ = ZZZ², infinity has ZZ = 0. Formulas: Explicit-Formulas Database, shortw/xyzz
// (madd-2008-s, add-2008-s, dbl-2008-s-1, mdbl-2008-s-1); a = 0. All operations are complete: equal points, opposite points
// and infinity on either side give the right sum. Affine infinity is (0, 0), which is on neither curve, b being non-zero.
// Products are calls: an addition with all of them in line is longer than a multiprocessor's instruction cache, and warps that
// have drifted apart then run at half the speed.

#define G(name) CUZK_PASTE(GROUP, name)
#define K(name) CUZK_PASTE(GROUP_FIELD, name)

typedef struct { K(_t) x, y; } G(_affine_t);
typedef struct { K(_t) x, y, zz, zzz; } G(_xyzz_t);

CUZK_FN G(_affine_t) G(_affine_load)(const CUZK_GLOBAL u32 *from) {
    G(_affine_t) r;
    r.x = K(_load)(from);
    r.y = K(_load)(from + GROUP_FIELD_LIMBS);
    return r;
}
CUZK_FN void G(_affine_store)(CUZK_GLOBAL u32 *to, G(_affine_t) p) {
    K(_store)(to, p.x);
    K(_store)(to + GROUP_FIELD_LIMBS, p.y);
}
CUZK_FN int G(_affine_is_infinity)(G(_affine_t) p) { return K(_is_zero)(p.x) & K(_is_zero)(p.y); }

CUZK_FN G(_xyzz_t) G(_xyzz_load)(const CUZK_GLOBAL u32 *from) {
    G(_xyzz_t) r;
    r.x = K(_load)(from);
    r.y = K(_load)(from + GROUP_FIELD_LIMBS);
    r.zz = K(_load)(from + 2 * GROUP_FIELD_LIMBS);
    r.zzz = K(_load)(from + 3 * GROUP_FIELD_LIMBS);
    return r;
}
CUZK_FN void G(_xyzz_store)(CUZK_GLOBAL u32 *to, G(_xyzz_t) p) {
    K(_store)(to, p.x);
    K(_store)(to + GROUP_FIELD_LIMBS, p.y);
    K(_store)(to + 2 * GROUP_FIELD_LIMBS, p.zz);
    K(_store)(to + 3 * GROUP_FIELD_LIMBS, p.zzz);
}
CUZK_FN G(_xyzz_t) G(_infinity)(void) {
    G(_xyzz_t) r;
    r.x = r.y = r.zz = r.zzz = K(_zero)();
    return r;
}
CUZK_FN int G(_is_infinity)(G(_xyzz_t) p) { return K(_is_zero)(p.zz); }

CUZK_FN G(_xyzz_t) G(_from_affine)(G(_affine_t) p) {
    G(_xyzz_t) r;
    r.x = p.x;
    r.y = p.y;
    r.zz = r.zzz = K(_select)(G(_affine_is_infinity)(p), K(_zero)(), K(_one)());
    return r;
}

// 2p for an affine p that is not infinity; its y is not zero, the group's order being odd.
CUZK_FN_CALL G(_xyzz_t) G(_dbl_affine)(G(_affine_t) p) {
    const K(_t) u = K(_dbl)(p.y);
    G(_xyzz_t) r;
    r.zz = K(_mul_call)(u, u);
    r.zzz = K(_mul_call)(u, r.zz);
    const K(_t) s = K(_mul_call)(p.x, r.zz);
    const K(_t) xx = K(_mul_call)(p.x, p.x);
    const K(_t) m = K(_add)(K(_dbl)(xx), xx);
    r.x = K(_sub)(K(_mul_call)(m, m), K(_dbl)(s));
    r.y = K(_sub)(K(_mul_call)(m, K(_sub)(s, r.x)), K(_mul_call)(r.zzz, p.y));
    return r;
}

// 2p; infinity stays infinity.
CUZK_FN_CALL G(_xyzz_t) G(_dbl)(G(_xyzz_t) p) {
    const K(_t) u = K(_dbl)(p.y);
    const K(_t) v = K(_mul_call)(u, u);
    const K(_t) w = K(_mul_call)(u, v);
    const K(_t) s = K(_mul_call)(p.x, v);
    const K(_t) xx = K(_mul_call)(p.x, p.x);
    const K(_t) m = K(_add)(K(_dbl)(xx), xx);
    G(_xyzz_t) r;
    r.x = K(_sub)(K(_mul_call)(m, m), K(_dbl)(s));
    r.y = K(_sub)(K(_mul_call)(m, K(_sub)(s, r.x)), K(_mul_call)(w, p.y));
    r.zz = K(_mul_call)(v, p.zz);
    r.zzz = K(_mul_call)(w, p.zzz);
    return r;
}

// a + b, or a − b if `negate`: 8 products and 2 squares, two products sharing one reduction.
CUZK_FN G(_xyzz_t) G(_add_mixed)(G(_xyzz_t) a, G(_affine_t) b, int negate) {
    if (G(_affine_is_infinity)(b)) return a;
    b.y = K(_cneg)(negate, b.y);
    if (G(_is_infinity)(a)) {
        a.x = b.x;
        a.y = b.y;
        a.zz = a.zzz = K(_one)();
        return a;
    }
    const K(_t) p = K(_sub)(K(_mul_call)(b.x, a.zz), a.x);
    const K(_t) r = K(_sub)(K(_mul_call)(b.y, a.zzz), a.y);
    if (K(_is_zero)(p)) return K(_is_zero)(r) ? G(_dbl_affine)(b) : G(_infinity)();
    const K(_t) pp = K(_sqr_call)(p);
    const K(_t) ppp = K(_mul_call)(p, pp);
    const K(_t) q = K(_mul_call)(a.x, pp);
    a.x = K(_sub)(K(_sub)(K(_sqr_call)(r), ppp), K(_dbl)(q));
    a.y = K(_mul_sub_call)(r, K(_sub)(q, a.x), a.y, ppp);
    a.zz = K(_mul_call)(a.zz, pp);
    a.zzz = K(_mul_call)(a.zzz, ppp);
    return a;
}

// The same as a call.
CUZK_FN_CALL G(_xyzz_t) G(_add_mixed_call)(G(_xyzz_t) a, G(_affine_t) b, int negate) { return G(_add_mixed)(a, b, negate); }

// a + b: 12 products and 2 squares, two products sharing one reduction.
CUZK_FN G(_xyzz_t) G(_add)(G(_xyzz_t) a, G(_xyzz_t) b) {
    if (G(_is_infinity)(b)) return a;
    if (G(_is_infinity)(a)) return b;
    const K(_t) u1 = K(_mul_call)(a.x, b.zz);
    const K(_t) p = K(_sub)(K(_mul_call)(b.x, a.zz), u1);
    const K(_t) s1 = K(_mul_call)(a.y, b.zzz);
    const K(_t) r = K(_sub)(K(_mul_call)(b.y, a.zzz), s1);
    if (K(_is_zero)(p)) return K(_is_zero)(r) ? G(_dbl)(a) : G(_infinity)();
    const K(_t) pp = K(_sqr_call)(p);
    const K(_t) ppp = K(_mul_call)(p, pp);
    const K(_t) q = K(_mul_call)(u1, pp);
    G(_xyzz_t) c;
    c.x = K(_sub)(K(_sub)(K(_sqr_call)(r), ppp), K(_dbl)(q));
    c.y = K(_mul_sub_call)(r, K(_sub)(q, c.x), s1, ppp);
    c.zz = K(_mul_call)(K(_mul_call)(a.zz, b.zz), pp);
    c.zzz = K(_mul_call)(K(_mul_call)(a.zzz, b.zzz), ppp);
    return c;
}

// The affine form, (0, 0) for infinity: one inversion.
CUZK_FN G(_affine_t) G(_to_affine)(G(_xyzz_t) p) {
    // 1/ZZ = ZZ²/ZZZ², and one inversion of ZZZ serves both coordinates.
    const K(_t) i3 = K(_inv)(p.zzz);
    const K(_t) z = K(_mul_call)(i3, p.zz);
    const K(_t) i2 = K(_mul_call)(z, z);
    G(_affine_t) r;
    r.x = K(_mul_call)(p.x, i2);
    r.y = K(_mul_call)(p.y, i3);
    return r;
}

#undef G
#undef K
