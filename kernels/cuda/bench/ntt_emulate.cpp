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
        for (u32 node = 1; node >> levels == 0; node++)
            factor_store(out + FACTOR_LIMBS * size_t(node), heap_entry(root, shift, log_n, node));
    }
    void results(u32 *out, const u32 *step, u32 k) override {
        for (u32 j = 0; j >> k == 0; j++) factor_store(out + FACTOR_LIMBS * size_t(j), results_entry(step, k, j));
    }
    void product(u32 *out, const u32 *a, const u32 *b, size_t n) override {
        for (size_t i = 0; i < n; i++) fr_store(out + 8 * i, fr_mul(fr_load(a + 8 * i), fr_load(b + 8 * i)));
    }
    void reverse(u32 *x, u32 log_n) override {
        for (size_t i = 0; i >> log_n == 0; i++) {
            const size_t r = reverse_bits((u32)i, log_n);
            if (i < r) std::swap_ranges(x + 8 * i, x + 8 * i + 8, x + 8 * r);
        }
    }
    void pass(Kernel which, const ntt_pass_t &p, u32 blocks, u32 threads, u32 shared) override {
        std::vector<uint4> tile(shared / sizeof(uint4));
        uint4 *s = tile.data();
        const u32 top = pass_top(&p);
        for (u32 b = 0; b < blocks; b++) {
            auto each = [&](auto phase) {
                for (u32 t = 0; t < threads; t++) phase(t);
            };
            auto down = [&](auto step) {
                for (u32 bit = top;; bit = step_below(bit)) {
                    each([&](u32 t) { step(t, bit); });
                    if (bit == 0) break;
                }
            };
            auto up = [&](auto step) {
                for (u32 bit = 0;; bit = step_above(&p, bit)) {
                    each([&](u32 t) { step(t, bit); });
                    if (bit == top) break;
                }
            };
            switch (which) {
                case TIME_STRIDED:
                    down([&](u32 t, u32 bit) { strided_step(&p, b, t, s, bit, 0); });
                    break;
                case TIME_CONTIGUOUS:
                    down([&](u32 t, u32 bit) { contiguous_step(&p, b, t, s, bit, 0); });
                    each([&](u32 t) { time_store(&p, b, t, s); });
                    break;
                case FREQUENCY_STRIDED:
                    up([&](u32 t, u32 bit) { strided_step(&p, b, t, s, bit, 1); });
                    break;
                case FREQUENCY_CONTIGUOUS:
                    each([&](u32 t) { frequency_load(&p, b, t, s); });
                    up([&](u32 t, u32 bit) { contiguous_step(&p, b, t, s, bit, 1); });
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
static void assign(std::vector<fr_t> &to, const std::vector<fr_t> &from) {
    std::copy(from.begin(), from.end(), to.begin());
}

static void transforms(u32 log_n, fr_t g, std::vector<u32> ks = {}, u32 log_tile = 0) {
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

    Plan forward(host, log_n, false, g, f, 0, ks, log_tile);
    work = x;
    forward.time(work_p, work_p, work_p, false);
    check("in time, bit-reversed out", log_n, work, reversed(y, log_n));
    work = x;
    forward.time(work_p, other_p, work_p, true);
    check("in time, natural out", log_n, work, y);

    // The inverse of the above, times n·f.
    const fr_t n_inverse = fr_inv(small((u32)n));
    Plan inverse(host, log_n, true, fr_inv(g), fr_mul(n_inverse, fr_inv(f)), 0, ks, log_tile);
    assign(work, reversed(y, log_n));
    inverse.frequency(work_p, work_p, work_p, false);
    check("in frequency, bit-reversed in", log_n, work, x);
    work = y;
    inverse.frequency(work_p, other_p, work_p, true);
    check("in frequency, natural in", log_n, work, x);

    // x = x·factor / factor, and the result subtracted from factor.
    for (size_t i = 0; i < n; i++) work[i] = fr_mul(x[i], fr_inv(factor[i]));
    forward.time(work_p, other_p, work_p, true, (u32 *)factor.data());
    check("in time, product in", log_n, work, y);
    work = x;
    forward.time(work_p, other_p, work_p, true, nullptr, (u32 *)factor.data());
    for (size_t i = 0; i < n; i++) other[i] = fr_sub(factor[i], y[i]);
    check("in time, difference out", log_n, work, other);
}

// The quotient of random a and b is the upper half of the product of their interpolations.
static void quotients(u32 log_n) {
    const size_t n = size_t(1) << log_n;
    Random random = { log_n };
    Host host;
    const Quotient quotient(host, log_n);
    std::vector<fr_t> a(n), b(n), c(n), t(n);
    for (auto *v : { &a, &b })
        for (auto &x : *v) x = random.scalar();
    auto doubled = [&](std::vector<fr_t> v) {
        reference(v, root_of_unity(log_n, true), fr_one(), Quotient::n_inverse(log_n));
        v.resize(2 * n, fr_zero());
        reference(v, root_of_unity(log_n + 1), fr_one(), fr_one());
        return v;
    };
    std::vector<fr_t> product = doubled(a), other = doubled(b);
    for (size_t i = 0; i < 2 * n; i++) product[i] = fr_mul(product[i], other[i]);
    reference(product, root_of_unity(log_n + 1, true), fr_one(), Quotient::n_inverse(log_n + 1));
    const std::vector<fr_t> expected(product.begin() + n, product.end());
    for (const bool room : { true, false }) {
        std::vector<fr_t> x = a, y = b;
        quotient.run((u32 *)x.data(), (u32 *)y.data(), (u32 *)c.data(), room ? (u32 *)t.data() : nullptr);
        check(room ? "quotient" : "quotient with little memory", log_n, x, expected);
    }
}

static void products() {
    Random random = { 99 };
    const u32 p[8] = FR_MODULUS;
    fr_t top = fr_zero();
    for (int i = 0; i < 8; i++) top.v[i] = p[i] << 1 | (i ? p[i - 1] >> 31 : 0);
    top.v[0] -= 1; // 2r - 1
    fr_t all_ones = fr_zero();
    for (u32 &limb : all_ones.v) limb = ~0u;
    std::vector<fr_t> xs = { fr_zero(), fr_one(), top, all_ones };
    fr_t minus_one = fr_neg(fr_one());
    std::vector<fr_t> ws = { fr_zero(), fr_one(), minus_one, small(7) };
    for (int i = 0; i < 2000; i++) {
        xs.push_back(random.scalar());
        if (i % 2) xs.back() = lazy_add(xs.back(), fr_neg(fr_one())), xs.back() = lazy_sub(xs.back(), random.scalar());
        ws.push_back(random.scalar());
    }
    for (size_t i = 0; i < xs.size(); i++)
        for (size_t j = 0; j < (i < 50 ? ws.size() : 5); j++) {
            const fr_t x = xs[i], w = ws[(i + j) % ws.size()];
            u32 parts[FACTOR_LIMBS];
            factor_store(parts, w);
            const fr_t got = factor_mul(x, parts), twice = factor_mul_twice(x, factor_in_two(fr_mul(w, two_to_32())));
            fr_t expected = fr_mul(lazy_reduce(x), w);
            const fr_t plain = lazy_mul(x, w);
            if (!fr_eq(lazy_reduce(got), expected) || !fr_eq(lazy_reduce(twice), expected) ||
                !fr_eq(lazy_reduce(plain), expected)) {
                printf("product %zu, %zu differs\n", i, j);
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

// Sums of products in parts that are not those of one factor, up to the largest: where a carry would be lost.
static void parts() {
    Random random = { 7 };
    const fr_t largest = fr_neg(fr_one());
    auto limbs = [](fr_t x, int first, int count) {
        fr_t r = fr_zero();
        for (int i = 0; i < count; i++) r.v[i] = x.v[first + i];
        return r;
    };
    auto power_of_two = [](int limb) {
        fr_t r = fr_zero();
        r.v[limb] = 1;
        return fr_to_mont(r);
    };
    for (int round = 0; round < 4000; round++) {
        fr_t x, w[4];
        for (u32 &limb : x.v) limb = round % 3 ? ~0u : (u32)random.next();
        // The limbs of the largest number below r, or of anything below.
        const u32 p[8] = FR_MODULUS;
        for (int i = 0; i < 4; i++) {
            w[i] = round % 2 ? random.scalar() : largest;
            if (round % 5 == 0)
                for (int j = 0; j < 8; j++) w[i].v[j] = j == 7 ? p[7] - 1 : ~0u;
        }
        fr_t four = fr_zero(), two = fr_zero();
        for (int i = 0; i < 4; i++) four = fr_add(four, fr_mul(fr_mul(limbs(x, 2 * i, 2), w[i]), power_of_two(5)));
        for (int i = 0; i < 2; i++) two = fr_add(two, fr_mul(fr_mul(limbs(x, 4 * i, 4), w[i]), power_of_two(3)));
        const fr_t by_four = factor_mul(x, (const u32 *)w), by_two = factor_mul_twice(x, { w[0], w[1] });
        if (!fr_eq(lazy_reduce(by_four), four) || !fr_eq(lazy_reduce(by_two), two)) {
            printf("sum of products %d differs\n", round);
            failures++;
            return;
        }
    }
}

int main(int argc, char **argv) {
    products();
    parts();
    const u32 last = argc > 1 ? (u32)atoi(argv[1]) : 16;
    for (u32 log_n = 3; log_n <= last; log_n++) {
        transforms(log_n, fr_one());
        transforms(log_n, small(7));
        quotients(log_n);
    }
    // Three passes, in small.
    transforms(11, fr_one(), { 4, 3, 4 }, 6);
    transforms(12, small(7), { 3, 4, 5 }, 7);
    printf("%d failures\n", failures);
    return failures != 0;
}
