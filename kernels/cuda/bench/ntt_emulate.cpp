// The transform kernels on the host: every thread of every block, from barrier to barrier, with the device's index
// arithmetic and (with -DCUZK_EMULATE_CARRY) its carry chains. Exits with 1 if a result differs from the
// definition. Compiled with g++, once for each curve (-DCUZK_CURVE_BN254).
#include "ntt_plan.hpp"

using namespace ntt;

struct Host : Executor {
    std::vector<std::vector<u64>> memory;
    u32 *alloc(size_t bytes) override {
        memory.emplace_back((bytes + 7) / 8);
        return (u32 *)memory.back().data();
    }
    void upload(u32 *to, const void *from, size_t bytes) override { memcpy(to, from, bytes); }
    void powers(u32 *out, const u32 *squares, const u32 *first, u32 count) override {
        for (u32 i = 0; i < count; i++) fr_store(out + 8 * size_t(i), power_of(squares, fr_load(first), i));
    }
    void heap(u32 *out, const u32 *root, const u32 *shift, u32 log_n, u32 levels) override {
        for (u32 node = 1; node >> levels == 0; node++) shoup_store(out + 16 * size_t(node), heap_entry(root, shift, log_n, node));
    }
    void pass(Kernel which, const ntt_pass_t &p, u32 blocks, u32 threads, u32 shared) override {
        std::vector<uint4> tile(shared / sizeof(uint4));
        uint4 *s = tile.data();
        const u32 top = p.k - NTT_LOG_RADIX;
        const bool unit = which == TIME_STRIDED_UNIT || which == FREQUENCY_STRIDED_UNIT;
        for (u32 b = 0; b < blocks; b++) {
            auto each = [&](auto phase) {
                for (u32 t = 0; t < threads; t++) phase(t);
            };
            switch (which) {
                case TIME_STRIDED:
                case TIME_STRIDED_UNIT:
                    for (u32 bit = top;; bit = step_below(&p, bit)) {
                        each([&](u32 t) { strided_step(&p, b, t, s, bit, 0, unit && bit == top); });
                        if (bit == 0) break;
                    }
                    break;
                case TIME_CONTIGUOUS:
                    each([&](u32 t) { time_load(&p, b, t, s); });
                    for (u32 bit = top;; bit = step_below(&p, bit)) {
                        each([&](u32 t) { contiguous_step(&p, t, s, bit, 0, bit == top); });
                        if (bit == 0) break;
                    }
                    each([&](u32 t) { time_store(&p, b, t, s); });
                    break;
                case FREQUENCY_STRIDED:
                case FREQUENCY_STRIDED_UNIT:
                    for (u32 bit = 0;; bit = step_above(&p, bit)) {
                        each([&](u32 t) { strided_step(&p, b, t, s, bit, 1, unit && bit == top); });
                        if (bit == top) break;
                    }
                    break;
                case FREQUENCY_CONTIGUOUS:
                    each([&](u32 t) { frequency_load(&p, b, t, s); });
                    for (u32 bit = 0;; bit = step_above(&p, bit)) {
                        each([&](u32 t) { contiguous_step(&p, t, s, bit, 1, bit == top); });
                        if (bit == top) break;
                    }
                    each([&](u32 t) { frequency_store(&p, b, t, s); });
                    break;
            }
        }
    }
};

static int failures = 0;

static void check(const char *what, u32 log_n, const std::vector<fr_t> &got, const std::vector<fr_t> &expected) {
    for (size_t i = 0; i < got.size(); i++)
        if (!fr_eq(got[i], expected[i])) {
            printf("%s, n = 2^%u: element %zu differs\n", what, log_n, i);
            failures++;
            return;
        }
}

static std::vector<fr_t> reversed(const std::vector<fr_t> &x, u32 log_n) {
    std::vector<fr_t> r(x.size());
    for (size_t i = 0; i < x.size(); i++) r[reverse_bits((u32)i, log_n)] = x[i];
    return r;
}

// Copies without moving the vector's memory, to which a pointer is kept.
static void assign(std::vector<fr_t> &to, const std::vector<fr_t> &from) { std::copy(from.begin(), from.end(), to.begin()); }

