//! Threads of one purpose. A thread that hangs can be replaced, and ends when it returns.

use std::{
    collections::VecDeque,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Something to do on one of the threads.
pub(crate) type Task = Box<dyn FnOnce() -> Afterwards + Send>;

/// What a thread does after a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// It takes the next one.
    Continue,
    /// It ends: it was replaced while it hung in this task.
    End,
}

/// Threads that take tasks in their order.
pub(crate) struct Pool {
    name: String,
    /// Threads of the rayon pool that each thread's tasks run in; 0: none.
    inner_threads: usize,
    /// Whether all of them leave the cores to other threads that are ready.
    yielding: bool,
    shared: Arc<Shared>,
}

/// How far the threads of a pool step back, as the system's niceness: a ready thread of another pool gets three times
/// their time, and runs at once rather than at the end of their turn.
const STEP_BACK: i32 = 5;

/// Lets the current thread leave its core to others that are ready.
fn step_back() {
    // Where niceness belongs to threads. Anybody may raise his own.
    #[cfg(target_os = "linux")]
    if let Err(e) = rustix::process::nice(STEP_BACK) {
        tracing::debug!("the niceness of a thread stays as it is: {e}");
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    tasks: VecDeque<Task>,
    open: bool,
    /// Threads that have not ended.
    alive: usize,
    /// Those of them that hang and were replaced: they end when they return.
    hanging: usize,
}

impl Shared {
    /// No panic can happen while this is locked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Starts `threads` threads. Tasks run inside of a rayon pool of `inner_threads` threads that belongs to their
    /// thread alone, so that what they do in parallel stays there; with 0, none.
    pub(crate) fn new(name: &str, threads: usize, inner_threads: usize) -> io::Result<Self> {
        Self::start(name, threads, inner_threads, false)
    }

    /// The same for work that keeps all cores busy for long: on Linux these threads yield to all others, so that
    /// devices, and whoever asks, need not wait for the end of their turn.
    pub(crate) fn yielding(name: &str, threads: usize, inner_threads: usize) -> io::Result<Self> {
        Self::start(name, threads, inner_threads, true)
    }

    fn start(name: &str, threads: usize, inner_threads: usize, yielding: bool) -> io::Result<Self> {
        let state = State { tasks: VecDeque::new(), open: true, alive: 0, hanging: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let pool = Self { name: name.to_owned(), inner_threads, yielding, shared };
        for _ in 0..threads {
            pool.start_thread()?;
        }
        Ok(pool)
    }

    fn start_thread(&self) -> io::Result<()> {
        let begin: fn() = if self.yielding { step_back } else { || () };
        let inner = match self.inner_threads {
            0 => None,
            n => {
                let name = self.name.clone();
                let builder = rayon::ThreadPoolBuilder::new().num_threads(n);
                let builder = builder.thread_name(move |_| name.clone()).start_handler(move |_| begin());
                Some(builder.build().map_err(io::Error::other)?)
            }
        };
        let shared = Arc::clone(&self.shared);
        shared.lock().alive += 1;
        let started = thread::Builder::new().name(self.name.clone()).spawn(move || {
            begin();
            while let Some(task) = shared.next() {
                // Tasks catch their own panics; one that escapes must not take the thread along.
                let afterwards = catch_unwind(AssertUnwindSafe(|| match &inner {
                    Some(pool) => pool.install(task),
                    None => task(),
                }));
                match afterwards {
                    Ok(Afterwards::Continue) => {}
                    Ok(Afterwards::End) => {
                        shared.lock().hanging -= 1;
                        break;
                    }
                    Err(_) => tracing::error!("a task panicked past its own guard"),
                }
            }
            shared.lock().alive -= 1;
            shared.changed.notify_all();
        });
        started.map(drop).inspect_err(|_| self.shared.lock().alive -= 1)
    }

    /// Adds a task.
    pub(crate) fn submit(&self, task: Task) {
        self.shared.lock().tasks.push_back(task);
        // All, because those who wait for the end wait here, too.
        self.shared.changed.notify_all();
    }

    /// One of the threads hangs in a task that will say [`Afterwards::End`]: another one takes its place.
    pub(crate) fn replace_thread(&self) -> io::Result<()> {
        self.shared.lock().hanging += 1;
        self.start_thread()
    }

    /// Lets the threads end when there is nothing to do, and waits for those that do not hang. Returns how many still
    /// run after `patience`.
    pub(crate) fn close(&self, patience: Duration) -> usize {
        let end = Instant::now() + patience;
        let mut state = self.shared.lock();
        state.open = false;
        self.shared.changed.notify_all();
        while state.alive > state.hanging {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.alive
    }
}

impl Shared {
    /// The next task; `None` for a thread that is to end.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if !state.open {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().open = false;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_panic_does_not_cost_a_thread() {
        let pool = Pool::new("test", 1, 0).unwrap();
        let (sender, receiver) = mpsc::channel();
        pool.submit(Box::new(|| panic!("expected by a test")));
        pool.submit(Box::new(move || {
            sender.send(7).unwrap();
            Afterwards::Continue
        }));
        assert_eq!(receiver.recv(), Ok(7));
        assert_eq!(pool.close(Duration::from_secs(60)), 0);
    }

    #[test]
    fn a_thread_that_hangs_is_replaced_and_ends_when_it_returns() {
        let pool = Pool::new("test", 1, 0).unwrap();
        let (release, hang) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        pool.submit(Box::new(move || {
            assert!(hang.recv().is_err(), "released");
            Afterwards::End
        }));
        pool.submit(Box::new(move || {
            sender.send(()).unwrap();
            Afterwards::Continue
        }));
        assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err(), "the only thread hangs");
        pool.replace_thread().unwrap();
        receiver.recv().unwrap();
        assert_eq!(pool.close(Duration::from_secs(60)), 1, "nobody waits for one that hangs");
        drop(release);
        while pool.close(Duration::ZERO) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_threads_that_yield_step_back() {
        let niceness = |pool: Pool| {
            let (sender, receiver) = mpsc::channel();
            pool.submit(Box::new(move || {
                let own = rustix::process::nice(0).unwrap();
                sender.send((own, rayon::broadcast(|_| rustix::process::nice(0).unwrap()))).unwrap();
                Afterwards::Continue
            }));
            receiver.recv().unwrap()
        };
        let here = rustix::process::nice(0).unwrap();
        assert_eq!(niceness(Pool::new("test", 1, 2).unwrap()), (here, vec![here; 2]));
        let back = (here + STEP_BACK).min(19);
        assert_eq!(niceness(Pool::yielding("test", 1, 2).unwrap()), (back, vec![back; 2]));
        assert_eq!(rustix::process::nice(0).unwrap(), here, "the others stay as they are");
    }

    #[test]
    fn what_runs_in_parallel_stays_in_its_pool() {
        let pool = Pool::new("test", 2, 3).unwrap();
        let (sender, receiver) = mpsc::channel();
        pool.submit(Box::new(move || {
            let name = rayon::broadcast(|_| std::thread::current().name().map(str::to_owned));
            sender.send((rayon::current_num_threads(), name)).unwrap();
            Afterwards::Continue
        }));
        assert_eq!(receiver.recv().unwrap(), (3, vec![Some("test".to_owned()); 3]));
    }
}
