//! Which circuits the engine knows. A circuit is registered when it is first asked for, on a thread of its own, because
//! that can take minutes; proofs that are asked for meanwhile wait.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use cuzk_filecoin::CircuitId;
use cuzk_scheduler::CircuitId as Registered;

/// Called with the circuit's number in the engine, or why it has none.
type Waiter = Box<dyn FnOnce(Result<Registered, String>) + Send>;

/// How the engine comes to know a circuit: takes as long as it takes.
pub(crate) type Register = Arc<dyn Fn(CircuitId) -> Result<Registered, String> + Send + Sync>;

enum Entry {
    /// A thread is at it; these wait.
    Registering(Vec<Waiter>),
    Known(Registered),
}

/// All circuits.
#[derive(Clone)]
pub(crate) struct Circuits {
    entries: Arc<Mutex<BTreeMap<CircuitId, Entry>>>,
    register: Register,
}

impl Circuits {
    pub(crate) fn new(register: Register) -> Self {
        Self { entries: Arc::default(), register }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<CircuitId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `waiter` when the circuit is known or cannot be: at once, or from another thread. A circuit that cannot be
    /// registered is tried again when it is next asked for.
    pub(crate) fn with(&self, circuit: CircuitId, waiter: impl FnOnce(Result<Registered, String>) + Send + 'static) {
        let mut entries = self.lock();
        match entries.get_mut(&circuit) {
            Some(Entry::Known(registered)) => {
                let registered = *registered;
                drop(entries);
                waiter(Ok(registered));
            }
            Some(Entry::Registering(waiters)) => waiters.push(Box::new(waiter)),
            None => {
                entries.insert(circuit, Entry::Registering(vec![Box::new(waiter)]));
                drop(entries);
                let this = self.clone();
                let thread = std::thread::Builder::new().name("cuzk-register".to_owned());
                if let Err(error) = thread.spawn(move || this.settle(circuit, (this.register)(circuit))) {
                    self.settle(circuit, Err(format!("a thread cannot be started: {error}")));
                }
            }
        }
    }

    /// Tells all who wait.
    fn settle(&self, circuit: CircuitId, outcome: Result<Registered, String>) {
        let entry = match &outcome {
            Ok(registered) => self.lock().insert(circuit, Entry::Known(*registered)),
            Err(error) => {
                tracing::error!("{circuit}: {error}");
                self.lock().remove(&circuit)
            }
        };
        if let Some(Entry::Registering(waiters)) = entry {
            waiters.into_iter().for_each(|waiter| waiter(outcome.clone()));
        }
    }

    /// Waits until the circuit is known.
    pub(crate) fn wait(&self, circuit: CircuitId) -> Result<Registered, String> {
        let answer = Arc::new((Mutex::new(None), Condvar::new()));
        let teller = Arc::clone(&answer);
        self.with(circuit, move |outcome| {
            *teller.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            teller.1.notify_all();
        });
        let mut told = answer.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match told.take() {
                Some(outcome) => return outcome,
                None => told = answer.1.wait(told).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// The circuit's number, if it is known.
    pub(crate) fn known(&self, circuit: CircuitId) -> Option<Registered> {
        match self.lock().get(&circuit)? {
            Entry::Known(registered) => Some(*registered),
            Entry::Registering(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    };

    use cuzk_filecoin::{ProofKind, SectorSize};

    use super::*;

    const CIRCUIT: CircuitId = CircuitId::new(ProofKind::WinningPoSt, SectorSize::KiB2);

    #[test]
    fn a_circuit_is_registered_once_for_all_who_ask() {
        let (calls, (go, gate)) = (Arc::new(AtomicU32::new(0)), mpsc::channel::<()>());
        let (counter, gate) = (Arc::clone(&calls), Mutex::new(gate));
        let circuits = Circuits::new(Arc::new(move |_| {
            gate.lock().unwrap().recv().unwrap();
            Ok(Registered(counter.fetch_add(1, Ordering::SeqCst)))
        }));
        let (sender, told) = mpsc::channel();
        for _ in 0..3 {
            let sender = sender.clone();
            circuits.with(CIRCUIT, move |outcome| sender.send(outcome).unwrap());
        }
        assert_eq!((circuits.known(CIRCUIT), told.try_recv().ok()), (None, None));
        go.send(()).unwrap();
        for _ in 0..3 {
            assert_eq!(told.recv().unwrap(), Ok(Registered(0)));
        }
        assert_eq!(circuits.wait(CIRCUIT), Ok(Registered(0)));
        assert_eq!(circuits.known(CIRCUIT), Some(Registered(0)));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_failed_is_tried_again() {
        let calls = AtomicU32::new(0);
        let circuits = Circuits::new(Arc::new(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no key".to_owned()),
            n => Ok(Registered(n)),
        }));
        assert_eq!(circuits.wait(CIRCUIT), Err("no key".to_owned()));
        assert_eq!(circuits.known(CIRCUIT), None);
        assert_eq!(circuits.wait(CIRCUIT), Ok(Registered(1)));
    }
}
