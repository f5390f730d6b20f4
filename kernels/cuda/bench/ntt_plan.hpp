// The host side of the transforms for programs that run without Rust: the same passes and tables that the backend
// crate uses, over an executor that launches kernels on a device or does their work on the host.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ntt_host.hpp"

namespace ntt {

enum Kernel { TIME_STRIDED, TIME_CONTIGUOUS, FREQUENCY_STRIDED, FREQUENCY_CONTIGUOUS };

struct Executor {
    virtual u32 *alloc(size_t bytes) = 0;
    virtual void upload(u32 *to, const void *from, size_t bytes) = 0;
    virtual void pass(Kernel which, const ntt_pass_t &p, u32 blocks, u32 threads, u32 shared) = 0;
    virtual void powers(u32 *out, const u32 *squares, const u32 *first, u32 count) = 0;
    virtual void heap(u32 *out, const u32 *root, const u32 *shift, u32 log_n, u32 levels) = 0;
    virtual void results(u32 *out, const u32 *step, u32 k) = 0;
    virtual void product(u32 *out, const u32 *a, const u32 *b, size_t n) = 0;
    virtual void reverse(u32 *x, u32 log_n) = 0;
};

// Stages of each pass, from the top bits down; the last pass is the contiguous one. As
// crates/cuzk-backend-cuda/src/ntt/plan.rs.
inline std::vector<u32> passes(u32 log_n) {
    switch (log_n) {
        case 11: return { 5, 6 };
        case 12: return { 6, 6 };
        case 13: return { 6, 7 };
        case 14: return { 6, 8 };
        case 15: return { 6, 9 };
        case 16: return { 7, 9 };
        case 17: return { 8, 9 };
        case 18: return { 9, 9 };
        case 19: return { 5, 6, 8 };
        case 20: return { 6, 6, 8 };
        case 21: return { 7, 6, 8 };
        case 22: return { 8, 6, 8 };
        case 23: return { 8, 7, 8 };
        case 24: return { 8, 8, 8 };
        case 25: return { 8, 8, 9 };
        case 26: return { 8, 9, 9 };
        case 27: return { 9, 9, 9 };
        case 28: return { 10, 9, 9 };
        default: return { log_n };
    }
}

// log2 of the elements of a tile: small ones fill the device better, large ones read longer rows.
inline u32 default_log_tile(u32 log_n) { return log_n <= 27 ? std::min(log_n, 10u) : 11; }

struct Plan {
    Executor &on;
    u32 log_n;
    u32 log_tile;
    std::vector<u32> ks;
    bool unit; // g = 1
    u32 odd;   // NTT_ODD_ELEMENTS or NTT_ODD_RESULTS or 0
    u32 log_low;
    u32 *heap, *plain, *low, *high, *shift = nullptr, *of_results = nullptr;

    // The transform with ω_n (or its inverse), coset shift g and factor f, all in Montgomery form. odd_: with
    // NTT_ODD_ELEMENTS, g is ω_2n (or its inverse).
    Plan(Executor &executor, u32 log_n_, bool inverse_root, fr_t g, fr_t f, u32 odd_ = 0, std::vector<u32> ks_ = {},
         u32 log_tile_ = 0)
        : on(executor), log_n(log_n_), log_tile(log_tile_ ? log_tile_ : default_log_tile(log_n_)),
          ks(ks_.empty() ? passes(log_n_) : ks_), odd(odd_) {
        unit = fr_eq(g, fr_one());
        const fr_t one = fr_one(), f_high = fr_mul(f, two_to_32());
        u32 *d_one = put(&one, 1), *d_f = put(&f_high, 1);
        // The contiguous pass takes the stages of one step from the table of all blocks.
        const u32 last = ks.back(), stage = log_n - last, levels = stage + NTT_LOG_RADIX;
        const u32 log_roots = log_n + (odd ? 1 : 0);
        const std::vector<fr_t> root = squares(root_of_unity(log_n, inverse_root), 32), shifts = squares(g, 32);
        const std::vector<fr_t> fine = squares(root_of_unity(log_roots, inverse_root), 32);
        u32 *d_root = put(root.data(), 32), *d_shift = put(shifts.data(), 32), *d_fine = put(fine.data(), 32);
        const u32 plain_levels = unit ? std::max(last, levels) : last;
        plain = on.alloc(size_t(4 * FACTOR_LIMBS) << plain_levels);
        // A heap with g = 1 does not depend on n, so that of ω_n serves for both tables.
        on.heap(plain, d_root, nullptr, log_n, plain_levels);
        heap = plain;
        if (!unit) {
            heap = on.alloc(size_t(4 * FACTOR_LIMBS) << levels);
            on.heap(heap, d_root, d_shift, log_n, levels);
        }
        log_low = (log_roots + 1) / 2;
        low = on.alloc(size_t(32) << log_low);
        on.powers(low, d_fine, d_one, 1u << log_low);
        high = on.alloc(size_t(32) << (log_roots - log_low));
        on.powers(high, put(squares(fine[log_low], 32).data(), 32), d_f, 1u << (log_roots - log_low));
        if (!unit && !odd) {
            const u32 span = 1u << (last - NTT_LOG_RADIX);
            shift = on.alloc(32 * span);
            on.powers(shift, d_shift, d_one, span);
        }
        if (odd == NTT_ODD_RESULTS) {
            of_results = on.alloc(size_t(4 * FACTOR_LIMBS) << last);
            on.results(of_results, d_fine + 8 * stage, last);
        }
    }

