// The kernels of multi-scalar and fixed-base multiplication in G1.
#include "../../common/ec/ec.h"
#include "params.h"

#define GROUP g1
#define GROUP_FIELD fp
#define GROUP_FIELD_LIMBS FP_LIMBS
#ifndef ACC_BLOCKS
#define ACC_BLOCKS 2
#define ACC_AHEAD 1
#endif
#include "group.inc.cuh"
