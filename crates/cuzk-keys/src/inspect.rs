//! What a key file is, for people and scripts.

use std::path::{Path, PathBuf};

use cuzk_curve::{Curve, CurveId, GroupId, with_curve};
use serde::Serialize;

use crate::{
    Digest, Format, KeyError, KeySource, NativeKeyFile, ParamsFile, Part, ProgressFn, Provenance, Section,
    VerifyingKey,
    file::{KeyFile, ReadAt},
    native, params,
};

/// Which digests an inspection reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digests {
    /// Those that the file records: takes no time.
    Recorded,
    /// All of them, and recorded ones are compared with the content: reads the whole file.
    Computed,
}

/// What a key file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The curve's name.
    pub curve: String,
    /// Size of the file.
    pub file_bytes: u64,
    /// BLAKE3 of the file.
    pub file_digest: Option<Digest>,
    /// Digest of the content, equal in every format; see [`KeySource::digest`].
    pub content_digest: Option<Digest>,
    /// Public inputs, with the constant one.
    pub inputs: usize,
    /// log2 of the size of the evaluation domain; none for a verifying key.
    pub log_domain: Option<u32>,
    /// The sections, in file order; none for a verifying key.
    pub sections: Vec<SectionInfo>,
    /// How the key was made; none for a verifying key.
    pub provenance: Option<Provenance>,
    /// [`Provenance::is_production`]; false for a verifying key, which does not say.
    pub is_production: bool,
}

/// One section of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SectionInfo {
    /// Which one.
    pub section: Section,
    /// "G1" or "G2".
    pub group: String,
    /// Offset of the first point in the file, in bytes.
    pub offset: u64,
    /// Number of points.
    pub points: usize,
    /// Bytes of these points (as many in the file as in memory).
    pub bytes: u64,
    /// BLAKE3 of the Montgomery limbs, if the file records it.
    pub digest: Option<Digest>,
}

/// Finds out format and curve of a key file and describes it.
///
/// # Errors
/// The file is no key, or one with a fault that opening it finds ([`ParamsFile::open`], [`NativeKeyFile::open`],
/// [`VerifyingKey::read_file`]); with [`Digests::Computed`] also damage anywhere.
pub fn inspect(path: &Path, digests: Digests, progress: ProgressFn<'_>) -> Result<KeyInfo, KeyError> {
    let file = KeyFile::open(path)?;
    if starts_native(&file)? {
        let curve = native::curve_of(&file)?;
        return with_curve!(curve, C => inspect_native::<C>(path, digests, progress));
    }
    let curve = CurveId::ALL.into_iter().find(|curve| params::starts_with_points_of(&file, *curve));
    // With no curve to go by, the error of any reader says what the file looks like.
    let curve = curve.unwrap_or(CurveId::Bls12_381);
    if ends_with_ic(&file, curve)? {
        with_curve!(curve, C => inspect_vk::<C>(&file, digests, progress))
    } else {
        with_curve!(curve, C => inspect_params::<C>(path, digests, progress))
    }
}

fn starts_native(file: &KeyFile) -> Result<bool, KeyError> {
    let mut magic = [0; native::MAGIC.len()];
    if file.len() < magic.len() as u64 {
        return Ok(false);
    }
    file.read_at(&mut magic, 0)?;
    Ok(magic == native::MAGIC)
}

/// Whether the file has the size of a verifying key with the count that it declares.
fn ends_with_ic(file: &KeyFile, curve: CurveId) -> Result<bool, KeyError> {
    let (g1, g2) = (curve.affine_bytes(GroupId::G1) as u64, curve.affine_bytes(GroupId::G2) as u64);
    let count_at = 3 * (g1 + g2);
    if file.len() < count_at + 4 {
        return Ok(false);
    }
    let mut count = [0; 4];
    file.read_at(&mut count, count_at)?;
    Ok(file.len() == count_at + 4 + u64::from(u32::from_be_bytes(count)) * g1)
}

fn inspect_vk<C: Curve>(file: &KeyFile, digests: Digests, progress: ProgressFn<'_>) -> Result<KeyInfo, KeyError> {
    let vk = VerifyingKey::<C>::read_file(file.path())?;
    let file_digest = match digests {
        Digests::Recorded => None,
        Digests::Computed => Some(file.hash_all(progress)?),
    };
    Ok(KeyInfo {
        path: file.path().to_owned(),
        format: Format::Vk,
        curve: C::ID.to_string(),
        file_bytes: file.len(),
        file_digest,
        content_digest: None,
        inputs: vk.ic.len(),
        log_domain: None,
        sections: Vec::new(),
        provenance: None,
        is_production: false,
    })
}

fn inspect_params<C: Curve>(path: &Path, digests: Digests, progress: ProgressFn<'_>) -> Result<KeyInfo, KeyError> {
    let key = ParamsFile::<C>::open(path)?;
    let mut info = describe(&key, path, Format::Params, key.file_bytes());
    if digests == Digests::Computed {
        let source = key.file_digest(progress)?;
        info.file_digest = Some(source);
        info.content_digest = Some(key.digest()?);
        info.provenance = Some(Provenance::Imported { source: Some(source) });
    }
    Ok(info)
}

fn inspect_native<C: Curve>(path: &Path, digests: Digests, progress: ProgressFn<'_>) -> Result<KeyInfo, KeyError> {
    let key = NativeKeyFile::<C>::open(path)?;
    let mut info = describe(&key, path, Format::Native, key.file_bytes());
    info.content_digest = Some(key.digest()?);
    if digests == Digests::Computed {
        key.verify_digests(progress)?;
        info.file_digest = Some(key.file_digest(progress)?);
    }
    Ok(info)
}

fn describe<C: Curve>(key: &dyn KeySource<C>, path: &Path, format: Format, file_bytes: u64) -> KeyInfo {
    let sections = Section::ALL.map(|section| SectionInfo {
        section,
        group: section.group().to_string(),
        offset: key.offset(Part::from(section), 0),
        points: key.count(section),
        bytes: key.count(section) as u64 * C::ID.affine_bytes(section.group()) as u64,
        digest: key.section_digest(section),
    });
    KeyInfo {
        path: path.to_owned(),
        format,
        curve: C::ID.to_string(),
        file_bytes,
        file_digest: None,
        content_digest: None,
        inputs: key.vk().ic.len(),
        log_domain: key.counts().log_domain(),
        sections: sections.into(),
        provenance: Some(key.provenance().clone()),
        is_production: key.provenance().is_production(),
    }
}
