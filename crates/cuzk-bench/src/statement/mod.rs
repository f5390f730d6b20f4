//! What is proved, as people say it: options of a command line, and the same names as keys of a plan.
//!
//! [`StatementArgs`] holds what was said, [`StatementArgs::input`] what that makes: all that a kind of proof needs, or
//! the option that is missing. `cuzk` makes a checked statement of it, this crate a request.

mod values;
mod work;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::Failure;

pub use values::{Hex32, Miner, SectorSize, ValueError};
pub(crate) use work::{Submission, Urgency, Work};

/// What is proved.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementArgs {
    /// Kind of the proof; default: porep if there is a C1 file
    #[arg(long = "type", short = 't', visible_alias = "kind", value_enum, value_name = "KIND")]
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// C1 file of a PoRep: {"SectorNum", "Phase1Out", "SectorSize"}, or the phase 1 output itself
    #[arg(long, value_name = "FILE", conflicts_with = "vanilla")]
    pub c1: Option<PathBuf>,
    /// Vanilla proofs of the other kinds: a JSON array of base64 strings
    #[arg(long, value_name = "FILE", requires = "kind", requires = "sector_size")]
    pub vanilla: Option<PathBuf>,
    /// Sector size in bytes, or 2k, 8m, 512m, 32g, 64g; default: the C1 file's
    #[arg(long, value_name = "SIZE")]
    pub sector_size: Option<SectorSize>,
    /// The storage provider: t01000, f01000 or 1000
    #[arg(long, value_name = "ID")]
    pub miner: Option<Miner>,
    /// Randomness of a proof of spacetime, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub randomness: Option<Hex32>,
    /// WindowPoSt: number of the partition that the first vanilla proof belongs to
    #[arg(long, value_name = "K", default_value_t = 0)]
    #[serde(default)]
    pub first_partition: u32,
    /// WindowPoSt: how challenges are derived
    #[arg(long, value_enum, value_name = "VERSION", default_value_t)]
    #[serde(default)]
    pub window_version: WindowVersion,
    /// Update: commitment to the old replica, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub comm_r_old: Option<Hex32>,
    /// Update: commitment to the new replica, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub comm_r_new: Option<Hex32>,
    /// Update: commitment to the new data, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub comm_d_new: Option<Hex32>,
}

/// A kind of proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Proof of replication, from a C1 file
    Porep,
    /// SnapDeals sector update
    #[value(alias = "update")]
    #[serde(alias = "update")]
    Snap,
    /// WindowPoSt
    #[value(alias = "window")]
    #[serde(alias = "window")]
    Wpost,
    /// WinningPoSt
    Winning,
}

impl Kind {
    /// Its name on the command line and in names of circuits.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::Snap => "snap",
            Self::Wpost => "wpost",
            Self::Winning => "winning",
        }
    }
}

/// How WindowPoSt derives its challenges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowVersion {
    /// By position among the deadline's sectors
    V1,
    /// By randomness and sector number alone (network version 19 and later)
    #[default]
    V1_1,
}

/// What a statement is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A PoRep.
    Porep {
        /// The C1 file.
        c1: &'a Path,
    },
    /// A WinningPoSt.
    Winning {
        /// Of the one sector.
        vanilla: Vanilla<'a>,
        /// Whose, and when.
        post: Post,
    },
    /// A WindowPoSt.
    Window {
        /// One for each sector.
        vanilla: Vanilla<'a>,
        /// Whose, and when.
        post: Post,
        /// The partition that the first vanilla proof belongs to.
        first_partition: u32,
        /// How challenges are derived.
        version: WindowVersion,
    },
    /// An update.
    Update {
        /// One for each partition.
        vanilla: Vanilla<'a>,
        /// Commitment to the old replica.
        comm_r_old: Hex32,
        /// Commitment to the new replica.
        comm_r_new: Hex32,
        /// Commitment to the new data.
        comm_d_new: Hex32,
    },
}

/// A file of vanilla proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vanilla<'a> {
    /// The file.
    pub file: &'a Path,
    /// Of the sectors.
    pub sector_size: SectorSize,
}

/// What the proofs of spacetime share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// The storage provider.
    pub miner: Miner,
    /// The chain's randomness.
    pub randomness: Hex32,
}

