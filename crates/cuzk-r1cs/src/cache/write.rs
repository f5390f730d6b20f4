//! Writing a cache file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use ff::PrimeField;

use super::CacheError;
use super::layout::{ALIGN, HEADER_LEN, MAGIC, MODULUS_ROOM, VERSION, at};
use crate::field;
use crate::system::R1cs;

impl<F: PrimeField> R1cs<F> {
    /// Writes the system to `path`, replacing what is there in one step. Returns the length of the file in bytes.
    ///
    /// The format is described in `docs/formats/r1cs-cache.md`.
    ///
    /// # Errors
    /// [`CacheError::Io`]; the file at `path` is then unchanged. [`CacheError::HeaderRange`] for a field
    /// whose elements are longer than 64 bytes.
    pub fn write_cache(&self, path: &Path) -> Result<u64, CacheError> {
        let repr_len = field::repr_len::<F>();
        if repr_len > MODULUS_ROOM {
            return Err(CacheError::HeaderRange {
                path: path.to_owned(),
                offset: at::MODULUS_LEN as u64,
                field: "length of a field element",
                min: 1,
                max: MODULUS_ROOM as u64,
                found: repr_len as u64,
            });
        }
        let mut temporary = Temporary::create(path)?;
        let file_len = self
            .write_content(&mut temporary.file)
            .and_then(|file_len| temporary.file.sync_all().map(|()| file_len))
            .map_err(|source| io_error(&temporary.path, "write", source))?;
        temporary.rename_to(path)?;
        tracing::debug!(path = %path.display(), bytes = file_len, "wrote R1CS cache");
        Ok(file_len)
    }

    /// Writes header and sections, and returns their length with padding.
    fn write_content(&self, file: &mut File) -> io::Result<u64> {
        let matrices = [self.a(), self.b(), self.c()];
        let dictionaries = matrices.map(|matrix| {
            let reprs = matrix.dictionary().iter().map(field::to_le_repr);
            reprs.fold(Vec::new(), |mut bytes, repr| {
                bytes.extend_from_slice(repr.as_ref());
                bytes
            })
        });
        let mut sections = Vec::new();
        for (matrix, dictionary) in matrices.iter().zip(&dictionaries) {
            sections.extend([
                matrix.offsets().as_bytes(),
                bytemuck::cast_slice(matrix.columns()),
                matrix.indices().as_bytes(),
                dictionary,
            ]);
        }
        let padded = |section: &&[u8]| section.len().next_multiple_of(ALIGN as usize) as u64;
        let file_len = HEADER_LEN as u64 + sections.iter().map(padded).sum::<u64>();

        file.write_all(&self.header(file_len))?;
        for section in &sections {
            file.write_all(section)?;
            let padding = padded(section) as usize - section.len();
            file.write_all(&[0; ALIGN as usize][..padding])?;
        }
        Ok(file_len)
    }

    fn header(&self, file_len: u64) -> [u8; HEADER_LEN] {
        let mut header = [0u8; HEADER_LEN];
        let mut put = |offset: usize, bytes: &[u8]| {
            header[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        let modulus = field::modulus_le::<F>();
        put(at::MAGIC, &MAGIC);
        put(at::VERSION, &VERSION.to_le_bytes());
        put(at::MODULUS_LEN, &(modulus.len() as u32).to_le_bytes());
        put(at::MODULUS, &modulus);
        put(at::N_INPUTS, &(self.n_inputs() as u64).to_le_bytes());
        put(at::N_AUX, &(self.n_aux() as u64).to_le_bytes());
        put(at::N_CONSTRAINTS, &(self.n_constraints() as u64).to_le_bytes());
        for (i, matrix) in [self.a(), self.b(), self.c()].iter().enumerate() {
            let start = at::MATRICES + i * at::MATRIX_LEN;
            let (offset_width, index_width) = (matrix.offsets().width(), matrix.indices().width());
            put(start + at::NNZ, &(matrix.nnz() as u64).to_le_bytes());
            put(start + at::ENTRIES, &(matrix.dictionary().len() as u64).to_le_bytes());
            put(start + at::OFFSET_WIDTH, &(offset_width as u32).to_le_bytes());
            put(start + at::INDEX_WIDTH, &(index_width as u32).to_le_bytes());
        }
        put(at::FILE_LEN, &file_len.to_le_bytes());
        put(at::DIGEST, self.digest());
        header
    }
}

fn io_error(path: &Path, action: &'static str, source: io::Error) -> CacheError {
    CacheError::Io { path: path.to_owned(), action, source }
}

/// A file under a temporary name, removed unless it is renamed.
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    /// Creates a new file in the folder of `target`.
    fn create(target: &Path) -> Result<Self, CacheError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            return Err(CacheError::NotAFile { path: target.to_owned() });
        };
        loop {
            let mut temporary = OsString::from(".");
            temporary.push(name);
            let n = COUNTER.fetch_add(1, Ordering::Relaxed);
            temporary.push(format!(".{}.{n}.tmp", process::id()));
            let path = target.with_file_name(temporary);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path, file, renamed: false }),
                // Left behind by a process of the same number: the next name is free sooner or later.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(io_error(&path, "create", source)),
            }
        }
    }

    fn rename_to(mut self, target: &Path) -> Result<(), CacheError> {
        fs::rename(&self.path, target).map_err(|source| io_error(target, "rename", source))?;
        self.renamed = true;
        // The new name is on the disk once its folder is.
        #[cfg(unix)]
        {
            let folder = match target.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(|source| io_error(folder, "synchronize folder", source))?;
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing better can be done about a failure while another error is on its way.
            let _ = fs::remove_file(&self.path);
        }
    }
}
