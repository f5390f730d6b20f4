// Multi-scalar multiplication, the part that adds points, instantiated by inclusion with GROUP, GROUP_FIELD and
// GROUP_FIELD_LIMBS as in common/ec/xyzz.inc.h; ACC_BLOCKS, PAIR_BLOCKS, HALVE_BLOCKS, the blocks of msm_accumulate, msm_pair and
// msm_halve that a multiprocessor holds; and ACC_TOGETHER, whether the warps of a block of msm_accumulate keep step.

#define G(name) CUZK_PASTE(GROUP, name)
#define K(name) CUZK_PASTE(GROUP_FIELD, name)
#define KERNEL(name) CUZK_PASTE(name, GROUP)
#define AFFINE_WORDS (2 * GROUP_FIELD_LIMBS)
#define XYZZ_WORDS (4 * GROUP_FIELD_LIMBS)
// Pieces of 16 bytes of a coordinate.
#define QUADS (GROUP_FIELD_LIMBS / 4)

// The point that an entry's value names: one of the table of bases, or behind its end one of the pool of sums.
static __device__ __forceinline__ const u32 *G(_at)(u32 value, u32 table, const u32 *bases, const u32 *pool) {
    const u32 i = value & 0x7fffffff;
    return i < table ? bases + (size_t)i * AFFINE_WORDS : pool + (size_t)(i - table) * AFFINE_WORDS;
}

// An element whose pieces lie `stride` pieces apart.
static __device__ __forceinline__ K(_t) G(_load_pieces)(const uint4 *from, size_t stride) {
    K(_t) r;
    u32 *words = (u32 *)&r;
#pragma unroll
    for (u32 q = 0; q < QUADS; q++) {
        const uint4 x = from[q * stride];
        words[4 * q] = x.x; words[4 * q + 1] = x.y; words[4 * q + 2] = x.z; words[4 * q + 3] = x.w;
    }
    return r;
}
static __device__ __forceinline__ void G(_store_pieces)(uint4 *to, size_t stride, const K(_t) &x) {
    const u32 *words = (const u32 *)&x;
#pragma unroll
    for (u32 q = 0; q < QUADS; q++) to[q * stride] = make_uint4(words[4 * q], words[4 * q + 1], words[4 * q + 2], words[4 * q + 3]);
}

