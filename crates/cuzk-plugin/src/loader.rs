//! Finding and loading plugins.

use std::{
    collections::BTreeMap,
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    fs, io,
    path::{Path, PathBuf},
};

use cuzk_backend::BackendError;
use libloading::Library;

use crate::{PluginBackend, abi, elf, vtable::Entry};

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A backend's name that cannot be part of a file's name.
    #[error("{name:?} is not a backend's name: expected lower-case letters, digits and _")]
    Name {
        /// The name.
        name: String,
    },
    /// No directory has the file.
    #[error("no {file} in {}", directories(.searched))]
    NotFound {
        /// The file's name.
        file: String,
        /// The directories, in the order of the search.
        searched: Vec<PathBuf>,
    },
    /// The file cannot be read.
    #[error("{}: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A directory, a pipe, a device: opening it as a library may wait for ever.
    #[error("{} is not an ordinary file", .file.display())]
    NotAFile {
        /// What is not one.
        file: PathBuf,
    },
    /// The file is an ELF file (64 bit, little-endian) and ends too early: it was not copied to its end.
    #[error("{} is truncated: {place} ends at byte {end}, and the file has {size} bytes", .file.display())]
    Truncated {
        /// The file.
        file: PathBuf,
        /// The first part that is not in the file to its end: a header, a table, a segment.
        place: String,
        /// The offset in bytes at which that part ends; `u64::MAX` if it is greater.
        end: u64,
        /// The size of the file in bytes.
        size: u64,
    },
    /// The file is not a shared library of any system.
    #[error("{} is not a shared library: {reason}", .file.display())]
    NotALibrary {
        /// The file.
        file: PathBuf,
        /// What the system's loader said.
        reason: String,
    },
    /// The system's loader refuses the library: most often another library that it needs is missing, and the reason
    /// names it.
    #[error("{} cannot be loaded: {reason}", .file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// What the system's loader said.
        reason: String,
    },
    /// A shared library, but not one of ours.
    #[error("{} is not a plugin: it has no symbol {symbol}", .file.display())]
    NotAPlugin {
        /// The file.
        file: PathBuf,
        /// The symbol.
        symbol: &'static str,
    },
    /// The plugin did not start: it said so, or it panicked.
    #[error("plugin {}: {source}", .file.display())]
    Entry {
        /// The file.
        file: PathBuf,
        /// What it said.
        source: BackendError,
    },
    /// The plugin gave a null or misaligned pointer for its table.
    #[error("plugin {}: there is no table at address {address:#x}", .file.display())]
    NoTable {
        /// The file.
        file: PathBuf,
        /// The address.
        address: usize,
    },
    /// What the plugin gave is not a table.
    #[error("plugin {}: its table begins with {actual:#018x} instead of {expected:#018x}", .file.display())]
    Magic {
        /// The file.
        file: PathBuf,
        /// What every table begins with.
        expected: u64,
        /// What this one begins with.
        actual: u64,
    },
    /// The plugin was built for another major version of the boundary.
    #[error(
        "plugin {} speaks version {actual} of the plugin boundary, and this program version {expected}",
        .file.display()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// The version of this program.
        expected: abi::AbiVersion,
        /// The version of the plugin.
        actual: abi::AbiVersion,
    },
    /// The table ends before what this program needs.
    #[error("plugin {}: its table has {actual} bytes, and {needed} are needed", .file.display())]
    TooSmall {
        /// The file.
        file: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that the table has.
        actual: u64,
    },
    /// A function is missing.
    #[error("plugin {}: the function {function} of its table is null", .file.display())]
    NullFunction {
        /// The file.
        file: PathBuf,
        /// The function.
        function: &'static str,
    },
}

