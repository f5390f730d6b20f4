//! Objects of one kind by handle.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cuzk_backend::{BackendError, Result};

/// A precondition that does not hold.
pub(crate) fn broken(
    operation: &str,
    what: impl Into<String>,
    expected: impl ToString,
    actual: impl ToString,
) -> BackendError {
    BackendError::Precondition {
        operation: operation.to_owned(),
        what: what.into(),
        expected: expected.to_string(),
        actual: actual.to_string(),
    }
}

/// Gives out handles that are never used again, so that a stale one is unknown rather than another object's.
#[derive(Debug)]
pub(crate) struct Handles(AtomicU64);

impl Default for Handles {
    fn default() -> Self {
        // A zero is what somebody forgot to fill in.
        Self(AtomicU64::new(1))
    }
}

impl Handles {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The objects of one kind that are alive. An object that is removed while it is in use lives until that use ends.
#[derive(Debug)]
pub(crate) struct Table<T> {
    kind: &'static str,
    handles: Arc<Handles>,
    objects: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Table<T> {
    /// No objects; `kind` names them in errors.
    pub(crate) fn new(kind: &'static str, handles: &Arc<Handles>) -> Self {
        Self { kind, handles: handles.clone(), objects: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        // Nothing that can panic runs under this lock.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the object that `make` makes of its handle.
    pub(crate) fn add_with<R>(&self, make: impl FnOnce(u64) -> (T, R)) -> R {
        let handle = self.handles.next();
        let (object, result) = make(handle);
        self.lock().insert(handle, Arc::new(object));
        result
    }

    /// Adds an object and returns its handle.
    pub(crate) fn add(&self, object: T) -> u64 {
        self.add_with(|handle| (object, handle))
    }

    /// The object with a handle.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, operation: &str, handle: u64) -> Result<Arc<T>> {
        let found = self.lock().get(&handle).cloned();
        found.ok_or_else(|| broken(operation, format!("the handle of a {}", self.kind), "a live one", handle))
    }

    /// Forgets an object.
    pub(crate) fn remove(&self, handle: u64) {
        // The object may be large: it is dropped after the lock is released.
        let removed = self.lock().remove(&handle);
        drop(removed);
    }
}
