//! A value that comes later, and everybody who waits for it.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

/// Called with the value.
pub(crate) type Callback<T> = Box<dyn FnOnce(T) + Send>;

struct State<T> {
    value: Option<T>,
    wakers: Vec<Waker>,
    callbacks: Vec<Callback<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    set: Condvar,
}

impl<T> Shared<T> {
    /// No panic can happen while this is locked.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the engine is going to say. Every way to wait for it can be used from several threads; as a [`Future`] it works
/// with any executor. What was asked for happens whether anybody waits or not.
pub struct Answer<T>(Arc<Shared<T>>);

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer(there: {})", self.0.lock().value.is_some())
    }
}

impl<T: Clone> Answer<T> {
    /// Waits for it.
    pub fn wait(&self) -> T {
        let mut state = self.0.lock();
        loop {
            if let Some(value) = &state.value {
                return value.clone();
            }
            state = self.0.set.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for it, but not longer than this.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<T> {
        // A time that no clock reaches is no limit.
        let Some(end) = Instant::now().checked_add(timeout) else { return Some(self.wait()) };
        let mut state = self.0.lock();
        while state.value.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.0.set.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.value.clone()
    }

    /// The value, if it is there.
    pub fn try_get(&self) -> Option<T> {
        self.0.lock().value.clone()
    }

    /// Has a function called with it: on a thread of the engine's that does nothing else, or at once if it is there.
    /// The function must not shut the engine down, which waits for it.
    pub fn on_set(&self, callback: impl FnOnce(T) + Send + 'static) {
        let mut state = self.0.lock();
        match state.value.clone() {
            None => state.callbacks.push(Box::new(callback)),
            Some(value) => {
                drop(state);
                callback(value);
            }
        }
    }

    /// For a future of something in it.
    pub(crate) fn poll_value(&self, context: &Context<'_>) -> Poll<T> {
        let mut state = self.0.lock();
        if let Some(value) = &state.value {
            return Poll::Ready(value.clone());
        }
        if !state.wakers.iter().any(|w| w.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<T: Clone> Future for Answer<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.poll_value(context)
    }
}

/// The engine's side of an answer. Dropped without a value, it says what is said when the engine has stopped.
pub(crate) struct Completer<T: Clone> {
    shared: Arc<Shared<T>>,
    stopped: fn() -> T,
}

/// An answer and its other side.
pub(crate) fn answer<T: Clone>(stopped: fn() -> T) -> (Answer<T>, Completer<T>) {
    let state = State { value: None, wakers: Vec::new(), callbacks: Vec::new() };
    let shared = Arc::new(Shared { state: Mutex::new(state), set: Condvar::new() });
    (Answer(Arc::clone(&shared)), Completer { shared, stopped })
}

impl<T: Clone> Completer<T> {
    /// Gives the value to everybody who waits, and returns the functions to be called with it.
    #[must_use = "the functions are to be called"]
    pub(crate) fn complete(self, value: T) -> Vec<Callback<T>> {
        self.set(value)
    }

    fn set(&self, value: T) -> Vec<Callback<T>> {
        let (wakers, callbacks) = {
            let mut state = self.shared.lock();
            if state.value.is_some() {
                return Vec::new();
            }
            state.value = Some(value);
            (std::mem::take(&mut state.wakers), std::mem::take(&mut state.callbacks))
        };
        self.shared.set.notify_all();
        for waker in wakers {
            // An executor's code: its panic is not the engine's.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
        callbacks
    }
}

impl<T: Clone> Drop for Completer<T> {
    fn drop(&mut self) {
        for callback in self.set((self.stopped)()) {
            callback((self.stopped)());
        }
    }
}