    u32 *put(const fr_t *values, size_t n) {
        u32 *at = on.alloc(32 * n);
        on.upload(at, values, 32 * n);
        return at;
    }

    ntt_pass_t base(u32 stage, u32 k) const {
        ntt_pass_t p = {};
        p.heap = heap;
        p.plain = plain;
        p.roots_low = low;
        p.roots_high = high;
        p.shift = shift;
        p.results = of_results;
        p.log_n = log_n;
        p.stage = stage;
        p.k = k;
        p.log_c = std::min(log_tile, log_n) - k;
        p.log_low = log_low;
        p.flags = stage + k == log_n ? odd : stage == 0 && unit ? NTT_UNIT : 0;
        return p;
    }
    void launch(Kernel which, const ntt_pass_t &p) const {
        const u32 log_tile = p.k + p.log_c;
        on.pass(which, p, 1u << (log_n - log_tile), 1u << (log_tile - NTT_LOG_RADIX), 32u << log_tile);
    }

    // Natural to bit-reversed order, or natural with `natural`; then `middle` is not `dst`, unless there is one pass
    // only. factor: src is multiplied by it first, element by element. minuend: what the result is subtracted from.
    void time(const u32 *src, u32 *middle, u32 *dst, bool natural, const u32 *factor = nullptr,
              const u32 *minuend = nullptr) const {
        if (factor && ks.size() == 1) {
            on.product(dst, src, factor, size_t(1) << log_n);
            src = dst;
        }
        u32 stage = 0;
        for (size_t i = 0; i + 1 < ks.size(); i++) {
            ntt_pass_t p = base(stage, ks[i]);
            p.src = i ? middle : src;
            p.dst = middle;
            if (i == 0 && factor) {
                p.operand = factor;
                p.flags |= NTT_PRODUCT;
            }
            launch(TIME_STRIDED, p);
            stage += ks[i];
        }
        ntt_pass_t p = base(stage, ks.back());
        p.src = ks.size() > 1 ? middle : src;
        p.dst = dst;
        p.operand = minuend;
        p.flags |= (natural ? NTT_BIT_REVERSED : 0) | (minuend ? NTT_DIFFERENCE : 0);
        launch(TIME_CONTIGUOUS, p);
    }

    // Bit-reversed (with `natural`: natural) to natural order.
    void frequency(const u32 *src, u32 *middle, u32 *dst, bool natural) const {
        u32 stage = log_n;
        for (size_t i = ks.size(); i-- > 0;) {
            const bool first = i + 1 == ks.size();
            stage -= ks[i];
            ntt_pass_t p = base(stage, ks[i]);
            p.src = first ? src : middle;
            p.dst = i ? middle : dst;
            p.flags |= (first && natural ? NTT_BIT_REVERSED : 0) | (i ? 0 : NTT_CANONICAL);
            launch(first ? FREQUENCY_CONTIGUOUS : FREQUENCY_STRIDED, p);
        }
    }
};

// h = (a·b − c)/(Xⁿ − 1) as in QuotientPlan: a holds it in the end, b is lost. With a fourth buffer t everything
// stays in natural order; without it, orders are reversed in place.
struct Quotient {
    Plan halved, inverse, forward, back;
    Quotient(Executor &on, u32 log_n)
        : halved(on, log_n, true, fr_one(), fr_mul(n_inverse(log_n), fr_inv(small(2)))),
          inverse(on, log_n, true, fr_one(), n_inverse(log_n)),
          forward(on, log_n, false, root_of_unity(log_n + 1), fr_one(), NTT_ODD_ELEMENTS),
          back(on, log_n, true, fr_one(), fr_mul(n_inverse(log_n), fr_inv(small(2))), NTT_ODD_RESULTS) {}
    static fr_t n_inverse(u32 log_n) { return fr_inv(small(1u << log_n)); }
    void run(u32 *a, u32 *b, u32 *c, u32 *t) const {
        const bool reversing = !t && inverse.ks.size() > 1;
        auto transform = [&](const Plan &plan, const u32 *src, u32 *dst, const u32 *factor, const u32 *minuend) {
            plan.time(src, t ? t : dst, dst, !reversing, factor, minuend);
        };
        auto reverse = [&](u32 *x) {
            if (reversing) inverse.on.reverse(x, inverse.log_n);
        };
        transform(halved, a, c, b, nullptr);
        for (u32 *x : { a, b }) {
            transform(inverse, x, x, nullptr, nullptr);
            reverse(x);
            transform(forward, x, x, nullptr, nullptr);
            reverse(x);
        }
        transform(back, a, a, b, c);
        reverse(a);
    }
};

} // namespace ntt