impl Post {
    /// From two options that both must be there.
    ///
    /// # Errors
    /// [`Class::Usage`](crate::Class::Usage) with the option that is missing.
    pub fn new(miner: Option<Miner>, randomness: Option<Hex32>) -> Result<Self, Failure> {
        Ok(Self { miner: required("--miner", miner)?, randomness: required("--randomness", randomness)? })
    }
}

/// An option that must be there.
///
/// # Errors
/// [`Class::Usage`](crate::Class::Usage), if it is not.
pub fn required<T>(option: &str, value: Option<T>) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::usage(format!("{option} is missing")))
}

impl StatementArgs {
    /// All that the kind of proof needs.
    ///
    /// # Errors
    /// [`Class::Usage`](crate::Class::Usage) with the option that is missing.
    pub fn input(&self) -> Result<Input<'_>, Failure> {
        if let Some(c1) = &self.c1 {
            return match self.kind {
                None | Some(Kind::Porep) => Ok(Input::Porep { c1 }),
                Some(kind) => Err(Self::from_vanilla(kind)),
            };
        }
        let kind = self.kind.ok_or_else(|| Failure::usage("--c1 FILE, or --type KIND and --vanilla FILE"))?;
        if kind == Kind::Porep {
            return Err(Failure::usage("a PoRep is proved from a C1 file: --c1 FILE"));
        }
        let file = self.vanilla.as_deref().ok_or_else(|| Self::from_vanilla(kind))?;
        let vanilla = Vanilla { file, sector_size: required("--sector-size", self.sector_size)? };
        let post = || Post::new(self.miner, self.randomness);
        Ok(match kind {
            Kind::Porep => return Err(Failure::usage("a PoRep is proved from a C1 file: --c1 FILE")),
            Kind::Winning => Input::Winning { vanilla, post: post()? },
            Kind::Wpost => Input::Window {
                vanilla,
                post: post()?,
                first_partition: self.first_partition,
                version: self.window_version,
            },
            Kind::Snap => Input::Update {
                vanilla,
                comm_r_old: required("--comm-r-old", self.comm_r_old)?,
                comm_r_new: required("--comm-r-new", self.comm_r_new)?,
                comm_d_new: required("--comm-d-new", self.comm_d_new)?,
            },
        })
    }

    fn from_vanilla(kind: Kind) -> Failure {
        Failure::usage(format!("{} is proved from vanilla proofs: --vanilla FILE", kind.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(toml: &str) -> StatementArgs {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn each_kind_says_what_it_lacks() {
        let refused = |toml: &str| statement(toml).input().unwrap_err().message;
        assert!(refused("").contains("--c1"));
        assert!(refused("type = 'porep'").contains("--c1"));
        assert!(refused("type = 'winning'\nc1 = 'c1.json'").contains("--vanilla"));
        assert!(refused("type = 'winning'").contains("--vanilla"));
        for (kind, options) in [
            ("winning", &["--miner", "--randomness"][..]),
            ("window", &["--miner", "--randomness"]),
            ("update", &["--comm-r-old", "--comm-r-new", "--comm-d-new"]),
        ] {
            let mut toml = format!("type = '{kind}'\nvanilla = 'v'\n");
            assert_eq!(refused(&toml), "--sector-size is missing");
            toml += "sector_size = '2k'\n";
            for option in options {
                assert_eq!(refused(&toml), format!("{option} is missing"));
                let value = if *option == "--miner" { "t01000".to_owned() } else { "ab".repeat(32) };
                toml += &format!("{} = '{value}'\n", option[2..].replace('-', "_"));
            }
            assert!(statement(&toml).input().is_ok(), "{toml}");
        }
    }

    #[test]
    fn a_c1_alone_is_a_porep() {
        for toml in ["c1 = 'c1.json'", "type = 'porep'\nc1 = 'c1.json'"] {
            assert_eq!(statement(toml).input().unwrap(), Input::Porep { c1: Path::new("c1.json") });
        }
        assert!(
            toml::from_str::<StatementArgs>("type = 'porep'\nminor = 1").unwrap_err().to_string().contains("minor")
        );
    }
}
