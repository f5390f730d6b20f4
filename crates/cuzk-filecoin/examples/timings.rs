//! How long parsing, recording and witness generation take for a circuit: `timings porep-2k 4`
//! (circuit, threads) on a synthetic statement.

use std::{error::Error, time::Instant};

use cuzk_filecoin::{
    CircuitId, ProofKind, Statement, UpdateStatement, WindowPostVersion, WindowStatement, WinningStatement, parse_c1,
    prover_id_from_miner, record,
    seal::fr_safe,
    synthetic::{self, SealInput},
};
use rand::{RngCore, rngs::OsRng};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let circuit: CircuitId = args.next().as_deref().unwrap_or("porep-2k").parse()?;
    let threads: usize = args.next().as_deref().unwrap_or("1").parse()?;

    let statement = statement(circuit)?;
    let partition = statement.partition(0)?;
    let start = Instant::now();
    let witness = partition.witness()?;
    println!("{circuit}: {} variables", witness.n_variables());
    println!("  witness, one thread: {:.2?}, {} bytes", start.elapsed(), witness.bytes());
    drop(witness);

    let start = Instant::now();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| partition.witness())).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(witness) => witness.map(drop),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    println!("  {threads} at once: {:.2?}", start.elapsed());

    let start = Instant::now();
    let r1cs = record(circuit)?;
    println!("  record: {:.2?}, {} bytes, {} non-zeros", start.elapsed(), r1cs.bytes(), r1cs.nnz());
    Ok(())
}

/// A statement of the circuit's kind and size, from random data.
fn statement(circuit: CircuitId) -> Result<Statement, Box<dyn Error>> {
    let size = circuit.sector_size;
    let prover = prover_id_from_miner(1000);
    let [ticket, seed, randomness] = [(); 3].map(|()| {
        let mut bytes = [0; 32];
        OsRng.fill_bytes(&mut bytes);
        fr_safe(bytes)
    });
    let start = Instant::now();
    Ok(match circuit.kind {
        ProofKind::PoRep => {
            let c1 = synthetic::c1(&SealInput { size, miner: 1000, number: 1, ticket, seed }, &mut OsRng)?;
            println!("C1 of {} bytes made in {:.2?}", c1.len(), start.elapsed());
            let start = Instant::now();
            let statement = parse_c1(&c1)?;
            println!("C1 parsed in {:.2?}", start.elapsed());
            statement.into()
        }
        ProofKind::WinningPoSt => {
            let vanilla = synthetic::winning_vanilla(size, 1, randomness, &mut OsRng)?;
            WinningStatement::new(size, prover, randomness, &vanilla)?.into()
        }
        ProofKind::WindowPoSt => {
            let sectors = 1..=size.window_sectors() as u64;
            let vanilla = synthetic::window_vanilla(size, sectors, randomness, &mut OsRng)?;
            println!("vanilla proofs made in {:.2?}", start.elapsed());
            WindowStatement::new(size, WindowPostVersion::default(), prover, randomness, 0, &vanilla)?.into()
        }
        ProofKind::Update => {
            let update = synthetic::update(size, &mut OsRng)?;
            let (old, new, data) = (update.comm_r_old, update.comm_r_new, update.comm_d_new);
            UpdateStatement::new(size, old, new, data, &update.vanilla)?.into()
        }
    })
}