// Copies ahead the first `quads` pieces of a point, to places `stride` apart.
static __device__ __forceinline__ void G(_copy_ahead)(uint4 *to, u32 stride, u32 quads, const u32 *from) {
#pragma unroll
    for (u32 q = 0; q < quads; q++) copy_ahead(to + q * stride, from + 4 * q);
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
CUZK_FN K(_t) G(_denominator)(G(_affine_t) a, G(_affine_t) b, int *which) {
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

// A pair whose x2 − x1, x1 or x2 is zero: whether its sum is a sum of points, its denominator, and the slope's numerator.
struct G(_special_t) { int which; K(_t) denominator, numerator; };
CUZK_FN_CALL G(_special_t) G(_special)(uint2 pair, u32 table, const u32 *bases, const u32 *pool) {
    const G(_affine_t) a = G(_signed)(pair.x, table, bases, pool), b = G(_signed)(pair.y, table, bases, pool);
    G(_special_t) r;
    r.denominator = G(_denominator)(a, b, &r.which);
    r.numerator = K(_sub)(b.y, a.y);
    if (r.which == G(_DOUBLE)) {
        r.numerator = K(_mul_call)(a.x, a.x);
        r.numerator = K(_add)(K(_dbl)(r.numerator), r.numerator);
    }
    return r;
}
// … and its sum if that is none of two points.
CUZK_FN_CALL G(_affine_t) G(_special_sum)(int which, uint2 pair, u32 table, const u32 *bases, const u32 *pool) {
    if (which == G(_FIRST)) return G(_signed)(pair.x, table, bases, pool);
    if (which == G(_SECOND)) return G(_signed)(pair.y, table, bases, pool);
    G(_affine_t) r;
    r.x = r.y = K(_zero)();
    return r;
}

// Where the pieces of element k of thread t are: piece q at (k·QUADS + q)·threads + t, so that a warp reads and writes side by side.
static __device__ __forceinline__ uint4 *G(_column)(u32 *elements, u32 k, u32 t, u32 threads) {
    return (uint4 *)elements + (size_t)k * QUADS * threads + t;
}

// The denominator of a pair with these x.
static __device__ __forceinline__ K(_t) G(_difference)(const K(_t) &x1, const K(_t) &x2, uint2 pair, u32 table, const u32 *bases,
                                                        const u32 *pool) {
    K(_t) d = K(_sub)(x2, x1);
    if (K(_is_zero)(d) | K(_is_zero)(x1) | K(_is_zero)(x2)) d = G(_special)(pair, table, bases, pool).denominator;
    return d;
}

// Batched affine additions, the first round's pairs. Each thread goes through its chunk and pairs neighbours of the same bucket: the
// sum of pair k will be its point k in the pool, and an entry that names it takes the place of the two.
// prefixes[k] = product of the denominators before pair k, products[t] = of all of them. Point k of thread t in the pool, and its pair
// k: number k·threads + t.
extern "C" __global__ void __launch_bounds__(MSM_PAIR_BLOCK, PAIR_BLOCKS)
KERNEL(msm_pair_)(MsmParams p, uint2 *sorted, const u32 *counters, const u32 *bases, MsmChunk *chunks, uint2 *pairs, u32 *prefixes,
                  u32 *products) {
    __shared__ uint4 staged[2 * QUADS * MSM_PAIR_BLOCK];
    __shared__ uint2 rings[EntryReader::AHEAD * MSM_PAIR_BLOCK];
    const u32 t = blockIdx.x * MSM_PAIR_BLOCK + threadIdx.x, threads = gridDim.x * MSM_PAIR_BLOCK;
    const u32 table = p.n_bases * p.levels;
    const G(_chunk_t) c = G(_chunk)(p, counters, t, threads);
    uint4 *const first_x = staged + threadIdx.x, *const second_x = first_x + QUADS * MSM_PAIR_BLOCK;
    uint2 *const list = sorted + c.begin;
    EntryReader in = EntryReader::of(list, 1, c.end - c.begin, rings + threadIdx.x, MSM_PAIR_BLOCK);
    u32 i = 0, out = 0, found = 0, count = 0;
    uint2 next = make_uint2(0, 0);
    // The next pair; what stands alone before it stays in the list.
    auto find = [&]() {
        while (i < in.length) {
            const uint2 a = in.at(i++);
            if (i < in.length) {
                const uint2 b = in.at(i);
                if (a.x == b.x) {
                    i++;
                    next = make_uint2(a.y, b.y);
                    list[out++] = make_uint2(a.x, table + found++ * threads + t);
                    return true;
                }
            }
            list[out++] = a;
        }
        return false;
    };
    auto copy = [&](bool have) {
        in.copy(i);
        if (!have) return;
        G(_copy_ahead)(first_x, MSM_PAIR_BLOCK, QUADS, G(_at)(next.x, table, bases, nullptr));
        G(_copy_ahead)(second_x, MSM_PAIR_BLOCK, QUADS, G(_at)(next.y, table, bases, nullptr));
    };
    K(_t) product = K(_one)();
    bool have = find();
    copy(have);
#pragma unroll 1
    while (__any_sync(~0u, have)) {
        copies_done();
        in.done();
        if (have) {
            const uint2 pair = next;
            const K(_t) x1 = G(_load_pieces)(first_x, MSM_PAIR_BLOCK), x2 = G(_load_pieces)(second_x, MSM_PAIR_BLOCK);
            have = find();
            copy(have);
            const K(_t) d = G(_difference)(x1, x2, pair, table, bases, nullptr);
            pairs[(size_t)count * threads + t] = pair;
            G(_store_pieces)(G(_column)(prefixes, count, t, threads), threads, product);
            product = K(_mul_call)(product, d);
            count++;
        }
        __syncwarp();
    }
    chunks[t] = {c.begin, out, 0, count};
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

// Denominators of the next round that may wait for the other lanes of the warp to have one: with two, the products are a half to
// each sum; with one, up to one, but eight warps of G2 need the shared memory.
#define MOST_WAITING (GROUP_FIELD_LIMBS > 12 ? 1 : 2)

// A round's sums, 5 products and a square each with the one for the denominator: the pairs from the last to the first, each with the
// inverse of its denominator. Unless it is the last round, the next one's pairs are made on the way, of the sums as they come and of the
// entries that stood alone, while their x is at hand: the list is gone through in the order opposite to the round before, as the
// pairs are, and an entry that stood alone comes before the sums of its bucket. `backward`: that order, 1 in the first
// round, 0 in the second and so on.
extern "C" __global__ void __launch_bounds__(MSM_PAIR_BLOCK, HALVE_BLOCKS)
KERNEL(msm_halve_)(MsmParams p, u32 backward, u32 last, uint2 *sorted, const u32 *bases, u32 *pool, MsmChunk *chunks, const uint2 *pairs,
                   const u32 *prefixes, uint2 *next_pairs, u32 *next_prefixes, u32 *products) {
    __shared__ uint4 staged[4 * QUADS * MSM_PAIR_BLOCK], staged_prefixes[QUADS * MSM_PAIR_BLOCK], held_x[QUADS * MSM_PAIR_BLOCK],
        differences[MOST_WAITING * QUADS * MSM_PAIR_BLOCK], running_products[QUADS * MSM_PAIR_BLOCK];
    __shared__ uint2 rings[EntryReader::AHEAD * MSM_PAIR_BLOCK], staged_pairs[MSM_PAIR_BLOCK];
    const u32 t = blockIdx.x * MSM_PAIR_BLOCK + threadIdx.x, threads = gridDim.x * MSM_PAIR_BLOCK;
    const u32 table = p.n_bases * p.levels;
    uint4 *const first_point = staged + threadIdx.x, *const second_point = first_point + 2 * QUADS * MSM_PAIR_BLOCK;
    uint4 *const prefix_at = staged_prefixes + threadIdx.x, *const held_at = held_x + threadIdx.x;
    uint4 *const product_at = running_products + threadIdx.x;
    uint2 *const pair_at = staged_pairs + threadIdx.x;
    const MsmChunk list = chunks[t];
    const u32 count = list.pairs, first = list.first, sums = table + first * threads;
    u32 most = count;
#pragma unroll
    for (u32 d = 16; d > 0; d /= 2) most = max(most, __shfl_sync(~0u, most, (threadIdx.x ^ d) & 31));
    K(_t) inverse = K(_load)(products + (size_t)t * GROUP_FIELD_LIMBS);
    G(_store_pieces)(product_at, MSM_PAIR_BLOCK, K(_one)());

    uint2 *const from = sorted + (backward ? list.begin + list.length - 1 : list.begin);
    const int step = backward ? -1 : 1;
    EntryReader in = EntryReader::of(from, step, last ? 0 : list.length, rings + threadIdx.x, MSM_PAIR_BLOCK);
    const uint2 nothing = make_uint2(~0u, 0);
    // `held`: the entry before, which waits for one of its bucket, its x in held_x. `made`: the next round's pairs. `multiplied`: of
    // those, the ones whose denominators are in the product; the others' are in `differences`.
    uint2 held = nothing;
    u32 i = 0, out = 0, made = 0, multiplied = 0;
    auto write = [&](uint2 entry) { from[(ptrdiff_t)step * out++] = entry; };
    // Goes past the entries that are no sums of this round.
    auto pass = [&]() {
        bool any = false;
        while (i < in.length) {
            const uint2 e = in.at(i);
            if ((i32)e.y >= (i32)sums) break;
            if (held.x != ~0u) write(held);
            held = e;
            any = true;
            i++;
        }
        return any;
    };
    // One denominator that waits, of all lanes at once.
    auto waiting_at = [&](u32 k) { return differences + k % MOST_WAITING * QUADS * MSM_PAIR_BLOCK + threadIdx.x; };
    auto multiply = [&]() {
        if (multiplied < made) {
            const K(_t) product = G(_load_pieces)(product_at, MSM_PAIR_BLOCK);
            G(_store_pieces)(G(_column)(next_prefixes, multiplied, t, threads), threads, product);
            const K(_t) difference = G(_load_pieces)(waiting_at(multiplied), MSM_PAIR_BLOCK);
            G(_store_pieces)(product_at, MSM_PAIR_BLOCK, K(_mul_call)(product, difference));
            multiplied++;
        }
    };
    auto pair_of = [&](u32 k) { return &pairs[(size_t)k * threads + t]; };
    auto copy = [&](u32 k, uint2 pair) {
        const uint4 *prefix = G(_column)((u32 *)prefixes, k, t, threads);
#pragma unroll
        for (u32 q = 0; q < QUADS; q++) copy_ahead(prefix_at + q * MSM_PAIR_BLOCK, (const u32 *)(prefix + (size_t)q * threads));
        G(_copy_ahead)(first_point, MSM_PAIR_BLOCK, 2 * QUADS, G(_at)(pair.x, table, bases, pool));
        G(_copy_ahead)(second_point, MSM_PAIR_BLOCK, 2 * QUADS, G(_at)(pair.y, table, bases, pool));
    };

    in.copy(0);
    uint2 next = nothing;
    if (most > 0 && most - 1 < count) copy(most - 1, next = *pair_of(most - 1));
    if (most > 1 && most - 2 < count) copy_ahead(pair_at, pair_of(most - 2));
    copies_done();
#pragma unroll 1
    for (u32 k = most; k-- > 0;) {
        // All copies are made here, so that the products are between them and the wait for them.
        const bool now = k < count, pairing = now && !last;
        in.done();
        uint2 entry = nothing;
        if (pairing) {
            if (pass()) G(_copy_ahead)(held_at, MSM_PAIR_BLOCK, QUADS, G(_at)(held.y, table, bases, pool));
            entry = in.at(i++);
            in.copy(i);
        }
        const bool complete = pairing && held.x == entry.x;
        // When one lane has as many denominators waiting as it may, most lanes have one.
        if (__any_sync(~0u, complete && made - multiplied == MOST_WAITING)) multiply();
        const uint2 pair = next;
        G(_affine_t) a, b;
        K(_t) prefix;
        if (now) {
            a.x = G(_load_pieces)(first_point, MSM_PAIR_BLOCK);
            a.y = G(_load_pieces)(first_point + QUADS * MSM_PAIR_BLOCK, MSM_PAIR_BLOCK);
            b.x = G(_load_pieces)(second_point, MSM_PAIR_BLOCK);
            b.y = G(_load_pieces)(second_point + QUADS * MSM_PAIR_BLOCK, MSM_PAIR_BLOCK);
            prefix = G(_load_pieces)(prefix_at, MSM_PAIR_BLOCK);
        }
        if (k > 0 && k - 1 < count) copy(k - 1, next = *pair_at);
        if (k > 1 && k - 2 < count) copy_ahead(pair_at, pair_of(k - 2));
        if (now) {
            a.y = K(_cneg)(pair.x >> 31, a.y);
            b.y = K(_cneg)(pair.y >> 31, b.y);
            K(_t) d = K(_sub)(b.x, a.x), slope = K(_sub)(b.y, a.y);
            int which = G(_ADD);
            if (K(_is_zero)(d) | K(_is_zero)(a.x) | K(_is_zero)(b.x)) {
                const G(_special_t) special = G(_special)(pair, table, bases, pool);
                which = special.which;
                d = special.denominator;
                slope = special.numerator;
            }
            slope = K(_mul_call)(K(_mul_call)(inverse, prefix), slope);
            inverse = K(_mul_call)(inverse, d);
            G(_affine_t) sum;
            sum.x = K(_sub)(K(_sub)(K(_sqr_call)(slope), a.x), b.x);
            sum.y = K(_sub)(K(_mul_call)(slope, K(_sub)(a.x, sum.x)), a.y);
            if (which != G(_ADD) && which != G(_DOUBLE)) sum = G(_special_sum)(which, pair, table, bases, pool);
            G(_affine_store)(pool + ((size_t)(first + k) * threads + t) * AFFINE_WORDS, sum);
            copies_done();
            if (complete) {
                const uint2 both = make_uint2(held.y, entry.y);
                const K(_t) x = G(_load_pieces)(held_at, MSM_PAIR_BLOCK);
                G(_store_pieces)(waiting_at(made), MSM_PAIR_BLOCK, G(_difference)(x, sum.x, both, table, bases, pool));
                next_pairs[(size_t)made * threads + t] = both;
                write(make_uint2(entry.x, table + (first + count + made) * threads + t));
                made++;
                held = nothing;
            } else if (pairing) {
                if (held.x != ~0u) write(held);
                held = entry;
                G(_store_pieces)(held_at, MSM_PAIR_BLOCK, sum.x);
            }
        }
        copies_done();
        __syncwarp();
    }
    if (last) return;
    while (__any_sync(~0u, multiplied < made)) multiply();
    pass();
    if (held.x != ~0u) write(held);
    chunks[t] = {backward ? list.begin + list.length - out : list.begin, out, first + count, made};
    K(_store)(products + (size_t)t * GROUP_FIELD_LIMBS, G(_load_pieces)(product_at, MSM_PAIR_BLOCK));
}

// Whether a lane has work left. Warps that keep step share what they fetch of the code, which pays where it is longer than the
// instruction cache: with products of fp2.
#if ACC_TOGETHER
#define ACC_ANY(x) __syncthreads_or(x)
#else
#define ACC_ANY(x) __any_sync(~0u, x)
#endif

// Each thread adds up its chunk of the sorted entries, or what `chunks` says is left of it after batched additions. A bucket
// that lies within the chunk is finished; the part of one that began before it goes to `heads`, that of one that goes on
// behind it to `tails`, for msm_merge.
extern "C" __global__ void __launch_bounds__(MSM_ACC_BLOCK, ACC_BLOCKS)
KERNEL(msm_accumulate_)(MsmParams p, const uint2 *sorted, const u32 *counters, const MsmChunk *chunks, const u32 *bases, const u32 *pool,
                        u32 *buckets, u32 *heads, u32 *tails, u32 *flags, u32 *tail_keys) {
    __shared__ uint4 staged[2 * QUADS * MSM_ACC_BLOCK];
    __shared__ uint2 rings[EntryReader::AHEAD * MSM_ACC_BLOCK];
    const u32 t = blockIdx.x * MSM_ACC_BLOCK + threadIdx.x, threads = gridDim.x * MSM_ACC_BLOCK;
    const u32 table = p.n_bases * p.levels;
    const G(_chunk_t) c = G(_chunk)(p, counters, t, threads);
    uint4 *const ahead = staged + threadIdx.x;
    const u32 begin = chunks ? chunks[t].begin : c.begin, length = chunks ? chunks[t].length : c.end - c.begin;
    // The neighbours' entries say whether the first bucket began before and the last goes on behind: batched additions leave an
    // entry of a chunk's first bucket at its beginning, and one of its last bucket at its end.
    const u32 behind = c.end < c.n ? sorted[c.end].x : ~0u;
    EntryReader in = EntryReader::of(sorted + begin, 1, length, rings + threadIdx.x, MSM_ACC_BLOCK);
    uint2 entry = length > 0 ? in.at(0) : make_uint2(~0u, 0);
    u32 flag = 0;
    bool inside = c.begin > 0 && length > 0 && sorted[c.begin - 1].x == entry.x;
    G(_xyzz_t) sum = G(_infinity)();
    in.copy(1);
    if (length > 0) G(_copy_ahead)(ahead, MSM_ACC_BLOCK, 2 * QUADS, G(_at)(entry.y, table, bases, pool));
    // All threads of a warp go through the loop together: the barrier keeps the compiler from making an inner loop of the
    // additions to one bucket, in which a warp would wait for its fullest bucket each time.
#pragma unroll 1
    for (u32 i = 0; ACC_ANY(i < length); i++) {
        copies_done();
        in.done();
        if (i < length) {
            const u32 key = entry.x;
            const int negate = entry.y >> 31;
            G(_affine_t) point;
            point.x = G(_load_pieces)(ahead, MSM_ACC_BLOCK);
            point.y = G(_load_pieces)(ahead + QUADS * MSM_ACC_BLOCK, MSM_ACC_BLOCK);
            entry = make_uint2(behind, 0);
            if (i + 1 < length) {
                entry = in.at(i + 1);
                G(_copy_ahead)(ahead, MSM_ACC_BLOCK, 2 * QUADS, G(_at)(entry.y, table, bases, pool));
                in.copy(i + 2);
            }
            sum = G(_add_mixed)(sum, point, negate);
            if (i + 1 == length || entry.x != key) {
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
    bool left = false;
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
            left = true;
        }
    }
    if (i == 0 && (flag & MSM_HEAD)) G(_xyzz_store)(out_heads + (size_t)blockIdx.x * XYZZ_WORDS, sum);
    const int tail = __syncthreads_or(left);
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

// a += b in memory, with formula and cases as in common/ec: two points and what is between them do not fit the registers, so
// each coordinate is read where it is needed.
CUZK_FN_CALL void G(_add_to)(u32 *a, const u32 *b) {
    enum { X = 0, Y = GROUP_FIELD_LIMBS, ZZ = 2 * GROUP_FIELD_LIMBS, ZZZ = 3 * GROUP_FIELD_LIMBS };
    K(_t) zz = K(_load)(a + ZZ);
    const K(_t) b_zz = K(_load)(b + ZZ);
    if (K(_is_zero)(b_zz)) return;
    if (K(_is_zero)(zz)) {
        G(_xyzz_store)(a, G(_xyzz_load)(b));
        return;
    }
    const K(_t) u1 = K(_mul_call)(K(_load)(a + X), b_zz);
    const K(_t) p = K(_sub)(K(_mul_call)(K(_load)(b + X), zz), u1);
    zz = K(_mul_call)(zz, b_zz);
    const K(_t) s1 = K(_mul_call)(K(_load)(a + Y), K(_load)(b + ZZZ));
    const K(_t) r = K(_sub)(K(_mul_call)(K(_load)(b + Y), K(_load)(a + ZZZ)), s1);
    if (K(_is_zero)(p)) {
        G(_xyzz_store)(a, K(_is_zero)(r) ? G(_dbl)(G(_xyzz_load)(a)) : G(_infinity)());
        return;
    }
    const K(_t) pp = K(_sqr_call)(p);
    K(_store)(a + ZZ, K(_mul_call)(zz, pp));
    const K(_t) ppp = K(_mul_call)(p, pp), q = K(_mul_call)(u1, pp);
    K(_store)(a + ZZZ, K(_mul_call)(K(_mul_call)(K(_load)(a + ZZZ), K(_load)(b + ZZZ)), ppp));
    const K(_t) x = K(_sub)(K(_sub)(K(_sqr_call)(r), ppp), K(_dbl)(q));
    K(_store)(a + X, x);
    K(_store)(a + Y, K(_mul_sub_call)(r, K(_sub)(q, x), s1, ppp));
}

// Thread t of a set takes its buckets t·L .. t·L + L − 1, L = 2^(c − 1 − reduce_log): runs[t] = Σ B, sums[t] = Σ (i + 1)·B over its
// buckets i = 0 .. L − 1, by running sums from the top. A bucket that no entry has is infinity and is not read.
extern "C" __global__ void __launch_bounds__(MSM_REDUCE_BLOCK, 256 / MSM_REDUCE_BLOCK)
KERNEL(msm_reduce_)(MsmParams p, const u32 *count, const u32 *buckets, u32 *runs, u32 *sums) {
    const u32 t = blockIdx.x * MSM_REDUCE_BLOCK + threadIdx.x;
    if (t >= p.set_count << p.reduce_log) return;
    const u32 length = 1u << (p.c - 1 - p.reduce_log);
    const u32 first = t * length;
    alignas(16) u32 run[XYZZ_WORDS], sum[XYZZ_WORDS];
    G(_xyzz_store)(run, G(_infinity)());
    G(_xyzz_store)(sum, G(_infinity)());
    // run += bucket, sum += run.
    for (u32 j = 2 * length; j > 0; j--) {
        const u32 key = first + j / 2 - 1;
        if (j & 1) G(_add_to)(sum, run);
        else if (count[key] != 0) G(_add_to)(run, buckets + (size_t)key * XYZZ_WORDS);
    }
    G(_xyzz_store)(runs + (size_t)t * XYZZ_WORDS, G(_xyzz_load)(run));
    G(_xyzz_store)(sums + (size_t)t * XYZZ_WORDS, G(_xyzz_load)(sum));
}

// With m = reduce_log, block (j, set, split): a share of out[set·(m + 2) + j] = Σ of runs[t] over the t with bit j set, j < m; and of
// Σ sums[t] over the even t for j = m, over the odd t for j = m + 1, so that all blocks have equally many terms; the host adds up
// the shares, which are `splits` points side by side. The set's value is then out[m] + out[m + 1] + L·Σ_j 2^j·out[j]. Row set_count of
// the grid, if launched, writes the sum of the ones to ones_out.
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
    const u32 terms = j < m ? 1u << (m - 1) : j == m ? ((1u << m) + 1) / 2 : (1u << m) / 2;
    const u32 *from = (j < m ? runs : sums) + ((size_t)set << m) * XYZZ_WORDS;
    G(_xyzz_t) sum = G(_infinity)();
    for (u32 k = blockIdx.z * MSM_BITS_BLOCK + i; k < terms; k += gridDim.z * MSM_BITS_BLOCK) {
        // The k-th number with bit j set: a one put in at place j. The k-th even or odd number.
        const u32 t = j < m ? (k >> j << (j + 1)) | 1u << j | (k & ((1u << j) - 1)) : 2 * k + (j - m);
        sum = G(_add)(sum, G(_xyzz_load)(from + (size_t)t * XYZZ_WORDS));
    }
    for (u32 d = MSM_BITS_BLOCK / 2; d > 0; d >>= 1) {
        if (i >= d && i < 2 * d) G(_xyzz_store)(values + (i - d) * XYZZ_WORDS, sum);
        __syncthreads();
        if (i < d) sum = G(_add)(sum, G(_xyzz_load)(values + i * XYZZ_WORDS));
        __syncthreads();
    }
    if (i == 0) G(_xyzz_store)(out + (((size_t)set * (m + 2) + j) * gridDim.z + blockIdx.z) * XYZZ_WORDS, sum);
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
#undef QUADS
#undef MOST_WAITING
#undef ACC_ANY
#undef AFFINE_BATCH
