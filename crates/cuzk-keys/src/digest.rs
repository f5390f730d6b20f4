//! BLAKE3 digests: of bytes in a file, and of the content of a key whatever its format.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// 32 bytes of BLAKE3, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The BLAKE3 hash of bytes in memory, on all cores when there are many.
    pub fn of(bytes: &[u8]) -> Self {
        // Below this length splitting the work costs more than it gains (blake3's own advice for `update_rayon`).
        const PARALLEL_FROM: usize = 128 << 10;
        let mut hasher = blake3::Hasher::new();
        if bytes.len() < PARALLEL_FROM {
            hasher.update(bytes);
        } else {
            hasher.update_rayon(bytes);
        }
        Self::finish(&hasher)
    }

    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: expected 64 hexadecimal digits")]
pub struct NotADigest(pub String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || NotADigest(text.to_owned());
        let digits: Vec<u8> = text
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
            .collect::<Option<_>>()
            .ok_or_else(error)?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | d)).collect();
        if digits.len() != 64 {
            return Err(error());
        }
        bytes.try_into().map(Self).map_err(|_| error())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_agree_with_the_published_vector_and_round_trip() {
        // BLAKE3 of the empty input, from the test vectors of the specification.
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse::<Digest>(), Ok(Digest::of(b"")));
        for bad in ["", "af", &empty[1..], &format!("{empty}00"), &empty.replace('a', "g"), &empty.replace("af", "é")]
        {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_parallel_hash_is_the_hash() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| ((i * i) >> 3) as u8).collect();
        assert_eq!(Digest::of(&bytes).0, *blake3::hash(&bytes).as_bytes());
    }
}
