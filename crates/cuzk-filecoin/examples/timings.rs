//! How long parsing, recording and witness generation take for a circuit: `timings porep-2k 4`
//! (circuit, threads) on a synthetic statement.

use std::{error::Error, time::Instant};

use cuzk_filecoin::{CircuitId, record, synthetic};
use rand::rngs::OsRng;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let circuit: CircuitId = args.next().as_deref().unwrap_or("porep-2k").parse()?;
    let threads: usize = args.next().as_deref().unwrap_or("1").parse()?;

    let start = Instant::now();
    let sectors = circuit.sector_size.window_sectors() as u64;
    let (statement, bytes) = synthetic::statement(circuit, sectors, &mut OsRng)?;
    println!("vanilla proofs of {bytes} bytes, made and parsed in {:.2?}", start.elapsed());
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
