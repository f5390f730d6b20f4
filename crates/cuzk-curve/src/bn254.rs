//! BN254 as `halo2curves` lays it out: structs of limb arrays, whose field offsets are checked here.

use std::mem::offset_of;

use group::{Group, prime::PrimeCurveAffine};
use halo2curves::{
    CurveAffine,
    bn256::{Fq, Fq2, Fr, G1Affine, G2Affine},
};

use crate::{
    CurveId, GroupId,
    repr::{AffineRepr, MontgomeryRepr, ScalarRepr, as_limbs, below, decode},
};

/// The base field's modulus q, little-endian limbs.
const Q: [u64; 4] = [0x3c20_8c16_d87c_fd47, 0x9781_6a91_6871_ca8d, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];

// These structs are not `repr(C)`: the compiler could reorder their fields, so their places are asserted, not assumed.
const _: () = assert!(size_of::<Fr>() == 32 && align_of::<Fr>() == 8);
const _: () = assert!(size_of::<Fq>() == 32 && align_of::<Fq>() == 8);
const _: () = {
    // The coordinates of Fq2 are private: an element with known, different ones shows where they lie.
    // SAFETY: both types have 64 bytes, which `transmute` itself checks, and any u64 is valid.
    let limbs: [u64; 8] = unsafe { std::mem::transmute(Fq2::new(Fq([1, 2, 3, 4]), Fq([5, 6, 7, 8]))) };
    let mut i = 0;
    while i < 8 {
        assert!(limbs[i] == i as u64 + 1);
        i += 1;
    }
};
const _: () = assert!(size_of::<G1Affine>() == 64 && align_of::<G1Affine>() == 8);
const _: () = assert!(offset_of!(G1Affine, x) == 0 && offset_of!(G1Affine, y) == 32);
const _: () = assert!(size_of::<G2Affine>() == 128 && align_of::<G2Affine>() == 8);
const _: () = assert!(offset_of!(G2Affine, x) == 0 && offset_of!(G2Affine, y) == 64);

// SAFETY: a struct with the single field `[u64; 4]` and the size of it; its arithmetic accepts any limbs.
unsafe impl MontgomeryRepr for Fr {
    fn is_canonical(&self) -> bool {
        below(as_limbs(std::slice::from_ref(self)), &Self::MODULUS)
    }
}

impl ScalarRepr for Fr {
    const CURVE: CurveId = CurveId::Bn254;

    const MODULUS: [u64; 4] =
        [0x43e1_f593_f000_0001, 0x2833_e848_79b9_7091, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];
}

macro_rules! affine {
    ($affine:ty, $group:ident) => {
        // SAFETY: the assertions above say that x and y follow each other without padding, and each is one or two
        // `[u64; 4]`; the arithmetic accepts any limbs.
        unsafe impl MontgomeryRepr for $affine {
            fn is_canonical(&self) -> bool {
                as_limbs(std::slice::from_ref(self)).chunks_exact(4).all(|c| below(c, &Q))
            }
        }

        impl AffineRepr for $affine {
            const GROUP: GroupId = GroupId::$group;

            fn is_on_curve(&self) -> bool {
                CurveAffine::is_on_curve(self).into()
            }

            fn is_torsion_free(&self) -> bool {
                // Not `CofactorGroup::is_torsion_free`: for G2 it prints a line for each bit of its exponent.
                times_order(self.to_curve()).is_identity().into()
            }

            fn from_compressed(bytes: &[u8]) -> Option<Self> {
                // `Fq2::from_bytes` panics on a coordinate that is not below q, so these are refused here. The two highest
                // bits of the last byte are flags: infinity, and the sign of y.
                let (last, rest) = bytes.split_last()?;
                let coordinates = [rest, &[last & 0x3f]].concat();
                let canonical = coordinates.chunks(32).all(|c| {
                    let mut limbs = [0; 4];
                    for (limb, bytes) in limbs.iter_mut().zip(c.chunks_exact(8)) {
                        *limb = bytes.iter().rev().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
                    }
                    below(&limbs, &Q)
                });
                // And it does not check the subgroup.
                if canonical { decode(bytes).filter(AffineRepr::is_torsion_free) } else { None }
            }
        }
    };
}

/// `[r] P` by doubling and adding: infinity exactly for points of the subgroup.
fn times_order<G: Group>(point: G) -> G {
    let bits = Fr::MODULUS.iter().rev().flat_map(|limb| (0..64).rev().map(move |bit| limb >> bit & 1 == 1));
    bits.fold(G::identity(), |sum, bit| if bit { sum.double() + point } else { sum.double() })
}

affine!(G1Affine, G1);
affine!(G2Affine, G2);
