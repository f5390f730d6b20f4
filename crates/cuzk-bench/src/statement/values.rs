//! Values of options: each is read from a text in one way, and refused with what was expected.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Unexpected, Visitor},
};

/// A text that is not what an option takes. Whoever asked knows the option and the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// No size that sectors have.
    #[error("expected {}", SectorSize::EXPECTED)]
    SectorSize,
    /// No address of a storage provider.
    #[error("expected {}", Miner::EXPECTED)]
    Miner,
    /// Not 64 digits.
    #[error("{found} characters, expected {}", Hex32::EXPECTED)]
    HexLength {
        /// How many there are.
        found: usize,
    },
    /// Something that is no digit.
    #[error("{found:?} at {at}, expected {}", Hex32::EXPECTED)]
    HexDigit {
        /// What stands there.
        found: char,
        /// After how many characters.
        at: usize,
    },
}

/// A size of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorSize(
    /// In the order of the chain's numbers.
    usize,
);

impl SectorSize {
    const EXPECTED: &'static str = "bytes, or one of 2k, 8m, 512m, 32g, 64g";

    /// In the order of the chain's numbers, by their names in circuits, in registered proofs, and in bytes.
    const ALL: [(&'static str, &'static str, u64); 5] = [
        ("2k", "2KiB", 2 << 10),
        ("8m", "8MiB", 8 << 20),
        ("512m", "512MiB", 512 << 20),
        ("32g", "32GiB", 32 << 30),
        ("64g", "64GiB", 64 << 30),
    ];

    /// How many there are.
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// The one of so many bytes.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        Self::ALL.iter().position(|(.., size)| *size == bytes).map(Self)
    }

    /// The one whose name begins the rest of a registered proof's name, and what follows.
    pub(crate) fn of_registered(text: &str) -> Option<(Self, &str)> {
        let found = |(i, (_, name, _)): (usize, &(_, &str, _))| Some((Self(i), text.strip_prefix(name)?));
        Self::ALL.iter().enumerate().find_map(found)
    }

    /// Its place in the order of the chain's numbers.
    pub(crate) const fn index(self) -> usize {
        self.0
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        Self::ALL[self.0].2
    }
}

impl fmt::Display for SectorSize {
    /// As in names of circuits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[self.0].0)
    }
}

impl FromStr for SectorSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let found = match text.parse() {
            Ok(bytes) => Self::of_bytes(bytes),
            Err(_) => {
                let named = |(short, long, _): &(&str, &str, u64)| {
                    text.eq_ignore_ascii_case(short) || text.eq_ignore_ascii_case(long)
                };
                Self::ALL.iter().position(named).map(Self)
            }
        };
        found.ok_or(ValueError::SectorSize)
    }
}

/// A storage provider, by the number of its actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miner(pub u64);

impl Miner {
    const EXPECTED: &'static str = "an actor's number, or its address such as t01000 or f01000";
}

impl fmt::Display for Miner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Miner {
    type Err = ValueError;

    /// `t` and `f` are the test and the main network, 0 is the protocol of addresses that are numbers.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = text.strip_prefix("t0").or_else(|| text.strip_prefix("f0")).unwrap_or(text);
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        number.parse().ok().filter(|_| digits).map(Self).ok_or(ValueError::Miner)
    }
}

/// 32 bytes in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex32(pub [u8; 32]);

impl Hex32 {
    const EXPECTED: &'static str = "64 hexadecimal digits";
}

impl fmt::Display for Hex32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for Hex32 {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wrong = text.chars().enumerate().find(|(_, c)| !c.is_ascii_hexdigit());
        if let Some((at, found)) = wrong {
            return Err(ValueError::HexDigit { found, at });
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ValueError::HexLength { found: text.len() })?;
        Ok(Self(bytes))
    }
}

/// Reads a value from a text, or from a number if it may be one.
struct Reader<T> {
    expected: &'static str,
    of_number: fn(u64) -> Option<T>,
}

impl<T: FromStr<Err = ValueError>> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.of_number)(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let of_number = u64::try_from(number).ok().and_then(self.of_number);
        of_number.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error: ValueError| E::custom(format_args!("{text:?}: {error}")))
    }
}

impl<'de> Deserialize<'de> for SectorSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader { expected: Self::EXPECTED, of_number: Self::of_bytes })
    }
}

impl<'de> Deserialize<'de> for Miner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader { expected: Self::EXPECTED, of_number: |number| Some(Self(number)) })
    }
}

impl<'de> Deserialize<'de> for Hex32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Digits without quotes would lose zeros in front.
        deserializer.deserialize_any(Reader { expected: Self::EXPECTED, of_number: |_| None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_names_and_bytes() {
        for (index, (short, long, bytes)) in SectorSize::ALL.into_iter().enumerate() {
            for text in [short, long, &long.to_lowercase(), &short.to_uppercase(), &bytes.to_string()] {
                assert_eq!(text.parse(), Ok(SectorSize(index)), "{text}");
            }
            assert_eq!(SectorSize(index).to_string(), short);
        }
        for text in ["", "3k", "2", "2 KiB", "2kb", "1024"] {
            assert_eq!(text.parse::<SectorSize>(), Err(ValueError::SectorSize), "{text}");
        }
    }

    #[test]
    fn miners_are_numbers_or_addresses() {
        for text in ["1000", "t01000", "f01000"] {
            assert_eq!(text.parse(), Ok(Miner(1000)), "{text}");
        }
        assert_eq!("0".parse(), Ok(Miner(0)));
        // Other protocols than 0 are hashes of keys.
        for text in ["", "t0", "t1000", "f3abc", "x01000", "+5", "-5", "t0+5", "18446744073709551616", "T01000"] {
            assert_eq!(text.parse::<Miner>(), Err(ValueError::Miner), "{text}");
        }
    }

    #[test]
    fn hexadecimal_is_told_what_is_wrong() {
        let text = "0a".repeat(32);
        assert_eq!(text.parse(), Ok(Hex32([10; 32])));
        assert_eq!(text.to_uppercase().parse::<Hex32>().unwrap().to_string(), text);
        assert_eq!("ab".parse::<Hex32>().unwrap_err().to_string(), "2 characters, expected 64 hexadecimal digits");
        assert_eq!("0x".repeat(32).parse::<Hex32>(), Err(ValueError::HexDigit { found: 'x', at: 1 }));
        assert_eq!("".parse::<Hex32>(), Err(ValueError::HexLength { found: 0 }));
    }

    #[test]
    fn plans_take_numbers_where_they_are_meant() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct All {
            size: SectorSize,
            miner: Miner,
        }
        let read = |text: &str| toml::from_str::<All>(text).map_err(|e| e.message().to_owned());
        let all = All { size: SectorSize(0), miner: Miner(1000) };
        assert_eq!(read("size = 2048\nminer = 1000").unwrap(), all);
        assert_eq!(read("size = '2k'\nminer = 't01000'").unwrap(), all);
        assert_eq!(
            read("size = 2048\nminer = -1"),
            Err(format!("invalid value: integer `-1`, expected {}", Miner::EXPECTED))
        );
        assert_eq!(read("size = '3k'\nminer = 1"), Err(format!("\"3k\": expected {}", SectorSize::EXPECTED)));
    }
}
