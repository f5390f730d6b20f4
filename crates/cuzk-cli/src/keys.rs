//! Finding and opening proving keys.

use std::path::{Path, PathBuf};

use cuzk_curve::Bls12;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::{DeviceKey, ResidencyPlan};
use cuzk_keys::KeySource;
use cuzk_prover::keys::KeyPaths;
pub(crate) use cuzk_prover::keys::{look_at, open};

use crate::{
    args::KeyArgs,
    device::Chosen,
    failure::{Class, Failure},
    progress,
};

/// Where a circuit's native key lies: beside the .params, with another ending.
pub(crate) fn native_path(circuit: CircuitId, directory: &Path) -> Result<PathBuf, Failure> {
    Ok(KeyPaths::of(circuit, directory)?.native)
}

/// The key that the command line names, or the circuit's in the parameter directory: native if there is one, else .params.
pub(crate) fn find(circuit: CircuitId, args: &KeyArgs) -> Result<PathBuf, Failure> {
    if let Some(key) = &args.key {
        return Ok(key.clone());
    }
    let paths = KeyPaths::of(circuit, &args.param_dir)?;
    paths
        .existing()
        .map(Path::to_owned)
        .ok_or_else(|| missing("key", circuit, &paths.params, &format!("; `cuzk setup {circuit}` makes a test key")))
}

/// The verifying key of a circuit in a directory.
pub(crate) fn verifying(circuit: CircuitId, param_dir: &Path) -> Result<PathBuf, Failure> {
    let path = param_dir.join(circuit.vk_file_name()?);
    if path.exists() { Ok(path) } else { Err(missing("verifying key", circuit, &path, ", --vk a file")) }
}

fn missing(what: &str, circuit: CircuitId, path: &Path, or: &str) -> Failure {
    let path = path.display();
    let options = "--param-dir or FIL_PROOFS_PARAMETER_CACHE names the directory";
    Failure::new(Class::Key, format!("no {what} for {circuit}: {path} is not there ({options}{or})"))
}

/// Opens a key to prove with, and says what kind of key it is.
pub(crate) fn open_to_prove(path: &Path) -> Result<Box<dyn KeySource<Bls12>>, Failure> {
    let source = open::<Bls12>(path)?;
    if !source.provenance().is_production() {
        tracing::warn!("key {}: {}", path.display(), source.provenance());
    }
    Ok(source)
}

/// Copies a key to a device as a plan says.
pub(crate) fn load(
    source: &dyn KeySource<Bls12>,
    chosen: &Chosen,
    plan: &ResidencyPlan,
) -> Result<DeviceKey<Bls12>, Failure> {
    // A native key records digests of its sections: damage is found here and named, not by a proof that fails.
    let bar = progress::bar("checking digests", true);
    source.verify_digests(&mut progress::key_callback(&bar))?;
    bar.finish_and_clear();
    let bar = progress::bar("loading key", false);
    let key = DeviceKey::load_with(&chosen.device, source, plan, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    Ok(key)
}
