// The plan of a multi-scalar multiplication: window, passes and the layout of the scratch memory, from sizes alone, so that
// the bytes are known before anything is allocated. Plain host code; the Rust host does the same.
#ifndef CUZK_CUDA_MSM_PLAN_H
#define CUZK_CUDA_MSM_PLAN_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "params.h"

struct MsmRequest {
    unsigned n;               // scalars in the list, or a bound
    unsigned ones;            // bound on the scalars that are one, beside the list; 0 for dense scalars
    unsigned n_bases;         // points of one level of the table of bases
    unsigned words;           // packed: words of the bitmaps, else 0
    unsigned levels_c;        // 0: no precomputed multiples; else the window they were made for
    unsigned levels_sets;     // … and its bucket sets
    unsigned scalar_bits;     // of the modulus: 255, 254
    unsigned point_bytes;     // of an XYZZ point: 192, 384; 128, 256
    unsigned multiprocessors;
    unsigned acc_blocks;      // blocks of msm_accumulate a multiprocessor holds
    uint64_t entries_limit;   // of one pass
    unsigned batch;           // most rounds of batched affine additions; 0: none
};

// Offsets in bytes into the scratch memory.
struct MsmScratch {
    size_t counters, coarse, bucket_count, offset, sums, digits, entries, sorted, buckets, heads, tails, flags, tail_keys, runs, run_sums, out,
        tiles, scalar_index, base_index, pool, pairs[2], prefixes[2], products, chunks, bytes;
};

struct MsmPlan {
    MsmParams params;         // of the first pass
    unsigned sets_a_pass;
    unsigned passes;
    unsigned acc_threads;
    unsigned rounds;          // of batched affine additions before msm_accumulate
    unsigned merged[3];       // chunks before each launch of msm_merge; 0: no launch
    unsigned splits;          // points that msm_bits writes for each bit
    unsigned out_points;
    MsmScratch at;
};

// Additions weighed by their cost: the list's, and two full ones a bucket with what is done once for each, in the list's: 4 if those
// are mixed, 6 if they are batched.
inline unsigned msm_window(unsigned n, unsigned scalar_bits, double bucket) {
    unsigned best = 8;
    double least = 1e300;
    for (unsigned c = 8; c <= 24; c++) {
        const unsigned windows = (scalar_bits + c - 1) / c;
        const double cost = (double)windows * (n + bucket * (1u << (c - 1)));
        if (cost < least) { least = cost; best = c; }
    }
    return best;
}

