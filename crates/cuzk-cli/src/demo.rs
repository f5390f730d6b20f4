//! `cuzk demo`: a sector is sealed, proved on the chosen device, and judged by Filecoin's own verifiers.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use cuzk_curve::Bls12;
use cuzk_filecoin::{
    ProofKind, SectorSize, Statement,
    seal::{self, SealedSector, SectorInput},
    verify,
};
use cuzk_groth16::{DeviceCircuit, DeviceKey, setup};
use rand_core::{OsRng, RngCore};

use crate::{
    args::{DemoArgs, Global},
    device::{self, Chosen},
    failure::{Class, Failure},
    files, progress, prove,
    report::{self, seconds},
};

/// The storage provider of the demonstration.
const MINER: u64 = 1000;
/// Where Filecoin's published code looks for verifying keys, read once a process.
const PARAMETER_CACHE: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// What is told of one proof.
struct Row {
    kind: ProofKind,
    constraints: usize,
    setup: Duration,
    witness: Duration,
    proof: Duration,
}

pub(crate) fn run(global: &Global, args: &DemoArgs) -> Result<(), Failure> {
    let keys = args.dir.join("keys");
    files::make_directory(&keys)?;
    if std::env::var_os(PARAMETER_CACHE).as_deref() != Some(keys.as_os_str()) {
        return again_with(&keys);
    }
    let started = Instant::now();
    let chosen = device::open(&args.device)?;
    say(global, &format!("computing on {}", chosen.describe()));
    let sector = seal_sector(global, &args.dir)?;
    let statements: [Statement; 3] =
        [sector.winning_statement()?.into(), sector.window_statement()?.into(), sector.seal_statement()?.into()];
    let rows = statements
        .iter()
        .map(|statement| prove_and_judge(global, &chosen, &args.dir, &sector, statement))
        .collect::<Result<Vec<_>, _>>()?;
    let (total, peak) = (started.elapsed(), report::peak_rss().unwrap_or(0));
    report::print(
        global,
        || {
            serde_json::json!({
                "device": chosen.json(), "total_s": total.as_secs_f64(), "peak_rss_bytes": peak,
                "proofs": rows.iter().map(|r| serde_json::json!({
                    "kind": r.kind.to_string(), "constraints": r.constraints, "setup_s": r.setup.as_secs_f64(),
                    "witness_s": r.witness.as_secs_f64(), "proof_s": r.proof.as_secs_f64(), "accepted": true,
                })).collect::<Vec<_>>(),
            })
        },
        || table(&rows, total, peak, &chosen),
    )
}

/// The published code reads the directory of its keys from the environment, so this program starts itself with it set.
fn again_with(keys: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::new(Class::Device, format!("cannot start this program again: {e}"));
    let this = std::env::current_exe().map_err(failed)?;
    let status =
        Command::new(this).args(std::env::args_os().skip(1)).env(PARAMETER_CACHE, keys).status().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    // The other process has said why; its class is passed on.
    std::process::exit(status.code().unwrap_or(Class::Device.exit_code().into()))
}

fn seal_sector(global: &Global, dir: &Path) -> Result<SealedSector, Failure> {
    let started = Instant::now();
    let size = SectorSize::KiB2;
    let mut data = vec![0; seal::unpadded_bytes(size) as usize];
    let mut update = data.clone();
    let (mut ticket, mut seed, mut randomness) = ([0; 32], [0; 32], [0; 32]);
    for bytes in [&mut data[..], &mut update, &mut ticket, &mut seed, &mut randomness] {
        OsRng
            .try_fill_bytes(bytes)
            .map_err(|e| Failure::input(format!("no randomness from the operating system: {e}")))?;
    }
    let temporary =
        tempfile::tempdir_in(dir).map_err(|e| Failure::input(format!("cannot write in {}: {e}", dir.display())))?;
    let spinner = progress::spinner("sealing a sector of 2 KiB");
    let sector = seal::seal_sector(
        temporary.path(),
        &SectorInput {
            size,
            miner: MINER,
            number: 1,
            data: &data,
            update: &update,
            ticket: seal::fr_safe(ticket),
            seed: seal::fr_safe(seed),
            randomness: seal::fr_safe(randomness),
        },
    )?;
    spinner.finish_and_clear();
    files::write(&dir.join("c1.json"), &sector.c1)?;
    say(
        global,
        &format!(
            "sealed a sector of 2 KiB of random data in {}, C1 in {}",
            seconds(started.elapsed()),
            dir.join("c1.json").display()
        ),
    );
    Ok(sector)
}

