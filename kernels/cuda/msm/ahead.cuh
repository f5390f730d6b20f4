// Copies from device memory to shared memory that go on while a thread computes.
//
// A load to registers does not get past a call: the compiler waits for it there, and the products are calls. So what an iteration
// needs is copied to shared memory during the one before. Where the hardware cannot do that (Turing, a host), the copy is done at once.
#ifndef CUZK_CUDA_MSM_AHEAD_CUH
#define CUZK_CUDA_MSM_AHEAD_CUH

#include <stddef.h>

#include "../../common/ff/base.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Through the first-level cache: the same thread copies the rest of a sector later.
static __device__ __forceinline__ void copy_ahead(uint4 *to, const u32 *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void copy_ahead(uint2 *to, const uint2 *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
// The thread's copies so far are there, for itself.
static __device__ __forceinline__ void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
static __device__ __forceinline__ void copy_ahead(uint4 *to, const u32 *from) { *to = *(const uint4 *)from; }
static __device__ __forceinline__ void copy_ahead(uint2 *to, const uint2 *from) { *to = *from; }
static __device__ __forceinline__ void copies_done() {}
#endif

// A list of entries that a thread goes through, forward or backward, the next few copied ahead. `ring` is room for
// EntryReader::AHEAD entries, `stride` places apart.
struct EntryReader {
    enum { AHEAD = 4 };
    const uint2 *first;
    int step;
    u32 length;
    uint2 *ring;
    u32 stride, copied, ready;

    static __device__ __forceinline__ EntryReader of(const uint2 *first, int step, u32 length, uint2 *ring, u32 stride) {
        return {first, step, length, ring, stride, 0, 0};
    }
    __device__ __forceinline__ uint2 at(u32 i) const { return i < ready ? ring[i % AHEAD * stride] : first[(ptrdiff_t)step * i]; }
    // Entries before i are needed no more.
    __device__ __forceinline__ void copy(u32 i) {
        copied = max(copied, i);
#pragma unroll 1
        for (; copied < min(i + AHEAD, length); copied++) copy_ahead(&ring[copied % AHEAD * stride], first + (ptrdiff_t)step * copied);
    }
    // After copies_done().
    __device__ __forceinline__ void done() { ready = copied; }
};

#endif
