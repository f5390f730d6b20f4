// Multi-scalar multiplication, the part that adds points, instantiated by inclusion with GROUP, GROUP_FIELD and
// GROUP_FIELD_LIMBS as in common/ec/xyzz.inc.h; ACC_BLOCKS, the blocks of msm_accumulate a multiprocessor holds; and ACC_AHEAD,
// whether it has the registers to load a base while it adds the one before.

#define G(name) CUZK_PASTE(GROUP, name)
#define K(name) CUZK_PASTE(GROUP_FIELD, name)
#define KERNEL(name) CUZK_PASTE(name, GROUP)
#define AFFINE_WORDS (2 * GROUP_FIELD_LIMBS)
#define XYZZ_WORDS (4 * GROUP_FIELD_LIMBS)

// The point that an entry's value names: one of the table of bases, or behind its end one of the pool of sums.
static __device__ __forceinline__ const u32 *G(_at)(u32 value, u32 table, const u32 *bases, const u32 *pool) {
    const u32 i = value & 0x7fffffff;
    return i < table ? bases + (size_t)i * AFFINE_WORDS : pool + (size_t)(i - table) * AFFINE_WORDS;
}

// The chunk of the sorted list that a thread of msm_pair, msm_halve and msm_accumulate owns; all are equally long however full the
// buckets are.
struct G(_chunk_t) { u32 n, length, begin, end; };
static __device__ __forceinline__ G(_chunk_t) G(_chunk)(const MsmParams &p, const u32 *counters, u32 t, u32 threads) {
    G(_chunk_t) c;
    c.n = counters[MSM_COUNT_ENTRIES] + (p.with_ones ? counters[MSM_COUNT_ONES] : 0);
    c.length = max((c.n + threads - 1) / threads, 2u);
    c.begin = (u32)min((u64)c.n, (u64)t * c.length);
    c.end = (u32)min((u64)c.n, (u64)c.begin + c.length);
    return c;
}

// The denominator of the slope of a + b, never zero: x2 − x1, or 2·y1 for a double, or 1 where nothing is to be added; and which
// of these it is.
enum { G(_ADD), G(_DOUBLE), G(_FIRST), G(_SECOND), G(_NOTHING) };
CUZK_FN_CALL K(_t) G(_denominator)(G(_affine_t) a, G(_affine_t) b, int *which) {
    *which = G(_ADD);
    if (G(_affine_is_infinity)(a)) *which = G(_SECOND);
    else if (G(_affine_is_infinity)(b)) *which = G(_FIRST);
    else if (K(_eq)(a.x, b.x)) *which = K(_eq)(a.y, b.y) ? G(_DOUBLE) : G(_NOTHING);
    if (*which == G(_ADD)) return K(_sub)(b.x, a.x);
    if (*which == G(_DOUBLE)) return K(_dbl)(a.y);
    return K(_one)();
}

static __device__ __forceinline__ G(_affine_t) G(_signed)(u32 value, u32 table, const u32 *bases, const u32 *pool) {
    G(_affine_t) a = G(_affine_load)(G(_at)(value, table, bases, pool));
    a.y = K(_cneg)(value >> 31, a.y);
    return a;
}

