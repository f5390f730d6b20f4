//! Logs: on standard error, for people or as JSON.
//!
//! Every line about a job has its id, as the field `job` of the line itself or of the call that it was written in.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{LevelFilter, ParseError},
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
        let (filter, handle) = reload::Layer::new(directives(&config.level).parse::<EnvFilter>()?);
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
        Ok(self.filter.reload(directives(filter).parse::<EnvFilter>()?)?)
    }
}

/// The directives of a filter, in which a level alone is that of our own lines: of libraries no more than warnings is
/// shown, unless they are named.
fn directives(filter: &LogFilter) -> String {
    let directive = |part: &str| match part.trim().parse::<LevelFilter>() {
        Ok(level) if level > LevelFilter::WARN => format!("{},cuzk={level}", LevelFilter::WARN),
        _ => part.trim().to_owned(),
    };
    filter.0.split(',').map(directive).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_is_for_our_own_lines() {
        for (given, meant) in [
            ("info", "warn,cuzk=info"),
            ("DEBUG", "warn,cuzk=debug"),
            ("warn", "warn"),
            ("off", "off"),
            ("info,cuzk_engine=debug", "warn,cuzk=info,cuzk_engine=debug"),
            ("info, storage_proofs_core=info", "warn,cuzk=info,storage_proofs_core=info"),
            ("cuzk_server[call{job=a}]=trace", "cuzk_server[call{job=a}]=trace"),
        ] {
            let directives = directives(&LogFilter(given.to_owned()));
            assert_eq!(directives, meant);
            directives.parse::<EnvFilter>().unwrap();
        }
    }
}
