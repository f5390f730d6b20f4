//! Finding and opening proving keys.

use std::path::{Path, PathBuf};

use cuzk_curve::{Bls12, Curve};
use cuzk_filecoin::CircuitId;
use cuzk_groth16::{DeviceKey, ResidencyPlan};
use cuzk_keys::{Digests, Format, KeyInfo, KeySource, NativeKeyFile, ParamsFile, ignore_progress, inspect};

use crate::{
    args::KeyArgs,
    device::Chosen,
    failure::{Class, Failure},
    progress,
};

/// Ending of native keys.
pub(crate) const NATIVE_ENDING: &str = "cuzkkey";

/// Where a circuit's native key lies: beside the .params, with another ending.
pub(crate) fn native_path(circuit: CircuitId, directory: &Path) -> Result<PathBuf, Failure> {
    Ok(directory.join(circuit.params_file_name()?).with_extension(NATIVE_ENDING))
}

/// The key that the command line names, or the circuit's in the parameter directory: native if there is one, else .params.
pub(crate) fn find(circuit: CircuitId, args: &KeyArgs) -> Result<PathBuf, Failure> {
    if let Some(key) = &args.key {
        return Ok(key.clone());
    }
    let params = args.param_dir.join(circuit.params_file_name()?);
    let native = native_path(circuit, &args.param_dir)?;
    [native, params.clone()].into_iter().find(|p| p.exists()).ok_or_else(|| {
        let circuit_name = circuit.to_string();
        Failure::new(
            Class::Key,
            format!(
                "no key for {circuit_name}: {} is not there (--param-dir or FIL_PROOFS_PARAMETER_CACHE names the \
                 directory; `cuzk setup {circuit_name}` makes a test key)",
                params.display()
            ),
        )
    })
}

/// Opens a key of either format.
pub(crate) fn open<C: Curve>(path: &Path) -> Result<Box<dyn KeySource<C>>, Failure> {
    Ok(match look_at(path)?.format {
        Format::Native => Box::new(NativeKeyFile::<C>::open(path)?),
        _ => Box::new(ParamsFile::<C>::open(path)?),
    })
}

/// Format, curve and counts of a key, without reading its points.
pub(crate) fn look_at(path: &Path) -> Result<KeyInfo, Failure> {
    Ok(inspect(path, Digests::Recorded, &mut ignore_progress)?)
}

/// Opens a key to prove with, and says what kind of key it is.
pub(crate) fn open_to_prove(path: &Path) -> Result<Box<dyn KeySource<Bls12>>, Failure> {
    let source = open::<Bls12>(path)?;
    if !source.provenance().is_production() {
        tracing::info!("key {}: {}", path.display(), source.provenance());
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
