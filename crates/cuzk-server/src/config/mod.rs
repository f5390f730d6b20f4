//! The daemon's configuration: TOML with a fixed set of keys, over which the environment and the command line have the
//! last word.
//!
//! Every key stands once, in the table of `table.rs`; the structures here, the parser, what `--print-config` shows
//! and `cuzk-daemon.example.toml` are made from it. A flag counts before an environment variable, that before the file,
//! that before the default. A value is read from a text in one way, wherever it stands: see [`Setting`].
//!
//! ```
//! use cuzk_server::config::{Origin, Sources};
//!
//! let sources = Sources {
//!     file: Some("cuzk.toml".into()),
//!     environment: vec![("CUZK_LIMITS_QUEUE_LENGTH".into(), "500".into())],
//!     flags: vec![("--log-level".into(), "logging.level".into(), "debug".into())],
//! };
//! let loaded = sources.parse("[memory]\nsafety_margin = '8GiB'")?; // load() reads the file itself
//! assert_eq!(loaded.config.memory.safety_margin.0, 8 << 30);
//! assert_eq!(loaded.config.limits.queue_length.get(), 500);
//! assert_eq!(loaded.origin("logging.level"), Origin::Flag("--log-level".to_owned()));
//! # Ok::<(), cuzk_server::config::ConfigErrors>(())
//! ```

mod given;
mod key;
mod named;
mod nearest;
mod print;
mod table;
mod value;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

pub use given::Origin;
pub use key::{Fate, Key, OldKey, Section};
pub use named::{DeviceName, LogFilter, LogFormat, Secret};
pub use print::example;
pub use table::*;
pub(crate) use value::quoted;
pub use value::{Auto, Bytes, Expected, Setting, Workers};

use given::Given;

/// Where configurations come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A file.
    pub file: Option<PathBuf>,
    /// Environment variables; others than the configuration's may be among them.
    pub environment: Vec<(OsString, OsString)>,
    /// Options of the command line: what was typed, the key, the value.
    pub flags: Vec<(String, String, String)>,
}

/// A configuration, and where each value is from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What should be looked at, but does not stop anything.
    pub warnings: Vec<Warning>,
    /// Directory of the journal, with what "auto" stands for resolved.
    pub journal_directory: PathBuf,
    /// Where the values are from, and the values in TOML unless they must not be shown.
    shown: BTreeMap<&'static str, (Origin, Option<String>)>,
}

impl Loaded {
    /// Where the value of a key is from; the default for an unknown one.
    pub fn origin(&self, key: &str) -> Origin {
        self.shown.get(key).map_or(Origin::Default, |(origin, _)| origin.clone())
    }

    /// Keys whose values differ from those of another configuration.
    pub fn changes(&self, other: &Self) -> Vec<&'static str> {
        let value = |loaded: &Self, key| loaded.shown.get(key).map(|(_, value)| value.clone());
        // What is not shown is compared as it is.
        let hidden = |key| key == "auth.token" && self.config.auth.token != other.config.auth.token;
        let keys = SECTIONS.iter().flat_map(|section| section.keys).map(|key| key.name);
        keys.filter(|key| value(self, *key) != value(other, *key) || hidden(*key)).collect()
    }
}

/// A larger file is no configuration.
const LARGEST_FILE: u64 = 1 << 20;

impl Sources {
    /// Reads them.
    ///
    /// # Errors
    /// Every mistake in them.
    pub fn load(&self) -> Result<Loaded, ConfigErrors> {
        let text = self.file.as_deref().map(read).transpose().map_err(|error| ConfigErrors(vec![error]))?;
        self.parse(text.as_deref().unwrap_or_default())
    }

    /// Reads them, with this text in place of what is in the file.
    ///
    /// # Errors
    /// Every mistake in them.
    pub fn parse(&self, text: &str) -> Result<Loaded, ConfigErrors> {
        let mut given = Given::default();
        if let Some(path) = &self.file {
            given.file(path, text);
        }
        given.environment(&self.environment);
        for (flag, key, value) in &self.flags {
            given.flag(flag, key, value);
        }
        given.rename();
        let config = Config::read(&mut given);
        let mut errors = std::mem::take(&mut given.errors);
        if let Some(config) = &config {
            errors.extend(config.contradictions());
        }
        match config {
            Some(config) if errors.is_empty() => {
                let journal_directory = match &config.journal.directory {
                    Auto::Given(directory) => directory.clone(),
                    Auto::Auto => self.state_directory().join("journal"),
                };
                let shown = std::mem::take(&mut given.shown);
                let shown = shown.into_iter().map(|(key, value)| (key, (given.origin(key), value))).collect();
                Ok(Loaded { config, warnings: given.warnings, journal_directory, shown })
            }
            _ => Err(ConfigErrors(errors)),
        }
    }

