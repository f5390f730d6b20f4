//! Serde: bytes as a whole number, or as a text for [`parse_bytes`].

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};

use crate::{BYTES, parse_bytes};

/// A number of bytes that is read.
struct Bytes(u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BYTES)
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<u64, E> {
        Ok(bytes)
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<u64, E> {
        u64::try_from(bytes).map_err(|_| E::invalid_value(Unexpected::Signed(bytes), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse_bytes(text).map_err(|error| E::custom(format_args!("{text:?}: {error}")))
    }
}

/// Reads it.
///
/// # Errors
/// The deserializer's, with what was expected.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Reader)
}

/// Writes the number.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(*bytes)
}

/// The same for a number that may be absent.
pub mod option {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Bytes;

    /// Reads it.
    ///
    /// # Errors
    /// As [`deserialize`](super::deserialize).
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|bytes| bytes.0))
    }

    /// Writes the number.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(bytes: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_some(bytes),
            None => serializer.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    struct Sizes {
        #[serde(with = "crate::bytes")]
        one: u64,
        #[serde(default, with = "crate::bytes::option")]
        other: Option<u64>,
    }

    fn read(text: &str) -> Result<Sizes, String> {
        toml::from_str(text).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn numbers_and_texts_are_read() {
        assert_eq!(read("one = 5"), Ok(Sizes { one: 5, other: None }));
        assert_eq!(read("one = '2 GiB'\nother = '1kB'"), Ok(Sizes { one: 2 << 30, other: Some(1000) }));
        assert_eq!(read("one = '6G'"), Err(format!("\"6G\": expected {BYTES}")));
        assert_eq!(read("one = -5"), Err(format!("invalid value: integer `-5`, expected {BYTES}")));
        assert_eq!(read("one = true"), Err(format!("invalid type: boolean `true`, expected {BYTES}")));
        assert_eq!(read("one = 0.5"), Err(format!("invalid type: floating point `0.5`, expected {BYTES}")));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for sizes in [Sizes { one: u64::MAX, other: None }, Sizes { one: 0, other: Some(7) }] {
            let text = serde_json::to_string(&sizes).unwrap();
            assert_eq!(serde_json::from_str::<Sizes>(&text).unwrap(), sizes);
        }
    }
}
