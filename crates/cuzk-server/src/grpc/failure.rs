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
    redact::for_callers,
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

/// A text for callers; if there is something that they are not told, the log has it under a number that they are.
pub(super) fn presentable(text: &str) -> Cow<'_, str> {
    match for_callers(text) {
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
        SubmitError::Journal(cuzk_journal::Error::OverBudget { in_use, requested, limit }) => {
            Status::resource_exhausted(format!(
                "the journal is full: it has {in_use} bytes, this job needs {requested} more, and journal.max_bytes is \
                 {limit} bytes"
            ))
        }
        SubmitError::Journal(cause @ cuzk_journal::Error::Full { needed, .. }) => {
            let told = format!("the disk of journal.directory is full: this job needs {needed} more bytes");
            internal(Code::ResourceExhausted, &told, cause)
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
    use std::{io, sync::Arc};

    use super::*;

    #[test]
    fn what_is_hidden_has_a_number() {
        assert_eq!(presentable("a field is missing"), "a field is missing");
        let told = presentable("no key at /data/zk/params/v28.params: not found");
        assert!(told.starts_with("no key at (a path): not found; the log has more under error "), "{told}");
    }

    #[test]
    fn room_is_told_with_numbers_and_the_key_that_bounds_it() {
        let told = |error| submit(&SubmitError::Journal(error));
        let full = cuzk_journal::Error::OverBudget { in_use: 900, requested: 200, limit: 1000 };
        let status = told(full);
        assert_eq!(status.code(), Code::ResourceExhausted);
        let text =
            "the journal is full: it has 900 bytes, this job needs 200 more, and journal.max_bytes is 1000 bytes";
        assert_eq!(status.message(), text);
        let cause = Arc::new(io::ErrorKind::StorageFull.into());
        let status = told(cuzk_journal::Error::Full { path: "/var/lib/cuzk".into(), needed: 77, cause });
        assert_eq!(status.code(), Code::ResourceExhausted);
        let text = "the disk of journal.directory is full: this job needs 77 more bytes; the log has more under error ";
        assert!(status.message().starts_with(text), "{status:?}");
        for (error, text) in [
            (
                SubmitError::QueueFull { queued: 5, limit: 4 },
                "the queue is full: 5 jobs wait, limits.queue_length is 4",
            ),
            (
                SubmitError::ClientFull { open: 3, limit: 3 },
                "this client has 3 jobs that have not ended, limits.jobs_per_client is 3",
            ),
        ] {
            let status = submit(&error);
            assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, text));
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
