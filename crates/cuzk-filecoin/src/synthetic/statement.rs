//! Statements, parsed.

use rand_core::RngCore;

use super::{SealInput, c1, random_node, update, window_vanilla, winning_vanilla};
use crate::{
    CircuitId, FilecoinError, ProofKind, Statement, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement, parse_c1, prover_id_from_miner,
};

const MINER: u64 = 1000;

/// A statement of a circuit, and the bytes of the vanilla proofs that it was parsed from. A WindowPoSt is one of so many
/// sectors; for the other kinds the number does not matter.
///
/// # Errors
/// The published crates refuse.
///
/// ```
/// # use cuzk_filecoin::{CircuitId, synthetic};
/// let circuit: CircuitId = "wpost-2k".parse()?;
/// let (statement, _) = synthetic::statement(circuit, 3, &mut rand::thread_rng())?;
/// assert_eq!(statement.partitions(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn statement(circuit: CircuitId, sectors: u64, rng: &mut impl RngCore) -> Result<(Statement, u64), FilecoinError> {
    let size = circuit.sector_size;
    let prover = prover_id_from_miner(MINER);
    let randomness = random_node(rng).0;
    let total = |vanilla: &[Vec<u8>]| vanilla.iter().map(|v| v.len() as u64).sum();
    Ok(match circuit.kind {
        ProofKind::PoRep => {
            let input = SealInput { size, miner: MINER, number: 1, ticket: randomness, seed: random_node(rng).0 };
            let c1 = c1(&input, rng)?;
            (parse_c1(&c1)?.into(), c1.len() as u64)
        }
        ProofKind::WinningPoSt => {
            let vanilla = winning_vanilla(size, 1, randomness, rng)?;
            (WinningStatement::new(size, prover, randomness, &vanilla)?.into(), total(&vanilla))
        }
        ProofKind::WindowPoSt => {
            let vanilla = window_vanilla(size, 1..=sectors, randomness, rng)?;
            let version = WindowPostVersion::default();
            (WindowStatement::new(size, version, prover, randomness, 0, &vanilla)?.into(), total(&vanilla))
        }
        ProofKind::Update => {
            let made = update(size, rng)?;
            let (old, new, data) = (made.comm_r_old, made.comm_r_new, made.comm_d_new);
            (UpdateStatement::new(size, old, new, data, &made.vanilla)?.into(), total(&made.vanilla))
        }
    })
}
