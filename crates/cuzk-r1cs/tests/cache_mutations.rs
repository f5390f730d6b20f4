//! Ten thousand damaged cache files: each is refused with an error or has the original's content, and
//! none makes the reader reserve much memory. Alone in its process, because it watches the process's memory.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_r1cs::{R1cs, RecordingCs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A system whose file is small but has offsets, columns, coefficients of two widths and padding.
struct Mixed;

impl Circuit<Scalar> for Mixed {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut variables = vec![CS::one()];
        for i in 0..400u64 {
            let missing = || Err(SynthesisError::AssignmentMissing);
            let next = match i % 50 {
                0 => cs.alloc_input(|| "y", missing)?,
                _ => cs.alloc(|| "x", missing)?,
            };
            let earlier = variables[i as usize / 2];
            let last = variables[i as usize];
            cs.enforce(
                || "mixed",
                |lc| lc + (Scalar::from(i), earlier) + last - next,
                |lc| lc + next,
                |lc| lc + (Scalar::from(i % 7), last) - CS::one(),
            );
            variables.push(next);
        }
        Ok(())
    }
}

/// Largest virtual memory of this process so far, in bytes: it counts reservations that were never touched.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).expect("VmPeak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

/// Elsewhere the bound is not checked.
#[cfg(not(target_os = "linux"))]
fn peak_memory() -> u64 {
    0
}

/// The header up to its zeros.
const HEADER: Range<usize> = 0..216;

/// Values that overflow, wrap, or ask for the moon.
const EXTREMES: [u64; 12] =
    [0, 1, 2, 3, 0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, 1 << 40, 1 << 62, (1 << 62) + 1, u64::MAX - 1, u64::MAX];

fn mutate(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    match rng.gen_range(0..8) {
        // Flips of single bits, anywhere or in the header.
        kind @ 0..=2 => {
            let range = if kind == 0 { 0..bytes.len() } else { HEADER };
            for _ in 0..rng.gen_range(1..4) {
                let at = rng.gen_range(range.clone());
                bytes[at] ^= 1 << rng.gen_range(0..8);
            }
        }
        // A count in the header is extreme or slightly off.
        3 => {
            let at = 8 + 4 * rng.gen_range(0..44);
            let old = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
            let new = match rng.gen_range(0..3) {
                0 => EXTREMES[rng.gen_range(0..EXTREMES.len())],
                1 => old.wrapping_add(rng.gen_range(1..5)),
                _ => old.wrapping_sub(rng.gen_range(1..5)),
            };
            let width = if rng.r#gen() { 8 } else { 4 };
            bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
        }
        4 => bytes.truncate(rng.gen_range(0..bytes.len())),
        // Bytes are inserted, or removed.
        5 => {
            let at = rng.gen_range(0..=bytes.len());
            let n = if rng.r#gen() { 4096 } else { rng.gen_range(1..64) };
            bytes.splice(at..at, std::iter::repeat_n(rng.r#gen::<u8>(), n));
        }
        6 => {
            let at = rng.gen_range(0..bytes.len());
            let end = (at + rng.gen_range(1..64)).min(bytes.len());
            bytes.drain(at..end);
        }
        // A whole section is replaced by another, or by noise.
        _ => {
            let n_pages = bytes.len() / 4096;
            let (from, to) = (rng.gen_range(0..n_pages), rng.gen_range(0..n_pages));
            bytes.copy_within(from * 4096..(from + 1) * 4096, to * 4096);
            if rng.r#gen() {
                rng.fill(&mut bytes[to * 4096..(to + 1) * 4096]);
            }
        }
    }
}

/// Replaces the content in place. Truncating to nothing first would make some file systems flush every
/// single file to the disk.
fn overwrite(file: &mut fs::File, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

#[test]
fn ten_thousand_damaged_files() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = folder.path().join("r1cs");
    let r1cs = RecordingCs::record(Mixed).expect("recorded");
    r1cs.write_cache(&path).expect("written");
    let original = fs::read(&path).expect("read");
    assert_eq!(R1cs::<Scalar>::read_cache(&path).expect("intact"), r1cs);

    let mut file = fs::File::options().write(true).open(&path).expect("opened");
    let before = peak_memory();
    let mut rng = ChaCha8Rng::seed_from_u64(0x0c5a);
    let (mut refused, mut identical) = (0, 0);
    for i in 0..10_000 {
        let mut bytes = original.clone();
        for _ in 0..rng.gen_range(1..3) {
            if bytes.len() > 4096 {
                mutate(&mut bytes, &mut rng);
            }
        }
        overwrite(&mut file, &bytes).expect("written");
        match R1cs::<Scalar>::read_cache(&path) {
            Ok(accepted) => {
                // The format has one file for each system.
                assert_eq!(bytes, original, "file {i} differs and was accepted");
                assert_eq!(accepted, r1cs);
                identical += 1;
            }
            Err(error) => {
                assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
                refused += 1;
            }
        }
    }
    // Some changes undo each other or change nothing (a page copied onto itself).
    assert!(refused > 9_000 && identical < 1_000, "{refused} refused, {identical} identical");
    let growth = peak_memory() - before;
    assert!(growth < 64 << 20, "reading files of 60 kB reserved {growth} bytes");
}