// One round of batched affine additions, first half. Each thread goes through what is left of its chunk and pairs neighbours of the
// same bucket: the pair's sum will be point `slot` of the thread in the pool, and an entry that names it takes the place
// of the two. prefixes[k] = product of the denominators before pair k, products[t] = of all of them. Places in the pool,
// the pairs and the prefixes: number·threads + t.
extern "C" __global__ void __launch_bounds__(MSM_ACC_BLOCK, 3)
KERNEL(msm_pair_)(MsmParams p, u32 round, uint2 *sorted, const u32 *counters, const u32 *bases, const u32 *pool, u32 *lengths, u32 *slots,
                  uint2 *pairs, u32 *pair_counts, u32 *prefixes, u32 *products) {
    const u32 t = blockIdx.x * MSM_ACC_BLOCK + threadIdx.x, threads = gridDim.x * MSM_ACC_BLOCK;
    const G(_chunk_t) c = G(_chunk)(p, counters, t, threads);
    const u32 length = round == 0 ? c.end - c.begin : lengths[t], table = p.n_bases * p.levels;
    uint2 *mine = sorted + c.begin;
    u32 slot = round == 0 ? 0 : slots[t], count = 0, out = 0, i = 0;
    K(_t) product = K(_one)();
    const uint2 none = make_uint2(~0u, 0);
#pragma unroll 1
    while (__any_sync(~0u, i < length)) {
        if (i < length) {
            uint2 a = mine[i], b = i + 1 < length ? mine[i + 1] : none;
            if (a.x != b.x) {
                mine[out++] = a;
                i++;
                a = b;
                b = i + 1 < length ? mine[i + 1] : none;
            }
            if (i < length && a.x == b.x) {
                const K(_t) x1 = K(_load)(G(_at)(a.y, table, bases, pool)), x2 = K(_load)(G(_at)(b.y, table, bases, pool));
                K(_t) d = K(_sub)(x2, x1);
                if (K(_is_zero)(d) | K(_is_zero)(x1) | K(_is_zero)(x2)) {
                    int which;
                    d = G(_denominator)(G(_signed)(a.y, table, bases, pool), G(_signed)(b.y, table, bases, pool), &which);
                }
                const size_t at = (size_t)count * threads + t;
                pairs[at] = make_uint2(a.y, b.y);
                K(_store)(prefixes + at * GROUP_FIELD_LIMBS, product);
                product = K(_mul_call)(product, d);
                mine[out++] = make_uint2(a.x, table + slot * threads + t);
                slot++;
                count++;
                i += 2;
            }
        }
        __syncwarp();
    }
    lengths[t] = out;
    slots[t] = slot;
    pair_counts[t] = count;
    K(_store)(products + (size_t)t * GROUP_FIELD_LIMBS, product);
}

// Inverts the n products in place, a few a thread with one inversion.
extern "C" __global__ void __launch_bounds__(128, 2) KERNEL(msm_invert_)(u32 n, u32 *products) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    K(_t) before[8], product = K(_one)();
    u32 count = 0;
    for (u32 i = t; i < n; i += threads) {
        before[count++] = product;
        product = K(_mul_call)(product, K(_load)(products + (size_t)i * GROUP_FIELD_LIMBS));
    }
    K(_t) inverse = K(_inv)(product);
    while (count-- > 0) {
        u32 *at = products + (size_t)(t + count * threads) * GROUP_FIELD_LIMBS;
        const K(_t) x = K(_load)(at);
        K(_store)(at, K(_mul_call)(inverse, before[count]));
        inverse = K(_mul_call)(inverse, x);
    }
}

// The round's second half: the pairs from the last to the first, each with the inverse of its denominator. 5 products and a square a sum,
// with the one of msm_pair.
extern "C" __global__ void __launch_bounds__(MSM_ACC_BLOCK, 3)
KERNEL(msm_halve_)(MsmParams p, const u32 *bases, u32 *pool, const u32 *slots, const uint2 *pairs, const u32 *pair_counts, const u32 *prefixes,
                   const u32 *inverses) {
    const u32 t = blockIdx.x * MSM_ACC_BLOCK + threadIdx.x, threads = gridDim.x * MSM_ACC_BLOCK, table = p.n_bases * p.levels;
    u32 count = pair_counts[t];
    const u32 first = slots[t] - count;
    K(_t) inverse = K(_load)(inverses + (size_t)t * GROUP_FIELD_LIMBS);
    uint2 pair = count ? pairs[(size_t)(count - 1) * threads + t] : make_uint2(0, 0);
#pragma unroll 1
    while (__any_sync(~0u, count > 0)) {
        if (count > 0) {
            count--;
            const G(_affine_t) a = G(_signed)(pair.x, table, bases, pool);
            G(_affine_t) b = G(_signed)(pair.y, table, bases, pool);
            const size_t at = (size_t)count * threads + t;
            const K(_t) prefix = K(_load)(prefixes + at * GROUP_FIELD_LIMBS);
            if (count > 0) pair = pairs[at - threads];
            K(_t) d = K(_sub)(b.x, a.x), slope = K(_sub)(b.y, a.y);
            int which = G(_ADD);
            if (K(_is_zero)(d) | K(_is_zero)(a.x) | K(_is_zero)(b.x)) {
                d = G(_denominator)(a, b, &which);
                if (which == G(_DOUBLE)) {
                    slope = K(_mul_call)(a.x, a.x);
                    slope = K(_add)(K(_dbl)(slope), slope);
                }
            }
            slope = K(_mul_call)(slope, K(_mul_call)(inverse, prefix));
            inverse = K(_mul_call)(inverse, d);
            G(_affine_t) sum;
            sum.x = K(_sub)(K(_sub)(K(_sqr_call)(slope), a.x), b.x);
            sum.y = K(_sub)(K(_mul_call)(slope, K(_sub)(a.x, sum.x)), a.y);
            if (which == G(_FIRST)) sum = a;
            if (which == G(_SECOND)) sum = b;
            if (which == G(_NOTHING)) sum.x = sum.y = K(_zero)();
            G(_affine_store)(pool + ((size_t)(first + count) * threads + t) * AFFINE_WORDS, sum);
        }
        __syncwarp();
    }
}

