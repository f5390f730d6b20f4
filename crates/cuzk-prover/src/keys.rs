//! Finding and opening proving keys.

use std::path::{Path, PathBuf};

use cuzk_curve::Curve;
use cuzk_filecoin::{CircuitId, FilecoinError};
use cuzk_keys::{Digests, Format, KeyError, KeyInfo, KeySource, NativeKeyFile, ParamsFile, ignore_progress, inspect};

/// Ending of native keys.
pub const NATIVE_ENDING: &str = "cuzkkey";

/// How somebody who lacks a circuit's key comes by it, in words.
pub fn how_to_get(circuit: CircuitId) -> String {
    let size = circuit.sector_size.bytes();
    format!("`curio fetch-params {size}` fetches published keys, `cuzk setup {circuit}` makes one for tests")
}

/// A circuit's keys in a directory of parameters: the native one beside the published one, under its name with another
/// ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPaths {
    /// In the native format.
    pub native: PathBuf,
    /// As bellperson writes it.
    pub params: PathBuf,
}

impl KeyPaths {
    /// Where they would be.
    ///
    /// # Errors
    /// The published crates do not name the circuit.
    pub fn of(circuit: CircuitId, parameters: &Path) -> Result<Self, FilecoinError> {
        let params = parameters.join(circuit.params_file_name()?);
        Ok(Self { native: params.with_extension(NATIVE_ENDING), params })
    }

    /// The one that is there: the native one if both are.
    pub fn existing(&self) -> Option<&Path> {
        [&self.native, &self.params].into_iter().find(|path| path.exists()).map(PathBuf::as_path)
    }
}

/// Format, curve and counts of a key, without reading its points.
///
/// # Errors
/// It is no key, or damaged.
pub fn look_at(path: &Path) -> Result<KeyInfo, KeyError> {
    inspect(path, Digests::Recorded, &mut ignore_progress)
}

/// Opens a key of either format.
///
/// # Errors
/// It is no key, damaged, or of another curve.
pub fn open<C: Curve>(path: &Path) -> Result<Box<dyn KeySource<C>>, KeyError> {
    Ok(match look_at(path)?.format {
        Format::Native => Box::new(NativeKeyFile::<C>::open(path)?),
        _ => Box::new(ParamsFile::<C>::open(path)?),
    })
}
