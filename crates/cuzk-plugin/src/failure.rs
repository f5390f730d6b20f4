//! Errors across the boundary: every [`BackendError`] as a status and an [`ErrorRecord`], and back.

use std::{
    any::Any,
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use cuzk_backend::{BackendError, Pool, Result};

use crate::abi::{self, ErrorRecord, Slice, Status, Text};

impl Text {
    /// The text, where it is not UTF-8 with replacement characters.
    ///
    /// # Safety
    /// `data` is null, or points to `len` bytes that are not written meanwhile.
    pub(crate) unsafe fn to_text(self) -> String {
        if self.data.is_null() || self.len == 0 {
            return String::new();
        }
        // SAFETY: the caller's promise; a length beyond isize::MAX cannot be that of an object in memory.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.len as usize) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

impl ErrorRecord {
    /// What a call is given to fill.
    pub(crate) const EMPTY: Self =
        Self { numbers: [0; 4], texts: [Slice::EMPTY; 4], owner: ptr::null_mut(), release: None };

    fn new(numbers: [u64; 4], texts: Vec<String>) -> Self {
        let mut record = Self { numbers, ..Self::EMPTY };
        // The heap part of each string stays in place when the vector moves.
        for (slot, text) in record.texts.iter_mut().zip(&texts) {
            *slot = Slice::new(text.as_bytes());
        }
        record.owner = Box::into_raw(Box::new(texts)).cast();
        record.release = Some(release_texts);
        record
    }
}

/// # Safety
/// `owner` is that of a record which [`ErrorRecord::new`] made, and was not released before.
unsafe extern "C" fn release_texts(owner: *mut c_void) {
    // SAFETY: made by `Box::into_raw` of this type in `ErrorRecord::new`; the caller promises that it happens once.
    drop(unsafe { Box::from_raw(owner.cast::<Vec<String>>()) });
}

/// What a failing call of a plugin returns and leaves behind.
pub(crate) fn encode(error: BackendError) -> (Status, ErrorRecord) {
    let texts = |status, texts: Vec<String>| (status, ErrorRecord::new([0; 4], texts));
    match error {
        BackendError::OutOfMemory { pool, requested, in_use, capacity } => {
            let numbers = [u64::from(pool as u32), requested, in_use, capacity];
            (abi::OUT_OF_MEMORY, ErrorRecord { numbers, ..ErrorRecord::EMPTY })
        }
        BackendError::DeviceLost { device, cause } => texts(abi::DEVICE_LOST, vec![device, cause]),
        BackendError::Unsupported { operation, reason } => texts(abi::UNSUPPORTED, vec![operation, reason]),
        BackendError::Precondition { operation, what, expected, actual } => {
            texts(abi::PRECONDITION, vec![operation, what, expected, actual])
        }
        BackendError::NoSuchDevice { backend, wanted, available } => {
            texts(abi::NO_SUCH_DEVICE, vec![backend, wanted, available])
        }
        BackendError::SelfTest { device, check } => texts(abi::SELF_TEST, vec![device, check]),
        BackendError::Panicked { operation, message } => texts(abi::PANICKED, vec![operation, message]),
        BackendError::Driver { operation, message } => texts(abi::DRIVER, vec![operation, message]),
        // The enum is open; a variant that this boundary has no status for keeps its words.
        other => texts(abi::DRIVER, vec!["a call of the plugin".to_owned(), other.to_string()]),
    }
}

/// The error that a status and its record mean, taking the record's texts.
///
/// # Safety
/// A call filled the record as [`ErrorRecord`] says, and it has not been released.
unsafe fn decode(operation: &str, status: Status, record: &mut ErrorRecord) -> BackendError {
    // SAFETY: the caller's promise.
    let [a, b, c, d] = record.texts.map(|text| unsafe { text.to_text() });
    if let Some(release) = record.release.take() {
        // SAFETY: the caller's promise; `take` makes it happen once.
        unsafe { release(record.owner) };
    }
    match status {
        abi::OUT_OF_MEMORY => {
            let [pool, requested, in_use, capacity] = record.numbers;
            match u32::try_from(pool).ok().and_then(Pool::from_u32) {
                Some(pool) => BackendError::OutOfMemory { pool, requested, in_use, capacity },
                None => BackendError::Driver {
                    operation: operation.to_owned(),
                    message: format!(
                        "out of memory in the unknown pool {pool}: {requested} bytes requested, {in_use} of {capacity} in use"
                    ),
                },
            }
        }
        abi::DEVICE_LOST => BackendError::DeviceLost { device: a, cause: b },
        abi::UNSUPPORTED => BackendError::Unsupported { operation: a, reason: b },
        abi::PRECONDITION => BackendError::Precondition { operation: a, what: b, expected: c, actual: d },
        abi::NO_SUCH_DEVICE => BackendError::NoSuchDevice { backend: a, wanted: b, available: c },
        abi::SELF_TEST => BackendError::SelfTest { device: a, check: b },
        abi::PANICKED => BackendError::Panicked { operation: a, message: b },
        abi::DRIVER => BackendError::Driver { operation: a, message: b },
        unknown => BackendError::Driver {
            operation: operation.to_owned(),
            message: format!("the plugin returned the unknown status {unknown}: {}", [a, b, c, d].join(" ").trim()),
        },
    }
}

/// The host's side of one call.
///
/// # Safety
/// `call` passes the record to a function of a plugin that keeps the rules of [`crate::abi`], or does not touch it.
pub(crate) unsafe fn call(operation: &str, call: impl FnOnce(*mut ErrorRecord) -> Status) -> Result<()> {
    let mut record = ErrorRecord::EMPTY;
    match call(&mut record) {
        abi::OK => Ok(()),
        // SAFETY: a function that returns another status has filled the record.
        status => Err(unsafe { decode(operation, status, &mut record) }),
    }
}

/// The plugin's side of one call: a panic must not leave it, because unwinding out of an `extern "C"` function aborts
/// the process. That state may be broken after a panic is what [`BackendError::Panicked`] says: it is a
/// fault of the device.
///
/// # Safety
/// `record` is null or may be written.
pub(crate) unsafe fn guard(operation: &str, record: *mut ErrorRecord, body: impl FnOnce() -> Result<()>) -> Status {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return abi::OK,
        Ok(Err(error)) => error,
        Err(payload) => BackendError::Panicked { operation: operation.to_owned(), message: panic_message(payload) },
    };
    let (status, filled) = encode(error);
    if !record.is_null() {
        // SAFETY: the caller's promise. What was there is plain data.
        unsafe { record.write(filled) };
    }
    status
}

fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without a message".to_owned(),
    };
    // A payload of another type may panic when it is dropped, and nothing would catch that.
    std::mem::forget(payload);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_or_pool_keeps_its_numbers_and_words() {
        // SAFETY: the closure does not call a plugin; the texts are static.
        let error = unsafe {
            call("ntt", |record| {
                (*record).texts[1] = Slice::new(b"over \xff temperature");
                77
            })
        };
        let message = "the plugin returned the unknown status 77: over \u{fffd} temperature".to_owned();
        assert_eq!(error, Err(BackendError::Driver { operation: "ntt".into(), message }));
        // SAFETY: as above.
        let error = unsafe {
            call("ntt", |record| {
                (*record).numbers = [9, 8, 7, 6];
                abi::OUT_OF_MEMORY
            })
        };
        let message = "out of memory in the unknown pool 9: 8 bytes requested, 7 of 6 in use".to_owned();
        assert_eq!(error, Err(BackendError::Driver { operation: "ntt".into(), message }));
    }

    #[test]
    fn a_panic_becomes_an_error_whatever_its_payload() {
        struct PanicsWhenDropped;
        impl Drop for PanicsWhenDropped {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let caught = |body: fn() -> Result<()>| {
            // SAFETY: `guard` gets the record that `call` made.
            unsafe { call("msm", |record| guard("msm", record, body)) }
        };
        let panicked = |message: &str| Err(BackendError::Panicked { operation: "msm".into(), message: message.into() });
        assert_eq!(caught(|| panic!("static")), panicked("static"));
        assert_eq!(caught(|| panic!("{} {}", "formatted", 1)), panicked("formatted 1"));
        assert_eq!(caught(|| std::panic::panic_any(PanicsWhenDropped)), panicked("a panic without a message"));
        assert_eq!(caught(|| Ok(())), Ok(()));
        // SAFETY: the record may be null.
        assert_eq!(unsafe { guard("msm", ptr::null_mut(), || panic!("unheard")) }, abi::PANICKED);
    }
}
