//! bellperson's formats: `.params` (proving key) and `.vk` (verifying key, a prefix of the former).
//!
//! ```text
//! alpha_g1 beta_g1 beta_g2 gamma_g2 delta_g1 delta_g2      points
//! u32 n, n × ic                                            the end of a .vk
//! u32 n, n × h    u32 n, n × l    u32 n, n × a    u32 n, n × b_g1    u32 n, n × b_g2
//! ```
//! Counts are big-endian, points uncompressed in the encoding of the curve's crate, nothing is padded, and nothing says
//! which curve or circuit the key is for, or where it came from.
//!
//! The files are read at positions, not mapped into memory: a mapped file that shrinks kills the process with SIGBUS,
//! which no error type can hold.

mod cursor;
mod file;
mod vk;
mod write;

pub use file::ParamsFile;
pub use write::export_params;

pub(crate) use cursor::{Cursor, named, starts_with_points_of};
