//! What is proved: from options and files to a request.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Args, ValueEnum};
use cuzk_proto::v1::{Priority, ProofKind, SubmitProofRequest};
use serde::Deserialize;

use crate::failure::Failure;

/// What is proved. The same names are options of the command line and keys of a plan.
#[derive(Clone, Debug, Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    /// Kind of the proof
    #[arg(long = "type", short = 't', value_enum, value_name = "KIND")]
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// C1 file of a PoRep: {"SectorNum", "Phase1Out", "SectorSize"}, or the phase 1 output itself
    #[arg(long, value_name = "FILE", conflicts_with = "vanilla")]
    pub(crate) c1: Option<PathBuf>,
    /// Vanilla proofs of the other kinds: a JSON array of base64 strings
    #[arg(long, value_name = "FILE", requires = "sector_size")]
    pub(crate) vanilla: Option<PathBuf>,
    /// Sector size in bytes, or 2k, 8m, 512m, 32g, 64g; default: the C1 file's
    #[arg(long, value_name = "SIZE")]
    pub(crate) sector_size: Option<String>,
    /// Number of the sector; default: the C1 file's
    #[arg(long, value_name = "N")]
    pub(crate) sector: Option<u64>,
    /// Actor id of the storage provider (t01000 is 1000)
    #[arg(long, value_name = "ID", default_value_t = 0)]
    #[serde(default)]
    pub(crate) miner: u64,
    /// Randomness of a proof of spacetime, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) randomness: Option<String>,
    /// WindowPoSt: number of the partition that the first vanilla proof belongs to
    #[arg(long, value_name = "K", default_value_t = 0)]
    #[serde(default)]
    pub(crate) first_partition: u32,
    /// WindowPoSt: how challenges are derived
    #[arg(long, value_enum, value_name = "VERSION", default_value = "v1-1")]
    #[serde(default)]
    pub(crate) window_version: WindowVersion,
    /// Update: commitment to the old replica, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) comm_r_old: Option<String>,
    /// Update: commitment to the new replica, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) comm_r_new: Option<String>,
    /// Update: commitment to the new data, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) comm_d_new: Option<String>,
    /// Priority; default: the kind's own
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) priority: Option<Urgency>,
}

/// A kind of proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
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
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::Snap => "snap",
            Self::Wpost => "wpost",
            Self::Winning => "winning",
        }
    }

    const fn on_the_wire(self) -> ProofKind {
        match self {
            Self::Porep => ProofKind::PorepSealCommit,
            Self::Snap => ProofKind::SnapDealsUpdate,
            Self::Wpost => ProofKind::WindowPostPartition,
            Self::Winning => ProofKind::WinningPost,
        }
    }
}

/// How WindowPoSt derives its challenges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WindowVersion {
    /// By position among the deadline's sectors
    V1,
    /// By randomness and sector number alone (network version 19 and later)
    #[default]
    V1_1,
}

/// What is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Urgency {
    Low,
    Normal,
    High,
    Critical,
}

impl From<Urgency> for Priority {
    fn from(urgency: Urgency) -> Self {
        match urgency {
            Urgency::Low => Self::Low,
            Urgency::Normal => Self::Normal,
            Urgency::High => Self::High,
            Urgency::Critical => Self::Critical,
        }
    }
}

/// A request without a name, and what is known of it before it is answered.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    /// Name of the circuit, such as `porep-32g`.
    pub(crate) circuit: String,
    pub(crate) request: SubmitProofRequest,
}

/// Sector sizes, in the order of the chain's numbers, by their names on the command line and in registered proofs.
const SIZES: [(&str, &str, u64); 5] = [
    ("2k", "2KiB", 2 << 10),
    ("8m", "8MiB", 8 << 20),
    ("512m", "512MiB", 512 << 20),
    ("32g", "32GiB", 32 << 30),
    ("64g", "64GiB", 64 << 30),
];

/// Versions of PoRep by the end of a registered proof's name; the chain's numbers of each follow those of the one
/// before.
const SEAL_VERSIONS: [&str; 4] = ["V1", "V1_1", "V1_1_Feat_SyntheticPoRep", "V1_2_Feat_NonInteractivePoRep"];

/// What is read of a C1: the wrapper, or the phase 1 output itself.
#[derive(Deserialize)]
struct C1 {
    #[serde(rename = "SectorNum")]
    sector: Option<u64>,
    #[serde(rename = "SectorSize")]
    sector_size: Option<u64>,
    #[serde(rename = "Phase1Out")]
    phase1: Option<String>,
    registered_proof: Option<String>,
}

