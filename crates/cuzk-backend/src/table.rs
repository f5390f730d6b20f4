//! Objects by handle, as implementations keep them.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{BackendError, Handle, Result};

/// Gives out handles that are never used again, so that a stale one is unknown rather than another object's.
#[derive(Debug)]
struct Handles(AtomicU64);

impl Default for Handles {
    fn default() -> Self {
        // A zero is what somebody forgot to fill in.
        Self(AtomicU64::new(1))
    }
}

/// The objects of one kind that are alive. An object that is removed while it is in use lives until that use ends.
#[derive(Debug)]
pub struct Table<T> {
    kind: &'static str,
    handles: Arc<Handles>,
    objects: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Table<T> {
    fn new(kind: &'static str, handles: &Arc<Handles>) -> Self {
        Self { kind, handles: handles.clone(), objects: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        // Nothing that can panic runs under this lock.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the object that `make` makes of its handle.
    pub fn add_with<R>(&self, make: impl FnOnce(u64) -> (T, R)) -> R {
        let handle = self.handles.0.fetch_add(1, Ordering::Relaxed);
        let (object, result) = make(handle);
        self.lock().insert(handle, Arc::new(object));
        result
    }

    /// Adds an object and returns its handle.
    pub fn add(&self, object: T) -> u64 {
        self.add_with(|handle| (object, handle))
    }

    /// The object with a handle.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, operation: &str, handle: u64) -> Result<Arc<T>> {
        let found = self.lock().get(&handle).cloned();
        found.ok_or_else(|| BackendError::Precondition {
            operation: operation.to_owned(),
            what: format!("{} {handle}", self.kind),
            expected: "a live handle of this device".to_owned(),
            actual: "unknown".to_owned(),
        })
    }

    /// Forgets an object, which is dropped with its last use.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        // Returned, so that it is dropped after the lock: it may be large.
        self.lock().remove(&handle)
    }
}

macro_rules! objects {
    ($($(#[$doc:meta])* $field:ident: $type:ident = $handle:ident, $kind:literal;)*) => {
        /// The types of a device's objects.
        pub trait ObjectTypes {
            $($(#[$doc])* type $type: Send + Sync;)*
        }

        /// All objects of a device. Handles are unique among all kinds of it.
        pub struct Objects<T: ObjectTypes> {
            $($(#[$doc])* pub $field: Table<T::$type>,)*
        }

        impl<T: ObjectTypes> Default for Objects<T> {
            fn default() -> Self {
                let handles = Arc::default();
                Self { $($field: Table::new($kind, &handles),)* }
            }
        }

        impl<T: ObjectTypes> Objects<T> {
            /// Forgets an object; one that is unknown is forgotten already.
            pub fn release(&self, handle: Handle) {
                match handle {
                    $(Handle::$handle(id) => drop(self.$field.remove(id.0)),)*
                }
            }
        }
    };
}

objects! {
    /// Device memory.
    buffers: Buffer = Buffer, "buffer";
    /// Pinned memory.
    hosts: Host = Host, "pinned memory";
    /// Queues of work.
    streams: Stream = Stream, "stream";
    /// Points in queues.
    events: Event = Event, "event";
    /// Sparse matrices.
    matrices: Matrix = Matrix, "matrix";
    /// Bitmaps.
    densities: Density = Density, "density";
    /// Packed assignments.
    assignments: Assignment = Assignment, "assignment";
    /// Lists of points.
    bases: Bases = Bases, "list of bases";
    /// Results.
    pendings: Pending = Pending, "pending result";
}

impl<T: ObjectTypes> fmt::Debug for Objects<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Objects(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferId, EventId};

    struct Numbers;
    impl ObjectTypes for Numbers {
        type Buffer = u8;
        type Host = ();
        type Stream = ();
        type Event = u16;
        type Matrix = ();
        type Density = ();
        type Assignment = ();
        type Bases = ();
        type Pending = ();
    }

    #[test]
    fn handles_are_never_used_again_and_a_stale_one_is_named() {
        let objects = Objects::<Numbers>::default();
        let (buffer, event) = (objects.buffers.add(7), objects.events.add(300));
        assert!(buffer != 0 && buffer != event);
        let held = objects.buffers.get("test", buffer).unwrap();
        objects.release(Handle::Event(EventId(buffer)));
        assert_eq!(*objects.buffers.get("test", buffer).unwrap(), 7, "a handle of another kind");
        objects.release(Handle::Buffer(BufferId(buffer)));
        objects.release(Handle::Buffer(BufferId(buffer)));
        assert_eq!(*held, 7);
        match objects.buffers.get("test", buffer) {
            Err(BackendError::Precondition { what, .. }) => assert_eq!(what, format!("buffer {buffer}")),
            other => panic!("{other:?}"),
        }
        assert!(objects.buffers.add(8) > event);
    }
}
