//! `cuzk setup`: a proving and a verifying key for a circuit, for tests.

use std::time::Instant;

use cuzk_curve::Bls12;
use cuzk_groth16::{setup, setup_deterministic};
use cuzk_keys::{KeySource, export_params, write_native};

use crate::{
    args::{Global, KeyFormat, SetupArgs},
    device,
    failure::Failure,
    files, keys, progress,
    report::{self, seconds},
};

pub(crate) fn run(global: &Global, args: &SetupArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let circuit = args.circuit;
    files::make_directory(&args.param_dir)?;
    let key_path = match args.format {
        KeyFormat::Params => args.param_dir.join(circuit.params_file_name()?),
        KeyFormat::Native => keys::native_path(circuit, &args.param_dir)?,
    };
    let vk_path = args.param_dir.join(circuit.vk_file_name()?);
    files::refuse_existing(&key_path, args.overwrite)?;
    files::refuse_existing(&vk_path, args.overwrite)?;

    let chosen = device::open(&args.device)?;
    let spinner = progress::spinner(&format!("recording circuit {circuit}"));
    let r1cs = cuzk_filecoin::record(circuit)?;
    spinner.set_message(format!("making the keys of {circuit}: {} constraints", r1cs.n_constraints()));
    let stream = chosen.device.stream()?;
    let key = match args.insecure_seed {
        None => setup::<Bls12>(&stream, &r1cs)?,
        Some(seed) => setup_deterministic::<Bls12>(&stream, &r1cs, seed.0)?,
    };
    spinner.finish_and_clear();
    eprintln!("{}", key.provenance);

    let bar = progress::bar("writing", true);
    match args.format {
        KeyFormat::Params => export_params(&key, &key_path, &mut progress::key_callback(&bar))?,
        KeyFormat::Native => write_native(&key, &key_path, &mut progress::key_callback(&bar))?,
    }
    bar.finish_and_clear();
    key.vk.write_file(&vk_path)?;
    let digest = key.digest()?;
    let total = started.elapsed();
    report::print(
        global,
        || {
            serde_json::json!({
                "circuit": circuit.to_string(), "key": report::path(&key_path), "vk": report::path(&vk_path), "digest": digest.to_string(),
                "provenance": key.provenance, "production": key.provenance.is_production(),
                "device": chosen.json(), "total_s": total.as_secs_f64(),
            })
        },
        || format!("{}\n{}\ndigest {digest}, {}", key_path.display(), vk_path.display(), seconds(total)),
    )
}
