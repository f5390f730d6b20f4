// Scalar arithmetic on the host for the programs in this folder, and a transform by definition to compare with.
#pragma once
#include <vector>

#include "../ntt/elements.h"

namespace ntt {

inline fr_t power(fr_t base, const u32 *e, int limbs) {
    fr_t r = fr_one();
    for (int i = 32 * limbs - 1; i >= 0; i--) {
        r = fr_mul(r, r);
        if ((e[i >> 5] >> (i & 31)) & 1) r = fr_mul(r, base);
    }
    return r;
}

inline fr_t small(u32 v) {
    fr_t r = fr_zero();
    r.v[0] = v;
    return fr_to_mont(r);
}

// 2^32, which the higher table of powers is multiplied by.
inline fr_t two_to_32() {
    fr_t r = fr_zero();
    r.v[1] = 1;
    return fr_to_mont(r);
}

#if FR_LOW_IS_ONE
constexpr u32 TWO_ADICITY = 32;
#else
constexpr u32 TWO_ADICITY = 28;
#endif

// 7 generates the multiplicative group of both fields.
inline fr_t root_of_unity(u32 log_n, bool inverse = false) {
    u32 e[8] = FR_MODULUS;
    e[0] -= 1;
    for (u32 s = 0; s < TWO_ADICITY; s++)
        for (int i = 0; i < 8; i++) e[i] = e[i] >> 1 | (i < 7 ? e[i + 1] << 31 : 0);
    fr_t w = power(small(7), e, 8);
    for (u32 s = log_n; s < TWO_ADICITY; s++) w = fr_sqr(w);
    return inverse ? fr_inv(w) : w;
}

inline std::vector<fr_t> squares(fr_t base, int n) {
    std::vector<fr_t> r(n);
    for (auto &x : r) {
        x = base;
        base = fr_sqr(base);
    }
    return r;
}

// A sequence that is fixed by its seed.
struct Random {
    u64 state;
    u64 next() {
        u64 z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    fr_t scalar() {
        fr_t r;
        for (int i = 0; i < 8; i += 2) {
            const u64 v = next();
            r.v[i] = (u32)v;
            r.v[i + 1] = (u32)(v >> 32);
        }
        r.v[7] >>= 4;
        return r;
    }
};

// out[k] = f · sum of x[j]·(g·ω^k)^j in natural order, by radix-2 halving.
inline void reference(std::vector<fr_t> &x, fr_t omega, fr_t g, fr_t f) {
    const size_t n = x.size();
    fr_t power = f;
    for (auto &v : x) {
        v = fr_mul(v, power);
        power = fr_mul(power, g);
    }
    u32 log_n = 0;
    while ((size_t(1) << log_n) < n) log_n++;
    for (size_t i = 0; i < n; i++) {
        const size_t r = reverse_bits((u32)i, log_n);
        if (i < r) std::swap(x[i], x[r]);
    }
    std::vector<fr_t> root = squares(omega, log_n + 1);
    for (u32 s = 1; s <= log_n; s++) {
        const fr_t w_step = root[log_n - s];
        std::vector<fr_t> w(size_t(1) << (s - 1));
        w[0] = fr_one();
        for (size_t j = 1; j < w.size(); j++) w[j] = fr_mul(w[j - 1], w_step);
        for (size_t b = 0; b < n; b += size_t(1) << s)
            for (size_t j = 0; j < w.size(); j++) {
                const fr_t a = x[b + j], t = fr_mul(x[b + j + w.size()], w[j]);
                x[b + j] = fr_add(a, t);
                x[b + j + w.size()] = fr_sub(a, t);
            }
    }
}

} // namespace ntt
