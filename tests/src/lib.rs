//! What whole-system tests and benchmarks share: the recorded sectors and the keys that their proofs were made with.
#![forbid(unsafe_code)]

mod byte_exact;

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuzk_filecoin::{
    CircuitId, FilecoinError, ProofKind, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement, parse_c1, parse_vanilla_list,
};
use serde_json::Value;

pub use byte_exact::assert_byte_exact;

/// The recorded files: this package's, or where `CUZK_FIXTURES` says on a machine without the repository.
fn fixtures() -> PathBuf {
    std::env::var_os("CUZK_FIXTURES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), PathBuf::from)
}

/// A folder of recorded inputs and proofs, `<size>/<kind>`.
#[derive(Clone, Debug)]
pub struct Fixture {
    circuit: CircuitId,
    folder: PathBuf,
}

impl Fixture {
    /// The recorded inputs of a circuit.
    pub fn of(circuit: CircuitId) -> Self {
        let size = match circuit.sector_size {
            SectorSize::MiB8 => "8mib",
            _ => "2kib",
        };
        let kind = match circuit.kind {
            ProofKind::PoRep => "porep",
            ProofKind::WinningPoSt => "winning",
            ProofKind::WindowPoSt => "window",
            ProofKind::Update => "update",
        };
        let folder = fixtures().join("filecoin").join(size).join(kind);
        Self { circuit, folder }
    }

    /// A file of the folder.
    ///
    /// # Panics
    /// If it is not there: the fixtures are part of the repository.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.folder.join(name);
        fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The statements that were proved, each with the number of its first partition: all kinds have one, WindowPoSt one for each
    /// recorded partition.
    ///
    /// # Errors
    /// None, unless the fixtures are damaged.
    pub fn statements(&self) -> Result<Vec<(usize, Statement)>, FilecoinError> {
        let size = self.circuit.sector_size;
        if self.circuit.kind == ProofKind::PoRep {
            return Ok(vec![(0, parse_c1(&self.read("c1.json"))?.into())]);
        }
        let meta: Value = serde_json::from_slice(&self.read("meta.json")).expect("meta.json is JSON");
        let bytes = |name: &str| -> [u8; 32] {
            let text = meta[name].as_str().expect("meta.json has every field");
            hex::decode(text).expect("hexadecimal").try_into().expect("32 bytes")
        };
        let vanilla = |name: &str| parse_vanilla_list(&self.read(name));
        Ok(match self.circuit.kind {
            ProofKind::PoRep | ProofKind::WinningPoSt => vec![(
                0,
                WinningStatement::new(size, bytes("prover_id"), bytes("randomness"), &vanilla("vanilla.json")?)?.into(),
            )],
            ProofKind::Update => {
                let (old, new, data) = (bytes("comm_r_old"), bytes("comm_r_new"), bytes("comm_d_new"));
                vec![(0, UpdateStatement::new(size, old, new, data, &vanilla("vanilla.json")?)?.into())]
            }
            ProofKind::WindowPoSt => (0..2u32)
                .map(|k| {
                    let vanilla = vanilla(&format!("vanilla-p{k}.json"))?;
                    let version = WindowPostVersion::default();
                    let (prover, randomness) = (bytes("prover_id"), bytes("randomness"));
                    let statement = WindowStatement::new(size, version, prover, randomness, k, &vanilla)?;
                    Ok((k as usize, statement.into()))
                })
                .collect::<Result<_, FilecoinError>>()?,
        })
    }
}

/// Where `cargo xtask build --backend B` puts plugins: `plugins` in the target folder, above this executable; or where
/// `CUZK_PLUGIN_DIR` says.
///
/// # Panics
/// If this executable is nowhere.
pub fn plugin_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("CUZK_PLUGIN_DIR") {
        return folder.into();
    }
    let this = std::env::current_exe().expect("this executable is somewhere");
    let found = this.ancestors().map(|folder| folder.join("plugins")).find(|folder| folder.is_dir());
    found.unwrap_or_else(|| "target/plugins".into())
}

/// The seed of the key that the recorded proofs of a circuit were made with: its bytes are folded from the circuit's identifier.
///
/// # Errors
/// The circuit has no identifier.
pub fn recorded_seed(circuit: CircuitId) -> Result<[u8; 32], FilecoinError> {
    let mut seed = [0u8; 32];
    for (i, byte) in circuit.cache_identifier()?.bytes().enumerate() {
        seed[i % 32] = seed[i % 32].wrapping_mul(31).wrapping_add(byte);
    }
    Ok(seed)
}

/// The SHA-256 that a key file must have, from the recorded list.
pub fn recorded_digest(file_name: &str) -> Option<String> {
    let path = fixtures().join("filecoin/params.sha256");
    let list = fs::read_to_string(path).ok()?;
    list.lines().find_map(|line| {
        let (digest, name) = line.split_once("  ")?;
        (name.trim() == file_name).then(|| digest.to_owned())
    })
}