// Each thread adds up its chunk of the sorted entries, or what `lengths` says is left of it after batched additions. A bucket
// that lies within the chunk is finished; the part of one that began before it goes to `heads`, that of one that goes on
// behind it to `tails`, for msm_merge.
extern "C" __global__ void __launch_bounds__(MSM_ACC_BLOCK, ACC_BLOCKS)
KERNEL(msm_accumulate_)(MsmParams p, const uint2 *sorted, const u32 *counters, const u32 *lengths, const u32 *bases, const u32 *pool, u32 *buckets,
                        u32 *heads, u32 *tails, u32 *flags, u32 *tail_keys) {
    const u32 t = blockIdx.x * MSM_ACC_BLOCK + threadIdx.x, threads = gridDim.x * MSM_ACC_BLOCK;
    const G(_chunk_t) c = G(_chunk)(p, counters, t, threads);
    const u32 begin = c.begin, end = lengths ? begin + lengths[t] : c.end, table = p.n_bases * p.levels;
    const uint2 none = make_uint2(~0u, 0);
    // The neighbours' entries say whether the first bucket began before and the last goes on behind.
    const u32 behind = c.end < c.n ? sorted[c.end].x : ~0u;
    uint2 entry = begin < end ? sorted[begin] : none;
    u32 flag = 0;
    bool inside = begin > 0 && begin < end && sorted[(lengths ? begin - c.length + lengths[t - 1] : begin) - 1].x == entry.x;
    G(_xyzz_t) sum = G(_infinity)();
#if ACC_AHEAD
    G(_affine_t) ahead;
    ahead.x = ahead.y = K(_zero)();
    if (begin < end) ahead = G(_affine_load)(G(_at)(entry.y, table, bases, pool));
#endif
    // All threads of a warp go through the loop together: the barrier keeps the compiler from making an inner loop of the
    // additions to one bucket, in which a warp would wait for its fullest bucket each time.
#pragma unroll 1
    for (u32 i = begin; __any_sync(~0u, i < end); i++) {
        if (i < end) {
            const u32 key = entry.x;
            const int negate = entry.y >> 31;
#if ACC_AHEAD
            const G(_affine_t) point = ahead;
#else
            const G(_affine_t) point = G(_affine_load)(G(_at)(entry.y, table, bases, pool));
#endif
            entry = i + 1 < end ? sorted[i + 1] : make_uint2(behind, 0);
#if ACC_AHEAD
            if (i + 1 < end) ahead = G(_affine_load)(G(_at)(entry.y, table, bases, pool));
#endif
            sum = G(_add_mixed)(sum, point, negate);
            if (i + 1 == end || entry.x != key) {
                u32 *to = buckets + (size_t)key * XYZZ_WORDS;
                const bool goes_on = entry.x == key;
                if (inside) {
                    to = heads + (size_t)t * XYZZ_WORDS;
                    flag |= MSM_HEAD | (goes_on ? 0 : MSM_HEAD_CLOSES);
                } else if (goes_on) {
                    to = tails + (size_t)t * XYZZ_WORDS;
                    flag |= MSM_TAIL;
                    tail_keys[t] = key;
                }
                G(_xyzz_store)(to, sum);
                inside = false;
                sum = G(_infinity)();
            }
        }
        __syncwarp();
    }
    flags[t] = flag;
}

