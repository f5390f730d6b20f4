//! How a key came to be, and so whether anybody can forge proofs with it.

use std::fmt;

use serde::Serialize;

use crate::Digest;

/// How a key was made.
///
/// Whoever knows the toxic waste (tau, alpha, beta, gamma, delta) of a Groth16 key can prove false statements under it.
/// Proofs and points cannot show who knows it; only the history of the key can, so the history travels with the key.
/// The native format records it; bellperson's formats have no room for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Provenance {
    /// A published multi-party ceremony. The caller vouches for this, usually by comparing the file's digest with the one
    /// that the ceremony published.
    Ceremony {
        /// BLAKE3 of the file as published.
        source: Digest,
    },
    /// Read from a file that does not say where it comes from.
    Imported {
        /// BLAKE3 of that file; `None` if nobody has hashed it (a pass over tens of gigabytes).
        source: Option<Digest>,
    },
    /// Made by one process from the operating system's randomness: secure only against those who never had access to
    /// that process.
    LocalSetup,
    /// Made from a seed: everybody who has the seed has the toxic waste. For tests and benchmarks.
    DeterministicSetup {
        /// The seed of the ChaCha20 generator that the toxic waste was drawn from.
        seed: [u8; 32],
    },
}

impl Provenance {
    /// Whether the toxic waste is unknown to everybody as long as one participant of the ceremony was honest.
    /// An import of unknown origin is not production: say [`Provenance::Ceremony`] when its digest is a published one.
    pub fn is_production(&self) -> bool {
        matches!(self, Self::Ceremony { .. })
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ceremony { source } => write!(f, "published ceremony (file {source})"),
            Self::Imported { source: Some(source) } => {
                write!(f, "WARNING: imported, origin unknown (file {source}): compare the digest with a published one")
            }
            Self::Imported { source: None } => f.write_str(
                "WARNING: imported, origin unknown, file not hashed: compare its digest with a published one",
            ),
            Self::LocalSetup => {
                f.write_str("WARNING: made by a local setup: INSECURE for production, whoever ran it can forge proofs")
            }
            Self::DeterministicSetup { .. } => {
                f.write_str("WARNING: made from a known seed: INSECURE, everybody can forge proofs, for tests only")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_a_ceremony_warn() {
        let source = Digest::of(b"key");
        let all = [
            Provenance::Ceremony { source },
            Provenance::Imported { source: Some(source) },
            Provenance::Imported { source: None },
            Provenance::LocalSetup,
            Provenance::DeterministicSetup { seed: [7; 32] },
        ];
        for provenance in all {
            assert_eq!(provenance.to_string().contains("WARNING"), !provenance.is_production(), "{provenance}");
        }
    }
}
