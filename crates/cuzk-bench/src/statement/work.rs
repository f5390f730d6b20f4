//! From a statement to a request.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Args, ValueEnum};
use cuzk_proto::v1::{Priority, ProofKind, SubmitProofRequest};
use serde::Deserialize;

use super::{Input, Kind, Miner, SectorSize, StatementArgs, Vanilla, WindowVersion};
use crate::{Failure, files};

/// A statement with what a server wants to know beside it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Submission {
    #[command(flatten)]
    pub(crate) statement: StatementArgs,
    /// Number of the sector; default: the C1 file's
    #[arg(long, value_name = "N")]
    pub(crate) sector: Option<u64>,
    /// Priority; default: the kind's own
    #[arg(long, value_enum, value_name = "PRIORITY")]
    pub(crate) priority: Option<Urgency>,
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

impl Submission {
    /// Reads the files, relative to `base`, and makes the request.
    pub(crate) fn read(&self, base: &Path) -> Result<Work, Failure> {
        let (kind, size, mut request) = match self.statement.input()? {
            Input::Porep { c1 } => {
                let (request, size) = self.porep(&base.join(c1))?;
                (Kind::Porep, size, request)
            }
            Input::Winning { vanilla, post } => {
                let randomness = post.randomness.0.to_vec();
                (Kind::Winning, vanilla.sector_size, SubmitProofRequest { randomness, ..of_vanilla(base, vanilla)? })
            }
            Input::Window { vanilla, post, first_partition: partition_index, version } => {
                let randomness = post.randomness.0.to_vec();
                let mut request = SubmitProofRequest { randomness, partition_index, ..of_vanilla(base, vanilla)? };
                // Five numbers for WinningPoSt, five for WindowPoSt V1, then those for V1_1.
                let before = if version == WindowVersion::V1 { 1 } else { 2 };
                request.registered_proof += (SectorSize::COUNT * before) as u64;
                (Kind::Wpost, vanilla.sector_size, request)
            }
            Input::Update { vanilla, comm_r_old, comm_r_new, comm_d_new } => {
                let [comm_r_old, comm_r_new, comm_d_new] = [comm_r_old, comm_r_new, comm_d_new].map(|c| c.0.to_vec());
                let vanilla_request = of_vanilla(base, vanilla)?;
                let request = SubmitProofRequest { comm_r_old, comm_r_new, comm_d_new, ..vanilla_request };
                (Kind::Snap, vanilla.sector_size, request)
            }
        };
        request.proof_kind = on_the_wire(kind).into();
        request.sector_size = size.bytes();
        request.priority = self.priority.map_or(Priority::Unspecified, Priority::from).into();
        request.miner_id = self.statement.miner.map_or(0, |Miner(number)| number);
        if let Some(sector) = self.sector {
            request.sector_number = sector;
        }
        Ok(Work { kind, circuit: format!("{}-{size}", kind.name()), request })
    }

    /// The request of a PoRep so far, and its sector size.
    fn porep(&self, path: &Path) -> Result<(SubmitProofRequest, SectorSize), Failure> {
        let bytes = files::read(path)?;
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
        let (given, declared) = (self.statement.sector_size, c1.sector_size.and_then(SectorSize::of_bytes));
        for (found, place) in [(given, "--sector-size"), (declared, "SectorSize")] {
            if found.is_some_and(|found| found != size) {
                return Err(wrong(format!("registered_proof is {name}, which {place} contradicts")));
            }
        }
        let request = SubmitProofRequest {
            registered_proof: (SectorSize::COUNT * version + size.index()) as u64,
            vanilla_proof: bytes,
            sector_number: c1.sector.unwrap_or(0),
            ..SubmitProofRequest::default()
        };
        Ok((request, size))
    }
}

const fn on_the_wire(kind: Kind) -> ProofKind {
    match kind {
        Kind::Porep => ProofKind::PorepSealCommit,
        Kind::Snap => ProofKind::SnapDealsUpdate,
        Kind::Wpost => ProofKind::WindowPostPartition,
        Kind::Winning => ProofKind::WinningPost,
    }
}

