//! Verifying keys in bellperson's `.vk` format.

use std::path::Path;

use cuzk_curve::Curve;
use group::UncompressedEncoding;

use super::{Cursor, named};
use crate::{
    Format, KeyError, Part, VerifyingKey,
    atomic::AtomicFile,
    codec,
    file::{KeyFile, ReadAt},
};

impl<C: Curve> VerifyingKey<C> {
    /// Reads bellperson's `.vk`, and checks every point in full.
    ///
    /// # Errors
    /// Bytes that are not exactly a verifying key of this curve.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        parse(bytes)
    }

    /// Reads a `.vk` file as [`VerifyingKey::from_bytes`] does.
    ///
    /// # Errors
    /// As [`VerifyingKey::from_bytes`], and whatever is wrong with the file.
    pub fn read_file(path: &Path) -> Result<Self, KeyError> {
        parse(&KeyFile::open(path)?)
    }

    /// The bytes that bellperson's `VerifyingKey::write` writes.
    ///
    /// # Errors
    /// [`KeyError::BadCount`] if there are more inputs than the format's 32 bits can count.
    pub fn to_bytes(&self) -> Result<Vec<u8>, KeyError> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(self.alpha_g1.to_uncompressed().as_ref());
        bytes.extend_from_slice(self.beta_g1.to_uncompressed().as_ref());
        bytes.extend_from_slice(self.beta_g2.to_uncompressed().as_ref());
        bytes.extend_from_slice(self.gamma_g2.to_uncompressed().as_ref());
        bytes.extend_from_slice(self.delta_g1.to_uncompressed().as_ref());
        bytes.extend_from_slice(self.delta_g2.to_uncompressed().as_ref());
        bytes.extend_from_slice(&super::write::count(self.ic.len(), Part::Ic)?);
        bytes.extend_from_slice(&codec::encode_all(&self.ic));
        Ok(bytes)
    }

    /// Writes a `.vk` file; it appears under its name only when it is complete.
    ///
    /// # Errors
    /// As [`VerifyingKey::to_bytes`], and what the system refuses.
    pub fn write_file(&self, path: &Path) -> Result<(), KeyError> {
        let mut file = AtomicFile::create(path)?;
        file.write(&self.to_bytes()?)?;
        file.commit()
    }
}

fn parse<C: Curve, R: ReadAt + ?Sized>(source: &R) -> Result<VerifyingKey<C>, KeyError> {
    let parse = || {
        let mut cursor = Cursor::new(source, C::ID);
        let (vk, _) = cursor.verifying_key()?;
        cursor.finish()?;
        Ok(vk)
    };
    parse().map_err(|error| named(source, Format::Vk, C::ID, error))
}