// Joins the parts of buckets that MSM_MERGE_BLOCK chunks hold: a tail and the heads behind it are one bucket. What joins with
// other blocks' chunks is left as a head and a tail of the block, so three launches at most join everything.
extern "C" __global__ void __launch_bounds__(MSM_MERGE_BLOCK, 4)
KERNEL(msm_merge_)(u32 n, const u32 *heads, const u32 *tails, const u32 *flags, const u32 *tail_keys, u32 *buckets, u32 *out_heads,
                   u32 *out_tails, u32 *out_flags, u32 *out_tail_keys) {
    __shared__ uint4 shared[MSM_MERGE_BLOCK * XYZZ_WORDS / 4];
    __shared__ u32 shared_flags[MSM_MERGE_BLOCK];
    u32 *values = (u32 *)shared;
    const u32 i = threadIdx.x, t = blockIdx.x * MSM_MERGE_BLOCK + i;
    const u32 flag = t < n ? flags[t] : 0;
    shared_flags[i] = flag;
    G(_xyzz_t) sum = G(_infinity)();
    if (flag & MSM_HEAD) sum = G(_xyzz_load)(heads + (size_t)t * XYZZ_WORDS);
    G(_xyzz_store)(values + i * XYZZ_WORDS, sum);
    __syncthreads();
    // The run of heads of one bucket that this chunk's head lies in: its place in it, and how many follow.
    u32 place = 0, follow = 0;
    if (flag & MSM_HEAD) {
        for (u32 j = i; j > 0 && !(shared_flags[j - 1] & (MSM_TAIL | MSM_HEAD_CLOSES)) && (shared_flags[j - 1] & MSM_HEAD); j--) place++;
        for (u32 j = i; j + 1 < MSM_MERGE_BLOCK && !(shared_flags[j] & (MSM_TAIL | MSM_HEAD_CLOSES)) && (shared_flags[j + 1] & MSM_HEAD); j++) follow++;
    }
    for (u32 d = 1; __syncthreads_or(place + follow >= d); d <<= 1) {
        const bool active = place % (2 * d) == 0 && follow >= d;
        if (active) sum = G(_add)(sum, G(_xyzz_load)(values + (i + d) * XYZZ_WORDS));
        __syncthreads();
        if (active) G(_xyzz_store)(values + i * XYZZ_WORDS, sum);
    }
    __syncthreads();
    // The first head of a run now holds the run's sum. Whether the run ends in this block: its last head closes.
    if (flag & MSM_TAIL) {
        G(_xyzz_t) part = G(_xyzz_load)(tails + (size_t)t * XYZZ_WORDS);
        bool closes = false;
        if (i + 1 < MSM_MERGE_BLOCK) {
            part = G(_add)(part, G(_xyzz_load)(values + (i + 1) * XYZZ_WORDS));
            u32 j = i + 1;
            while (j + 1 < MSM_MERGE_BLOCK && !(shared_flags[j] & (MSM_TAIL | MSM_HEAD_CLOSES)) && (shared_flags[j + 1] & MSM_HEAD)) j++;
            closes = (shared_flags[j] & MSM_HEAD_CLOSES) != 0;
        }
        if (closes) {
            G(_xyzz_store)(buckets + (size_t)tail_keys[t] * XYZZ_WORDS, part);
        } else {
            G(_xyzz_store)(out_tails + (size_t)blockIdx.x * XYZZ_WORDS, part);
            out_tail_keys[blockIdx.x] = tail_keys[t];
            shared_flags[i] |= 8;
        }
    }
    if (i == 0 && (flag & MSM_HEAD)) G(_xyzz_store)(out_heads + (size_t)blockIdx.x * XYZZ_WORDS, sum);
    const int tail = __syncthreads_or(shared_flags[i] & 8);
    if (i == 0) {
        u32 out = tail ? MSM_TAIL : 0;
        if (flag & MSM_HEAD) {
            out |= MSM_HEAD;
            u32 j = 0;
            while (j + 1 < MSM_MERGE_BLOCK && !(shared_flags[j] & (MSM_TAIL | MSM_HEAD_CLOSES)) && (shared_flags[j + 1] & MSM_HEAD)) j++;
            if (shared_flags[j] & MSM_HEAD_CLOSES) out |= MSM_HEAD_CLOSES;
        }
        out_flags[blockIdx.x] = out;
    }
}

