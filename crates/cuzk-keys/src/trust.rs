//! Which keys have been checked, so that it is done once for each content.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use cuzk_curve::Curve;
use serde::{Deserialize, Serialize};

use crate::{Digest, FileIdentity, KeyError, KeySource, ProgressFn, atomic::AtomicFile, check_points, stream};

/// The name carries the version of the content: another version is another file.
const FILE_NAME: &str = "checked-keys-v1.json";

/// A file that was changed less than this long ago is not recognized by its times: it could be written once more within
/// the same tick of the file system's clock (2 s on the coarsest in use).
const CLOCK_RESOLUTION_S: i64 = 2;

/// How a key came to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The file is the one that was seen before: nothing was read.
    SameFile,
    /// The content was checked before: it was read and hashed.
    SameContent,
    /// Every point was checked just now.
    Checked,
}

/// A memory of checked keys: a small JSON file in a directory that the caller names.
///
/// # What is guaranteed
/// A key is trusted without [`check_points`] only if a key with the same content digest and size passed it before. The
/// digest is computed from the content, not taken from a header, unless the file is the one it was computed for: same
/// device, inode, size, and times of last write and last change to the nanosecond, the latter at least 2 s old when it
/// was recorded. Any write through the file system changes the time of last change, which no program can set. So a file
/// that was replaced, rewritten or touched is read and hashed anew.
///
/// Not covered: a clock that was set back, writing to the block device beneath the file system, damage of the medium
/// (native keys find it when they are loaded), a shared mapping whose writes have not reached the file yet, and whoever
/// can write to the directory of the store itself.
///
/// Two processes may use one store: each merges what the other has written. An entry lost in a race costs one check more.
#[derive(Debug)]
pub struct TrustStore {
    path: PathBuf,
    entries: Entries,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    /// Keys that passed, by content digest.
    keys: BTreeMap<Digest, Key>,
    /// Files that were hashed, by device and inode.
    files: BTreeMap<String, Seen>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    curve: String,
    /// Bytes of all points of the five sections in memory.
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    identity: FileIdentity,
    digest: Digest,
}

impl TrustStore {
    /// Opens the store in a directory, which is made if it is not there. A store that cannot be understood counts as
    /// empty: its keys are checked again.
    ///
    /// # Errors
    /// The directory cannot be made, or the store cannot be read.
    pub fn open(directory: &Path) -> Result<Self, KeyError> {
        fs::create_dir_all(directory).map_err(|source| KeyError::Io {
            path: directory.to_owned(),
            action: "create",
            source,
        })?;
        let path = directory.join(FILE_NAME);
        let entries = read(&path)?;
        Ok(Self { path, entries })
    }

    /// Whether a content has passed the check. The digest must come from the content itself.
    pub fn is_checked(&self, digest: &Digest) -> bool {
        self.entries.keys.contains_key(digest)
    }

    /// Checks a key unless its content has passed before; see [`TrustStore`] for what that means exactly.
    ///
    /// # Errors
    /// As [`check_points`] and [`KeySource::verify_digests`]; the store cannot be written.
    pub fn ensure_checked<C: Curve>(
        &mut self,
        source: &dyn KeySource<C>,
        progress: ProgressFn<'_>,
    ) -> Result<Trust, KeyError> {
        let identity = source.identity();
        let size = stream::bytes(source);
        if let Some(identity) = identity
            && let Some(seen) = self.entries.files.get(&name(&identity))
            && seen.identity == identity
            && self.has(&seen.digest, C::ID.to_string(), size)
        {
            source.check_unchanged()?;
            return Ok(Trust::SameFile);
        }
        // A native key takes its digest from the header; comparing the content with it makes it a digest of the content.
        source.verify_digests(progress)?;
        let digest = source.digest()?;
        let trust = if self.has(&digest, C::ID.to_string(), size) {
            Trust::SameContent
        } else {
            check_points(source, progress)?;
            Trust::Checked
        };
        // What was hashed and what was checked must be one state of the file.
        source.check_unchanged()?;
        self.entries.keys.insert(digest, Key { curve: C::ID.to_string(), bytes: size });
        if let Some(identity) = identity.filter(is_settled) {
            self.entries.files.insert(name(&identity), Seen { identity, digest });
        }
        self.save()?;
        Ok(trust)
    }

    fn has(&self, digest: &Digest, curve: String, bytes: u64) -> bool {
        self.entries.keys.get(digest) == Some(&Key { curve, bytes })
    }

    fn save(&mut self) -> Result<(), KeyError> {
        let others = read(&self.path)?;
        for (digest, key) in others.keys {
            self.entries.keys.entry(digest).or_insert(key);
        }
        for (name, seen) in others.files {
            self.entries.files.entry(name).or_insert(seen);
        }
        let json = serde_json::to_vec_pretty(&self.entries).map_err(|error| KeyError::Io {
            path: self.path.clone(),
            action: "encode",
            source: error.into(),
        })?;
        let mut file = AtomicFile::create(&self.path)?;
        file.write(&json)?;
        file.commit()
    }
}

fn read(path: &Path) -> Result<Entries, KeyError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::default()),
        Err(source) => return Err(KeyError::Io { path: path.to_owned(), action: "read", source }),
    };
    Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "cannot understand the store of checked keys: starting anew");
        Entries::default()
    }))
}

fn name(identity: &FileIdentity) -> String {
    format!("{}:{}", identity.device, identity.inode)
}

/// Whether the last change is so old that the next one will have another time.
fn is_settled(identity: &FileIdentity) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).is_ok_and(|now| now.saturating_sub(identity.changed_s) > CLOCK_RESOLUTION_S)
}