    /// Where a service keeps what must outlive it: what the service manager assigns, else the custom of the user.
    fn state_directory(&self) -> PathBuf {
        let variable = |name: &str| {
            let given = self.environment.iter().find(|(n, value)| n == name && !value.is_empty());
            given.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
        };
        // Several directories have colons between them; the unit that comes with the daemon has one.
        let assigned = variable("STATE_DIRECTORY");
        let home = || {
            let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
            state.map(|state| state.join("cuzk"))
        };
        let root = rustix::process::geteuid().is_root();
        let own = if root { None } else { home() };
        assigned.or(own).unwrap_or_else(|| PathBuf::from("/var/lib/cuzk"))
    }
}

/// The text of a file.
fn read(path: &Path) -> Result<String, ConfigError> {
    let fail = |cause: String| ConfigError::Read { path: path.to_owned(), cause };
    let mut text = String::new();
    let file = File::open(path).map_err(|e| fail(e.to_string()))?;
    let bytes = file.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(|e| fail(e.to_string()))?;
    if bytes as u64 > LARGEST_FILE {
        return Err(fail(format!("it has more than {LARGEST_FILE} bytes")));
    }
    Ok(text)
}

impl Config {
    /// Values that exclude each other.
    fn contradictions(&self) -> Vec<ConfigError> {
        let Self { daemon, tls, auth, limits, .. } = self;
        let mut found = Vec::new();
        let mut rule = |broken: bool, text: &'static str| {
            if broken {
                found.push(ConfigError::Contradiction(text));
            }
        };
        rule(daemon.listen.is_empty(), "daemon.listen is empty: give at least one address");
        rule(tls.certificate.is_some() && tls.key.is_none(), "tls.certificate is given without tls.key");
        rule(tls.key.is_some() && tls.certificate.is_none(), "tls.key is given without tls.certificate");
        rule(
            tls.client_ca.is_some() && tls.certificate.is_none(),
            "tls.client_ca is given without tls.certificate and tls.key",
        );
        rule(auth.token.is_some() && auth.token_file.is_some(), "auth.token and auth.token_file exclude each other");
        rule(limits.request_timeout.is_zero(), "limits.request_timeout is 0: no request could arrive");
        rule(limits.handshake_timeout.is_zero(), "limits.handshake_timeout is 0: no connection could begin");
        rule(limits.keepalive_interval.is_zero(), "limits.keepalive_interval is 0");
        rule(limits.keepalive_timeout.is_zero(), "limits.keepalive_timeout is 0: no client could answer in time");
        rule(limits.max_message_size.0 == 0, "limits.max_message_size is 0: no request could arrive");
        rule(
            limits.max_message_size.0 > u64::from(u32::MAX),
            "limits.max_message_size is over 4294967295, the most that gRPC can carry",
        );
        found
    }
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    /// A line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

/// Something that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// A file is not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the parser says.
        message: String,
    },
    /// A key that does not exist.
    #[error("{origin}: there is no key {key:?}{}", did_you_mean(nearest.as_deref()))]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// The key, with the section's name.
        key: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// A section's name stands for something else.
    #[error("{origin}: {name} is a section: write [{name}] and its keys below")]
    NoSection {
        /// Where.
        origin: Origin,
        /// The section's name.
        name: String,
    },
    /// A value cannot be.
    #[error("{origin}: {key} = {given}: expected {expected}")]
    Value {
        /// Where.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// As it was written.
        given: String,
        /// What it must be.
        expected: Expected,
    },
    /// Values exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// Something about a configuration that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A key has another name now.
    Renamed {
        /// Where it is given.
        origin: Origin,
        /// The name that was used.
        old: &'static str,
        /// Its name now.
        key: &'static str,
        /// Whether it counts: nobody gave the newer one.
        honoured: bool,
    },
    /// A key has no effect.
    Idle {
        /// Where it is given.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A variable looks like a key's and is none.
    UnknownVariable {
        /// Its name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renamed { origin, old, key, honoured: true } => write!(f, "{origin}: {old} is called {key} now"),
            Self::Renamed { origin, old, key, honoured: false } => {
                write!(f, "{origin}: {old} is called {key} now, which is given too and counts")
            }
            Self::Idle { origin, key, reason } => write!(f, "{origin}: {key} has no effect: {reason}"),
            Self::UnknownVariable { name, nearest } => {
                write!(f, "environment {name} is no key's{}", did_you_mean(nearest.as_deref()))
            }
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

#[cfg(test)]
mod tests;
