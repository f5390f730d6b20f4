// Carry chains. Under nvcc each function is one PTX instruction on the condition code; ptxas turns a pair
// (mad.lo.cc, madc.hi.cc) of the same operands into one IMAD.WIDE with carry in and out. A chain must not be interrupted:
// the statements are volatile, so their order is kept, and nothing else that nvcc emits touches the condition code.
#ifndef CUZK_COMMON_FF_CARRY_H
#define CUZK_COMMON_FF_CARRY_H

#include "base.h"

// Whether the field headers use the chains below. On a host, CUZK_EMULATE_CARRY runs the device's code path with a
// variable for the condition code, so that it can be tested without a device.
#if defined(__CUDACC__) || defined(CUZK_EMULATE_CARRY)
#define CUZK_CARRY_CHAINS 1
#else
#define CUZK_CARRY_CHAINS 0
#endif

#if defined(__CUDACC__)
CUZK_FN u32 add_cc(u32 a, u32 b) { u32 r; asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
CUZK_FN u32 addc_cc(u32 a, u32 b) { u32 r; asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
CUZK_FN u32 addc(u32 a, u32 b) { u32 r; asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
CUZK_FN u32 sub_cc(u32 a, u32 b) { u32 r; asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
CUZK_FN u32 subc_cc(u32 a, u32 b) { u32 r; asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
CUZK_FN u32 subc(u32 a, u32 b) { u32 r; asm volatile("subc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
// (hi, lo) = a·b + (hi, lo), carry out.
CUZK_FN void mad_wide_cc(u32 *lo, u32 *hi, u32 a, u32 b) {
    asm volatile("mad.lo.cc.u32 %0, %2, %3, %0; madc.hi.cc.u32 %1, %2, %3, %1;" : "+r"(*lo), "+r"(*hi) : "r"(a), "r"(b));
}
// (hi, lo) = a·b + (hi, lo) + carry, carry out.
CUZK_FN void madc_wide_cc(u32 *lo, u32 *hi, u32 a, u32 b) {
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %0; madc.hi.cc.u32 %1, %2, %3, %1;" : "+r"(*lo), "+r"(*hi) : "r"(a), "r"(b));
}
// −a mod 2^32 as ~(a − 1): ptxas would push a plain negation into one half of a wide multiply-add, and so split it.
CUZK_FN u32 negate_limb(u32 a) { u32 r; asm("{.reg .u32 t; add.u32 t, %1, 0xffffffff; not.b32 %0, t;}" : "=r"(r) : "r"(a)); return r; }
#elif CUZK_CARRY_CHAINS
CUZK_FN u32 negate_limb(u32 a) { return 0u - a; }
static u32 carry_flag;
CUZK_FN u32 carry_out(u64 x) { carry_flag = (u32)(x >> 32) & 1; return (u32)x; }
CUZK_FN u32 add_cc(u32 a, u32 b) { return carry_out((u64)a + b); }
CUZK_FN u32 addc_cc(u32 a, u32 b) { return carry_out((u64)a + b + carry_flag); }
CUZK_FN u32 addc(u32 a, u32 b) { return a + b + carry_flag; }
CUZK_FN u32 sub_cc(u32 a, u32 b) { return carry_out((u64)a - b); }
CUZK_FN u32 subc_cc(u32 a, u32 b) { return carry_out((u64)a - b - carry_flag); }
CUZK_FN u32 subc(u32 a, u32 b) { return a - b - carry_flag; }
CUZK_FN void madc_wide_cc(u32 *lo, u32 *hi, u32 a, u32 b) {
    const u64 t = (u64)a * b;
    *lo = addc_cc((u32)t, *lo);
    *hi = addc_cc((u32)(t >> 32), *hi);
}
CUZK_FN void mad_wide_cc(u32 *lo, u32 *hi, u32 a, u32 b) { carry_flag = 0; madc_wide_cc(lo, hi, a, b); }
#endif

#endif
