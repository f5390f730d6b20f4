// Checks multi-scalar multiplication on a device against closed forms and times it with device events.
//
//   msm_bench DIRECTORY COMMAND...   the directory holds msm.cubin, msm_g1.cubin, msm_g2.cubin, msm_inputs.cubin, products.cubin
//
// Bases have known discrete logarithms e[i] to the generator, so the result must be (Σ e[i]·s[i])·G, which the host computes with
// the portable form of the same headers. Commands: check; products; g1 LOG_N [C [LEVELS]]; g2 likewise; packed LOG_N; fixed1 LOG_N; fixed2 LOG_N. Before them:
// batch ROUNDS (batched additions), blocks N (of msm_accumulate for each multiprocessor), size1 LOG_N, size2 LOG_N (make inputs of that
// size once), small [N] (shorter checks, of N scalars, and scratch memory not filled beforehand: for compute-sanitizer).
//
// With -DCUZK_EMULATE the kernels run on the host (emulate.h): `check` then needs no device, nor nvcc.
#if defined(CUZK_EMULATE)
#include <tuple>

#include "emulate.h"
#else
#include <cuda_runtime_api.h>
#endif

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../../common/ec/ec.h"
#include "../msm/plan.h"

#define CUDA(call) \
    do { \
        const cudaError_t cuda_status = (call); \
        if (cuda_status != cudaSuccess) { \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(cuda_status)); \
            std::exit(1); \
        } \
    } while (0)

static std::string directory;
static std::map<std::string, cudaLibrary_t> libraries;
static std::map<std::string, cudaKernel_t> kernels;
static int multiprocessors;
static unsigned acc_blocks = 2, batch = 0;
static int failures;

// Scalars of the checks of special cases, and of those that need longer chunks.
static unsigned few = 3000, many = 100000;
// Whether scratch memory is filled before use, so that what should have been written shows; not where a tool watches for that.
static bool fill = true;

#if defined(CUZK_EMULATE)
#include "../msm/msm.cu"
#define KERNEL_OF(name) {#name, (void *)name}
#include "../msm/msm_g1.cu"
#undef GROUP
#undef GROUP_FIELD
#undef GROUP_FIELD_LIMBS
#undef ACC_BLOCKS
#undef PAIR_BLOCKS
#undef HALVE_BLOCKS
#undef ACC_TOGETHER
#include "../msm/msm_g2.cu"
#include "msm_inputs.cu"