fn directories(searched: &[PathBuf]) -> String {
    match searched {
        [] => "any directory: none is to be searched".to_owned(),
        some => some.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// Looks for plugins in directories, and loads them.
///
/// # Loaded for good
/// A library that has been opened is never closed, not even if it is refused afterwards. Its code may run at any
/// time: in threads of its own (thread pools, those of drivers), in destructors of thread-local values, in handlers
/// at the exit of the process; closing would pull it out from under them, and no reference counting on this side can
/// see them. What it costs is a few megabytes of address space once for each plugin, and that a changed file needs a
/// new process.
#[derive(Clone, Debug)]
pub struct Loader {
    directories: Vec<PathBuf>,
}

impl Loader {
    /// Searches directories that were asked for explicitly, then others that the caller knows of, then the
    /// executable's own.
    pub fn new<P: Into<PathBuf>, Q: Into<PathBuf>>(
        explicit: impl IntoIterator<Item = P>,
        further: impl IntoIterator<Item = Q>,
    ) -> Self {
        let mut directories: Vec<PathBuf> = explicit.into_iter().map(Into::into).collect();
        directories.extend(further.into_iter().map(Into::into));
        // Where the system does not say where the executable is, there is nothing beside it.
        let executable = std::env::current_exe().ok();
        directories.extend(executable.as_deref().and_then(Path::parent).map(Path::to_owned));
        Self { directories }
    }

    /// The directories, in the order of the search.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The name of the file in which a backend is expected: `libcuzk_backend_<name>.so`, with the prefix and suffix
    /// of this system.
    ///
    /// # Errors
    /// [`LoadError::Name`].
    pub fn file_name(name: &str) -> Result<String, LoadError> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(LoadError::Name { name: name.to_owned() });
        }
        Ok(format!("{DLL_PREFIX}cuzk_backend_{name}{DLL_SUFFIX}"))
    }

    /// The names of the backends whose files are there, and the file that [`Loader::load`] takes for each, by name.
    /// Nothing is loaded; directories that cannot be read are skipped.
    pub fn available(&self) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        for directory in &self.directories {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = entry.file_name().to_str().and_then(|file| {
                    let name = file.strip_prefix(DLL_PREFIX)?.strip_prefix("cuzk_backend_")?;
                    Some(name.strip_suffix(DLL_SUFFIX)?.to_owned())
                });
                if let Some(name) = name.filter(|n| Self::file_name(n).is_ok() && entry.path().is_file()) {
                    found.entry(name).or_insert_with(|| entry.path());
                }
            }
        }
        found
    }

    /// Loads a backend by its name from the first directory that has its file. If that one is broken, this is an
    /// error; there is no second try further down.
    ///
    /// # Errors
    /// Every [`LoadError`].
    ///
    /// # Trust
    /// The code of a plugin runs with all rights of this process, from the moment its file is opened. Search only
    /// directories that nobody else can write to.
    pub fn load(&self, name: &str) -> Result<PluginBackend, LoadError> {
        let file = Self::file_name(name)?;
        match self.directories.iter().map(|d| d.join(&file)).find(|path| path.is_file()) {
            Some(path) => PluginBackend::open(&path),
            None => Err(LoadError::NotFound { file, searched: self.directories.clone() }),
        }
    }
}

impl PluginBackend {
    /// Loads a plugin from a file of any name.
    ///
    /// # Errors
    /// Every [`LoadError`] but those of the search. For trust, see [`Loader::load`].
    pub fn open(file: &Path) -> Result<Self, LoadError> {
        let unreadable = |source| LoadError::Unreadable { file: file.to_owned(), source };
        // Absolute, because the system's loader searches its own directories for a name without one.
        let absolute = fs::canonicalize(file).map_err(unreadable)?;
        // Before it is opened, because opening a pipe waits for its other end.
        if !fs::metadata(&absolute).map_err(unreadable)?.is_file() {
            return Err(LoadError::NotAFile { file: file.to_owned() });
        }
        refuse_truncated(file, &absolute)?;
        let library = match open_library(&absolute) {
            Ok(library) => library,
            Err(error) => {
                let (file, reason) = (file.to_owned(), reason(&error));
                return Err(match is_object(&absolute).map_err(unreadable)? {
                    true => LoadError::Refused { file, reason },
                    false => LoadError::NotALibrary { file, reason },
                });
            }
        };
        // SAFETY: a library with this symbol says that it is an `Entry`; nothing can check it.
        let entry = unsafe { library.get::<Entry>(abi::ENTRY_SYMBOL.as_bytes()) }.map(|symbol| *symbol);
        // Loaded for good; see `Loader`.
        std::mem::forget(library);
        match entry {
            // SAFETY: the rules are what the symbol stands for, and the library is never closed.
            Ok(entry) => unsafe { Self::enter(file, entry) },
            Err(_) => Err(LoadError::NotAPlugin { file: file.to_owned(), symbol: abi::ENTRY_SYMBOL }),
        }
    }
}

/// A file that ends too early would end the process while it is loaded or at any time afterwards; see [`elf`].
fn refuse_truncated(file: &Path, absolute: &Path) -> Result<(), LoadError> {
    let judge = || {
        let mut content = fs::File::open(absolute)?;
        let size = content.metadata()?.len();
        Ok((size, elf::missing(&mut content, size)?))
    };
    match judge().map_err(|source| LoadError::Unreadable { file: file.to_owned(), source })? {
        (_, None) => Ok(()),
        (size, Some(elf::Missing { place, end })) => {
            Err(LoadError::Truncated { file: file.to_owned(), place, end, size })
        }
    }
}

/// All symbols are bound at once, so that what is missing is told now and not in the middle of a proof; and none of
/// them is offered to libraries that are loaded later.
#[cfg(unix)]
fn open_library(file: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: its initialisers run; that they do nothing wrong is what the trust in the directory is about.
    unsafe { unix::Library::open(Some(file), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Library::from)
}

#[cfg(not(unix))]
fn open_library(file: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: its initialisers run; that they do nothing wrong is what the trust in the directory is about.
    unsafe { Library::new(file) }
}

/// The system's own words, which the error keeps as its source.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Whether a file begins as objects of some system do: ELF, Mach-O (thin or fat), PE.
fn is_object(file: &Path) -> io::Result<bool> {
    use io::Read;
    let mut head = Vec::new();
    fs::File::open(file)?.take(4).read_to_end(&mut head)?;
    Ok(matches!(
        head[..],
        [0x7f, b'E', b'L', b'F']
            | [0xfe, 0xed, 0xfa, 0xce | 0xcf]
            | [0xce | 0xcf, 0xfa, 0xed, 0xfe]
            | [0xca, 0xfe, 0xba, 0xbe]
            | [b'M', b'Z', ..]
    ))
}
