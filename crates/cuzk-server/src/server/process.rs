//! A server as a process: logs, signals, the service manager.
//!
//! * SIGTERM and SIGINT: no new work, what is under way may end within the grace period, the rest stays in the journal,
//!   exit code 0. A second one: the end at once, as if the process was killed; nothing is lost by that either.
//! * SIGHUP: the configuration is read again, and what can be taken over is; the log names each key that changed and
//!   whether it counts from now or from the next start on.

use std::{fmt, io, pin::pin, sync::Arc};

use sd_notify::NotifyState;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use super::{
    Effect, Prepared, Server, StartError, descriptors,
    service_manager::{Watchdog, tell, tell_reloading},
};
use crate::{
    config::{Config, Loaded, Sources},
    http::About,
    log::{Log, LogError},
    prover::Prover,
};

/// Why there is no prover.
#[derive(Debug)]
pub struct ProverError {
    /// In words.
    pub message: String,
    /// The exit code of its class.
    pub exit_code: u8,
}

impl fmt::Display for ProverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ProverError {}

/// Why a server's process ends.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Logs cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There is nothing that proves.
    #[error(transparent)]
    Prover(#[from] ProverError),
    /// The server does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system does not do what it should.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl RunError {
    /// The process's exit code: 2 for a mistake in the configuration, 3 for files and addresses, the prover's own.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) | Self::Start(StartError::Tls(_) | StartError::Token(_)) => 2,
            Self::Start(StartError::Bind(crate::listen::BindError::Exposed { .. })) => 2,
            Self::Prover(error) => error.exit_code,
            Self::Start(_) | Self::System(_) => 3,
        }
    }
}

/// Serves until a signal ends it; a second one ends the process at once. `prover` makes what proves; logs are written
/// already when it is called.
///
/// # Errors
/// [`RunError`]; they are not logged here.
pub fn run(
    loaded: Loaded,
    sources: &Sources,
    about: About,
    prover: impl FnOnce(&Config) -> Result<Arc<dyn Prover>, ProverError>,
) -> Result<(), RunError> {
    let log = Log::start(&loaded.config.logging)?;
    tracing::info!(version = about.version, commit = about.commit, pid = std::process::id(), "starting");
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    if loaded.config.daemon.insecure_listen {
        tracing::warn!("daemon.insecure_listen: whoever reaches the addresses can have proofs made and cancel others'");
    }
    descriptors::raise();
    let runtime = runtime::Builder::new_multi_thread().enable_all().thread_name("server").build()?;
    let config = loaded.config.clone();
    // Addresses and the journal first: to make a prover can take minutes.
    let prepared = runtime.block_on(Prepared::new(loaded))?;
    let prover = prover(&config)?;
    let ended = runtime.block_on(serve(prepared, sources, about, prover, &log));
    // Connections that somebody keeps open, and what still blocks, do not hold up the end.
    runtime.shutdown_background();
    ended
}

async fn serve(
    prepared: Prepared,
    sources: &Sources,
    about: About,
    prover: Arc<dyn Prover>,
    log: &Log,
) -> Result<(), RunError> {
    // Before anything is accepted, so that no signal is missed.
    let mut signals = Signals::new()?;
    let server = prepared.start(prover, about).await?;
    for address in server.addresses() {
        tracing::info!(%address, "gRPC is served");
    }
    if let Some(address) = server.status_address() {
        tracing::info!(%address, "the status page is served");
    }
    let mut watchdog = Watchdog::new(server.jobs().clone());
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
    loop {
        tokio::select! {
            told = signals.next() => match told {
                Told::End(signal) => {
                    tracing::info!(signal, "told to end");
                    end(server, signals, watchdog).await;
                    return Ok(());
                }
                Told::Reload => reload(&server, sources, log),
            },
            () = watchdog.due() => watchdog.check(),
        }
    }
}

/// Drains; a second signal ends that.
async fn end(server: Server, mut signals: Signals, mut watchdog: Watchdog) {
    let grace = server.grace_period();
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing what is under way")]);
    tracing::info!(?grace, "draining: no new work is taken");
    let mut draining = pin!(server.drain(grace));
    loop {
        tokio::select! {
            () = &mut draining => {
                tracing::info!("drained");
                return;
            }
            told = signals.next() => match told {
                Told::End(signal) => {
                    tracing::warn!(signal, "told to end at once: what is unfinished goes on at the next start");
                    // Not by returning: what would be dropped then waits for threads that prove. The code is shells'.
                    std::process::exit(128 + signal);
                }
                Told::Reload => tracing::warn!("draining: the configuration is not read again"),
            },
            () = watchdog.due() => watchdog.check(),
        }
    }
}

fn reload(server: &Server, sources: &Sources, log: &Log) {
    tell_reloading();
    // What somebody is writing is empty at first; a configuration of defaults needs no file.
    let empty = sources.file.as_ref().filter(|path| std::fs::metadata(path).is_ok_and(|found| found.len() == 0));
    if let Some(path) = empty {
        tracing::error!("not reloaded, what was before counts: {} is empty", path.display());
        tell(&[NotifyState::Ready]);
        return;
    }
    match sources.load() {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                tracing::warn!("{warning}");
            }
            let done = server.reload(loaded, Some(log));
            if done.is_empty() {
                tracing::info!("the configuration was read again: nothing in it has changed");
            }
            for (key, effect) in done {
                match effect {
                    Effect::Now => tracing::info!(key, "read again: it counts from now on"),
                    Effect::NextStart => tracing::warn!(key, "changed: it counts from the next start on"),
                    Effect::Refused(reason) => tracing::error!(key, "not taken over, what was before counts: {reason}"),
                }
            }
        }
        Err(errors) => tracing::error!("not reloaded, what was before counts: {errors}"),
    }
    tell(&[NotifyState::Ready]);
}

/// What a signal tells.
enum Told {
    End(i32),
    Reload,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// A write beyond the limit of a file's size: with somebody who takes the signal it is an error of that write,
    /// which the journal deals with, and not the end of the process.
    _file_size: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            // An end is not to wait for reloads.
            biased;
            () = received(&mut self.terminate) => Told::End(SignalKind::terminate().as_raw_value()),
            () = received(&mut self.interrupt) => Told::End(SignalKind::interrupt().as_raw_value()),
            () = received(&mut self.hang_up) => Told::Reload,
        }
    }
}

/// A signal whose stream has ended never comes.
async fn received(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}
