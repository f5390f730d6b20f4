//! BLS12-381 as `blstrs` lays it out: transparent wrappers of blst's limb arrays.

use blstrs::{G1Affine, G2Affine, Scalar};

use crate::{
    CurveId, GroupId,
    repr::{AffineRepr, MontgomeryRepr, ScalarRepr, as_limbs, below, decode},
};

/// The base field's modulus q, little-endian limbs.
const Q: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

const _: () = assert!(size_of::<Scalar>() == 32 && align_of::<Scalar>() == 8);
const _: () = assert!(size_of::<G1Affine>() == 96 && align_of::<G1Affine>() == 8);
const _: () = assert!(size_of::<G2Affine>() == 192 && align_of::<G2Affine>() == 8);

// SAFETY: `Scalar` is `repr(transparent)` over blst_fr, a C struct of `[u64; 4]`; its arithmetic accepts any limbs.
unsafe impl MontgomeryRepr for Scalar {
    fn is_canonical(&self) -> bool {
        below(as_limbs(std::slice::from_ref(self)), &Self::MODULUS)
    }
}

impl ScalarRepr for Scalar {
    const CURVE: CurveId = CurveId::Bls12_381;

    const MODULUS: [u64; 4] =
        [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
}

macro_rules! affine {
    ($affine:ty, $group:ident) => {
        // SAFETY: `repr(transparent)` over blst's C struct of two coordinates, each one or two `[u64; 6]`; the sizes
        // are asserted above, so there is no padding; its arithmetic accepts any limbs.
        unsafe impl MontgomeryRepr for $affine {
            fn is_canonical(&self) -> bool {
                as_limbs(std::slice::from_ref(self)).chunks_exact(6).all(|c| below(c, &Q))
            }
        }

        impl AffineRepr for $affine {
            const GROUP: GroupId = GroupId::$group;

            fn is_on_curve(&self) -> bool {
                self.is_on_curve().into()
            }

            fn is_torsion_free(&self) -> bool {
                self.is_torsion_free().into()
            }

            fn from_compressed(bytes: &[u8]) -> Option<Self> {
                decode(bytes)
            }
        }
    };
}

affine!(G1Affine, G1);
affine!(G2Affine, G2);
