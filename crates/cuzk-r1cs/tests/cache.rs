//! Cache files: what is written is read back, and every damage has its error.

use std::fs;
use std::path::Path;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use cuzk_r1cs::cache::CacheError;
use cuzk_r1cs::{MatrixError, R1cs, RecordingCs};
use ff::PrimeField;
use tempfile::TempDir;

/// `n` products with ever new coefficients.
struct Products(u64);

impl<F: PrimeField> Circuit<F> for Products {
    fn synthesize<CS: ConstraintSystem<F>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let y = cs.alloc_input(|| "y", || Err(SynthesisError::AssignmentMissing))?;
        let mut previous = y;
        for i in 0..self.0 {
            let next = cs.alloc(|| "x", || Err(SynthesisError::AssignmentMissing))?;
            cs.enforce(
                || "product",
                |lc| lc + (F::from(i + 2), previous) - y,
                |lc| lc + previous + CS::one(),
                |lc| lc + next,
            );
            previous = next;
        }
        Ok(())
    }
}

fn record<F: PrimeField>(n: u64) -> R1cs<F> {
    RecordingCs::record(Products(n)).expect("recorded")
}

type Fr = blstrs::Scalar;

/// A folder with the cache of 300 products, in which one file is changed.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Result<R1cs<Fr>, CacheError> {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("r1cs");
    record::<Fr>(300).write_cache(&path).expect("written");
    let mut bytes = fs::read(&path).expect("read");
    change(&mut bytes);
    fs::write(&path, bytes).expect("written");
    R1cs::read_cache(&path)
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

#[test]
fn what_is_written_is_read_back() {
    fn round_trip<F: PrimeField>(folder: &Path) {
        for n in [0, 1, 300, 70_000] {
            let path = folder.join(format!("{n}-{}", F::NUM_BITS));
            let r1cs = record::<F>(n);
            let len = r1cs.write_cache(&path).expect("written");
            assert_eq!(len, fs::metadata(&path).expect("it exists").len());
            assert_eq!(len % 4096, 0);
            let again = R1cs::<F>::read_cache(&path).expect("intact");
            assert_eq!(again, r1cs);
            assert_eq!(again.digest(), r1cs.digest());
        }
    }
    let folder = TempDir::new().expect("a temporary folder");
    round_trip::<blstrs::Scalar>(folder.path());
    round_trip::<halo2curves::bn256::Fr>(folder.path());
    // Nothing but the files remains in the folder.
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 8);
}

