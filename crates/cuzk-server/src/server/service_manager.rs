//! What the service manager (systemd, or what behaves like it) is told: `sd_notify(3)`.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Interval, MissedTickBehavior, interval},
};

use crate::jobs::Jobs;

/// Tells it. Without a service manager, nobody is told.
pub(super) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

/// The configuration is read again; to be followed by [`NotifyState::Ready`].
pub(super) fn tell_reloading() {
    // systemd wants to know since when.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Tells the service manager regularly that the server lives, if it wants to know: that its main loop runs, and that
/// the jobs can be looked at, so that a deadlock is found.
pub(super) struct Watchdog {
    ticks: Option<Interval>,
    jobs: Jobs,
    looking: Option<JoinHandle<()>>,
}

/// Without a watchdog, a tick every so often is as good as none.
const NEVER: Duration = Duration::from_secs(3600);

impl Watchdog {
    pub(super) fn new(jobs: Jobs) -> Self {
        // Half of the time is what sd_watchdog_enabled(3) recommends.
        let ticks = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()).map(|time| {
            let mut ticks = interval(time / 2);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self { ticks, jobs, looking: None }
    }

    /// When [`Self::check`] is due.
    pub(super) async fn due(&mut self) {
        match &mut self.ticks {
            Some(ticks) => drop(ticks.tick().await),
            None => tokio::time::sleep(NEVER).await,
        }
    }

    /// Says that the server lives, unless the look before this has not come back.
    pub(super) fn check(&mut self) {
        if self.ticks.is_none() || self.looking.as_ref().is_some_and(|looking| !looking.is_finished()) {
            return;
        }
        let jobs = self.jobs.clone();
        self.looking = Some(spawn_blocking(move || drop(jobs.look())));
        tell(&[NotifyState::Watchdog]);
    }
}