static cudaKernel_t kernel(const std::string &, const std::string &name) {
#define GROUP_KERNELS(g) \
    KERNEL_OF(msm_pair_##g), KERNEL_OF(msm_invert_##g), KERNEL_OF(msm_halve_##g), KERNEL_OF(msm_accumulate_##g), KERNEL_OF(msm_merge_##g), \
        KERNEL_OF(msm_reduce_##g), KERNEL_OF(msm_bits_##g), KERNEL_OF(msm_double_bases_##g), KERNEL_OF(fixed_base_table_##g), KERNEL_OF(fixed_base_mul_##g)
    static const std::map<std::string, void *> all = {
        KERNEL_OF(msm_digits), KERNEL_OF(msm_scan_small), KERNEL_OF(msm_partition), KERNEL_OF(msm_fine_count), KERNEL_OF(msm_scan_local),
        KERNEL_OF(msm_scatter), KERNEL_OF(msm_packed_count), KERNEL_OF(msm_packed_scan), KERNEL_OF(msm_packed_emit), KERNEL_OF(fill_random),
        KERNEL_OF(fill_counting), KERNEL_OF(dot), GROUP_KERNELS(g1), GROUP_KERNELS(g2)};
    return all.at(name);
}
template <typename... Args> static void launch_shared(cudaKernel_t k, dim3 grid, unsigned block, size_t, Args... args) { emulate_launch(k, grid, block, args...); }
static cudaKernel_t sort_kernel(const char *name) { return kernel("msm", name); }
#else
struct PackedRange { u64 first, len; u32 word, words; };

static cudaKernel_t kernel(const std::string &library, const std::string &name) {
    auto &k = kernels[name];
    if (!k) {
        auto &l = libraries[library];
        if (!l) CUDA(cudaLibraryLoadFromFile(&l, (directory + "/" + library + ".cubin").c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        CUDA(cudaLibraryGetKernel(&k, l, name.c_str()));
    }
    return k;
}

template <typename... Args>
static void launch_shared(cudaKernel_t k, dim3 grid, unsigned block, size_t shared, Args... args) {
    void *pointers[] = {(void *)&args...};
    CUDA(cudaLaunchKernel((const void *)k, grid, dim3(block), pointers, shared, 0));
}
static cudaKernel_t sort_kernel(const char *name) {
    const cudaKernel_t k = kernel("msm", name);
    CUDA(cudaKernelSetAttributeForDevice(k, cudaFuncAttributeMaxDynamicSharedMemorySize, MSM_SORT_SHARED, 0));
    return k;
}
#endif

template <typename... Args>
static void launch(cudaKernel_t k, dim3 grid, unsigned block, Args... args) { launch_shared(k, grid, block, 0, args...); }

struct Buffer {
    char *p = nullptr;
    size_t bytes = 0;
    explicit Buffer(size_t n = 0) { reset(n); }
    ~Buffer() { if (p) cudaFree(p); }
    Buffer(const Buffer &) = delete;
    void reset(size_t n) {
        if (p) CUDA(cudaFree(p));
        p = nullptr;
        bytes = n;
        if (n) CUDA(cudaMalloc((void **)&p, n));
    }
    u32 *words() const { return (u32 *)p; }
    template <typename T> void upload(const std::vector<T> &v) {
        if (bytes < v.size() * sizeof(T)) reset(v.size() * sizeof(T));
        CUDA(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
};

struct Packed {
    PackedRange range;
    const u64 *ones, *wide, *density;
    const u32 *rank;
};

// A group's operations on the host, and its sizes.
struct G1 {
    typedef g1_xyzz_t Point;
    typedef g1_affine_t Affine;
    static constexpr const char *name = "g1";
    static constexpr unsigned limbs = FP_LIMBS;
    static Affine generator() { const u32 g[] = G1_GENERATOR; return g1_affine_load(g); }
    static Point add(Point a, Point b) { return g1_add(a, b); }
    static Point dbl(Point a) { return g1_dbl(a); }
    static Point from(Affine a) { return g1_from_affine(a); }
    static Point infinity() { return g1_infinity(); }
    static Point load(const u32 *p) { return g1_xyzz_load(p); }
    static Affine affine(Point p) { return g1_to_affine(p); }
};
struct G2 {
    typedef g2_xyzz_t Point;
    typedef g2_affine_t Affine;
    static constexpr const char *name = "g2";
    static constexpr unsigned limbs = 2 * FP_LIMBS;
    static Affine generator() { const u32 g[] = G2_GENERATOR; return g2_affine_load(g); }
    static Point add(Point a, Point b) { return g2_add(a, b); }
    static Point dbl(Point a) { return g2_dbl(a); }
    static Point from(Affine a) { return g2_from_affine(a); }
    static Point infinity() { return g2_infinity(); }
    static Point load(const u32 *p) { return g2_xyzz_load(p); }
    static Affine affine(Point p) { return g2_to_affine(p); }
};

template <typename G> static typename G::Point multiply(typename G::Point p, fr_t k) {
    k = fr_from_mont(k);
    typename G::Point r = G::infinity();
    for (int i = 32 * FR_LIMBS - 1; i >= 0; i--) {
        r = G::dbl(r);
        if (k.v[i / 32] >> (i % 32) & 1) r = G::add(r, p);
    }
    return r;
}

template <typename G> struct Msm {
    MsmPlan plan;
    Buffer scratch;
    std::vector<cudaEvent_t> marks;   // one behind each stage of the last pass, if timed
    std::vector<const char *> stages;
    bool mark = false;

    static MsmRequest request(unsigned n, unsigned n_bases, unsigned ones, unsigned words, unsigned levels_c, unsigned levels_sets) {
        return {n, ones, n_bases, words, levels_c, levels_sets, FR_BITS, 16 * G::limbs, (unsigned)multiprocessors, acc_blocks, batch ? 1u << 28 : 1u << 30, batch};
    }
    explicit Msm(const MsmRequest &q, unsigned c = 0) : plan(msm_plan(q, c)), scratch(plan.at.bytes) {
        if (fill) CUDA(cudaMemset(scratch.p, 0xa5, scratch.bytes));
    }

    void stage(const char *name) {
        if (!mark) return;
        cudaEvent_t e;
        CUDA(cudaEventCreate(&e));
        CUDA(cudaEventRecord(e));
        marks.push_back(e);
        stages.push_back(name);
    }

    // Enqueues everything; the results land in scratch + at.out.
    void run(const u32 *bases, const u32 *scalars, const Packed *packed) {
        const MsmScratch &at = plan.at;
        MsmParams p = plan.params;
        auto word = [&](size_t o) { return (u32 *)(scratch.p + o); };
        auto k = [](const char *name) { return kernel("msm", name); };
        auto g = [](const char *name) { return kernel(std::string("msm_") + G::name, std::string(name) + "_" + G::name); };
        const u32 *scalar_index = packed ? word(at.scalar_index) : nullptr;
        const u32 *base_index = packed ? word(at.base_index) : nullptr;
        stage("begin");
        CUDA(cudaMemsetAsync(word(at.counters), 0, MSM_COUNTERS * 4));
        if (packed) {
            const unsigned tiles = (packed->range.words + MSM_PACKED_BLOCK - 1) / MSM_PACKED_BLOCK;
            launch(k("msm_packed_count"), tiles, MSM_PACKED_BLOCK, packed->range, packed->ones, packed->wide, packed->density, word(at.tiles));
            launch(k("msm_packed_scan"), 1, 1024, tiles, word(at.tiles), word(at.counters));
            launch(k("msm_packed_emit"), tiles, MSM_PACKED_BLOCK, packed->range, packed->ones, packed->wide, packed->density, packed->rank,
                   word(at.tiles), p.keys, word(at.sorted), word(at.scalar_index), word(at.base_index));
            stage("unpack");
        }
        for (unsigned pass = 0; pass < plan.passes; pass++) {
            p.set_first = pass * plan.sets_a_pass;
            p.set_count = std::min(plan.sets_a_pass, p.sets - p.set_first);
            p.keys = p.set_count << (p.c - 1);
            p.coarse_bins = ((p.keys - 1) >> p.coarse_shift) + 1;
            p.with_ones = packed && pass == 0;
            const uint64_t entries = (uint64_t)p.n * p.levels * p.set_count;
            const unsigned list_blocks = (p.n + p.tile - 1) / p.tile, entry_blocks = (unsigned)((entries + MSM_SORT_TILE - 1) / MSM_SORT_TILE);
            const unsigned scan_blocks = (p.keys + MSM_SCAN_TILE - 1) / MSM_SCAN_TILE;
            CUDA(cudaMemsetAsync(word(at.coarse), 0, p.coarse_bins * 4));
            CUDA(cudaMemsetAsync(word(at.bucket_count), 0, p.keys * 4ull));
            if (p.n) launch(k("msm_digits"), list_blocks, MSM_SORT_BLOCK, p, scalars, scalar_index, word(at.counters), word(at.coarse), word(at.digits));
            launch(k("msm_scan_small"), 1, 1024, p.coarse_bins, word(at.coarse), word(at.counters));
            stage("digits");
            if (p.n) {
                launch_shared(sort_kernel("msm_partition"), dim3((p.n + MSM_SORT_TILE - 1) / MSM_SORT_TILE, p.set_count * p.levels), MSM_SORT_BLOCK, MSM_SORT_SHARED, p,
                              word(at.digits), base_index, word(at.counters), word(at.coarse), word(at.entries));
                stage("partition");
                launch(k("msm_fine_count"), entry_blocks, MSM_SORT_BLOCK, p, word(at.entries), word(at.counters), word(at.bucket_count));
                launch(k("msm_scan_local"), scan_blocks, 1024, p.keys, word(at.bucket_count), word(at.offset), word(at.sums));
                launch(k("msm_scan_small"), 1, 1024, scan_blocks, word(at.sums), (u32 *)nullptr);
                stage("fine count");
                launch_shared(sort_kernel("msm_scatter"), entry_blocks, MSM_SORT_BLOCK, MSM_SORT_SHARED, p, word(at.entries), word(at.counters), word(at.offset), word(at.sums), word(at.sorted));
                stage("scatter");
            }
            const unsigned acc_grid = plan.acc_threads / MSM_ACC_BLOCK, pair_grid = plan.acc_threads / MSM_PAIR_BLOCK;
            u32 *const pool = plan.rounds ? word(at.pool) : nullptr, *const chunks = plan.rounds ? word(at.chunks) : nullptr;
            if (plan.rounds) launch(g("msm_pair"), pair_grid, MSM_PAIR_BLOCK, p, word(at.sorted), word(at.counters), bases, chunks,
                                    word(at.pairs[0]), word(at.prefixes[0]), word(at.products));
            stage("pair");
            for (unsigned round = 0; round < plan.rounds; round++) {
                launch(g("msm_invert"), (plan.acc_threads + 1023) / 1024, 128, plan.acc_threads, word(at.products));
                stage("invert");
                const unsigned now = round % 2, backward = !now, last = round + 1 == plan.rounds;
                launch(g("msm_halve"), pair_grid, MSM_PAIR_BLOCK, p, backward, last, word(at.sorted), bases, pool, chunks, word(at.pairs[now]),
                       word(at.prefixes[now]), word(at.pairs[!now]), word(at.prefixes[!now]), word(at.products));
                stage("halve");
            }
            launch(g("msm_accumulate"), acc_grid, MSM_ACC_BLOCK, p, word(at.sorted), word(at.counters), chunks, bases, pool,
                   word(at.buckets), word(at.heads), word(at.tails), word(at.flags), word(at.tail_keys));
            stage("accumulate");
            size_t from = 0;
            for (int i = 0; i < 3 && plan.merged[i]; i++) {
                const size_t to = from + plan.merged[i], bytes = 16 * G::limbs / 4;
                launch(g("msm_merge"), (plan.merged[i] + MSM_MERGE_BLOCK - 1) / MSM_MERGE_BLOCK, MSM_MERGE_BLOCK, plan.merged[i],
                       word(at.heads) + from * bytes, word(at.tails) + from * bytes, word(at.flags) + from, word(at.tail_keys) + from, word(at.buckets),
                       word(at.heads) + to * bytes, word(at.tails) + to * bytes, word(at.flags) + to, word(at.tail_keys) + to);
                from = to;
            }
            stage("merge");
            launch(g("msm_reduce"), ((p.set_count << p.reduce_log) + MSM_REDUCE_BLOCK - 1) / MSM_REDUCE_BLOCK, MSM_REDUCE_BLOCK, p, word(at.bucket_count),
                   word(at.buckets), word(at.runs), word(at.run_sums));
            stage("reduce");
            const size_t out_words = 4 * G::limbs;
            launch(g("msm_bits"), dim3(p.reduce_log + 2, p.set_count + p.with_ones, plan.splits), MSM_BITS_BLOCK, p, word(at.counters), word(at.buckets), word(at.runs),
                   word(at.run_sums), word(at.out) + (size_t)p.set_first * (p.reduce_log + 2) * plan.splits * out_words,
                   word(at.out) + (size_t)p.sets * (p.reduce_log + 2) * plan.splits * out_words);
            stage("bits");
        }
    }

    // Σ over sets and bits, by one chain of doublings from the highest place down.
    typename G::Point finish() {
        const size_t words = 4 * G::limbs;
        std::vector<u32> out(plan.out_points * words);
        CUDA(cudaMemcpy(out.data(), scratch.p + plan.at.out, out.size() * 4, cudaMemcpyDeviceToHost));
        const MsmParams &p = plan.params;
        std::vector<std::vector<unsigned>> places(p.c * p.sets + 1);
        for (unsigned set = 0; set < p.sets; set++)
            for (unsigned j = 0; j < p.reduce_log + 2; j++)
                for (unsigned k = 0; k < plan.splits; k++)
                    places[p.c * set + (j >= p.reduce_log ? 0 : p.c - 1 - p.reduce_log + j)].push_back((set * (p.reduce_log + 2) + j) * plan.splits + k);
        if (p.with_ones) places[0].push_back(p.sets * (p.reduce_log + 2) * plan.splits);
        typename G::Point r = G::infinity();
        for (size_t bit = places.size(); bit-- > 0;) {
            r = G::dbl(r);
            for (unsigned i : places[bit]) r = G::add(r, G::load(&out[i * words]));
        }
        return r;
    }
};

template <typename G> static void fixed_base(unsigned n, const u32 *scalars, u32 *out) {
    const std::string lib = std::string("msm_") + G::name;
    static Buffer table;
    if (!table.p) {
        const typename G::Affine g = G::generator();
        Buffer base(sizeof g);
        CUDA(cudaMemcpy(base.p, &g, sizeof g, cudaMemcpyHostToDevice));
        table.reset(32 * 255 * sizeof g);
        launch(kernel(lib, std::string("fixed_base_table_") + G::name), (32 * 255 + 63) / 64, 64, base.words(), table.words());
        CUDA(cudaDeviceSynchronize());
    }
    const unsigned threads = (n + 7) / 8;
    if (n) launch(kernel(lib, std::string("fixed_base_mul_") + G::name), (threads + 127) / 128, 128, n, scalars, table.words(), out);
    CUDA(cudaDeviceSynchronize());
}

static fr_t scalar_product(unsigned n, const u32 *a, const u32 *b) {
    const unsigned threads = 256 * 128;
    Buffer parts(threads * 32);
    launch(kernel("msm_inputs", "dot"), threads / 128, 128, n, a, b, parts.words());
    std::vector<u32> host(threads * 8);
    CUDA(cudaMemcpy(host.data(), parts.p, parts.bytes, cudaMemcpyDeviceToHost));
    fr_t sum = fr_zero();
    for (unsigned i = 0; i < threads; i++) sum = fr_add(sum, fr_load(&host[i * 8]));
    return sum;
}

template <typename G> static bool agrees(typename G::Point got, fr_t k) {
    const typename G::Affine a = G::affine(got), b = G::affine(multiply<G>(G::from(G::generator()), k));
    return std::memcmp(&a, &b, sizeof a) == 0;
}

static void report(bool ok, const char *what, const char *group, unsigned n) {
    if (!ok) failures++;
    std::printf("%-5s %s %s n=%u\n", ok ? "ok" : "WRONG", group, what, n);
}

static std::mt19937_64 rng(7);
static fr_t number(u64 x) { fr_t s = fr_zero(); s.v[0] = (u32)x; s.v[1] = (u32)(x >> 32); return fr_to_mont(s); }
static fr_t random_scalar() {
    fr_t s;
    for (int i = 0; i < FR_LIMBS; i++) s.v[i] = (u32)rng();
    s.v[FR_LIMBS - 1] &= (1u << ((FR_BITS - 1) % 32)) - 1;
    return s;
}

template <typename G> static void check_case(const char *what, const std::vector<fr_t> &e, const std::vector<fr_t> &s, unsigned c, uint64_t limit, unsigned levels) {
    const unsigned n = e.size();
    Buffer exps(32), scalars(32), bases(std::max<size_t>(n, 1) * 8 * G::limbs * std::max(levels, 1u));
    exps.upload(e);
    scalars.upload(s);
    fixed_base<G>(n, exps.words(), bases.words());
    MsmRequest q = Msm<G>::request(n, n, 0, 0, 0, 0);
    q.entries_limit = limit;
    if (levels > 1) {
        q.levels_c = c;
        q.levels_sets = ((FR_BITS + c - 1) / c + levels - 1) / levels;
        for (unsigned l = 1; l < levels && n; l++)
            launch(kernel(std::string("msm_") + G::name, std::string("msm_double_bases_") + G::name), ((n + 7) / 8 + 127) / 128, 128, n, c * q.levels_sets,
                   bases.words() + (size_t)(l - 1) * n * 2 * G::limbs, bases.words() + (size_t)l * n * 2 * G::limbs);
    }
    Msm<G> msm(q, c);
    msm.run(bases.words(), scalars.words(), nullptr);
    CUDA(cudaDeviceSynchronize());
    fr_t k = fr_zero();
    for (unsigned i = 0; i < n; i++) k = fr_add(k, fr_mul(e[i], s[i]));
    report(agrees<G>(msm.finish(), k), what, G::name, n);
}

template <typename G> static void check_packed(unsigned n, unsigned first, unsigned len, bool with_density) {
    std::vector<u64> ones((n + 63) / 64), wide(ones.size()), density(ones.size());
    std::vector<u32> rank(ones.size());
    std::vector<fr_t> values, e;
    fr_t k = fr_zero();
    u32 wides = 0;
    for (unsigned v = 0; v < n; v++) {
        if (v % 64 == 0) rank[v / 64] = wides;
        const unsigned roll = rng() % 100;
        const bool one = roll < 47, is_wide = roll >= 97, dense = !with_density || rng() % 4 != 0;
        ones[v / 64] |= (u64)one << (v % 64);
        wide[v / 64] |= (u64)is_wide << (v % 64);
        density[v / 64] |= (u64)dense << (v % 64);
        if (is_wide) { values.push_back(random_scalar()); wides++; }
        if (v >= first && v < first + len && dense) {
            e.push_back(number(1 + e.size() * 3));
            if (one) k = fr_add(k, e.back());
            if (is_wide) k = fr_add(k, fr_mul(e.back(), values.back()));
        }
    }
    Buffer exps(32), scalars(32), d_ones(8), d_wide(8), d_density(8), d_rank(4), bases(std::max<size_t>(e.size(), 1) * 8 * G::limbs);
    exps.upload(e); scalars.upload(values); d_ones.upload(ones); d_wide.upload(wide); d_density.upload(density); d_rank.upload(rank);
    fixed_base<G>(e.size(), exps.words(), bases.words());
    const u32 word = first / 64, words = len ? (first + len - 1) / 64 - word + 1 : 0;
    const Packed packed = {{first, len, word, words}, (u64 *)d_ones.p, (u64 *)d_wide.p, with_density ? (u64 *)d_density.p : nullptr, d_rank.words()};
    Msm<G> msm(Msm<G>::request(values.size(), e.size(), len, words, 0, 0));
    msm.run(bases.words(), scalars.words(), &packed);
    CUDA(cudaDeviceSynchronize());
    report(agrees<G>(msm.finish(), k), with_density ? "packed, density" : "packed", G::name, len);
}

template <typename G> static void check_group() {
    const fr_t zero = fr_zero(), one = fr_one(), minus = fr_neg(fr_one());
    auto counting = [](unsigned n) { std::vector<fr_t> v; for (unsigned i = 0; i < n; i++) v.push_back(number(i + 1)); return v; };
    auto random = [](unsigned n) { std::vector<fr_t> v; for (unsigned i = 0; i < n; i++) v.push_back(random_scalar()); return v; };
    const uint64_t all = 1u << 30;
    for (unsigned n : {0u, 1u, 2u, 3u, 17u, 255u, 256u, 257u, 4095u, 4097u})
        if (n <= 9 * few) check_case<G>("random", counting(n), random(n), 0, all, 1);
    const unsigned n = few;
    check_case<G>("i·G, i", counting(n), counting(n), 0, all, 1);
    check_case<G>("zeros", counting(n), std::vector<fr_t>(n, zero), 0, all, 1);
    check_case<G>("ones", counting(n), std::vector<fr_t>(n, one), 0, all, 1);
    check_case<G>("r - 1", counting(n), std::vector<fr_t>(n, minus), 0, all, 1);
    check_case<G>("one base", std::vector<fr_t>(n, number(5)), random(n), 0, all, 1);
    check_case<G>("one base, one scalar", std::vector<fr_t>(n, number(5)), std::vector<fr_t>(n, random_scalar()), 0, all, 1);
    check_case<G>("infinities", std::vector<fr_t>(n, zero), random(n), 0, all, 1);
    std::vector<fr_t> e = counting(n), s = random(n);
    for (unsigned i = 0; i < n; i += 2) { e[i + 1] = fr_neg(e[i]); s[i + 1] = s[i]; }
    check_case<G>("P and -P", e, s, 0, all, 1);
    for (unsigned i = 0; i < n; i += 3) e[i] = zero;
    check_case<G>("mixed with infinity", e, s, 0, all, 1);
    for (unsigned i = 0; i < n; i++) s[i] = number(rng() & 0xff);
    check_case<G>("hot window", counting(n), s, 0, all, 1);
    for (unsigned i = 0; i < n; i++) s[i] = i % 100 ? (i & 1 ? one : zero) : random_scalar();
    check_case<G>("99 % bits", counting(n), s, 0, all, 1);
    for (unsigned c : {4u, 5u, 11u, 15u, 16u, 17u}) check_case<G>("window", counting(few / 2), random(few / 2), c, all, 1);
    check_case<G>("passes", counting(n), random(n), 9, 8 * n, 1);
    check_case<G>("levels", counting(n), random(n), 10, all, 4);
    check_case<G>("one set", counting(n), random(n), 13, all, 20);
    check_case<G>("levels and passes", counting(n), random(n), 10, 20 * n, 4);
    check_case<G>("one base, many", std::vector<fr_t>(many, number(5)), random(many), 0, all, 1);
    std::vector<fr_t> base = counting(many), scalar(many, random_scalar());
    for (unsigned i = 0; i < many; i++) {
        if (i % 5 == 0) base[i] = zero;
        if (i % 7 == 1) base[i] = fr_neg(base[i - 1]);
        if (i % 7 == 3) base[i] = base[i - 1];
    }
    check_case<G>("one scalar, P, -P, P twice, infinity", base, scalar, 0, all, 1);
    for (unsigned i = 0; i < many; i++) scalar[i] = number(rng() & 0xfff);
    check_case<G>("hot window, the same bases", base, scalar, 0, all, 1);
    check_packed<G>(2 * n, 0, 2 * n, false);
    check_packed<G>(2 * n, 0, 2 * n, true);
    check_packed<G>(2 * n, 77, n + 3, true);
    check_packed<G>(2 * n, 70, 20, true);
}

static float median(std::vector<float> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

template <typename F> static float timed(int rounds, F f) {
    cudaEvent_t a, b;
    CUDA(cudaEventCreate(&a));
    CUDA(cudaEventCreate(&b));
    std::vector<float> times;
    for (int i = -1; i < rounds; i++) {
        CUDA(cudaEventRecord(a));
        f();
        CUDA(cudaEventRecord(b));
        CUDA(cudaEventSynchronize(b));
        float ms;
        CUDA(cudaEventElapsedTime(&ms, a, b));
        if (i >= 0) times.push_back(ms);
    }
    return median(times);
}

// Bases i·G, i = 1 .. n, and random scalars; made once for the largest n.
template <typename G> struct Inputs {
    Buffer exps, bases, scalars;
    unsigned n = 0;
    void grow(unsigned m) {
        if (m <= n) return;
        n = m;
        exps.reset(n * 32ull);
        scalars.reset(n * 32ull);
        bases.reset((size_t)n * 8 * G::limbs);
        launch(kernel("msm_inputs", "fill_counting"), 1024, 256, n, exps.words());
        launch(kernel("msm_inputs", "fill_random"), 1024, 256, n, (u64)99, scalars.words());
        fixed_base<G>(n, exps.words(), bases.words());
    }
};

template <typename G> static Inputs<G> &inputs() {
    static Inputs<G> all;
    return all;
}

template <typename G> static void time_dense(unsigned log_n, unsigned c, unsigned levels, int rounds, bool detail) {
    const unsigned n = 1u << log_n;
    Inputs<G> &in = inputs<G>();
    in.grow(n);
    MsmRequest q = Msm<G>::request(n, n, 0, 0, 0, 0);
    Buffer multiples;
    const u32 *bases = in.bases.words();
    if (levels > 1) {
        q.levels_c = c;
        q.levels_sets = ((FR_BITS + c - 1) / c + levels - 1) / levels;
        levels = ((FR_BITS + c - 1) / c + q.levels_sets - 1) / q.levels_sets;
        multiples.reset((size_t)n * levels * 8 * G::limbs);
        CUDA(cudaMemcpy(multiples.p, in.bases.p, (size_t)n * 8 * G::limbs, cudaMemcpyDeviceToDevice));
        for (unsigned l = 1; l < levels; l++)
            launch(kernel(std::string("msm_") + G::name, std::string("msm_double_bases_") + G::name), ((n + 7) / 8 + 127) / 128, 128, n, c * q.levels_sets,
                   multiples.words() + (size_t)(l - 1) * n * 2 * G::limbs, multiples.words() + (size_t)l * n * 2 * G::limbs);
        CUDA(cudaDeviceSynchronize());
        bases = multiples.words();
    }
    Msm<G> msm(q, c);
    const float ms = timed(rounds, [&] { msm.run(bases, in.scalars.words(), nullptr); });
    const auto start = std::chrono::steady_clock::now();
    const typename G::Point result = msm.finish();
    const double host = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const bool ok = agrees<G>(result, scalar_product(n, in.exps.words(), in.scalars.words()));
    if (!ok) failures++;
    std::printf("%s %s 2^%u c=%u windows=%u sets=%u passes=%u reduce=2^%u rounds=%u: %.3f ms (host %.2f), scratch %.0f MiB\n", ok ? "ok" : "WRONG", G::name, log_n,
                msm.plan.params.c, msm.plan.params.windows, msm.plan.params.sets, msm.plan.passes, msm.plan.params.reduce_log, msm.plan.rounds, ms, host, msm.plan.at.bytes / 1048576.0);
    if (detail) {
        msm.mark = true;
        msm.run(bases, in.scalars.words(), nullptr);
        CUDA(cudaDeviceSynchronize());
        std::printf("   ");
        for (size_t i = 1; i < msm.marks.size() && i < 30; i++) {
            float t;
            CUDA(cudaEventElapsedTime(&t, msm.marks[i - 1], msm.marks[i]));
            std::printf(" %s %.3f", msm.stages[i], t);
        }
        std::printf("\n");
    }
    std::fflush(stdout);
}

// A witness like that of a PoRep partition: 47.3 % ones, 1.305 % wide, every variable with a base.
static void time_packed(unsigned log_n, int rounds) {
    const unsigned n = 1u << log_n;
    Inputs<G1> &in = inputs<G1>();
    in.grow(n);
    std::vector<u64> ones(n / 64), wide(n / 64);
    std::vector<u32> rank(n / 64);
    unsigned wides = 0, count = 0;
    unsigned __int128 sum = 0;
    std::vector<u32> wide_at;
    for (unsigned v = 0; v < n; v++) {
        if (v % 64 == 0) rank[v / 64] = wides;
        const u32 roll = (u32)(rng() >> 40) % 100000;
        if (roll < 47300) { ones[v / 64] |= 1ull << (v % 64); sum += v + 1; count++; }
        else if (roll < 47300 + 1305) { wide[v / 64] |= 1ull << (v % 64); wide_at.push_back(v); wides++; }
    }
    std::vector<fr_t> values(wides);
    CUDA(cudaMemcpy(values.data(), in.scalars.p, wides * 32ull, cudaMemcpyDeviceToHost));
    fr_t k = fr_zero();
    k.v[0] = (u32)sum; k.v[1] = (u32)(sum >> 32); k.v[2] = (u32)(sum >> 64); k.v[3] = (u32)(sum >> 96);
    k = fr_to_mont(k);
    for (unsigned i = 0; i < wides; i++) k = fr_add(k, fr_mul(number(wide_at[i] + 1ull), values[i]));
    Buffer d_ones(8), d_wide(8), d_rank(4);
    d_ones.upload(ones); d_wide.upload(wide); d_rank.upload(rank);
    const Packed packed = {{0, n, 0, n / 64}, (u64 *)d_ones.p, (u64 *)d_wide.p, nullptr, d_rank.words()};
    Msm<G1> msm(Msm<G1>::request(wides, n, count, n / 64, 0, 0));
    const float ms = timed(rounds, [&] { msm.run(in.bases.words(), in.scalars.words(), &packed); });
    const bool ok = agrees<G1>(msm.finish(), k);
    if (!ok) failures++;
    std::printf("%s g1 packed 2^%u, %u ones, %u wide, c=%u passes=%u: %.3f ms, scratch %.0f MiB\n   ", ok ? "ok" : "WRONG", log_n, count, wides, msm.plan.params.c,
                msm.plan.passes, ms, msm.plan.at.bytes / 1048576.0);
    msm.mark = true;
    msm.run(in.bases.words(), in.scalars.words(), &packed);
    CUDA(cudaDeviceSynchronize());
    for (size_t i = 1; i < msm.marks.size(); i++) {
        float t;
        CUDA(cudaEventElapsedTime(&t, msm.marks[i - 1], msm.marks[i]));
        std::printf(" %s %.3f", msm.stages[i], t);
    }
    std::printf("\n");
    std::fflush(stdout);
}

#if !defined(CUZK_EMULATE)
static void products() {
    const double wide = 8.2e12;
    struct { const char *name; unsigned limbs; double per_round; double wides; } all[] = {
        {"bench_fp_mul", FP_LIMBS, 2, 2.0 * FP_LIMBS * FP_LIMBS + FP_LIMBS},
        {"bench_fp_sqr", FP_LIMBS, 2, FP_LIMBS * (FP_LIMBS + 1) / 2.0 + FP_LIMBS * FP_LIMBS + FP_LIMBS},
        {"bench_fr_mul", FR_LIMBS, 2, FR_LOW_IS_ONE ? 112.0 : 136.0},
        {"bench_fr_sqr", FR_LIMBS, 2, FR_LOW_IS_ONE ? 36 + 48.0 : 36 + 72.0},
    };
    const unsigned rounds = 2000;
    Buffer data(512ull * 132 * 4096);
    for (auto &b : all)
        for (unsigned blocks : {2u, 4u, 8u}) {
            const unsigned threads = multiprocessors * blocks * 128;
            launch(kernel("msm_inputs", "fill_random"), 1024, 256, threads * 2, (u64)5, data.words());
            const float ms = timed(3, [&] { launch(kernel("products", b.name), multiprocessors * blocks, 128, data.words(), rounds); });
            const double rate = threads * b.per_round * rounds / (ms * 1e-3);
            std::printf("%s, %u warps a multiprocessor: %.2f G/s, %.1f %% of the bound\n", b.name, blocks * 4, rate * 1e-9, 100 * rate * b.wides / wide);
        }
    const G1::Affine g = G1::generator();
    std::vector<G1::Affine> points;
    G1::Point p = G1::from(g);
    for (int i = 0; i < 8; i++) { points.push_back(G1::affine(p)); p = G1::add(p, G1::add(p, G1::from(g))); }
    Buffer d(8);
    d.upload(points);
    for (unsigned blocks : {1u, 2u, 3u}) {
        const unsigned threads = multiprocessors * blocks * 128, adds = 500;
        const float ms = timed(3, [&] { launch(kernel("products", "bench_g1_add_mixed"), multiprocessors * blocks, 128, data.words(), d.words(), adds); });
        const double rate = threads * (double)adds / (ms * 1e-3);
        const double wides = 8.0 * (2.0 * FP_LIMBS * FP_LIMBS + FP_LIMBS) - FP_LIMBS * (FP_LIMBS + 1) + 2 * all[1].wides;
        std::printf("bench_g1_add_mixed, %u warps a multiprocessor: %.3f G/s, %.1f %% of the bound\n", blocks * 4, rate * 1e-9, 100 * rate * wides / wide);
    }
}

#endif

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    directory = argv[1];
#if defined(CUZK_EMULATE)
    multiprocessors = 2;
    many = 4000;
#else
    CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
#endif
    for (int i = 2; i < argc; i++) {
        const std::string command = argv[i];
        auto next = [&](unsigned otherwise) { return i + 1 < argc && std::strspn(argv[i + 1], "0123456789") == std::strlen(argv[i + 1]) ? (unsigned)std::atoi(argv[++i]) : otherwise; };
        if (command == "check") { check_group<G1>(); check_group<G2>(); }
        else if (command == "small") { few = next(500); many = 8 * few; fill = false; }
        else if (command == "batch") batch = next(6);
        else if (command == "blocks") acc_blocks = next(2);
        else if (command == "check1") check_group<G1>();
        else if (command == "check2") check_group<G2>();
#if !defined(CUZK_EMULATE)
        else if (command == "products") products();
#endif
        else if (command == "size1") inputs<G1>().grow(1u << next(20));
        else if (command == "size2") inputs<G2>().grow(1u << next(20));
        else if (command == "g1" || command == "g2") {
            const unsigned log_n = next(20), c = next(0), levels = next(1);
            const int rounds = log_n >= 24 ? 3 : 10;
            if (command == "g1") time_dense<G1>(log_n, c, levels, rounds, true); else time_dense<G2>(log_n, c, levels, rounds, true);
        } else if (command == "packed") time_packed(next(20), 3);
        else if (command == "fixed1" || command == "fixed2") {
            const unsigned n = 1u << next(20);
            inputs<G1>().grow(n);
            Buffer out((size_t)n * 16 * FP_LIMBS);
            std::printf("%s n=%u: %.3f ms\n", command.c_str(), n, timed(3, [&] {
                if (command == "fixed1") fixed_base<G1>(n, inputs<G1>().scalars.words(), out.words()); else fixed_base<G2>(n, inputs<G1>().scalars.words(), out.words());
            }));
        } else { std::printf("what is %s?\n", argv[i]); return 2; }
    }
    CUDA(cudaDeviceSynchronize());
    std::printf("%d failures\n", failures);
    return failures != 0;
}