impl Statement {
    /// Reads the files, relative to `base`, and makes the request.
    pub(crate) fn read(&self, base: &Path) -> Result<Work, Failure> {
        let (mut request, size) = match (self.kind, &self.c1, &self.vanilla) {
            (Kind::Porep, Some(c1), None) => self.porep(&base.join(c1))?,
            (Kind::Porep, ..) => return Err(Failure::usage("a PoRep is proved from a C1 file: --c1 FILE")),
            (Kind::Snap, None, Some(vanilla)) => self.update(&base.join(vanilla))?,
            (Kind::Wpost | Kind::Winning, None, Some(vanilla)) => self.post(&base.join(vanilla))?,
            (kind, ..) => {
                let kind = kind.name();
                return Err(Failure::usage(format!("{kind} is proved from vanilla proofs: --vanilla FILE")));
            }
        };
        let (name, _, bytes) = SIZES[size];
        request.proof_kind = self.kind.on_the_wire().into();
        request.sector_size = bytes;
        request.priority = self.priority.map_or(Priority::Unspecified, Priority::from).into();
        request.miner_id = self.miner;
        Ok(Work { kind: self.kind, circuit: format!("{}-{name}", self.kind.name()), request })
    }

    /// The request of a PoRep so far, and the index of its sector size.
    fn porep(&self, path: &Path) -> Result<(SubmitProofRequest, usize), Failure> {
        let bytes = read(path)?;
        let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
        let mut c1: C1 = serde_json::from_slice(&bytes).map_err(|e| wrong(format!("no C1: {e}")))?;
        if let Some(phase1) = c1.phase1.take() {
            let json = STANDARD.decode(phase1).map_err(|e| wrong(format!("Phase1Out: {e}")))?;
            let inner: C1 = serde_json::from_slice(&json).map_err(|e| wrong(format!("Phase1Out: {e}")))?;
            c1.registered_proof = inner.registered_proof;
        }
        let name = c1.registered_proof.ok_or_else(|| wrong("no C1: registered_proof is missing".into()))?;
        let (size, version) =
            registered_seal(&name).ok_or_else(|| wrong(format!("registered_proof {name:?} is not known")))?;
        let given = self.sector_size.as_deref().map(sector_size).transpose()?;
        for (found, place) in [(given, "--sector-size"), (c1.sector_size.and_then(index_of), "SectorSize")] {
            if found.is_some_and(|found| found != size) {
                return Err(wrong(format!("registered_proof is {name}, which {place} contradicts")));
            }
        }
        let request = SubmitProofRequest {
            registered_proof: (SIZES.len() * version + size) as u64,
            vanilla_proof: bytes,
            sector_number: self.sector.or(c1.sector).unwrap_or(0),
            ..SubmitProofRequest::default()
        };
        Ok((request, size))
    }

    /// The request of a proof of spacetime so far, and the index of its sector size.
    fn post(&self, path: &Path) -> Result<(SubmitProofRequest, usize), Failure> {
        let (mut request, size) = self.vanilla_request(path)?;
        request.randomness = hex32("--randomness", self.randomness.as_deref())?;
        if self.kind == Kind::Wpost {
            request.partition_index = self.first_partition;
            // Five numbers for WinningPoSt, five for WindowPoSt V1, then those for V1_1.
            let before = if self.window_version == WindowVersion::V1 { 1 } else { 2 };
            request.registered_proof += (SIZES.len() * before) as u64;
        }
        Ok((request, size))
    }

    /// The request of an update so far, and the index of its sector size.
    fn update(&self, path: &Path) -> Result<(SubmitProofRequest, usize), Failure> {
        let (mut request, size) = self.vanilla_request(path)?;
        request.comm_r_old = hex32("--comm-r-old", self.comm_r_old.as_deref())?;
        request.comm_r_new = hex32("--comm-r-new", self.comm_r_new.as_deref())?;
        request.comm_d_new = hex32("--comm-d-new", self.comm_d_new.as_deref())?;
        Ok((request, size))
    }

    /// What the kinds that are not a PoRep share.
    fn vanilla_request(&self, path: &Path) -> Result<(SubmitProofRequest, usize), Failure> {
        let text = self.sector_size.as_deref().ok_or_else(|| Failure::usage("--sector-size is missing"))?;
        let size = sector_size(text)?;
        let request = SubmitProofRequest {
            vanilla_proofs: vanilla_list(path)?,
            sector_number: self.sector.unwrap_or(0),
            registered_proof: size as u64,
            ..SubmitProofRequest::default()
        };
        Ok((request, size))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|e| Failure::input(format!("cannot read {}: {e}", path.display())))
}

/// A JSON array of base64 strings, as Go writes a `[][]byte`.
fn vanilla_list(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let texts: Vec<String> =
        serde_json::from_slice(&read(path)?).map_err(|e| wrong(format!("no array of strings: {e}")))?;
    if texts.is_empty() {
        return Err(wrong("the array is empty".into()));
    }
    let decoded = texts.iter().enumerate();
    decoded.map(|(i, text)| STANDARD.decode(text).map_err(|e| wrong(format!("vanilla proof {i}: {e}")))).collect()
}

/// The index of a registered proof's sector size, and that of its version.
fn registered_seal(name: &str) -> Option<(usize, usize)> {
    let rest = name.strip_prefix("StackedDrg")?;
    SIZES.iter().enumerate().find_map(|(size, (_, in_name, _))| {
        let version = rest.strip_prefix(in_name)?;
        Some((size, SEAL_VERSIONS.iter().position(|v| *v == version)?))
    })
}

