//! Limits of a device's memory: from the command line, else from the environment.
//!
//! They are read by hand and not by the parser of the command line: a variable is set for many runs at once, so that it
//! must not stop a verb that opens no device, and it may be empty.

use std::{ffi::OsString, fmt, time::Duration};

use crate::{args::DeviceArgs, failure::Failure};

/// A limit and who set it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    origin: Origin,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    Option(&'static str),
    Variable(&'static str),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Option(name) => write!(f, "{name} {}", self.bytes),
            Origin::Variable(name) => write!(f, "{name}={}", self.bytes),
        }
    }
}

/// The limits of a run; `None` where nobody set one.
pub(crate) struct Limits {
    pub(crate) vram: Option<Limit>,
    pub(crate) pinned: Option<Limit>,
}

impl Limits {
    /// # Errors
    /// A variable that counts is no size.
    pub(crate) fn of(args: &DeviceArgs) -> Result<Self, Failure> {
        let limit = |option, typed, variable| limit(option, typed, variable, std::env::var_os(variable));
        Ok(Self {
            vram: limit("--vram-limit", args.vram_limit, "CUZK_VRAM_LIMIT")?,
            pinned: limit("--pinned-limit", args.pinned_limit, "CUZK_PINNED_LIMIT")?,
        })
    }

    /// For a backend that computes in the host's memory, which is not its own to limit. An option is a mistake if that
    /// backend was asked for, and idle if it is what remained; a variable is idle always.
    ///
    /// # Errors
    /// An option, and the backend was asked for.
    pub(crate) fn without_effect(&self, backend: &str, asked_for: bool) -> Result<(), Failure> {
        for limit in [&self.vram, &self.pinned].into_iter().flatten() {
            let text = format!("{limit}: the {backend} backend has no such memory");
            if asked_for && matches!(limit.origin, Origin::Option(_)) {
                return Err(Failure::usage(text));
            }
            tracing::warn!("{text}");
        }
        Ok(())
    }
}

/// The bytes of a limit. None at all would be no limit to a device.
pub(crate) fn at_least_one_byte(text: &str) -> Result<u64, String> {
    match cuzk_units::parse_bytes(text) {
        Ok(0) => Err("expected at least 1 byte".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// How long something takes. Nothing takes no time.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match cuzk_units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("expected more than no time".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// What was typed, else what the variable says. An empty variable is as good as none.
fn limit(
    option: &'static str,
    typed: Option<u64>,
    variable: &'static str,
    value: Option<OsString>,
) -> Result<Option<Limit>, Failure> {
    if let Some(bytes) = typed {
        return Ok(Some(Limit { bytes, origin: Origin::Option(option) }));
    }
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    // What is no Unicode is no size, whatever stands for its other characters.
    match at_least_one_byte(&value.to_string_lossy()) {
        Ok(bytes) => Ok(Some(Limit { bytes, origin: Origin::Variable(variable) })),
        Err(why) => Err(Failure::usage(format!("{variable}={}: {why}", value.to_string_lossy()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Class;

    fn read(typed: Option<u64>, value: Option<&str>) -> Result<Option<Limit>, Failure> {
        limit("--vram-limit", typed, "CUZK_VRAM_LIMIT", value.map(OsString::from))
    }

    #[test]
    fn what_was_typed_counts_before_the_variable() {
        let told = |limit: Result<Option<Limit>, Failure>| limit.unwrap().map(|l| (l.to_string(), l.bytes));
        assert_eq!(told(read(None, None)), None);
        assert_eq!(told(read(None, Some(""))), None);
        assert_eq!(told(read(None, Some("2 KiB"))), Some(("CUZK_VRAM_LIMIT=2048".to_owned(), 2048)));
        assert!(read(None, Some("0 GiB")).unwrap_err().message.ends_with("at least 1 byte"));
        assert_eq!(told(read(Some(7), Some("nonsense"))), Some(("--vram-limit 7".to_owned(), 7)));
        let failure = read(None, Some("6 parsecs")).unwrap_err();
        assert_eq!(failure.class, Class::Usage);
        assert!(failure.message.starts_with("CUZK_VRAM_LIMIT=6 parsecs: expected"), "{}", failure.message);
    }

    #[test]
    fn a_limit_without_effect_is_a_mistake_only_if_it_was_typed_for_that_backend() {
        for (typed, value, asked_for, refused) in [
            (Some(1), None, true, true),
            (Some(1), None, false, false),
            (None, Some("1"), true, false),
            (None, Some("1"), false, false),
            (None, None, true, false),
        ] {
            let limits = Limits { vram: read(typed, value).unwrap(), pinned: None };
            let outcome = limits.without_effect("cpu", asked_for);
            assert_eq!(outcome.is_err(), refused, "{typed:?} {value:?} {asked_for}");
        }
    }
}