#[test]
fn writing_replaces_the_old_file_or_leaves_it_alone() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("r1cs");
    record::<Fr>(5).write_cache(&path).expect("written");
    record::<Fr>(6).write_cache(&path).expect("written again");
    assert_eq!(R1cs::<Fr>::read_cache(&path).expect("intact"), record(6));

    // A folder cannot be replaced by a file; the temporary file is gone again.
    let occupied = folder.path().join("occupied");
    fs::create_dir(&occupied).expect("created");
    let error = record::<Fr>(5).write_cache(&occupied).expect_err("a folder is in the way");
    assert!(matches!(error, CacheError::Io { action: "rename", .. }), "{error}");
    let error = record::<Fr>(5).write_cache(&folder.path().join("no/such")).expect_err("no folder");
    assert!(matches!(error, CacheError::Io { action: "create", .. }), "{error}");
    let error = record::<Fr>(5).write_cache(Path::new("/")).expect_err("not a file name");
    assert!(matches!(error, CacheError::NotAFile { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    let error = R1cs::<Fr>::read_cache(folder.path()).expect_err("a folder");
    assert!(matches!(error, CacheError::NotAFile { .. }), "{error}");
    let error = R1cs::<Fr>::read_cache(&folder.path().join("missing")).expect_err("missing");
    assert!(matches!(error, CacheError::Io { action: "stat", .. }), "{error}");
    let empty = folder.path().join("empty");
    fs::write(&empty, []).expect("written");
    let error = R1cs::<Fr>::read_cache(&empty).expect_err("empty");
    assert_eq!(
        error.to_string(),
        format!("{}: header at offset 0 needs 4096 bytes, but the file ends after 0", empty.display()),
    );
}

#[test]
fn foreign_files_are_refused() {
    let error = changed(|bytes| put(bytes, 0, b"\x7fELF")).expect_err("another magic");
    let CacheError::Magic { found, .. } = error else { panic!("{error}") };
    assert_eq!(found, *b"\x7fELFR1CS");

    let error = changed(|bytes| put(bytes, 8, &[2])).expect_err("another version");
    assert!(error.to_string().ends_with("header at offset 8: version is 2, expected 1"), "{error}");

    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("bn254");
    record::<halo2curves::bn256::Fr>(300).write_cache(&path).expect("written");
    let error = R1cs::<Fr>::read_cache(&path).expect_err("another field");
    let CacheError::Field { expected, found, offset: 16, .. } = error else { panic!("{error}") };
    assert!(expected.starts_with("73eda753") && expected.ends_with("00000001"), "{expected}");
    assert!(found.starts_with("30644e72") && found.ends_with("f0000001"), "{found}");
}

#[test]
fn damage_is_named_with_section_and_offset() {
    // 300 products: n_constraints at 96, descriptors from 104 on, offsets of A at 4096.
    let error = changed(|bytes| bytes.truncate(bytes.len() - 1)).expect_err("one byte less");
    let CacheError::FileLength { expected, found, .. } = error else { panic!("{error}") };
    assert_eq!(expected, found + 1);
    let error = changed(|bytes| bytes.push(0)).expect_err("one byte more");
    assert!(matches!(error, CacheError::FileLength { .. }), "{error}");

    for (offset, field, value) in [
        (80, "n_inputs", 0),
        (80, "n_inputs", 303),
        (80, "n_inputs", u64::MAX),
        (88, "n_aux", u64::from(u32::MAX)),
        (96, "n_constraints", u64::MAX),
        (96, "n_constraints", 1 << 40),
        (104, "nnz", u64::MAX),
        (128, "nnz", 1 << 62),
        (112, "dictionary entries", 1),
        (112, "dictionary entries", u64::MAX),
    ] {
        let error = changed(|bytes| put(bytes, offset, &value.to_le_bytes())).expect_err(field);
        let CacheError::HeaderRange { field: f, offset: o, found, .. } = error else { panic!("{error}") };
        assert_eq!((f, o as usize, found), (field, offset, value));
    }
    for (offset, field) in
        [(120, "bytes of a row offset"), (124, "bytes of a coefficient index"), (176, "length of the file")]
    {
        let error = changed(|bytes| bytes[offset] ^= 0x40).expect_err(field);
        let CacheError::HeaderValue { field: f, offset: o, .. } = error else { panic!("{error}") };
        assert_eq!((f, o as usize), (field, offset));
    }

    // 303 offsets of 4 bytes end at 4096 + 1212; zeros follow to 8192, where the columns start.
    let error = changed(|bytes| bytes[5310] = 3).expect_err("padding");
    assert!(error.to_string().ends_with("padding after A.offsets at offset 5310 holds 0x03, expected 0"), "{error}");
    let error = changed(|bytes| put(bytes, 4100, &[0xff; 4])).expect_err("an offset");
    let CacheError::Matrix { section, offset: 4096, source, .. } = error else { panic!("{error}") };
    assert_eq!(section, "A.offsets");
    assert!(matches!(source, MatrixError::NonMonotoneOffsets { row: 1, .. }), "{source}");
    let error = changed(|bytes| put(bytes, 8192, &[0xff; 4])).expect_err("a column");
    let CacheError::Matrix { section, offset: 8192, source, .. } = error else { panic!("{error}") };
    assert_eq!(section, "A.columns");
    assert!(matches!(source, MatrixError::ColumnOutOfRange { row: 0, .. }), "{source}");

    // A: 1 + 299 · 2 + 2 = 601 columns (the first row is 2y - y) end before 12,288, where the indices
    // start; 601 indices of 2 bytes end before 16,384, where the dictionary starts.
    let error = changed(|bytes| put(bytes, 16_384 + 64, &[0xff; 32])).expect_err("a scalar");
    let CacheError::Scalar { section, offset, entry, .. } = error else { panic!("{error}") };
    assert_eq!((section.as_str(), offset, entry), ("A.dictionary", 16_448, 2));

    // Another valid coefficient: only the digest tells.
    let error = changed(|bytes| put(bytes, 16_384 + 64, &[0xab; 31])).expect_err("a coefficient");
    assert!(matches!(error, CacheError::Digest { offset: 184, .. }), "{error}");
    let error = changed(|bytes| bytes[184] ^= 1).expect_err("the digest");
    assert!(matches!(error, CacheError::Digest { offset: 184, .. }), "{error}");
    // Variables moved from inputs to aux: the input rows do not fit any more.
    let error = changed(|bytes| {
        put(bytes, 80, &1u64.to_le_bytes());
        put(bytes, 88, &301u64.to_le_bytes());
    });
    assert!(matches!(error, Err(CacheError::System { .. })), "{error:?}");
}