static void transforms(u32 log_n, fr_t g) {
    const size_t n = size_t(1) << log_n;
    Random random = { log_n };
    Host host;
    const fr_t f = small(5);
    std::vector<fr_t> x(n), y, work(n), other(n), factor(n);
    for (auto &v : x) v = random.scalar();
    for (auto &v : factor) v = random.scalar();
    u32 *work_p = (u32 *)work.data(), *other_p = (u32 *)other.data();
    y = x;
    reference(y, root_of_unity(log_n), g, f);

    Plan forward(host, log_n, false, g, f);
    work = x;
    forward.time(work_p, work_p, work_p, false);
    check("in time, bit-reversed out", log_n, work, reversed(y, log_n));
    work = x;
    forward.time(work_p, other_p, work_p, true);
    check("in time, natural out", log_n, work, y);

    // The inverse of the above, times n·f.
    const fr_t n_inverse = fr_inv(small((u32)n));
    Plan inverse(host, log_n, true, fr_inv(g), fr_mul(n_inverse, fr_inv(f)));
    assign(work, reversed(y, log_n));
    inverse.frequency(work_p, work_p, work_p, false);
    check("in frequency, bit-reversed in", log_n, work, x);
    work = y;
    inverse.frequency(work_p, other_p, work_p, true);
    check("in frequency, natural in", log_n, work, x);

    // y = y·factor / factor, subtracted from factor.
    work = y;
    for (size_t i = 0; i < n; i++) work[i] = fr_mul(y[i], fr_inv(factor[i]));
    inverse.frequency(work_p, other_p, other_p, true, (u32 *)factor.data());
    check("in frequency, product in", log_n, other, x);
    work = y;
    inverse.frequency(work_p, other_p, work_p, true, nullptr, (u32 *)factor.data());
    for (size_t i = 0; i < n; i++) other[i] = fr_sub(factor[i], x[i]);
    check("in frequency, difference out", log_n, work, other);
}

static void products() {
    Random random = { 99 };
    const u32 p[8] = FR_MODULUS;
    fr_t top = fr_zero();
    for (int i = 0; i < 8; i++) top.v[i] = p[i] << 1 | (i ? p[i - 1] >> 31 : 0);
    top.v[0] -= 1; // 2r - 1
    std::vector<fr_t> xs = { fr_zero(), fr_one(), top };
    fr_t minus_one = fr_neg(fr_one());
    std::vector<fr_t> ws = { fr_zero(), fr_one(), minus_one, small(7) };
    for (int i = 0; i < 2000; i++) {
        xs.push_back(random.scalar());
        if (i % 2) xs.back() = lazy_add(xs.back(), fr_neg(fr_one())), xs.back() = lazy_sub(xs.back(), random.scalar());
        ws.push_back(random.scalar());
    }
    for (size_t i = 0; i < xs.size(); i++)
        for (size_t j = 0; j < (i < 50 ? ws.size() : 5); j++) {
            const fr_t x = xs[i], w = ws[(i + j) % ws.size()], got = shoup_mul(x, shoup_from_mont(w));
            fr_t expected = fr_mul(lazy_reduce(x), w);
            if (!fr_eq(lazy_reduce(got), expected)) {
                printf("Shoup product %zu, %zu differs\n", i, j);
                failures++;
                return;
            }
            fr_t sum = lazy_reduce(lazy_add(x, got)), difference = lazy_reduce(lazy_sub(x, got));
            if (!fr_eq(sum, fr_add(lazy_reduce(x), expected)) || !fr_eq(difference, fr_sub(lazy_reduce(x), expected))) {
                printf("lazy sum or difference %zu, %zu differs\n", i, j);
                failures++;
                return;
            }
        }
}

int main(int argc, char **argv) {
    products();
    const u32 last = argc > 1 ? (u32)atoi(argv[1]) : 16;
    for (u32 log_n = 3; log_n <= last; log_n++) {
        transforms(log_n, fr_one());
        transforms(log_n, small(7));
    }
    printf("%d failures\n", failures);
    return failures != 0;
}
