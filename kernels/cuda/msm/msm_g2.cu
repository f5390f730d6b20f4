// The kernels of multi-scalar and fixed-base multiplication in G2.
#include "../../common/ec/ec.h"
#include "params.h"

#define GROUP g2
#define GROUP_FIELD fp2
#define GROUP_FIELD_LIMBS (2 * FP_LIMBS)
#ifndef ACC_BLOCKS
#define ACC_BLOCKS 2
#define ACC_AHEAD 0
#endif
#include "group.inc.cuh"