fn prove_and_judge(
    global: &Global,
    chosen: &Chosen,
    dir: &Path,
    sector: &SealedSector,
    statement: &Statement,
) -> Result<Row, Failure> {
    let circuit = statement.circuit_id();
    let spinner = progress::spinner(&format!("{circuit}: recording the circuit"));
    let r1cs = cuzk_filecoin::record(circuit)?;
    let constraints = r1cs.n_constraints();

    spinner.set_message(format!("{circuit}: making a test key for {constraints} constraints"));
    let started = Instant::now();
    let key = setup::<Bls12>(&chosen.device.stream()?, &r1cs)?;
    let setup_time = started.elapsed();
    key.vk.write_file(&dir.join("keys").join(circuit.vk_file_name()?))?;
    let device_circuit = DeviceCircuit::load(&chosen.device, &r1cs)?;
    drop(r1cs);
    let device_key = DeviceKey::load(&chosen.device, &key)?;
    drop(key);

    spinner.set_message(format!("{circuit}: proving"));
    let mut row =
        Row { kind: circuit.kind, constraints, setup: setup_time, witness: Duration::ZERO, proof: Duration::ZERO };
    let mut bytes = Vec::new();
    for k in 0..statement.partitions() {
        let witness = prove::Witness::of(&statement.partition(k)?)?;
        let proved = prove::partition_proof(&chosen.device, &device_circuit, &device_key, k, witness)?;
        row.witness += proved.witness_time;
        row.proof += proved.proof.times.iter().map(|(_, t)| *t).sum::<Duration>();
        bytes.extend(proved.proof.proof.to_bytes());
    }
    spinner.finish_and_clear();
    let accepted = match statement {
        Statement::Seal(s) => verify::verify_seal(s, sector.prover_id, sector.number, &bytes)?,
        Statement::Winning(s) => verify::verify_winning_post(s, &bytes)?,
        Statement::Window(s) => verify::verify_window_post(s, &bytes)?,
        Statement::Update(s) => verify::verify_empty_sector_update(s, &bytes)?,
    };
    if !accepted {
        return Err(Failure::new(Class::Verification, format!("{circuit}: Filecoin's verifier refuses the proof")));
    }
    let path = dir.join(format!("{circuit}.proof"));
    files::write(&path, &bytes)?;
    let time = seconds(row.witness + row.proof);
    say(
        global,
        &format!("{circuit}: proved in {time}, accepted by our verifier and by Filecoin's, {}", path.display()),
    );
    Ok(row)
}

/// Progress for a person; standard output belongs to the JSON when that is wanted.
fn say(global: &Global, line: &str) {
    if global.json {
        eprintln!("{line}");
    } else {
        println!("{line}");
    }
}

fn table(rows: &[Row], total: Duration, peak: u64, chosen: &Chosen) -> String {
    let mut lines = vec![format!(
        "\n{:<8} {:>12} {:>12} {:>10} {:>10}  {}",
        "proof", "constraints", "key (once)", "witness", "proof", "Filecoin's verifier"
    )];
    for r in rows {
        lines.push(format!(
            "{:<8} {:>12} {:>12} {:>10} {:>10}  accepted",
            r.kind.to_string(),
            r.constraints,
            seconds(r.setup),
            seconds(r.witness),
            seconds(r.proof)
        ));
    }
    lines.push(format!(
        "\n{} in all, peak memory {}, backend {}",
        seconds(total),
        report::bytes(peak),
        chosen.backend()
    ));
    lines.join("\n")
}
