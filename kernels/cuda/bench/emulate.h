// The device on the host, for checks without one: kernels run as they are, a block at a time, every thread a fiber that gives way at
// barriers. Races that real concurrency would show do not show here; wrong indices, counts and carry chains do.
// Include before the kernels' sources; implements the part of the CUDA runtime's interface that the drivers use.
#ifndef CUZK_CUDA_BENCH_EMULATE_H
#define CUZK_CUDA_BENCH_EMULATE_H

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define CUZK_DYNAMIC_SHARED(type, name) type *name = (type *)emulate::dynamic_shared()

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static dim3 threadIdx, blockIdx, blockDim, gridDim;
using std::max;
using std::min;

namespace emulate {

enum State { READY, AT_BLOCK, AT_WARP, DONE };
struct Fiber {
    ucontext_t context;
    State state;
    unsigned turn;             // warp operations so far: neighbours of different turns use different slots
    unsigned slots[2];
};
static std::vector<Fiber> fibers;
static std::vector<std::vector<char>> stacks;
static ucontext_t scheduler;
static unsigned current;
static int any_now, any_before;
static void (*entry)(void *);
static void *argument;

static inline void *dynamic_shared() {
    alignas(16) static char bytes[98304];
    return bytes;
}
static void fiber_main() {
    entry(argument);
    fibers[current].state = DONE;
    swapcontext(&fibers[current].context, &scheduler);
}
static inline void wait(State state) {
    const unsigned me = current;
    fibers[me].state = state;
    swapcontext(&fibers[me].context, &scheduler);
}
static inline unsigned exchange(unsigned value, unsigned from) {
    Fiber &me = fibers[current];
    const unsigned slot = me.turn++ & 1;
    me.slots[slot] = value;
    wait(AT_WARP);
    return fibers[from].slots[slot];
}

// Runs one block to its end.
static void run_block(unsigned threads) {
    while (stacks.size() < threads) stacks.emplace_back(256 << 10);
    if (fibers.size() != threads) fibers = std::vector<Fiber>(threads);
    for (unsigned i = 0; i < threads; i++) {
        Fiber &f = fibers[i];
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = stacks[i].data();
        f.context.uc_stack.ss_size = stacks[i].size();
        f.context.uc_link = nullptr;
        makecontext(&f.context, fiber_main, 0);
        f.state = READY;
        f.turn = 0;
    }
    for (unsigned live = threads; live > 0;) {
        for (current = 0; current < threads; current++) {
            if (fibers[current].state != READY) continue;
            threadIdx = dim3(current);
            threadIdx.y = threadIdx.z = 0;
            swapcontext(&scheduler, &fibers[current].context);
        }
        // Nobody is ready: release the warps that are all at a warp's operation, or else the block at its barrier.
        live = 0;
        bool released = false;
        for (unsigned w = 0; w < threads; w += 32) {
            const unsigned end = min(w + 32, threads);
            bool all = true, some = false;
            for (unsigned i = w; i < end; i++) {
                live += fibers[i].state != DONE;
                all &= fibers[i].state == AT_WARP || fibers[i].state == DONE;
                some |= fibers[i].state == AT_WARP;
            }
            if (all && some) {
                released = true;
                for (unsigned i = w; i < end; i++) if (fibers[i].state == AT_WARP) fibers[i].state = READY;
            }
        }
        if (released || live == 0) continue;
        any_before = any_now;
        any_now = 0;
        for (Fiber &f : fibers) {
            if (f.state == AT_WARP) std::abort();    // a warp that diverged at one of its operations
            if (f.state == AT_BLOCK) f.state = READY;
        }
    }
}

} // namespace emulate

static inline void __syncthreads() { emulate::wait(emulate::AT_BLOCK); }
static inline int __syncthreads_or(int x) {
    emulate::any_now |= x != 0;
    emulate::wait(emulate::AT_BLOCK);
    return emulate::any_before;
}
static inline void __syncwarp() { emulate::exchange(0, emulate::current); }
static inline unsigned __shfl_up_sync(unsigned, unsigned x, unsigned d) {
    const unsigned lane = emulate::current & 31;
    return emulate::exchange(x, lane >= d ? emulate::current - d : emulate::current);
}
static inline unsigned __shfl_sync(unsigned, unsigned x, unsigned from) { return emulate::exchange(x, (emulate::current & ~31u) + from % 32); }
static inline int __any_sync(unsigned, int x) {
    emulate::Fiber &me = emulate::fibers[emulate::current];
    const unsigned slot = me.turn & 1, warp = emulate::current & ~31u;
    emulate::exchange(x != 0, emulate::current);
    for (unsigned i = warp; i < warp + 32 && i < emulate::fibers.size(); i++)
        if (emulate::fibers[i].slots[slot]) return 1;
    return 0;
}
static inline unsigned atomicAdd(unsigned *p, unsigned x) { const unsigned old = *p; *p += x; return old; }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) { return (unsigned)((((uint64_t)hi << 32) | lo) >> (n & 31)); }

typedef int cudaError_t;
typedef const char *cudaLibrary_t;
typedef void *cudaKernel_t;
typedef int cudaEvent_t;
enum { cudaSuccess, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
static inline const char *cudaGetErrorString(cudaError_t) { return "out of memory"; }
template <typename T> static cudaError_t cudaMalloc(T **p, size_t n) { *p = (T *)std::aligned_alloc(256, (n + 255) / 256 * 256); return *p ? 0 : 1; }
static inline cudaError_t cudaFree(void *p) { std::free(p); return 0; }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n, int) { std::memcpy(to, from, n); return 0; }
static inline cudaError_t cudaMemset(void *p, int x, size_t n) { std::memset(p, x, n); return 0; }
static inline cudaError_t cudaMemsetAsync(void *p, int x, size_t n) { return cudaMemset(p, x, n); }
static inline cudaError_t cudaDeviceSynchronize() { return 0; }
static inline cudaError_t cudaEventCreate(cudaEvent_t *) { return 0; }
static inline cudaError_t cudaEventRecord(cudaEvent_t) { return 0; }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return 0; }
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) { *ms = 0; return 0; }

// Runs a kernel with the arguments that it is declared with.
template <typename... Args> static void emulate_launch(void *kernel, dim3 grid, unsigned block, Args... args) {
    struct Call {
        void (*f)(Args...);
        std::tuple<Args...> args;
    } call = {(void (*)(Args...))kernel, std::tuple<Args...>(args...)};
    emulate::entry = [](void *c) { std::apply(((Call *)c)->f, ((Call *)c)->args); };
    emulate::argument = &call;
    gridDim = grid;
    blockDim = dim3(block);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                emulate::run_block(block);
            }
}

#endif