inline MsmPlan msm_plan(const MsmRequest &q, unsigned c = 0) {
    MsmPlan plan = {};
    MsmParams &p = plan.params;
    p.n = q.n;
    p.n_bases = q.n_bases;
    p.c = q.levels_c ? q.levels_c : c ? c : msm_window(std::max(q.n, 1u), q.scalar_bits, q.batch ? 6 : 4);
    p.windows = (q.scalar_bits + p.c - 1) / p.c;
    p.sets = q.levels_c ? q.levels_sets : p.windows;
    for (unsigned w = 0; w < p.windows; w++) {
        const unsigned bit = p.c * w + p.c - 1;
        p.offset[bit / 32] |= 1u << (bit % 32);
    }
    p.levels = (p.windows + p.sets - 1) / p.sets;
    const uint64_t a_set = std::max<uint64_t>((uint64_t)q.n * p.levels, 1);
    plan.sets_a_pass = (unsigned)std::min<uint64_t>(p.sets, std::max<uint64_t>(q.entries_limit / a_set, 1));
    plan.passes = (p.sets + plan.sets_a_pass - 1) / plan.sets_a_pass;
    plan.sets_a_pass = (p.sets + plan.passes - 1) / plan.passes;
    plan.passes = (p.sets + plan.sets_a_pass - 1) / plan.sets_a_pass;
    p.set_count = plan.sets_a_pass;
    p.keys = p.set_count << (p.c - 1);
    // 512 bins a set, so that a tile has 16 entries a bin to write side by side; but at most 2^11 buckets a bin,
    // so that a tile that lies in two bins can still count its buckets in shared memory; and never more than 2^11 bins a set.
    p.coarse_shift = p.c < 10 ? 0 : p.c == 24 ? 12 : std::min(11u, p.c - 10);
    while ((((uint64_t)p.keys - 1) >> p.coarse_shift) + 1 > MSM_COARSE_BINS) p.coarse_shift++;
    p.coarse_bins = ((p.keys - 1) >> p.coarse_shift) + 1;
    p.tile = std::min(8192u, std::max(512u, q.n / (2 * q.multiprocessors)));
    p.reduce_log = 0;
    // As many threads as a multiprocessor holds; twice as many, to even out the end, where that leaves each 64 buckets.
    const auto threads_fit = [&](unsigned log) {
        return log < p.c && (p.set_count << log) <= (p.c - 1 >= log + 6 ? 512 : 256) * q.multiprocessors;
    };
    while (threads_fit(p.reduce_log + 1)) p.reduce_log++;
    p.with_ones = q.words != 0;
    // Enough rounds to leave about one entry a bucket.
    const double full = (double)(a_set * plan.sets_a_pass + q.ones) / p.keys;
    while (plan.rounds < q.batch && full >= (2u << plan.rounds)) plan.rounds++;
    plan.acc_threads = q.multiprocessors * q.acc_blocks * MSM_ACC_BLOCK;
    unsigned chunks = plan.acc_threads, merged = 0;
    for (int i = 0; i < 3; i++) {
        plan.merged[i] = chunks;
        merged += chunks;
        if (chunks == 0) continue;
        const unsigned blocks = (chunks + MSM_MERGE_BLOCK - 1) / MSM_MERGE_BLOCK;
        chunks = blocks == 1 ? 0 : blocks;
    }
    merged += 1;
    plan.splits = std::min(std::max(2 * q.multiprocessors / (p.set_count * (p.reduce_log + 2)), 1u), 16u);
    plan.out_points = p.sets * (p.reduce_log + 2) * plan.splits + p.with_ones;

    size_t end = 0;
    auto take = [&](size_t bytes) { const size_t at = end; end += (bytes + 255) / 256 * 256; return at; };
    const uint64_t entries = a_set * plan.sets_a_pass;
    MsmScratch &s = plan.at;
    s.counters = take(MSM_COUNTERS * 4);
    s.coarse = take(MSM_COARSE_BINS * 4);
    s.bucket_count = take(p.keys * 4ull);
    s.offset = take(p.keys * 4ull);
    s.sums = take(((p.keys + MSM_SCAN_TILE - 1) / MSM_SCAN_TILE) * 4ull);
    // Of a thread's chunk, the sums of all rounds are fewer than the entries; the pairs of a round at most half as many, from the
    // second round on at most a third: three entries of a bucket make one pair of the second round.
    const uint64_t chunk = std::max<uint64_t>((entries + q.ones + plan.acc_threads - 1) / plan.acc_threads, 2);
    const uint64_t pairs[2] = {plan.rounds ? chunk / 2 * plan.acc_threads : 0, plan.rounds ? chunk / 3 * plan.acc_threads : 0};
    // The entries are read before the first pairs are written.
    s.entries = take(std::max(entries * 8, (pairs[0] + pairs[1]) * 8));
    s.pairs[0] = s.entries;
    s.pairs[1] = s.entries + pairs[0] * 8;
    s.sorted = take((entries + q.ones) * 8);
    // The digits are read before the sorted entries are written, behind those of the ones.
    s.sorted = take((entries + q.ones) * 8);
    s.digits = s.sorted + q.ones * 8ull;
    s.buckets = take((p.keys + 1ull) * q.point_bytes);
    s.heads = take((size_t)merged * q.point_bytes);
    s.tails = take((size_t)merged * q.point_bytes);
    s.flags = take(merged * 4ull);
    s.tail_keys = take(merged * 4ull);
    s.runs = take(((size_t)p.set_count << p.reduce_log) * q.point_bytes);
    s.run_sums = take(((size_t)p.set_count << p.reduce_log) * q.point_bytes);
    s.out = take((size_t)plan.out_points * q.point_bytes);
    const unsigned tiles = (q.words + MSM_PACKED_BLOCK - 1) / MSM_PACKED_BLOCK;
    s.tiles = take(tiles * 12ull);
    s.scalar_index = take(q.words ? q.n * 4ull : 0);
    s.base_index = take(q.words ? q.n * 4ull : 0);
    if (plan.rounds) {
        s.pool = take(chunk * plan.acc_threads * (q.point_bytes / 2));
        for (int i = 0; i < 2; i++) s.prefixes[i] = take(pairs[i] * (q.point_bytes / 4));
        s.products = take(plan.acc_threads * (q.point_bytes / 4ull));
        s.chunks = take(plan.acc_threads * sizeof(MsmChunk));
    }
    s.bytes = end;
    return plan;
}

#endif
