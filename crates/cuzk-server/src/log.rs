//! Logs: on standard error, for people or as JSON.
//!
//! Every line about a job has its id, as the field `job` of the line itself or of the call that it was written in.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::ParseError,
    fmt,
    layer::SubscriberExt,
    reload::{self, Handle},
    util::{SubscriberInitExt, TryInitError},
};

use crate::config::{LogFilter, LogFormat, LoggingConfig};

/// Why logs are not written as they should be.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is none.
    #[error("logging.level: {0}")]
    Filter(#[from] ParseError),
    /// Something else in this process takes them already.
    #[error("logs are taken already: {0}")]
    Taken(#[from] TryInitError),
    /// What took them is gone.
    #[error("the log's filter cannot be changed: {0}")]
    Gone(#[from] reload::Error),
}

/// The logs of this process.
#[derive(Clone, Debug)]
pub struct Log {
    filter: Handle<EnvFilter, Registry>,
}

impl Log {
    /// Starts them. A process has one.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn start(config: &LoggingConfig) -> Result<Self, LogError> {
        let (filter, handle) = reload::Layer::new(config.level.0.parse::<EnvFilter>()?);
        let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
        let lines = match config.format {
            LogFormat::Human => lines.boxed(),
            LogFormat::Json => lines.json().with_current_span(true).with_span_list(false).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(lines).try_init()?;
        Ok(Self { filter: handle })
    }

    /// Another filter from now on.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn set(&self, filter: &LogFilter) -> Result<(), LogError> {
        Ok(self.filter.reload(filter.0.parse::<EnvFilter>()?)?)
    }
}
