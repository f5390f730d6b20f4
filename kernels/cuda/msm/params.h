// What a launch of the multi-scalar multiplication is told: plain 32-bit words, passed by value, the same on the host.
#ifndef CUZK_CUDA_MSM_PARAMS_H
#define CUZK_CUDA_MSM_PARAMS_H

// One pass computes the bucket sets set_first .. set_first + set_count. Window w of a scalar (bits c·w .. c·w + c − 1) goes to
// set w mod sets and takes the multiple 2^(c·sets·l) of its base, l = w / sets; without precomputed multiples
// sets = windows and l = 0.
struct MsmParams {
    unsigned n;               // scalars in the list, or a bound if the device counts them
    unsigned n_bases;         // points of one level of the table of bases
    unsigned c;               // bits of a window, 4 to 24
    unsigned windows;         // c · windows ≥ bits of the modulus
    unsigned sets;            // bucket sets of the whole multiplication
    unsigned set_first;       // first set of this pass
    unsigned set_count;       // sets of this pass
    unsigned keys;            // set_count · 2^(c−1): buckets of this pass
    unsigned coarse_shift;    // a key's coarse bin is key >> coarse_shift
    unsigned coarse_bins;     // at most MSM_COARSE_BINS
    unsigned levels;          // windows of a set
    unsigned tile;            // scalars a block of msm_digits
    unsigned with_ones;       // the sorted list starts with the bases of the scalars that are one
    unsigned reduce_log;      // binary logarithm of the threads that reduce a set
    unsigned offset[9];       // Σ_w 2^(c·w + c − 1)
};

enum {
    MSM_COARSE_BINS = 12288,
    MSM_SORT_BLOCK = 512,     // threads of the sorting kernels
    MSM_SORT_TILE = 8192,     // entries that the host gives a block of them; the kernels take any grid
    MSM_SORT_SHARED = 98304,  // bytes of dynamic shared memory of msm_partition and msm_scatter: this, or what the device allows
    MSM_SCAN_TILE = 4096,     // counters a block of msm_scan_local
    MSM_ACC_BLOCK = 128,      // threads of msm_accumulate
    MSM_PAIR_BLOCK = 32,      // threads of msm_pair and msm_halve: a warp has its own shared memory, up to 26 KiB
    MSM_MERGE_BLOCK = 64,     // chunks that a block of msm_merge joins
    MSM_REDUCE_BLOCK = 32,    // threads of msm_reduce: few a set, so in small blocks, to be spread evenly
    MSM_BITS_BLOCK = 128,     // threads of msm_bits
    MSM_PACKED_BLOCK = 256,   // words of a bitmap a block of the packed kernels
};

// Words of the counters on the device.
enum {
    MSM_COUNT_ENTRIES = 0,    // entries of this pass: digits that are not zero
    MSM_COUNT_ONES = 1,       // scalars that are one
    MSM_COUNT_LIST = 2,       // scalars in the list
    MSM_COUNT_DENSE = 3,      // variables with a base
    MSM_COUNTERS = 8,
};

// What batched additions have left of a thread's chunk of the sorted list.
struct MsmChunk {
    unsigned begin;           // its first entry in the list
    unsigned length;          // its entries
    unsigned first;           // number of the thread's first sum of this round in the pool
    unsigned pairs;           // of this round
};

// Flags of a chunk of the sorted list.
enum {
    MSM_HEAD = 1,             // it begins inside a bucket
    MSM_HEAD_CLOSES = 2,      // … which ends in it
    MSM_TAIL = 4,             // it ends inside a bucket that begins in it
};

#endif
