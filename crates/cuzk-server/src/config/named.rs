//! Values that are words: devices, secrets, how to log.

use std::fmt;

use super::{Expected, Setting, quoted};

/// A device: its number, or its UUID or the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName(pub String);

impl Setting for DeviceName {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        "the number or the UUID of a device".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        let letters = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
        let fits = !text.is_empty() && text.chars().all(letters) && !text.starts_with('-');
        if fits { Ok(Self(text.to_owned())) } else { Err(Self::expected()) }
    }

    fn to_toml(&self) -> Option<String> {
        Some(if self.0.parse::<u32>().is_ok() { self.0.clone() } else { quoted(&self.0) })
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Shortest token that is worth having: 128 bits in hexadecimal digits are twice as long.
const SHORTEST_SECRET: usize = 16;

impl Setting for Secret {
    fn expected() -> Expected {
        format!("at least {SHORTEST_SECRET} printable ASCII characters without spaces").into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        let fits = text.len() >= SHORTEST_SECRET && text.bytes().all(|b| b.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(Self::expected()) }
    }

    fn to_toml(&self) -> Option<String> {
        None
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

impl Setting for LogFormat {
    fn expected() -> Expected {
        "\"human\" or \"json\"".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        match text {
            "human" | "text" | "" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            _ => Err(Self::expected()),
        }
    }

    fn to_toml(&self) -> Option<String> {
        Some(quoted(match self {
            Self::Human => "human",
            Self::Json => "json",
        }))
    }
}

/// What is logged: a level, or directives such as `info,cuzk_engine=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(pub String);

impl Setting for LogFilter {
    fn expected() -> Expected {
        "error, warn, info, debug, trace or off, or directives such as \"info,cuzk_engine=debug\"".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        // A directive without `=` that is no level would be taken for the name of a module.
        let level = |l: &str| l.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let sound = parts.clone().all(|part| part.contains('=') || level(part));
        let parsed = text.parse::<tracing_subscriber::EnvFilter>().is_ok();
        if sound && parsed && parts.count() > 0 { Ok(Self(text.to_owned())) } else { Err(Self::expected()) }
    }

    fn to_toml(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_directives() {
        for good in ["info", "DEBUG", "off", "info,cuzk_engine=debug", "warn,h2=off"] {
            assert!(LogFilter::from_text(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "info,loud", "cuzk=loud", ","] {
            assert!(LogFilter::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::from_text("0123456789abcdef").unwrap();
        assert_eq!((secret.to_toml(), format!("{secret:?}")), (None, "Secret(…)".to_owned()));
        for bad in ["short", "0123456789 abcdef", "0123456789abcdé0123"] {
            assert!(Secret::from_text(bad).is_err(), "{bad}");
        }
    }
}
