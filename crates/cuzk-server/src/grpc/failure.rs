//! What callers are told when something fails.
//!
//! A caller's mistake is told with the field and the numbers. What failed in here is told without paths and causes: the
//! answer has the number of an error instead, under which the log has all of it.

use std::{
    borrow::Cow,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tonic::{Code, Status, metadata::MetadataValue};

use crate::{
    jobs::{JobError, SubmitError},
    prover::KeyError,
};

/// Metadata with the number of an error. Every `INTERNAL` that comes from here has it, so those that do not are the
/// transport's: see [`gate`](super::gate).
pub(super) const ERROR_ID: &str = "cuzk-error-id";

/// Metadata with the job that an error is about.
pub(super) const JOB_ID: &str = "cuzk-job-id";

/// A number that no other error has, not even one before a restart.
fn error_id() -> String {
    static START: LazyLock<u64> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        now as u64 ^ u64::from(std::process::id()).rotate_left(32)
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&START.to_le_bytes()).update(&COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    hasher.finalize().to_hex()[..12].to_owned()
}

/// Something failed in here: `told` is for the caller, `cause` for the log.
pub(super) fn internal(code: Code, told: &str, cause: &dyn std::fmt::Display) -> Status {
    let id = error_id();
    tracing::error!(error_id = %id, %cause, "{told}");
    let mut status = Status::new(code, format!("{told}; the log has more under error {id}"));
    if let Ok(value) = MetadataValue::try_from(id) {
        status.metadata_mut().insert(ERROR_ID, value);
    }
    status
}

/// A field is wrong.
pub(super) fn invalid(text: impl Into<String>) -> Status {
    Status::invalid_argument(text)
}

/// A text for callers: without paths, which say more of this machine than its callers need to know.
pub(crate) fn without_paths(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;=".contains(c);
    let is_path = |word: &str| {
        let word = word.strip_prefix("file://").unwrap_or(word);
        let rooted = word.starts_with('/') || word.starts_with("./") || word.starts_with("~/");
        rooted && word.trim_end_matches(['.', ':']).len() > 1
    };
    if !text.split(breaks).any(is_path) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for piece in text.split_inclusive(breaks) {
        let word = piece.trim_end_matches(breaks);
        if is_path(word) {
            shown += "(a path)";
            // What ends a sentence or comes after a colon is not the path's.
            shown += &piece[word.trim_end_matches(['.', ':']).len()..];
        } else {
            shown += piece;
        }
    }
    Cow::Owned(shown)
}

/// The same for an answer: if there is something that the caller is not told, the log has it under a number that is.
pub(super) fn presentable(text: &str) -> Cow<'_, str> {
    match without_paths(text) {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(shown) => {
            let id = error_id();
            tracing::error!(error_id = %id, "{text}");
            Cow::Owned(format!("{shown}; the log has more under error {id}"))
        }
    }
}

/// A request was not accepted.
pub(super) fn submit(error: &SubmitError) -> Status {
    match error {
        SubmitError::Journal(cause) if error.code() == Code::ResourceExhausted => {
            internal(Code::ResourceExhausted, "the journal is full: no new work can be accepted", cause)
        }
        SubmitError::Journal(cause) => internal(error.code(), "the request cannot be made durable", cause),
        _ if error.code() == Code::Internal => internal(Code::Internal, "the request was not accepted", error),
        _ => Status::new(error.code(), presentable(&error.to_string())),
    }
}

/// A job cannot be waited for, watched or cancelled.
pub(super) fn job(error: &JobError) -> Status {
    match error {
        JobError::Unknown(unknown) => Status::not_found(unknown.to_string()),
        JobError::Journal(cause) => internal(error.code(), "the journal cannot be read", cause),
    }
}

/// A key cannot be brought or freed.
pub(super) fn key(error: &KeyError) -> Status {
    let code = match error {
        KeyError::UnknownCircuit(_) => Code::NotFound,
        KeyError::InUse(_) | KeyError::Unable(_) => Code::FailedPrecondition,
    };
    Status::new(code, presentable(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_here() {
        for text in ["vanilla_proof: missing field `Phase1Out` at line 1 column 2", "a / b", "200 MB/s", "and/or", ""] {
            assert_eq!(presentable(text), text);
        }
        for (text, shown) in [
            ("no key at /data/zk/params/v28.params: not found", "no key at (a path): not found"),
            ("\"/etc/x y\" and '~/z'.", "\"(a path) y\" and '(a path)'."),
            ("open(./plugins/libcuda.so)", "open((a path))"),
            ("see file:///a/b, path=/c.", "see (a path), path=(a path)."),
        ] {
            let told = presentable(text);
            assert!(told.starts_with(&format!("{shown}; the log has more under error ")), "{told}");
        }
    }

    #[test]
    fn errors_have_numbers() {
        let [one, other] = [1, 2].map(|n| internal(Code::Unavailable, "it failed", &n));
        assert_eq!(one.code(), Code::Unavailable);
        assert!(one.message().starts_with("it failed; the log has more under error "));
        assert!(one.metadata().get(ERROR_ID).is_some());
        assert_ne!(one.metadata().get(ERROR_ID), other.metadata().get(ERROR_ID));
    }
}
