//! Names of curves and groups, and their sizes in device memory.

use std::{fmt, str::FromStr};

/// A curve by name. The numbers are part of file formats and of the plugin boundary: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum CurveId {
    /// BLS12-381: Filecoin, bellperson.
    Bls12_381 = 1,
    /// BN254, also called alt_bn128 and BN256: circom, snarkjs, Ethereum precompiles.
    Bn254 = 2,
}

/// One of the two source groups of the pairing. The numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum GroupId {
    /// Points over the base field.
    G1 = 1,
    /// Points over its quadratic extension.
    G2 = 2,
}

impl CurveId {
    /// Every curve.
    pub const ALL: [Self; 2] = [Self::Bls12_381, Self::Bn254];

    /// The curve with this number, if there is one.
    pub fn from_u32(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|c| *c as u32 == id)
    }

    /// Bytes of a scalar in Montgomery limbs.
    pub const fn scalar_bytes(self) -> usize {
        32
    }

    /// Bytes of a base field element in Montgomery limbs.
    pub const fn base_field_bytes(self) -> usize {
        match self {
            Self::Bls12_381 => 48,
            Self::Bn254 => 32,
        }
    }

    /// Bytes of an affine point in Montgomery limbs.
    pub const fn affine_bytes(self, group: GroupId) -> usize {
        match group {
            GroupId::G1 => 2 * self.base_field_bytes(),
            GroupId::G2 => 4 * self.base_field_bytes(),
        }
    }

    /// s with 2^s the largest power of two that divides r - 1: the largest domain has 2^s elements.
    pub const fn two_adicity(self) -> u32 {
        match self {
            Self::Bls12_381 => 32,
            Self::Bn254 => 28,
        }
    }
}

impl GroupId {
    /// The group with this number, if there is one.
    pub fn from_u32(id: u32) -> Option<Self> {
        [Self::G1, Self::G2].into_iter().find(|g| *g as u32 == id)
    }
}

impl fmt::Display for CurveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bls12_381 => "bls12-381",
            Self::Bn254 => "bn254",
        })
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::G1 => "G1",
            Self::G2 => "G2",
        })
    }
}

/// A curve name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown curve {0:?}: expected bls12-381 or bn254")]
pub struct UnknownCurve(pub String);

impl FromStr for CurveId {
    type Err = UnknownCurve;

    /// Accepts the names that tools of the field use, in any case.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s.to_ascii_lowercase().as_str() {
            "bls12-381" | "bls12_381" | "bls12381" => Ok(Self::Bls12_381),
            "bn254" | "bn256" | "bn128" | "alt_bn128" => Ok(Self::Bn254),
            _ => Err(UnknownCurve(s.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip() {
        for id in CurveId::ALL {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(CurveId::from_u32(id as u32), Some(id));
        }
        assert_eq!("alt_bn128".parse(), Ok(CurveId::Bn254));
        assert!("bls12-377".parse::<CurveId>().is_err());
        assert_eq!(CurveId::from_u32(0), None);
        assert_eq!(GroupId::from_u32(2), Some(GroupId::G2));
        assert_eq!(GroupId::from_u32(3), None);
    }
}
