//! What is under way on the threads, and the watchdog over it.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cuzk_scheduler::{CircuitId, DeviceId, Pool, Ticket};

/// Work that was handed to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallId(u64);

/// Which threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Those that make witnesses.
    Synthesis,
    /// Those that finish proofs.
    Finish,
    /// Those for files.
    Runtime,
    /// The one that calls back.
    Callback,
    /// Those of a device that work beside its kernels.
    Preparing(DeviceId),
    /// The one of a device that computes.
    Computing(DeviceId),
}

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Making a witness.
    Synthesis(Ticket),
    /// Bringing a partition to a device.
    Prepare(Ticket),
    /// Its kernels.
    Prove(Ticket),
    /// Assembling and verifying its proof.
    Finish(Ticket),
    /// Freeing what a partition had on a device; then it is stopped.
    Stop(Ticket),
    /// Freeing something on a device.
    Free,
    /// Loading matrices to the host's memory.
    LoadMatrices(CircuitId),
    /// Loading a key to a device.
    LoadKey(CircuitId),
    /// Freeing a key.
    EvictKey(CircuitId, Pool),
    /// The device's known answers.
    SelfTest,
    /// Something that nobody waits for.
    Errand,
}

impl Purpose {
    /// The attempt that it is for.
    pub(crate) fn ticket(self) -> Option<Ticket> {
        match self {
            Self::Synthesis(t) | Self::Prepare(t) | Self::Prove(t) | Self::Finish(t) | Self::Stop(t) => Some(t),
            _ => None,
        }
    }

    /// In words, for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Synthesis(_) => "synthesis",
            Self::Prepare(_) => "preparation",
            Self::Prove(_) => "the kernels",
            Self::Finish(_) => "finishing",
            Self::Stop(_) | Self::Free => "freeing",
            Self::LoadMatrices(_) => "loading matrices",
            Self::LoadKey(_) => "loading a key",
            Self::EvictKey(..) => "evicting a key",
            Self::SelfTest => "the self-test",
            Self::Errand => "an errand",
        }
    }
}

/// A thread works on it, or it waits for one.
const UNDER_WAY: u8 = 0;
/// The thread has a result.
const OVER: u8 = 1;
/// The owner has given it up because it hung.
const WRITTEN_OFF: u8 = 2;

/// What thread and owner share of a call: who of them is first decides how it ends.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    began: OnceLock<Instant>,
    /// Microseconds from its begin to its last sign of life.
    alive_after: AtomicU64,
    end: AtomicU8,
}

impl CallState {
    /// The thread begins.
    pub(crate) fn begin(&self) {
        // Nobody else sets it.
        let _first = self.began.set(Instant::now());
    }

    /// It gets on: the watchdog's time begins anew.
    pub(crate) fn sign_of_life(&self) {
        if let Some(began) = self.began.get() {
            // 64 bits of microseconds are half a million years.
            self.alive_after.store(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
    }

    /// For how long there was no sign of life; `None` before it began.
    fn silence(&self) -> Option<Duration> {
        let alive_after = Duration::from_micros(self.alive_after.load(Ordering::Relaxed));
        self.began.get().map(|began| began.elapsed().saturating_sub(alive_after))
    }

    /// The thread has a result; says whether anybody wants it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.end.compare_exchange(UNDER_WAY, OVER, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn write_off(&self) -> bool {
        self.end.compare_exchange(UNDER_WAY, WRITTEN_OFF, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn is_written_off(&self) -> bool {
        self.end.load(Ordering::Acquire) == WRITTEN_OFF
    }
}

/// A call under way.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) lane: Lane,
    /// Whose hardware it touches.
    pub(crate) device: Option<DeviceId>,
    /// How often that device had been fenced when it was made.
    pub(crate) generation: u64,
    pub(crate) purpose: Purpose,
    state: Arc<CallState>,
}

impl Call {
    pub(crate) fn is_written_off(&self) -> bool {
        self.state.is_written_off()
    }

    /// When its thread began, if it has.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.state.began.get().copied()
    }
}

/// All calls under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    next: u64,
    calls: BTreeMap<CallId, Call>,
}

impl Calls {
    pub(crate) fn add(
        &mut self,
        lane: Lane,
        device: Option<(DeviceId, u64)>,
        purpose: Purpose,
    ) -> (CallId, Arc<CallState>) {
        let id = CallId(self.next);
        self.next += 1;
        let state = Arc::<CallState>::default();
        let (device, generation) = device.map_or((None, 0), |(d, g)| (Some(d), g));
        self.calls.insert(id, Call { lane, device, generation, purpose, state: Arc::clone(&state) });
        (id, state)
    }

    pub(crate) fn remove(&mut self, id: CallId) -> Option<Call> {
        self.calls.remove(&id)
    }

    fn of(&self, device: DeviceId) -> impl Iterator<Item = &Call> {
        self.calls.values().filter(move |c| c.device == Some(device))
    }

    /// Whether calls of a device are under way that are not written off.
    pub(crate) fn any_at_work(&self, device: DeviceId) -> bool {
        self.of(device).any(|c| !c.is_written_off())
    }

    /// How many calls hang in a device.
    pub(crate) fn hanging(&self, device: DeviceId) -> usize {
        self.of(device).filter(|c| c.is_written_off()).count()
    }

    /// The attempt whose kernels run on a device, and since when.
    pub(crate) fn computing(&self, device: DeviceId) -> Option<(Ticket, Instant)> {
        self.of(device)
            .filter(|c| c.lane == Lane::Computing(device) && !c.is_written_off())
            .find_map(|c| Some((c.purpose.ticket()?, c.began()?)))
    }

    /// Whether anything is under way that is not written off.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.values().all(Call::is_written_off)
    }

    /// Whether a call of this kind is under way and not written off.
    pub(crate) fn is_under_way(&self, wanted: impl Fn(&Call) -> bool) -> bool {
        self.calls.values().any(|c| !c.is_written_off() && wanted(c))
    }

    /// Writes off the calls to devices that have given no sign of life for `patience`, and returns them.
    pub(crate) fn write_off(&mut self, patience: Duration) -> Vec<(CallId, Lane, Option<DeviceId>, Purpose)> {
        let late = |c: &Call| c.state.silence().is_some_and(|silence| silence >= patience);
        let overdue = self.calls.iter().filter(|(_, c)| c.device.is_some() && late(c) && c.state.write_off());
        overdue.map(|(id, c)| (*id, c.lane, c.device, c.purpose)).collect()
    }

    /// How long until one might have to be written off. One that has not begun waits for another one, or begins any
    /// moment.
    pub(crate) fn next_check(&self, patience: Duration) -> Option<Duration> {
        let watched = self.calls.values().filter(|c| c.device.is_some() && !c.is_written_off());
        watched.map(|c| c.state.silence().map_or(patience, |silence| patience.saturating_sub(silence))).min()
    }
}

/// The text of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no message)").to_owned()
}
