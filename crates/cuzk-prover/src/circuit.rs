//! A Filecoin circuit with its key and its matrices on disk.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use blstrs::Scalar as Fr;
use cuzk_backend::AssignmentShape;
use cuzk_curve::Bls12;
use cuzk_engine::{CircuitSource, SourceError};
use cuzk_filecoin::{CircuitId, FilecoinError};
use cuzk_groth16::CircuitShape;
use cuzk_keys::{Digest, KeyError, KeySource, ignore_progress};
use cuzk_r1cs::R1cs;

use crate::{keys, measure::WitnessSize, size::MatrixSizes};

/// Where the files of circuits are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// Keys, under their published names.
    pub parameters: PathBuf,
    /// What can be made again: recorded matrices, measured sizes. Made if absent.
    pub cache: PathBuf,
}

/// Why a circuit cannot be proved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// Its key is not there.
    #[error("there is no key for {circuit}: neither {} nor its .{}; {}", path.display(), keys::NATIVE_ENDING,
        keys::how_to_get(*circuit))]
    NoKey {
        /// The circuit.
        circuit: CircuitId,
        /// Where the published key would be.
        path: PathBuf,
    },
    /// The key is damaged.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The published circuits refuse.
    #[error(transparent)]
    Filecoin(#[from] FilecoinError),
    /// The cache cannot be made.
    #[error("cannot make {}: {cause}", path.display())]
    Cache {
        /// Its directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
}

/// The matrices of a circuit: from the cache, or recorded and then cached. `recording` is called before the latter.
///
/// # Errors
/// The cache cannot be made, or the published circuit refuses. A damaged cache is said in the log and made anew.
pub fn matrices(circuit: CircuitId, cache: &Path, recording: impl FnOnce()) -> Result<R1cs<Fr>, CircuitError> {
    std::fs::create_dir_all(cache).map_err(|cause| CircuitError::Cache { path: cache.to_owned(), cause })?;
    let path = cache_file(circuit, cache, "r1cs")?;
    if path.exists() {
        match R1cs::read_cache(&path) {
            Ok(r1cs) => return Ok(r1cs),
            // The cache only saves time: what is wrong with it is said, and the circuit recorded again.
            Err(error) => tracing::warn!("the circuit is recorded again: {error}"),
        }
    }
    recording();
    let r1cs = cuzk_filecoin::record(circuit)?;
    if let Err(error) = r1cs.write_cache(&path) {
        tracing::warn!("the circuit is not cached: {error}");
    }
    Ok(r1cs)
}

/// A file of the cache. Its name carries the published identifier, which changes with the circuit, and the version of
/// this program, whose formats might.
pub(crate) fn cache_file(circuit: CircuitId, cache: &Path, ending: &str) -> Result<PathBuf, FilecoinError> {
    let identifier = circuit.cache_identifier()?;
    Ok(cache.join(format!("{circuit}-{identifier}-{}.{ending}", env!("CARGO_PKG_VERSION"))))
}

/// A circuit whose key is in a directory of parameters.
#[derive(Debug)]
pub struct FilecoinCircuit {
    circuit: CircuitId,
    name: String,
    key: PathBuf,
    cache: PathBuf,
    size: WitnessSize,
    /// Set once the digests that a native key records were found to be right.
    checked: OnceLock<()>,
}

impl FilecoinCircuit {
    /// Finds the key, and measures a witness if that was never done here. The latter takes as long as a synthetic
    /// statement and its witness take: seconds, or minutes for production sectors.
    ///
    /// # Errors
    /// [`CircuitError`].
    pub fn open(circuit: CircuitId, directories: &Directories) -> Result<Self, CircuitError> {
        let Directories { parameters, cache } = directories;
        let paths = keys::KeyPaths::of(circuit, parameters)?;
        let key = paths.existing().ok_or_else(|| CircuitError::NoKey { circuit, path: paths.params.clone() })?;
        Self::with_key(circuit, key.to_owned(), cache)
    }

    /// With the key in a file of any name.
    ///
    /// # Errors
    /// [`CircuitError`].
    pub fn with_key(circuit: CircuitId, key: PathBuf, cache: &Path) -> Result<Self, CircuitError> {
        // Whether it is a key is found out before minutes of work.
        keys::look_at(&key)?;
        let size = WitnessSize::cached(circuit, cache)?;
        let name = circuit.to_string();
        Ok(Self { circuit, name, key, cache: cache.to_owned(), size, checked: OnceLock::new() })
    }

    /// Its name.
    pub fn id(&self) -> CircuitId {
        self.circuit
    }

    /// Where its key is.
    pub fn key_path(&self) -> &Path {
        &self.key
    }

    /// The digest of the key's content, if the file records it: a native one does, a published one would have to be
    /// read as a whole.
    ///
    /// # Errors
    /// It cannot be read any more.
    pub fn recorded_digest(&self) -> Result<Option<Digest>, KeyError> {
        Ok(keys::look_at(&self.key)?.content_digest)
    }

    /// The sizes of the witness that was measured.
    pub fn witness_size(&self) -> WitnessSize {
        self.size
    }
}

impl CircuitSource<Bls12> for FilecoinCircuit {
    fn name(&self) -> &str {
        &self.name
    }

    fn r1cs(&self) -> Result<Arc<R1cs<Fr>>, SourceError> {
        let recording = || tracing::info!("{}: the circuit is recorded", self.circuit);
        let r1cs = matrices(self.circuit, &self.cache, recording)?;
        MatrixSizes::of(&r1cs).remember(self.circuit, &self.cache)?;
        Ok(Arc::new(r1cs))
    }

    fn key(&self) -> Result<Arc<dyn KeySource<Bls12>>, SourceError> {
        let source = keys::open::<Bls12>(&self.key)?;
        if self.checked.get().is_none() {
            if !source.provenance().is_production() {
                tracing::warn!("key of {}: {}", self.circuit, source.provenance());
            }
            // A native key records digests of its sections: damage is found here and named, not by a proof that fails.
            source.verify_digests(&mut ignore_progress)?;
            // Another thread may have done it at the same time.
            let _first = self.checked.set(());
        }
        Ok(Arc::from(source))
    }

    fn assignment(&self, _: &CircuitShape) -> AssignmentShape {
        self.size.bound()
    }

    fn synthesis_bytes(&self, finished: u64) -> u64 {
        self.size.synthesis_bytes(finished)
    }
}
