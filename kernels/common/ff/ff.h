// The fields of one curve: fr (scalars), fp (coordinates) and fp2 = fp[u]/(u² + 1). The curve is chosen by defining
// CUZK_CURVE_BN254, or else it is BLS12-381; a translation unit is compiled once for each curve.
#ifndef CUZK_COMMON_FF_FF_H
#define CUZK_COMMON_FF_FF_H

#include "base.h"
#include "carry.h"

#if defined(CUZK_CURVE_BN254)
#include "constants_bn254.h"
#else
#include "constants_bls12_381.h"
#endif

#define FIELD fr
#define FIELD_LIMBS FR_LIMBS
#define FIELD_MODULUS FR_MODULUS
#define FIELD_ONE FR_ONE
#define FIELD_R2 FR_R2
#define FIELD_INV FR_INV
#define FIELD_LOW_IS_ONE FR_LOW_IS_ONE
#include "field.inc.h"
#undef FIELD
#undef FIELD_LIMBS
#undef FIELD_MODULUS
#undef FIELD_ONE
#undef FIELD_R2
#undef FIELD_INV
#undef FIELD_LOW_IS_ONE

#define FIELD fp
#define FIELD_LIMBS FP_LIMBS
#define FIELD_MODULUS FP_MODULUS
#define FIELD_ONE FP_ONE
#define FIELD_R2 FP_R2
#define FIELD_INV FP_INV
#define FIELD_LOW_IS_ONE FP_LOW_IS_ONE
#include "field.inc.h"
#undef FIELD
#undef FIELD_LIMBS
#undef FIELD_MODULUS
#undef FIELD_ONE
#undef FIELD_R2
#undef FIELD_INV
#undef FIELD_LOW_IS_ONE

#include "fp2.h"

#endif
