//! The parts of a key, and how many points each may have.

use std::fmt;

use cuzk_curve::GroupId;
use serde::Serialize;

use crate::{KeyError, Origin};

/// One of the five vectors of points that only the prover needs, in the order of bellperson's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// [`ProvingKey::h`](crate::ProvingKey::h).
    H,
    /// [`ProvingKey::l`](crate::ProvingKey::l).
    L,
    /// [`ProvingKey::a`](crate::ProvingKey::a).
    A,
    /// [`ProvingKey::b_g1`](crate::ProvingKey::b_g1).
    BG1,
    /// [`ProvingKey::b_g2`](crate::ProvingKey::b_g2).
    BG2,
}

impl Section {
    /// Every section, in file order.
    pub const ALL: [Self; 5] = [Self::H, Self::L, Self::A, Self::BG1, Self::BG2];

    /// The group its points lie in.
    pub const fn group(self) -> GroupId {
        match self {
            Self::H | Self::L | Self::A | Self::BG1 => GroupId::G1,
            Self::BG2 => GroupId::G2,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Part::from(*self).fmt(f)
    }
}

/// The place in a key that an error speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The header of a native key.
    Header,
    /// The section of a native key that holds `alpha_g1 beta_g1 delta_g1 ic[]`.
    VkG1,
    /// The section of a native key that holds `beta_g2 gamma_g2 delta_g2`.
    VkG2,
    /// [`VerifyingKey::alpha_g1`](crate::VerifyingKey::alpha_g1).
    AlphaG1,
    /// [`VerifyingKey::beta_g1`](crate::VerifyingKey::beta_g1).
    BetaG1,
    /// [`VerifyingKey::beta_g2`](crate::VerifyingKey::beta_g2).
    BetaG2,
    /// [`VerifyingKey::gamma_g2`](crate::VerifyingKey::gamma_g2).
    GammaG2,
    /// [`VerifyingKey::delta_g1`](crate::VerifyingKey::delta_g1).
    DeltaG1,
    /// [`VerifyingKey::delta_g2`](crate::VerifyingKey::delta_g2).
    DeltaG2,
    /// [`VerifyingKey::ic`](crate::VerifyingKey::ic).
    Ic,
    /// [`ProvingKey::h`](crate::ProvingKey::h).
    H,
    /// [`ProvingKey::l`](crate::ProvingKey::l).
    L,
    /// [`ProvingKey::a`](crate::ProvingKey::a).
    A,
    /// [`ProvingKey::b_g1`](crate::ProvingKey::b_g1).
    BG1,
    /// [`ProvingKey::b_g2`](crate::ProvingKey::b_g2).
    BG2,
}

impl From<Section> for Part {
    fn from(section: Section) -> Self {
        match section {
            Section::H => Self::H,
            Section::L => Self::L,
            Section::A => Self::A,
            Section::BG1 => Self::BG1,
            Section::BG2 => Self::BG2,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::VkG1 => "vk_g1",
            Self::VkG2 => "vk_g2",
            Self::AlphaG1 => "alpha_g1",
            Self::BetaG1 => "beta_g1",
            Self::BetaG2 => "beta_g2",
            Self::GammaG2 => "gamma_g2",
            Self::DeltaG1 => "delta_g1",
            Self::DeltaG2 => "delta_g2",
            Self::Ic => "ic",
            Self::H => "h",
            Self::L => "l",
            Self::A => "a",
            Self::BG1 => "b_g1",
            Self::BG2 => "b_g2",
        })
    }
}

/// How many points each vector of a key has: what a key and a circuit must agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Counts {
    /// Public inputs, with the constant one.
    pub ic: usize,
    /// m - 1, where m is the size of the evaluation domain, a power of two.
    pub h: usize,
    /// Auxiliary variables.
    pub l: usize,
    /// Variables that occur in some row of A.
    pub a: usize,
    /// Variables that occur in some row of B.
    pub b_g1: usize,
    /// The same number again.
    pub b_g2: usize,
}

impl Counts {
    /// The count of one section.
    pub fn of(&self, section: Section) -> usize {
        match section {
            Section::H => self.h,
            Section::L => self.l,
            Section::A => self.a,
            Section::BG1 => self.b_g1,
            Section::BG2 => self.b_g2,
        }
    }

    /// log2 of the size m = h + 1 of the evaluation domain; `None` if that is no power of two.
    pub fn log_domain(&self) -> Option<u32> {
        let m = self.h.checked_add(1)?;
        m.is_power_of_two().then(|| m.trailing_zeros())
    }

    /// Whether any circuit can have these counts: ic ≥ 1, h + 1 a power of two, a and b at most ic + l, b_g1 = b_g2.
    ///
    /// # Errors
    /// [`KeyError::BadCount`] for the first count that is impossible.
    pub fn check(&self, origin: &Origin) -> Result<(), KeyError> {
        let variables = self.ic.saturating_add(self.l);
        let domain = self.h.checked_next_power_of_two().map_or(usize::MAX, |m| m - 1);
        let rules = [
            (Part::Ic, self.ic, 1, self.ic >= 1, "the constant one is always an input: at least"),
            (Part::H, self.h, domain, self.log_domain().is_some(), "one less than a power of two, such as"),
            (Part::A, self.a, variables, self.a <= variables, "no more than there are variables: at most"),
            (Part::BG1, self.b_g1, variables, self.b_g1 <= variables, "no more than there are variables: at most"),
            (Part::BG2, self.b_g2, self.b_g1, self.b_g2 == self.b_g1, "as many as in b_g1: exactly"),
        ];
        for (part, declared, limit, holds, rule) in rules {
            if !holds {
                let (declared, limit) = (declared as u64, limit as u64);
                return Err(KeyError::BadCount { origin: origin.clone(), part, declared, limit, rule });
            }
        }
        Ok(())
    }

    /// Whether a circuit fits this key.
    ///
    /// # Errors
    /// [`KeyError::CountMismatch`] for the first count that differs.
    pub fn require(&self, circuit: &Self) -> Result<(), KeyError> {
        let pairs = [
            (Part::Ic, self.ic, circuit.ic),
            (Part::H, self.h, circuit.h),
            (Part::L, self.l, circuit.l),
            (Part::A, self.a, circuit.a),
            (Part::BG1, self.b_g1, circuit.b_g1),
            (Part::BG2, self.b_g2, circuit.b_g2),
        ];
        match pairs.into_iter().find(|(_, key, circuit)| key != circuit) {
            None => Ok(()),
            Some((part, key, circuit)) => {
                Err(KeyError::CountMismatch { part, key: key as u64, circuit: circuit as u64 })
            }
        }
    }
}
