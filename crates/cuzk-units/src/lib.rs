//! Numbers of bytes and lengths of time, as people write them in configurations, in plans and on command lines.
//!
//! There is one grammar, so that what is right in one place is right in all:
//!
//! ```text
//! quantity = number [ blanks ] [ unit ]
//! number   = digits [ "." [ digits ] ] | "." digits
//! ```
//!
//! | | units | without a unit |
//! |---|---|---|
//! | bytes | B; kB, MB, GB, TB (powers of 1000); KiB, MiB, GiB, TiB (powers of 1024) | bytes |
//! | durations | ns, us, ms, s, m, h, d (of 24 hours) | seconds |
//!
//! The case of letters does not count, and neither do blanks around it all. A number is read exactly, whatever its
//! number of digits, and a part of a byte or of a nanosecond is dropped. There is no `6G`, which means 6·1000³ to some
//! and 6·1024³ to others, no sign and no exponent.
//!
//! [`print_bytes`] and [`print_duration`] write what is read back as the same; [`show_bytes`] rounds, for a person.
//! [`bytes`] and [`seconds`] are for serde's `with`.
//!
//! # Layering
//! At the bottom: it imports nothing of this project, and every crate may import it. It is no part of the scheduler,
//! whose profiles it serves, because a server and a client that know no scheduler read sizes, too.
//!
//! # References
//! * ISO/IEC 80000-13:2008: the binary prefixes Ki, Mi, Gi, Ti.
//!
//! # Example
//! ```
//! use std::time::Duration;
//!
//! use cuzk_units::{parse_bytes, parse_duration, print_bytes};
//!
//! assert_eq!(parse_bytes("256GiB"), Ok(256 << 30));
//! assert_eq!(parse_bytes("1.5 kB"), Ok(1500));
//! assert_eq!(parse_duration("90m"), Ok(Duration::from_secs(5400)));
//! assert_eq!(print_bytes(3 << 29), "1536MiB");
//! assert_eq!(
//!     parse_bytes("6G").unwrap_err().to_string(),
//!     "expected a number of bytes, alone or with B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
//! );
//! ```
#![forbid(unsafe_code)]

mod quantity;
mod read;

pub use quantity::{parse_bytes, parse_duration, print_bytes, print_duration, show_bytes};
pub use read::QuantityError;

pub mod bytes;
pub mod seconds;

/// `2^30` bytes.
pub const GIB: u64 = 1 << 30;

/// What [`parse_bytes`] reads, in words that follow "expected".
pub const BYTES: &str = "a number of bytes, alone or with B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

/// What [`parse_duration`] reads, in words that follow "expected".
pub const DURATION: &str = "a number of seconds, or a number with ns, us, ms, s, m, h, d";
