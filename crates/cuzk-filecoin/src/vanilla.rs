//! Vanilla proofs as byte strings: base64 lists and bounded bincode.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bincode::Options as _;
use serde::{Serialize, de::DeserializeOwned};

use crate::{FilecoinError, error::published};

/// Parses a JSON array of base64 strings, as Go writes a `[][]byte`.
///
/// # Errors
/// [`FilecoinError::Json`] if it is no array of strings, [`FilecoinError::Base64`] with the number
/// of the string that is not standard padded base64.
pub fn parse_vanilla_list(json: &[u8]) -> Result<Vec<Vec<u8>>, FilecoinError> {
    let texts: Vec<String> =
        serde_json::from_slice(json).map_err(|source| FilecoinError::Json { place: "vanilla proofs", source })?;
    texts
        .iter()
        .enumerate()
        .map(|(i, text)| {
            STANDARD
                .decode(text)
                .map_err(|source| FilecoinError::Base64 { place: format!("vanilla proof {i}"), source })
        })
        .collect()
}

/// Writes what [`parse_vanilla_list`] reads.
///
/// ```
/// let list = vec![vec![1, 2, 3], vec![]];
/// let json = cuzk_filecoin::write_vanilla_list(&list);
/// assert_eq!(json, r#"["AQID",""]"#);
/// assert_eq!(cuzk_filecoin::parse_vanilla_list(json.as_bytes())?, list);
/// # Ok::<(), cuzk_filecoin::FilecoinError>(())
/// ```
pub fn write_vanilla_list(proofs: &[Vec<u8>]) -> String {
    // Base64 has no character that JSON escapes.
    let texts: Vec<String> = proofs.iter().map(|proof| format!("\"{}\"", STANDARD.encode(proof))).collect();
    format!("[{}]", texts.join(","))
}

/// Reads bincode of exactly `bytes.len()` bytes.
///
/// No count in it can claim more bytes than there are, and a list is allocated at no more than
/// 1 MiB before its elements have been seen (serde's rule), so allocation stays in proportion to
/// the input.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], place: impl FnOnce() -> String) -> Result<T, FilecoinError> {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_limit(bytes.len() as u64)
        .reject_trailing_bytes()
        .deserialize(bytes)
        .map_err(|source| FilecoinError::Bincode { place: place(), bytes: bytes.len(), source })
}

/// Writes the bincode that [`decode`] reads.
pub(crate) fn encode<T: Serialize>(proof: &T) -> Result<Vec<u8>, FilecoinError> {
    bincode::DefaultOptions::new().with_fixint_encoding().serialize(proof).map_err(published("bincode"))
}
