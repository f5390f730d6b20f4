// What the kernels that make tables or treat elements one by one compute for each of them.
#ifndef CUZK_CUDA_NTT_ELEMENTS_H
#define CUZK_CUDA_NTT_ELEMENTS_H

#include "pass.h"

// first · base^e, squares[b] being base^(2^b).
CUZK_FN fr_t power_of(const u32 *squares, fr_t first, u32 e) {
    CUZK_NO_UNROLL for (u32 b = 0; e; b++, e >>= 1)
        if (e & 1) first = fr_mul(first, fr_load(squares + 8 * (size_t)b));
    return first;
}

// Entry `node` = 2^s + b of a heap, in Montgomery form: g^(n / 2^(s + 1)) · ω_n^((b bit-reversed) · n / 2^(s + 1)).
CUZK_FN fr_t heap_entry(const u32 *root, const u32 *shift, u32 log_n, u32 node) {
    u32 s = 0;
    while (node >> (s + 1)) s++;
    const u32 log_step = log_n - s - 1;
    const fr_t w = power_of(root, fr_one(), reverse_bits(node ^ (1u << s), s) << log_step);
    return shift ? fr_mul(w, fr_load(shift + 8 * (size_t)log_step)) : w;
}

// Entry j of the table `results` of a contiguous pass of k stages, step[b] being ω_2n^(2^(stage + b)).
CUZK_FN fr_t results_entry(const u32 *step, u32 k, u32 j) { return power_of(step, fr_one(), reverse_bits(j, k)); }

CUZK_FN fr_t scaled(fr_t x, const u32 *low, const u32 *high, u32 e, u32 log_low) {
    const u32 *l = low + 8 * (size_t)(e & ((1u << log_low) - 1)), *h = high + 8 * (size_t)(e >> log_low);
    return fr_mul(x, fr_mul(fr_load(l), fr_load(h)));
}

CUZK_FN size_t reverse_index(u32 log_n, u32 h, u32 m, u32 l) {
    return ((size_t)h << (log_n - 4)) | ((size_t)m << 4) | l;
}

CUZK_FN fr_t small_output(const u32 *x, const u32 *powers, const u32 *in_factor, const u32 *out_factor, u32 log_n,
                          u32 reversed_in, u32 k) {
    const u32 n = 1u << log_n;
    fr_t sum = fr_zero();
    CUZK_NO_UNROLL for (u32 j = 0; j < n; j++) {
        const u32 at = reversed_in ? reverse_bits(j, log_n) : j;
        fr_t term = fr_mul(fr_load(x + 8 * at), fr_load(powers + 8 * ((j * k) & (n - 1))));
        if (in_factor) term = fr_mul(term, fr_load(in_factor + 8 * j));
        sum = fr_add(sum, term);
    }
    return out_factor ? fr_mul(sum, fr_load(out_factor + 8 * k)) : sum;
}

#endif
