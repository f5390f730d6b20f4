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

enum Kernel { TIME_STRIDED, TIME_STRIDED_UNIT, TIME_CONTIGUOUS, FREQUENCY_STRIDED, FREQUENCY_STRIDED_UNIT, FREQUENCY_CONTIGUOUS };

struct Executor {
    virtual u32 *alloc(size_t bytes) = 0;
    virtual void upload(u32 *to, const void *from, size_t bytes) = 0;
    virtual void pass(Kernel which, const ntt_pass_t &p, u32 blocks, u32 threads, u32 shared) = 0;
    virtual void powers(u32 *out, const u32 *squares, const u32 *first, u32 count) = 0;
    virtual void heap(u32 *out, const u32 *root, const u32 *shift, u32 log_n, u32 levels) = 0;
};

// Stages of each pass, from the top bits down; the last pass is the contiguous one.
inline std::vector<u32> passes(u32 log_n) {
    switch (log_n) {
        case 11: return { 6, 5 };
        case 12: return { 6, 6 };
        case 13: return { 7, 6 };
        case 14: return { 8, 6 };
        case 15: return { 9, 6 };
        case 16: return { 9, 7 };
        case 17: return { 9, 8 };
        case 18: return { 9, 9 };
        case 19: return { 7, 6, 6 };
        case 20: return { 8, 6, 6 };
        case 21: return { 9, 6, 6 };
        case 22: return { 8, 6, 8 };
        case 23: return { 8, 7, 8 };
        case 24: return { 8, 8, 8 };
        case 25: return { 9, 7, 9 };
        case 26: return { 9, 8, 9 };
        case 27: return { 9, 9, 9 };
        case 28: return { 10, 9, 9 };
        default: return { log_n };
    }
}

// log2 of the elements of a tile: small ones fill the device better, large ones read longer rows.
inline u32 default_log_tile(u32 log_n) { return log_n <= 24 ? std::min(log_n, 10u) : 11; }

struct Plan {
    Executor &on;
    u32 log_n;
    u32 log_tile;
    std::vector<u32> ks;
    bool unit;  // g = 1
    bool plain; // f = g = 1
    u32 log_low;
    u32 *heap_shifted, *heap_plain, *low, *high, *shift;

    // The transform with ω_n (or its inverse), coset shift g and factor f, all in Montgomery form.
    Plan(Executor &executor, u32 log_n_, bool inverse_root, fr_t g, fr_t f, std::vector<u32> ks_ = {}, u32 log_tile_ = 0)
        : on(executor), log_n(log_n_), log_tile(log_tile_ ? log_tile_ : default_log_tile(log_n_)), ks(ks_.empty() ? passes(log_n_) : ks_) {
        unit = fr_eq(g, fr_one());
        plain = unit && fr_eq(f, fr_one());
        const fr_t one = fr_one();
        u32 *d_one = put(&one, 1), *d_f = put(&f, 1);
        const u32 last = ks.back(), levels = log_n - last;
        std::vector<fr_t> root = squares(root_of_unity(log_n, inverse_root), 32), shifts = squares(g, 32);
        u32 *d_root = put(root.data(), 32), *d_shift = put(shifts.data(), 32);
        u32 *d_root_high = put(squares(root[(log_n + 1) / 2], 32).data(), 32);
        heap_plain = on.alloc(size_t(64) << std::max(last, levels));
        // A heap with g = 1 does not depend on n, so that of ω_n serves for both tables.
        on.heap(heap_plain, d_root, nullptr, log_n, std::max(last, levels));
        heap_shifted = heap_plain;
        if (!unit && levels) {
            heap_shifted = on.alloc(size_t(64) << levels);
            on.heap(heap_shifted, d_root, d_shift, log_n, levels);
        }
        log_low = (log_n + 1) / 2;
        low = on.alloc(size_t(32) << log_low);
        on.powers(low, d_root, d_one, 1u << log_low);
        high = on.alloc(size_t(32) << (log_n - log_low));
        on.powers(high, d_root_high, d_one, 1u << (log_n - log_low));
        shift = nullptr;
        if (!plain) {
            const u32 span = 1u << (last - NTT_LOG_RADIX);
            shift = on.alloc(32 * (span + 1));
            on.powers(shift, d_shift, d_f, span);
            on.upload(shift + 8 * span, &shifts[last - NTT_LOG_RADIX], 32);
        }
    }

    u32 *put(const fr_t *values, size_t n) {
        u32 *at = on.alloc(32 * n);
        on.upload(at, values, 32 * n);
        return at;
    }

    ntt_pass_t base(u32 stage, u32 k) const {
        ntt_pass_t p = {};
        p.log_n = log_n;
        p.stage = stage;
        p.k = k;
        p.log_c = std::min(log_tile, log_n) - k;
        p.log_low = log_low;
        p.roots_low = low;
        p.roots_high = high;
        p.shift = shift;
        return p;
    }
    void launch(Kernel which, const ntt_pass_t &p) const {
        const u32 log_tile = p.k + p.log_c;
        on.pass(which, p, 1u << (log_n - log_tile), 1u << (log_tile - NTT_LOG_RADIX), 32u << log_tile);
    }

    // Natural to bit-reversed order, or natural with `natural`; then `middle` is not `dst`, unless there is one pass only.
    void time(const u32 *src, u32 *middle, u32 *dst, bool natural) const {
        u32 stage = 0;
        for (size_t i = 0; i + 1 < ks.size(); i++) {
            ntt_pass_t p = base(stage, ks[i]);
            p.src = i ? middle : src;
            p.dst = middle;
            p.heap = heap_shifted;
            launch(i == 0 && unit ? TIME_STRIDED_UNIT : TIME_STRIDED, p);
            stage += ks[i];
        }
        ntt_pass_t p = base(stage, ks.back());
        p.src = ks.size() > 1 ? middle : src;
        p.dst = dst;
        p.heap = heap_plain;
        p.flags = NTT_CANONICAL | (natural ? NTT_BIT_REVERSED : 0);
        launch(TIME_CONTIGUOUS, p);
    }

    // Bit-reversed (with `natural`: natural) to natural order. factor: src is multiplied by it first, element by element.
    // minuend: what the result is subtracted from.
    void frequency(const u32 *src, u32 *middle, u32 *dst, bool natural, const u32 *factor = nullptr, const u32 *minuend = nullptr) const {
        u32 stage = log_n - ks.back();
        ntt_pass_t p = base(stage, ks.back());
        p.src = src;
        p.dst = ks.size() > 1 ? middle : dst;
        p.heap = heap_plain;
        p.flags = (natural ? NTT_BIT_REVERSED : 0) | (factor ? NTT_PRODUCT : 0);
        p.operand = factor;
        if (ks.size() == 1 && minuend) {
            // One pass has one operand: it is told apart by the flags, so a product and a difference need two launches.
            if (factor) abort();
            p.flags |= NTT_DIFFERENCE;
            p.operand = minuend;
        }
        launch(FREQUENCY_CONTIGUOUS, p);
        for (size_t i = ks.size() - 1; i-- > 0;) {
            stage -= ks[i];
            p = base(stage, ks[i]);
            p.src = middle;
            p.dst = i ? middle : dst;
            p.heap = heap_shifted;
            if (i == 0) {
                p.flags = NTT_CANONICAL | (minuend ? NTT_DIFFERENCE : 0);
                p.operand = minuend;
            }
            launch(i == 0 && unit ? FREQUENCY_STRIDED_UNIT : FREQUENCY_STRIDED, p);
        }
    }
};

} // namespace ntt
