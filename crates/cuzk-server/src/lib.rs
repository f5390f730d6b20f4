//! A proving server: `cuzk.v1` over gRPC, an HTTP side, and jobs that survive a crash, over anything that proves.
//!
//! What proves is behind one trait, [`prover::Prover`], which knows circuits, keys and devices; a server knows clients,
//! jobs and disks. [`server::run`] is a whole process: it takes the configuration that [`command::DaemonArgs`] has
//! read, and what makes the prover.
//!
//! # Layering
//! May import `cuzk-proto`, `cuzk-journal` and `cuzk-timeline`. Imported by what makes a prover and a program of it.
//! Knows no circuit, key, device, curve or scheduler. Does not print, and reads of the environment only what its caller
//! hands over and what the service manager sets (`NOTIFY_SOCKET`, `WATCHDOG_USEC`).
//!
//! # References
//! * gRPC's guides: [status codes](https://grpc.io/docs/guides/status-codes/),
//!   [keep-alive](https://grpc.io/docs/guides/keepalive/), [health](https://grpc.io/docs/guides/health-checking/),
//!   [reflection](https://grpc.io/docs/guides/reflection/).
//! * `sd_notify(3)` and `sd_watchdog_enabled(3)` of systemd.
//! * RFC 6750: bearer tokens. RFC 9113: HTTP/2.
//!
//! # Example
//! ```
//! use cuzk_server::config::Sources;
//!
//! // What counts if nobody says anything.
//! let loaded = Sources::default().load()?;
//! assert_eq!(loaded.config.daemon.listen[0].to_string(), "127.0.0.1:9820");
//! assert!(loaded.print().contains("listen = [\"127.0.0.1:9820\"] # default"));
//! # Ok::<(), cuzk_server::config::ConfigErrors>(())
//! ```
#![forbid(unsafe_code)]

pub mod command;
pub mod config;
pub mod grpc;
pub mod http;
pub mod jobs;
pub mod listen;
pub mod log;
pub mod prover;
mod redact;
pub mod server;
