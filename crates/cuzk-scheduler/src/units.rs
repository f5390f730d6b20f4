//! Bytes and seconds as people write them in configurations and profiles.

/// `2^30` bytes.
pub const GIB: u64 = 1 << 30;

/// Suffixes of a number of bytes. The longest come first, because `B` ends them all.
const SUFFIXES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A text that is not a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a number of bytes: expected a number and one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")]
pub struct NotBytes {
    /// What was given.
    pub text: String,
}

/// Reads `"256GiB"`, `"25.7 GiB"`, `"47 GB"`, `"4096"`. Fractions are rounded to whole bytes.
///
/// # Errors
/// [`NotBytes`] if it is no number with a known unit, negative, or more than `u64::MAX` bytes.
pub fn parse_bytes(text: &str) -> Result<u64, NotBytes> {
    let fail = || NotBytes { text: text.to_owned() };
    let trimmed = text.trim();
    let (number, unit) =
        SUFFIXES.iter().find_map(|&(s, unit)| Some((trimmed.strip_suffix(s)?, unit))).unwrap_or((trimmed, 1));
    let number = number.trim();
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(fail);
    }
    let value = number.parse::<f64>().map_err(|_| fail())? * unit as f64;
    if value.is_finite() && (0.0..u64::MAX as f64).contains(&value) { Ok(value.round() as u64) } else { Err(fail()) }
}

/// `bytes` for a person: `"16.0 GiB"`, `"512 B"`.
pub fn show_bytes(bytes: u64) -> String {
    SUFFIXES[..4]
        .iter()
        .find(|(_, unit)| bytes >= *unit)
        .map_or_else(|| format!("{bytes} B"), |(suffix, unit)| format!("{:.1} {suffix}", bytes as f64 / *unit as f64))
}

/// Serde: a whole number of bytes, or a text for [`parse_bytes`].
pub mod bytes {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::parse_bytes;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(u64),
        Text(String),
    }

    impl Form {
        fn bytes<E: de::Error>(self) -> Result<u64, E> {
            match self {
                Self::Number(n) => Ok(n),
                Self::Text(t) => parse_bytes(&t).map_err(E::custom),
            }
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// The deserializer's, with the text of [`NotBytes`](super::NotBytes).
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Form::deserialize(deserializer)?.bytes()
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

        use super::Form;

        /// Reads it.
        ///
        /// # Errors
        /// As [`deserialize`](super::deserialize).
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
            Option::<Form>::deserialize(deserializer)?.map(Form::bytes).transpose()
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
}

/// Serde: a duration as seconds, fractions allowed.
pub mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Reads it.
    ///
    /// # Errors
    /// The deserializer's; a negative or infinite number is one.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    /// Writes the seconds.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("256GiB"), Ok(256 << 30));
        assert_eq!(parse_bytes(" 47 GB "), Ok(47_000_000_000));
        assert_eq!(parse_bytes("0.5KiB"), Ok(512));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        for bad in ["", "GiB", "-1 GiB", "1e300 GiB", "nan", "16 Gib", "99999999999 TiB"] {
            assert_eq!(parse_bytes(bad), Err(NotBytes { text: bad.to_owned() }));
        }
        assert_eq!((show_bytes(512), show_bytes(3 << 29)), ("512 B".to_owned(), "1.5 GiB".to_owned()));
    }
}
