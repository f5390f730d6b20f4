// Checks and times the transforms on a device, without Rust:
//   nvcc -std=c++17 -O3 -arch=sm_90 -cubin [-DCUZK_CURVE_BN254] -o ntt.cubin ../ntt/ntt.cu
//   g++ -std=c++17 -O2 [-DCUZK_CURVE_BN254] -o ntt ntt.cpp -lcudart_static -lpthread -ldl -lrt && ./ntt ntt.cubin
// Every size is checked against a closed form: the transform of 1, t, t², … is (tⁿ − 1) / (t·ω^k − 1) at k. Times are
// device events, the median of 11 after 2 to warm up, data resident, the element-wise rest of a quotient included.
#define uint4 cuda_uint4 // pass.h brings its own for the host
#include <cuda_runtime.h>
#undef uint4
#include "ntt_plan.hpp"

#include <string>

using namespace ntt;

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        const cudaError_t e = (call);                                                                      \
        if (e != cudaSuccess) {                                                                            \
            printf("%s:%d %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e));                    \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

static const char *cubin;

// The kernels of the cubin by name.
static cudaKernel_t kernel(const char *name) {
    static cudaLibrary_t library = [] {
        cudaLibrary_t l;
        CHECK(cudaLibraryLoadFromFile(&l, cubin, nullptr, nullptr, 0, nullptr, nullptr, 0));
        return l;
    }();
    cudaKernel_t k;
    CHECK(cudaLibraryGetKernel(&k, library, name));
    return k;
}

template <class... Args>
static void launch(cudaKernel_t k, u32 blocks, u32 threads, u32 shared, Args... args) {
    void *list[] = { (void *)&args... };
    CHECK(cudaLaunchKernel((const void *)k, dim3(blocks), dim3(threads), list, shared, nullptr));
}

struct Gpu : Executor {
    std::vector<u32 *> owned;
    ~Gpu() {
        for (u32 *p : owned) CHECK(cudaFree(p));
    }
    static const std::vector<cudaKernel_t> &kernels() {
        static const std::vector<cudaKernel_t> all = [] {
            std::vector<cudaKernel_t> r;
            for (auto name :
                 { "ntt_time_strided", "ntt_time_contiguous", "ntt_frequency_strided", "ntt_frequency_contiguous" }) {
                r.push_back(kernel(name));
                CHECK(cudaFuncSetAttribute((const void *)r.back(), cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
            }
            return r;
        }();
        return all;
    }
    u32 *alloc(size_t bytes) override {
        u32 *p;
        CHECK(cudaMalloc(&p, bytes));
        owned.push_back(p);
        return p;
    }
    void upload(u32 *to, const void *from, size_t bytes) override {
        CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    }
    void pass(Kernel which, const ntt_pass_t &p, u32 blocks, u32 threads, u32 shared) override {
        launch(kernels()[which], blocks, threads, shared, p);
    }
    void powers(u32 *out, const u32 *squares, const u32 *first, u32 count) override {
        launch(kernel("ntt_powers"), (count + 127) / 128, 128, 0, out, squares, first, count);
    }
    void heap(u32 *out, const u32 *root, const u32 *shift, u32 log_n, u32 levels) override {
        launch(kernel("ntt_heap"), ((1u << levels) + 127) / 128, 128, 0, out, root, shift, log_n, levels);
    }
    void results(u32 *out, const u32 *step, u32 k) override {
        launch(kernel("ntt_results"), ((1u << k) + 127) / 128, 128, 0, out, step, k);
    }
    void product(u32 *out, const u32 *a, const u32 *b, size_t n) override {
        launch(kernel("ntt_product"), (u32)((n + 255) / 256), 256, 0, out, a, b, n);
    }
    void reverse(u32 *x, u32 log_n) override { launch(kernel("ntt_reverse"), 1u << (log_n - 8), 256, 0, x, log_n); }
};

template <class F>
static double median_ms(F f) {
    cudaEvent_t a, b;
    CHECK(cudaEventCreate(&a));
    CHECK(cudaEventCreate(&b));
    std::vector<float> times;
    for (int i = 0; i < 13; i++) {
        CHECK(cudaEventRecord(a));
        f();
        CHECK(cudaEventRecord(b));
        CHECK(cudaEventSynchronize(b));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, a, b));
        if (i >= 2) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    CHECK(cudaEventDestroy(a));
    CHECK(cudaEventDestroy(b));
    return times[times.size() / 2];
}

static fr_t at(const u32 *d, size_t i) {
    fr_t r;
    CHECK(cudaMemcpy(&r, d + 8 * i, 32, cudaMemcpyDeviceToHost));
    return r;
}

static fr_t power_of_size(fr_t x, u64 e) {
    const u32 limbs[2] = { (u32)e, (u32)(e >> 32) };
    return power(x, limbs, 2);
}

static int failures = 0;
static void expect(bool ok, const char *what, u32 log_n) {
    if (ok) return;
    printf("WRONG: %s at n = 2^%u\n", what, log_n);
    failures++;
}

// out holds f·(tⁿgⁿ − 1)/(t·g·ω^k − 1) at the place of k?
static bool geometric(const u32 *out, u32 log_n, fr_t tg, fr_t f, bool reversed) {
    const size_t n = size_t(1) << log_n;
    const fr_t omega = root_of_unity(log_n), one = fr_one();
    const fr_t top = fr_mul(f, fr_sub(power_of_size(tg, n), one));
    Random random = { log_n };
    for (int i = 0; i < 300; i++) {
        const size_t k = i < 4 ? i : i < 8 ? n - 1 - (i - 4) : random.next() % n;
        const fr_t y = at(out, reversed ? reverse_bits((u32)k, log_n) : k);
        if (!fr_eq(fr_mul(y, fr_sub(fr_mul(tg, power_of_size(omega, k)), one)), top)) return false;
    }
    return true;
}

static bool same(const u32 *a, const u32 *b, size_t n) {
    std::vector<fr_t> x(n), y(n);
    CHECK(cudaMemcpy(x.data(), a, 32 * n, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(y.data(), b, 32 * n, cudaMemcpyDeviceToHost));
    return memcmp(x.data(), y.data(), 32 * n) == 0;
}

static void size_row(u32 log_n) {
    Gpu gpu;
    const size_t n = size_t(1) << log_n;
    const fr_t one = fr_one(), g = small(7), f = small(5), t = small(123456789);
    u32 *x = gpu.alloc(32 * n), *s = gpu.alloc(32 * n), *original = gpu.alloc(32 * n);
    u32 *squares_t = gpu.alloc(32 * 32), *d_one = gpu.alloc(32);
    gpu.upload(squares_t, squares(t, 32).data(), 32 * 32);
    gpu.upload(d_one, &one, 32);
    gpu.powers(original, squares_t, d_one, (u32)n);
    auto restart = [&] { CHECK(cudaMemcpy(x, original, 32 * n, cudaMemcpyDeviceToDevice)); };
    const fr_t n_inverse = fr_inv(small((u32)n));
    const bool full = log_n <= 22;

    Plan plain(gpu, log_n, false, one, one), coset(gpu, log_n, false, g, f);
    Plan inverse(gpu, log_n, true, one, n_inverse);
    Plan coset_inverse(gpu, log_n, true, fr_inv(g), fr_mul(n_inverse, fr_inv(f)));
    restart();
    plain.time(x, x, x, false);
    expect(geometric(x, log_n, t, one, true), "natural to bit-reversed", log_n);
    inverse.frequency(x, x, x, false);
    expect(same(x, original, full ? n : 4096), "and back", log_n);
    restart();
    plain.time(x, s, x, true);
    expect(geometric(x, log_n, t, one, false), "natural to natural", log_n);
    inverse.frequency(x, s, x, true);
    expect(same(x, original, full ? n : 4096), "and back, natural", log_n);
    restart();
    coset.time(x, s, x, true);
    expect(geometric(x, log_n, fr_mul(t, g), f, false), "coset, natural to natural", log_n);
    coset_inverse.frequency(x, s, x, true);
    expect(same(x, original, full ? n : 4096), "and back, coset", log_n);
    if (log_n >= 8) {
        plain.time(x, x, x, false);
        gpu.reverse(x, log_n);
        expect(geometric(x, log_n, t, one, false), "bit reversal in place", log_n);
    }

    const double nr = median_ms([&] { plain.time(x, x, x, false); });
    const double nn = median_ms([&] { plain.time(x, s, x, true); });
    const double cnr = median_ms([&] { coset.time(x, x, x, false); });
    const double rn = median_ms([&] { inverse.frequency(x, x, x, false); });
    const double inn = median_ms([&] { inverse.frequency(x, s, x, true); });
    const double crn = median_ms([&] { coset_inverse.frequency(x, x, x, false); });
    const double rev = log_n >= 8 ? median_ms([&] { gpu.reverse(x, log_n); }) : 0;
    printf("2^%-2u  natural in and out %8.4f  in time NR %8.4f  coset NR %8.4f  ", log_n, nn, nr, cnr);
    printf("in frequency RN %8.4f  NN %8.4f  coset RN %8.4f  reversal %7.4f ms\n", rn, inn, crn, rev);
    fflush(stdout);
}

static void quotient_row(u32 log_n) {
    Gpu gpu;
    const size_t n = size_t(1) << log_n;
    u32 *a = gpu.alloc(32 * n), *b = gpu.alloc(32 * n), *c = gpu.alloc(32 * n), *t = gpu.alloc(32 * n);
    u32 *s = gpu.alloc(32 * 32), *d_one = gpu.alloc(32);
    const fr_t one = fr_one(), ta = small(1001), tb = small(77777);
    gpu.upload(d_one, &one, 32);
    // a and b are the evaluations of 1 + ta X + ta² X² + …, likewise tb: so a·b has coefficients known in closed form.
    Plan evaluate(gpu, log_n, false, one, one);
    auto restart = [&] {
        gpu.upload(s, squares(ta, 32).data(), 32 * 32);
        gpu.powers(a, s, d_one, (u32)n);
        gpu.upload(s, squares(tb, 32).data(), 32 * 32);
        gpu.powers(b, s, d_one, (u32)n);
        evaluate.time(a, c, a, true);
        evaluate.time(b, c, b, true);
    };
    const Quotient q(gpu, log_n);
    // Coefficient i + n of (Σ ta^j X^j)·(Σ tb^j X^j) is Σ ta^j·tb^(i + n − j) over i < j < n.
    auto check = [&](const char *what) {
        Random random = { log_n };
        for (int k = 0; k < 200; k++) {
            const u64 i = k < 2 ? n - 1 - k : k < 4 ? k : random.next() % n;
            const fr_t x = fr_mul(power_of_size(ta, n), power_of_size(tb, i + 1));
            const fr_t y = fr_mul(power_of_size(ta, i + 1), power_of_size(tb, n));
            if (!fr_eq(fr_mul(at(a, i), fr_sub(ta, tb)), fr_sub(x, y))) return expect(false, what, log_n);
        }
    };
    restart();
    q.run(a, b, c, nullptr);
    check("quotient with little memory");
    restart();
    q.run(a, b, c, t);
    check("quotient");
    printf("2^%-2u  quotient %9.4f ms\n", log_n, median_ms([&] { q.run(a, b, c, t); }));
    fflush(stdout);
}

// Another division into passes, or another size of the tiles.
static void division_row(u32 log_tile, const std::vector<u32> &ks) {
    Gpu gpu;
    u32 log_n = 0;
    std::string name;
    for (u32 k : ks) {
        log_n += k;
        name += (name.empty() ? "" : "+") + std::to_string(k);
    }
    const size_t n = size_t(1) << log_n;
    u32 *x = gpu.alloc(32 * n), *y = gpu.alloc(32 * n);
    u32 *s = gpu.alloc(32 * 32), *d_one = gpu.alloc(32);
    const fr_t one = fr_one(), t = small(1001), n_inverse = fr_inv(small((u32)n));
    gpu.upload(d_one, &one, 32);
    gpu.upload(s, squares(t, 32).data(), 32 * 32);
    gpu.powers(x, s, d_one, (u32)n);
    Plan plain(gpu, log_n, false, one, one, 0, ks, log_tile);
    Plan inverse(gpu, log_n, true, one, n_inverse, 0, ks, log_tile);
    plain.time(x, y, x, true);
    expect(geometric(x, log_n, t, one, false), "another division into passes", log_n);
    const double nn = median_ms([&] { plain.time(x, y, x, true); });
    const double nr = median_ms([&] { plain.time(x, x, x, false); });
    const double inn = median_ms([&] { inverse.frequency(x, y, x, true); });
    printf("2^%-2u  tiles of 2^%u, %-10s NN %8.4f  NR %8.4f  ", log_n, log_tile, name.c_str(), nn, nr);
    printf("in frequency NN %8.4f ms\n", inn);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const std::string what = argc > 2 ? argv[2] : "";
    std::vector<u32> numbers;
    for (int i = 3; i < argc; i++) numbers.push_back((u32)atoi(argv[i]));
    const bool division = what == "division" && numbers.size() > 1;
    if (argc < 2 || (argc > 2 && what != "sizes" && what != "quotients" && !division)) {
        printf("usage: ntt CUBIN [sizes LOG_N... | quotients LOG_N... | division LOG_TILE K...]\n");
        return 2;
    }
    cubin = argv[1];
    if (division) division_row(numbers[0], { numbers.begin() + 1, numbers.end() });
    std::vector<u32> sizes = { 3, 8, 11, 12, 14, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
    std::vector<u32> quotients = { 3, 10, 12, 16, 20, 22, 24, 26, 27 };
    if (!what.empty()) {
        sizes = what == "sizes" ? numbers : std::vector<u32>();
        quotients = what == "quotients" ? numbers : std::vector<u32>();
    }
    for (u32 log_n : sizes) size_row(log_n);
    for (u32 log_n : quotients) quotient_row(log_n);
    printf("%d failures\n", failures);
    return failures != 0;
}