// Thread t of a set takes its buckets t·L .. t·L + L − 1, L = 2^(c − 1 − reduce_log): runs[t] = Σ B, sums[t] = Σ (i + 1)·B over its
// buckets i = 0 .. L − 1, by running sums from the top. A bucket that no entry has is infinity and is not read.
extern "C" __global__ void __launch_bounds__(MSM_REDUCE_BLOCK, 2)
KERNEL(msm_reduce_)(MsmParams p, const u32 *count, const u32 *buckets, u32 *runs, u32 *sums) {
    const u32 t = blockIdx.x * MSM_REDUCE_BLOCK + threadIdx.x;
    if (t >= p.set_count << p.reduce_log) return;
    const u32 length = 1u << (p.c - 1 - p.reduce_log);
    const u32 first = t * length;
    G(_xyzz_t) run = G(_infinity)(), sum = G(_infinity)();
    // One addition in the code serves both sums, in turn: run += bucket, sum += run.
    for (u32 j = 2 * length; j > 0; j--) {
        const bool odd = j & 1;
        G(_xyzz_t) x = odd ? sum : run, y = run;
        if (!odd) {
            const u32 key = first + j / 2 - 1;
            if (count[key] == 0) continue;
            y = G(_xyzz_load)(buckets + (size_t)key * XYZZ_WORDS);
        }
        x = G(_add)(x, y);
        if (odd) sum = x; else run = x;
    }
    G(_xyzz_store)(runs + (size_t)t * XYZZ_WORDS, run);
    G(_xyzz_store)(sums + (size_t)t * XYZZ_WORDS, sum);
}

// With m = reduce_log, block (j, set, split): a share of out[set·(m + 1) + j] = Σ of runs[t] over the t with bit j set, j < m; and of
// Σ sums[t] for j = m; the host adds up the shares, which are `splits` points side by side. The set's value is then
// out[m] + L·Σ_j 2^j·out[j]. Row set_count of the grid, if launched, writes the sum of the ones to ones_out.
extern "C" __global__ void __launch_bounds__(MSM_BITS_BLOCK, 2)
KERNEL(msm_bits_)(MsmParams p, const u32 *counters, const u32 *buckets, const u32 *runs, const u32 *sums, u32 *out,
                   u32 *ones_out) {
    __shared__ uint4 shared[MSM_BITS_BLOCK * XYZZ_WORDS / 8];
    u32 *values = (u32 *)shared;
    const u32 j = blockIdx.x, set = blockIdx.y, m = p.reduce_log, i = threadIdx.x;
    if (set == p.set_count) {
        if (j == 0 && i == 0 && blockIdx.z == 0) {
            G(_xyzz_t) ones = G(_infinity)();
            if (counters[MSM_COUNT_ONES]) ones = G(_xyzz_load)(buckets + (size_t)p.keys * XYZZ_WORDS);
            G(_xyzz_store)(ones_out, ones);
        }
        return;
    }
    const u32 terms = j == m ? 1u << m : m == 0 ? 0 : 1u << (m - 1);
    const u32 *from = (j == m ? sums : runs) + ((size_t)set << m) * XYZZ_WORDS;
    G(_xyzz_t) sum = G(_infinity)();
    for (u32 k = blockIdx.z * MSM_BITS_BLOCK + i; k < terms; k += gridDim.z * MSM_BITS_BLOCK) {
        // The k-th number with bit j set: a one put in at place j.
        const u32 t = j == m ? k : (k >> j << (j + 1)) | 1u << j | (k & ((1u << j) - 1));
        sum = G(_add)(sum, G(_xyzz_load)(from + (size_t)t * XYZZ_WORDS));
    }
    for (u32 d = MSM_BITS_BLOCK / 2; d > 0; d >>= 1) {
        if (i >= d && i < 2 * d) G(_xyzz_store)(values + (i - d) * XYZZ_WORDS, sum);
        __syncthreads();
        if (i < d) sum = G(_add)(sum, G(_xyzz_load)(values + i * XYZZ_WORDS));
        __syncthreads();
    }
    if (i == 0) G(_xyzz_store)(out + (((size_t)set * (m + 1) + j) * gridDim.z + blockIdx.z) * XYZZ_WORDS, sum);
}

// Points that one thread brings to affine form with one inversion.
#define AFFINE_BATCH 8

