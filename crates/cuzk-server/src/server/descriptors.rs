//! File descriptors: as many as the system allows, and no more connections than they carry.
//!
//! A process without a free descriptor answers no probe, writes no request and opens no key, so connections get what
//! remains after everything else has its share.

use rustix::process::{Resource, getrlimit, setrlimit};

use super::StartError;
use crate::http;

/// For all but connections: the journal and requests on their way into it, keys, devices, plugins, logs.
const RESERVE: u64 = 128;
/// Fewer connections than this are no service.
const FEWEST: u64 = 16;
/// Those of the HTTP side that are served, which make room for each other, and as many that begin.
const HTTP: u64 = 2 * http::MAX_CONNECTIONS as u64;

/// Connections of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) grpc: usize,
    pub(super) http: usize,
}

/// Raises the limit of open files to the most that the system allows this process.
pub(super) fn raise() {
    let limits = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limits.maximum, maximum: limits.maximum };
    if limits.current != limits.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the limit of open files stays at {}", limit());
    }
}

/// Open files that this process may have.
fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many connections there may be where so many are configured, within the limit of open files that counts now.
///
/// # Errors
/// [`StartError::Descriptors`]: not even a few.
pub(super) fn shares(connections: u32) -> Result<Shares, StartError> {
    let limit = limit();
    let shares = divide(limit, connections)?;
    if shares.grpc < connections as usize {
        tracing::warn!(
            "limits.connections is {connections}, and {} is what counts: {limit} files may be open (ulimit -n, \
             LimitNOFILE), of which {RESERVE} are for everything else and {} for HTTP",
            shares.grpc,
            shares.http
        );
    }
    Ok(shares)
}

fn divide(limit: u64, connections: u32) -> Result<Shares, StartError> {
    let spare = limit.saturating_sub(RESERVE);
    if spare < 2 * FEWEST {
        return Err(StartError::Descriptors { limit, needed: RESERVE + 2 * FEWEST });
    }
    let http = HTTP.min((spare / 4).max(FEWEST));
    let grpc = u64::from(connections).min(spare - http);
    Ok(Shares { grpc: grpc as usize, http: http as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_everything_else() {
        for (limit, connections, grpc, http) in [
            (u64::MAX, 1024, 1024, 256),
            (65_536, 1024, 1024, 256),
            (1408, 1024, 1024, 256),
            (1407, 1024, 1023, 256),
            (1024, 1024, 672, 224),
            (1024, 5, 5, 224),
            (256, 1024, 96, 32),
            (160, 1024, 16, 16),
        ] {
            assert_eq!(divide(limit, connections).unwrap(), Shares { grpc, http }, "{limit}");
            assert!(grpc as u64 + http as u64 + RESERVE <= limit);
        }
        for limit in [0, 64, 159] {
            let error = divide(limit, 1).unwrap_err().to_string();
            assert!(error.contains(&format!("{limit} files")) && error.contains("160"), "{error}");
        }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        raise();
        let limits = getrlimit(Resource::Nofile);
        assert_eq!(limits.current, limits.maximum);
    }
}
