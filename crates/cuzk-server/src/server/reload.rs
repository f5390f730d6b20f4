//! Another configuration while the server serves.

use std::sync::PoisonError;

use super::{Server, jobs_options};
use crate::{config::Loaded, listen::secret, log::Log};

/// Keys that take effect at once, beside `logging.level` and what is in `auth` and `tls`.
const AT_ONCE: [&str; 11] = [
    "daemon.cancel_on_disconnect",
    "daemon.grace_period",
    "daemon.status_hosts",
    "journal.max_bytes",
    "journal.max_ended_jobs",
    "journal.retention",
    "limits.jobs_per_client",
    "limits.max_arriving_bytes",
    "limits.queue_length",
    "limits.request_timeout",
    "limits.waiting_calls",
];

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It counts from now on.
    Now,
    /// It counts from the next start on.
    NextStart,
    /// It cannot be, for this reason; what was before counts.
    Refused(String),
}

/// What became of each change.
pub type Reloaded = Vec<(&'static str, Effect)>;

impl Server {
    /// Takes over what can be taken over: the level of logs, token, certificates, limits of jobs, of calls and of the
    /// journal. What cannot is told each time until it counts. What protects is replaced and never removed: token, TLS,
    /// and that clients need certificates.
    pub fn reload(&self, new: Loaded, log: Option<&Log>) -> Reloaded {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done: Reloaded = Vec::new();
        let config = &new.config;
        for key in current.changes(&new) {
            match key {
                "logging.level" => {
                    let effect = match log.map(|log| log.set(&config.logging.level)) {
                        Some(Ok(())) => Effect::Now,
                        Some(Err(error)) => Effect::Refused(error.to_string()),
                        None => Effect::NextStart,
                    };
                    done.push((key, effect));
                }
                _ if AT_ONCE.contains(&key) => done.push((key, Effect::Now)),
                _ => {}
            }
        }
        // What was taken over at an earlier time is not compared with the start.
        let own = |key: &str| {
            let file = ["auth.token", "auth.token_file", "tls.certificate", "tls.key", "tls.client_ca"];
            // Below, even if they are the same: what is in the files may not be.
            file.contains(&key) || key == "logging.level" || AT_ONCE.contains(&key)
        };
        let later = self.at_start.changes(&new).into_iter().filter(|key| !own(key));
        done.extend(later.map(|key| (key, Effect::NextStart)));
        self.gate.set_limits(&config.limits);
        let options = jobs_options(&new);
        self.jobs.set_limits(options.limits, options.journal);
        // With the token as it is; what becomes of that is seen below.
        if let Some(side) = &self.side {
            side.set_hosts(config);
        }
        done.extend(self.reload_token(&new));
        done.extend(self.reload_certificates(&new));
        *current = new;
        done
    }

    fn reload_token(&self, new: &Loaded) -> Reloaded {
        let config = &new.config;
        let secret = match secret(&config.auth) {
            Ok(secret) => secret,
            Err(error) => return vec![("auth", Effect::Refused(error.to_string()))],
        };
        if secret.is_none() {
            // A configuration that is read while it is being written may lack anything.
            let reason = "no token is given any more, and the one that counts stays: to serve without one, start the \
                          daemon again";
            let told = self.token.is_set().then(|| ("auth", Effect::Refused(reason.to_owned())));
            return told.into_iter().collect();
        }
        self.token.set(secret.as_ref());
        if let Some(side) = &self.side {
            side.set(config, secret.as_ref());
        }
        vec![("auth", Effect::Now)]
    }

    fn reload_certificates(&self, new: &Loaded) -> Reloaded {
        let config = &new.config.tls;
        match (self.tls.is_empty(), config.certificate.is_some()) {
            (true, false) => return Vec::new(),
            // Whoever speaks without TLS, or with it, would not understand the other from now on.
            (true, true) | (false, false) => return vec![("tls", Effect::NextStart)],
            (false, true) => {}
        }
        for tls in &self.tls {
            if let Err(error) = tls.reload(config) {
                return vec![("tls", Effect::Refused(error.to_string()))];
            }
        }
        vec![("tls", Effect::Now)]
    }

    /// How long the work under way may take when the server ends.
    pub(super) fn grace_period(&self) -> std::time::Duration {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).config.daemon.grace_period
    }
}