// Writes the affine forms of `count` ≤ AFFINE_BATCH points to out, stride points apart.
static __device__ __forceinline__ void G(_batch_to_affine)(G(_xyzz_t) *points, u32 count, u32 *out, size_t stride) {
    K(_t) before[AFFINE_BATCH];
    K(_t) product = K(_one)();
    for (u32 k = 0; k < count; k++) {
        before[k] = product;
        if (!G(_is_infinity)(points[k])) product = K(_mul_call)(product, points[k].zzz);
    }
    K(_t) inverse = K(_inv)(product);
    for (u32 k = count; k-- > 0;) {
        G(_affine_t) r;
        r.x = r.y = K(_zero)();
        if (!G(_is_infinity)(points[k])) {
            const K(_t) i3 = K(_mul_call)(inverse, before[k]);
            inverse = K(_mul_call)(inverse, points[k].zzz);
            const K(_t) z = K(_mul_call)(i3, points[k].zz);
            r.x = K(_mul_call)(points[k].x, K(_mul_call)(z, z));
            r.y = K(_mul_call)(points[k].y, i3);
        }
        G(_affine_store)(out + k * stride * AFFINE_WORDS, r);
    }
}

// out[i] = 2^doublings · in[i], affine: one level of the table of bases from the one before.
extern "C" __global__ void __launch_bounds__(128, 2) KERNEL(msm_double_bases_)(u32 n, u32 doublings, const u32 *in, u32 *out) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    if (t >= n) return;
    G(_xyzz_t) points[AFFINE_BATCH];
    const u32 count = min((n - t + threads - 1) / threads, (u32)AFFINE_BATCH);
    for (u32 k = 0; k < count; k++) {
        G(_xyzz_t) x = G(_from_affine)(G(_affine_load)(in + (size_t)(t + k * threads) * AFFINE_WORDS));
        for (u32 d = 0; d < doublings; d++) x = G(_dbl)(x);
        points[k] = x;
    }
    G(_batch_to_affine)(points, count, out + (size_t)t * AFFINE_WORDS, threads);
}

// Fixed base: table[255·w + d − 1] = d·2^(8w)·base, affine, d = 1 .. 255, w < 32: one thread an entry.
extern "C" __global__ void __launch_bounds__(64, 4) KERNEL(fixed_base_table_)(const u32 *base, u32 *table) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= 32 * 255) return;
    const u32 w = t / 255, d = t % 255 + 1;
    const G(_affine_t) b = G(_affine_load)(base);
    G(_xyzz_t) x = G(_infinity)();
    for (int bit = 7; bit >= 0; bit--) {
        x = G(_dbl)(x);
        if (d >> bit & 1) x = G(_add_mixed_call)(x, b, 0);
    }
    for (u32 i = 0; i < 8 * w; i++) x = G(_dbl)(x);
    G(_batch_to_affine)(&x, 1, table + (size_t)t * AFFINE_WORDS, 1);
}

// out[i] = scalars[i]·base, affine; scalars in Montgomery form. At most AFFINE_BATCH scalars a thread.
extern "C" __global__ void __launch_bounds__(128, 2) KERNEL(fixed_base_mul_)(u32 n, const u32 *scalars, const u32 *table, u32 *out) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    if (t >= n) return;
    G(_xyzz_t) points[AFFINE_BATCH];
    const u32 count = min((n - t + threads - 1) / threads, (u32)AFFINE_BATCH);
    for (u32 k = 0; k < count; k++) {
        const fr_t s = fr_from_mont(fr_load(scalars + (size_t)(t + k * threads) * FR_LIMBS));
        G(_xyzz_t) x = G(_infinity)();
        for (u32 w = 0; w < 32; w++) {
            u32 limb = 0;
#pragma unroll
            for (int l = 0; l < FR_LIMBS; l++) limb = w / 4 == l ? s.v[l] : limb;
            const u32 d = limb >> (8 * (w & 3)) & 255;
            if (d) x = G(_add_mixed_call)(x, G(_affine_load)(table + (size_t)(255 * w + d - 1) * AFFINE_WORDS), 0);
        }
        points[k] = x;
    }
    G(_batch_to_affine)(points, count, out + (size_t)t * AFFINE_WORDS, threads);
}

#undef G
#undef K
#undef KERNEL
#undef AFFINE_WORDS
#undef XYZZ_WORDS
#undef AFFINE_BATCH
