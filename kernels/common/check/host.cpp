// The device headers as a host library with a C interface, for tests without a device. Compile once for each curve,
// with and without CUZK_EMULATE_CARRY:
//   g++ -O2 -std=c++17 -shared -fPIC [-DCUZK_CURVE_BN254] [-DCUZK_EMULATE_CARRY] host.cpp -o libcheck.so
// All arguments are arrays of 32-bit limbs, least significant first; elements are in Montgomery form.
#include "../ff/ff.h"
#include "../ec/ec.h"

#define EXPORT extern "C"

#define EXPORT_FIELD(f) \
    EXPORT void check_##f##_add(u32 *r, const u32 *a, const u32 *b) { f##_store(r, f##_add(f##_load(a), f##_load(b))); } \
    EXPORT void check_##f##_sub(u32 *r, const u32 *a, const u32 *b) { f##_store(r, f##_sub(f##_load(a), f##_load(b))); } \
    EXPORT void check_##f##_neg(u32 *r, const u32 *a) { f##_store(r, f##_neg(f##_load(a))); } \
    EXPORT void check_##f##_mul(u32 *r, const u32 *a, const u32 *b) { f##_store(r, f##_mul(f##_load(a), f##_load(b))); } \
    EXPORT void check_##f##_sqr(u32 *r, const u32 *a) { f##_store(r, f##_sqr(f##_load(a))); } \
    EXPORT void check_##f##_inv(u32 *r, const u32 *a) { f##_store(r, f##_inv(f##_load(a))); } \
    EXPORT void check_##f##_mul_sub(u32 *r, const u32 *a, const u32 *b, const u32 *c, const u32 *d) { \
        f##_store(r, f##_mul_sub(f##_load(a), f##_load(b), f##_load(c), f##_load(d))); \
    }

EXPORT_FIELD(fr)
EXPORT_FIELD(fp)
EXPORT_FIELD(fp2)

EXPORT void check_fr_to_mont(u32 *r, const u32 *a) { fr_store(r, fr_to_mont(fr_load(a))); }
EXPORT void check_fr_from_mont(u32 *r, const u32 *a) { fr_store(r, fr_from_mont(fr_load(a))); }

// A group: points are affine as they lie in device memory, sums are XYZZ.
#define EXPORT_GROUP(g) \
    EXPORT void check_##g##_add_mixed(u32 *r, const u32 *a, const u32 *b, int negate) { \
        g##_xyzz_store(r, g##_add_mixed(g##_xyzz_load(a), g##_affine_load(b), negate)); \
    } \
    EXPORT void check_##g##_add(u32 *r, const u32 *a, const u32 *b) { \
        g##_xyzz_store(r, g##_add(g##_xyzz_load(a), g##_xyzz_load(b))); \
    } \
    EXPORT void check_##g##_dbl(u32 *r, const u32 *a) { g##_xyzz_store(r, g##_dbl(g##_xyzz_load(a))); } \
    EXPORT void check_##g##_to_affine(u32 *r, const u32 *a) { g##_affine_store(r, g##_to_affine(g##_xyzz_load(a))); }

EXPORT_GROUP(g1)
EXPORT_GROUP(g2)