/// What the kinds that are not a PoRep share.
fn of_vanilla(base: &Path, vanilla: Vanilla<'_>) -> Result<SubmitProofRequest, Failure> {
    Ok(SubmitProofRequest {
        vanilla_proofs: vanilla_list(&base.join(vanilla.file))?,
        registered_proof: vanilla.sector_size.index() as u64,
        ..SubmitProofRequest::default()
    })
}

/// A JSON array of base64 strings, as Go writes a `[][]byte`.
fn vanilla_list(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let texts: Vec<String> =
        serde_json::from_slice(&files::read(path)?).map_err(|e| wrong(format!("no array of strings: {e}")))?;
    if texts.is_empty() {
        return Err(wrong("the array is empty".into()));
    }
    let decoded = texts.iter().enumerate();
    decoded.map(|(i, text)| STANDARD.decode(text).map_err(|e| wrong(format!("vanilla proof {i}: {e}")))).collect()
}

/// The sector size of a registered proof, and the index of its version.
fn registered_seal(name: &str) -> Option<(SectorSize, usize)> {
    let (size, version) = SectorSize::of_registered(name.strip_prefix("StackedDrg")?)?;
    Some((size, SEAL_VERSIONS.iter().position(|v| *v == version)?))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/filecoin/2kib").join(name)
    }

    fn submission(toml: &str) -> Submission {
        Submission { statement: toml::from_str(toml).unwrap(), sector: None, priority: None }
    }

    #[test]
    fn a_porep_takes_size_number_and_type_from_its_c1() {
        let work = submission("c1 = 'porep/c1.json'\nminer = 1000").read(&fixture("")).unwrap();
        let request = work.request;
        assert_eq!((work.circuit.as_str(), request.sector_size, request.sector_number), ("porep-2k", 2048, 1));
        // StackedDrg2KiBV1_1 is 5.
        assert_eq!(
            (request.proof_kind(), request.registered_proof, request.miner_id),
            (ProofKind::PorepSealCommit, 5, 1000)
        );
        assert_eq!(request.vanilla_proof, fs::read(fixture("porep/c1.json")).unwrap());
    }

    #[test]
    fn vanilla_proofs_are_decoded() {
        let hex = "38".repeat(32);
        let text = format!(
            "type = 'wpost'\nvanilla = 'window/vanilla-p0.json'\nsector_size = '2KiB'\nrandomness = '{hex}'\n\
             miner = 't01000'"
        );
        let work = submission(&text).read(&fixture("")).unwrap();
        assert_eq!((work.circuit.as_str(), work.request.miner_id), ("wpost-2k", 1000));
        assert_eq!(work.request.vanilla_proofs.len(), 2, "one a sector");
        assert_eq!((work.request.registered_proof, work.request.randomness), (10, vec![0x38; 32]));
        let urgent = Submission {
            priority: Some(Urgency::Low),
            sector: Some(7),
            ..submission(&format!("{text}\nwindow_version = 'v1'"))
        };
        let request = urgent.read(&fixture("")).unwrap().request;
        assert_eq!((request.registered_proof, request.priority(), request.sector_number), (5, Priority::Low, 7));
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
            assert_eq!(5 * version + size.index(), number, "{name}");
        }
        for name in ["", "StackedDrg", "StackedDrg2KiB", "StackedDrg4KiBV1", "StackedDrg2KiBV2", "stackeddrg2kibv1"] {
            assert_eq!(registered_seal(name), None, "{name}");
        }
    }

    #[test]
    fn files_that_are_wrong_are_named() {
        let refused = |toml: &str| submission(toml).read(&fixture("")).unwrap_err().message;
        assert!(refused("c1 = 'nowhere.json'").contains("nowhere.json"));
        assert!(refused("c1 = 'porep/meta.json'").contains("registered_proof"));
        assert!(refused("c1 = 'porep/c1.json'\nsector_size = '8m'").contains("contradicts"));
    }
}
