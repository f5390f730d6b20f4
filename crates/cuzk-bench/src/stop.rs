//! Signals that end a run in good order: it stops, tells and writes what it has, and leaves nothing behind.

use std::{
    fmt, fs,
    future::{Future, pending},
    io,
    time::{Duration, Instant},
};

use tokio::{
    signal::unix::{Signal as Stream, SignalKind, signal},
    sync::watch,
};

use crate::{Class, Failure};

/// What the steps of a cut run may take each, such as taking back what is under way: whoever sends a signal waits for
/// the end, and some kill after ten seconds.
pub(crate) const CLOSING: Duration = Duration::from_secs(2);

/// A signal within so long of the first is taken for its echo: a terminal that closes, a shell and `timeout` each send
/// theirs to a process and to its group.
const ECHO: Duration = Duration::from_secs(1);

/// A signal that ends a run in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: the terminal is closed.
    HangUp,
    /// SIGINT: a person has had enough.
    Interrupt,
    /// SIGTERM: a supervisor has.
    Terminate,
}

impl Signal {
    /// Its number, the same on all of Linux's architectures.
    pub const fn number(self) -> u8 {
        match self {
            Self::HangUp => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HangUp => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

/// What signals have asked for so far.
#[derive(Default)]
struct Told {
    first: Option<Signal>,
    /// One after the first that is none of its echoes.
    insisting: Option<Signal>,
}

/// Whether the run shall stop.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<Told>);

impl Stop {
    /// Listens from now on. Runs in a runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut signals = Signals::new()?;
        let (tell, told) = watch::channel(Told::default());
        tokio::spawn(async move {
            let first = signals.next().await;
            tell.send_modify(|told| told.first = Some(first));
            let since = Instant::now();
            loop {
                let signal = signals.next().await;
                if since.elapsed() > ECHO {
                    tell.send_modify(|told| told.insisting = Some(signal));
                }
            }
        });
        Ok(Self(told))
    }

    /// The signal that has asked for it, if one has.
    pub(crate) fn now(&self) -> Option<Signal> {
        self.0.borrow().first
    }

    /// Waits until a signal asks for it.
    pub(crate) async fn asked(&self) -> Signal {
        self.when(|told| told.first).await
    }

    /// Waits until a signal asks for it again.
    pub(crate) async fn insisted(&self) -> Signal {
        self.when(|told| told.insisting).await
    }

    async fn when(&self, what: fn(&Told) -> Option<Signal>) -> Signal {
        let mut told = self.0.clone();
        loop {
            let signal = what(&told.borrow_and_update());
            if let Some(signal) = signal {
                return signal;
            }
            if told.changed().await.is_err() {
                // Nobody listens any more: the runtime ends.
                return pending().await;
            }
        }
    }

    /// What a piece of work comes to, unless it shall stop before: then the work is dropped.
    pub(crate) async fn unless<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        tokio::select! {
            biased;
            signal = self.asked() => Err(interrupted(signal, "interrupted")),
            done = work => Ok(done?),
        }
    }
}

/// The failure of a run that a signal has ended.
pub(crate) fn interrupted(signal: Signal, what: impl fmt::Display) -> Failure {
    Failure::new(Class::Interrupted(signal), format!("{what} ({signal})"))
}

/// The signals that are listened for.
struct Signals {
    /// Unless it is ignored.
    hang_up: Option<Stream>,
    interrupt: Stream,
    terminate: Stream,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let hang_up = if is_ignored(Signal::HangUp) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { hang_up, interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> Signal {
        let Self { hang_up, interrupt, terminate } = self;
        let hung_up = async {
            match hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = hung_up => Signal::HangUp,
            _ = interrupt.recv() => Signal::Interrupt,
            _ = terminate.recv() => Signal::Terminate,
        }
    }
}

/// Whether a signal was ignored when the program started, which is what `nohup` does to a hang-up: then it stays so.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.number() - 1) & 1 == 1
}