fn index_of(bytes: u64) -> Option<usize> {
    SIZES.iter().position(|(_, _, size)| *size == bytes)
}

/// The index of a sector size in words.
fn sector_size(text: &str) -> Result<usize, Failure> {
    let wanted = text.to_ascii_lowercase();
    let found = match wanted.parse() {
        Ok(bytes) => index_of(bytes),
        Err(_) => SIZES.iter().position(|(short, long, _)| wanted == *short || wanted == long.to_ascii_lowercase()),
    };
    found.ok_or_else(|| {
        let known = SIZES.map(|(short, ..)| short).join(", ");
        Failure::usage(format!("--sector-size {text}: expected bytes, or one of {known}"))
    })
}

/// 32 bytes in hexadecimal.
fn hex32(flag: &str, text: Option<&str>) -> Result<Vec<u8>, Failure> {
    let text = text.ok_or_else(|| Failure::usage(format!("{flag} is missing")))?;
    let bytes = hex::decode(text).map_err(|e| Failure::usage(format!("{flag}: {e}")))?;
    match bytes.len() {
        32 => Ok(bytes),
        length => Err(Failure::usage(format!("{flag}: {length} bytes, expected 32"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/filecoin/2kib").join(name)
    }

    fn statement(toml: &str) -> Statement {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn a_porep_takes_size_number_and_type_from_its_c1() {
        let work = statement("type = 'porep'\nc1 = 'porep/c1.json'\nminer = 1000").read(&fixture("")).unwrap();
        let request = work.request;
        assert_eq!((work.circuit.as_str(), request.sector_size, request.sector_number), ("porep-2k", 2048, 1));
        assert_eq!(
            (request.proof_kind(), request.registered_proof, request.miner_id),
            (
                ProofKind::PorepSealCommit,
                // StackedDrg2KiBV1_1
                5,
                1000
            )
        );
        assert_eq!(request.vanilla_proof, fs::read(fixture("porep/c1.json")).unwrap());
    }

    #[test]
    fn vanilla_proofs_are_decoded() {
        let hex = "38".repeat(32);
        let text =
            format!("type = 'wpost'\nvanilla = 'window/vanilla-p0.json'\nsector_size = '2KiB'\nrandomness = '{hex}'");
        let work = statement(&text).read(&fixture("")).unwrap();
        assert_eq!(work.circuit, "wpost-2k");
        assert_eq!(work.request.vanilla_proofs.len(), 2, "one a sector");
        assert_eq!((work.request.registered_proof, work.request.randomness), (10, vec![0x38; 32]));
        let work = statement(&format!("{text}\nwindow_version = 'v1'\npriority = 'low'")).read(&fixture("")).unwrap();
        assert_eq!((work.request.registered_proof, work.request.priority()), (5, Priority::Low));
    }

    #[test]
    fn registered_proofs_have_the_chains_numbers() {
        for (name, number) in [
            ("StackedDrg2KiBV1", 0),
            ("StackedDrg64GiBV1", 4),
            ("StackedDrg32GiBV1_1", 8),
            ("StackedDrg512MiBV1_1_Feat_SyntheticPoRep", 12),
            ("StackedDrg8MiBV1_2_Feat_NonInteractivePoRep", 16),
        ] {
            let (size, version) = registered_seal(name).unwrap();
            assert_eq!(5 * version + size, number, "{name}");
        }
        for name in ["", "StackedDrg", "StackedDrg2KiB", "StackedDrg4KiBV1", "StackedDrg2KiBV2", "stackeddrg2kibv1"] {
            assert_eq!(registered_seal(name), None, "{name}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |toml: &str| statement(toml).read(&fixture("")).unwrap_err().message;
        assert!(refused("type = 'porep'").contains("--c1"));
        assert!(refused("type = 'winning'\nc1 = 'porep/c1.json'").contains("--vanilla"));
        assert!(refused("type = 'porep'\nc1 = 'nowhere.json'").contains("cannot read"));
        assert!(refused("type = 'porep'\nc1 = 'porep/meta.json'").contains("registered_proof"));
        assert!(refused("type = 'porep'\nc1 = 'porep/c1.json'\nsector_size = '8m'").contains("contradicts"));
        let vanilla = "type = 'snap'\nvanilla = 'update/vanilla.json'\nsector_size = ";
        assert!(refused(&format!("{vanilla}'3k'")).contains("2k, 8m, 512m, 32g, 64g"));
        assert!(refused(&format!("{vanilla}'2k'")).contains("--comm-r-old is missing"));
        assert!(refused(&format!("{vanilla}'2k'\ncomm_r_old = 'ab'")).contains("1 bytes, expected 32"));
        assert!(toml::from_str::<Statement>("type = 'porep'\nminor = 1").unwrap_err().to_string().contains("minor"));
    }
}
