//! The four Filecoin statements (PoRep, WinningPoSt, WindowPoSt, SnapDeals) as partitions ready to
//! prove.
//!
//! A statement is parsed from what a storage provider's software hands over: a C1 file
//! ([`parse_c1`]) or vanilla proofs ([`WinningStatement::new`], [`WindowStatement::new`],
//! [`UpdateStatement::new`]). Parsing checks everything that the published circuits take for
//! granted. A [`Statement`] consists of [`Partition`]s, each provable on its own: its
//! [`witness`](Partition::witness) and [`public_inputs`](Partition::public_inputs), together with the
//! matrices from [`record`], are what a Groth16 prover needs. The circuits are those of the published
//! `storage-proofs-*` crates, unmodified; the witnesses are theirs, value for value, but computed
//! without running them.
//!
//! No function here reads the environment; the published crates read it once, for their caches (see
//! [`verify`] and [`seal`]).
//!
//! # Example
//! ```
//! use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, parse_c1};
//!
//! let circuit: CircuitId = "porep-32g".parse()?;
//! assert_eq!(circuit, CircuitId::new(ProofKind::PoRep, SectorSize::GiB32));
//! assert_eq!((circuit.partitions(), circuit.proof_bytes()), (10, 1920));
//! assert!(circuit.params_file_name()?.starts_with("v28-stacked-proof-of-replication-"));
//!
//! let c1 = std::fs::read("../../tests/fixtures/filecoin/2kib/porep/c1.json")?;
//! let statement = parse_c1(&c1)?;
//! let partition = statement.partition(0)?;
//! assert_eq!(partition.circuit_id().to_string(), "porep-2k");
//! assert_eq!(partition.public_inputs()?.len(), 39);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layering
//! Imports `cuzk-r1cs` (constraint systems) and the published Filecoin crates; knows no device, no
//! key and no scheduler. The engine and the binaries import it. It alone instantiates the circuits
//! over their tree shapes, which takes minutes to compile: everything but [`circuits`] is free of
//! type parameters, so that no other crate does it again.
//!
//! # References
//! * Filecoin specification, [proof of replication](https://spec.filecoin.io/algorithms/pos/porep/)
//!   and [proof of spacetime](https://spec.filecoin.io/algorithms/pos/post/).
//! * [FIP-0019](https://github.com/filecoin-project/FIPs/blob/master/FIPS/fip-0019.md): SnapDeals.
//! * [`filecoin-project/rust-fil-proofs`](https://github.com/filecoin-project/rust-fil-proofs): the
//!   circuits, and the file formats by their serde implementations.
#![forbid(unsafe_code)]

pub mod circuits;
mod error;
mod id;
mod native;
mod partition;
pub mod seal;
mod sealed;
mod statement;
mod synthesis;
pub mod synthetic;
mod vanilla;
pub mod verify;
mod wire;

pub use error::{Fault, FilecoinError, Hex};
pub use filecoin_proofs_api::RegisteredSealProof;
pub use id::{CircuitId, PROOF_BYTES_PER_PARTITION, ProofKind, SectorSize, WindowPostVersion};
pub use partition::Partition;
pub use sealed::SealedFiles;
pub use statement::{SealStatement, Statement, UpdateStatement, WindowStatement, WinningStatement, parse_c1};
pub use synthesis::record;
pub use vanilla::{parse_vanilla_list, write_vanilla_list};

/// The prover id of a storage provider: its actor id (`t01000` is 1000) as unsigned LEB128, left
/// aligned in 32 bytes.
///
/// ```
/// let id = cuzk_filecoin::prover_id_from_miner(1000);
/// assert_eq!((&id[..2], &id[2..]), (&[0xe8, 0x07][..], &[0; 30][..]));
/// ```
pub fn prover_id_from_miner(actor: u64) -> [u8; 32] {
    let mut id = [0; 32];
    let mut rest = actor;
    for byte in &mut id {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    id
}
