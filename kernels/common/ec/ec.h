// The groups of one curve: g1 over fp and g2 over fp2.
#ifndef CUZK_COMMON_EC_EC_H
#define CUZK_COMMON_EC_EC_H

#include "../ff/ff.h"

#define GROUP g1
#define GROUP_FIELD fp
#define GROUP_FIELD_LIMBS FP_LIMBS
#include "xyzz.inc.h"
#undef GROUP
#undef GROUP_FIELD
#undef GROUP_FIELD_LIMBS

#define GROUP g2
#define GROUP_FIELD fp2
#define GROUP_FIELD_LIMBS (2 * FP_LIMBS)
#include "xyzz.inc.h"
#undef GROUP
#undef GROUP_FIELD
#undef GROUP_FIELD_LIMBS

#endif
