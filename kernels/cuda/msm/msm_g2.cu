// The kernels of multi-scalar and fixed-base multiplication in G2.
#include "../../common/ec/ec.h"
#include "ahead.cuh"
#include "params.h"

#define GROUP g2
#define GROUP_FIELD fp2
#define GROUP_FIELD_LIMBS (2 * FP_LIMBS)
#ifndef ACC_BLOCKS
#define ACC_BLOCKS 2
#define PAIR_BLOCKS 12
#define HALVE_BLOCKS 8
#define ACC_TOGETHER 1
#endif
#include "group.inc.cuh"
