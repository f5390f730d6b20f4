//! What whole-system tests and benchmarks share: the recorded sectors and the keys that their proofs were made with.
#![forbid(unsafe_code)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuzk_filecoin::{
    CircuitId, FilecoinError, ProofKind, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement, parse_c1, parse_vanilla_list,
};
use serde_json::Value;

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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/filecoin").join(size).join(kind);
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/filecoin/params.sha256");
    let list = fs::read_to_string(path).ok()?;
    list.lines().find_map(|line| {
        let (digest, name) = line.split_once("  ")?;
        (name.trim() == file_name).then(|| digest.to_owned())
    })
}
