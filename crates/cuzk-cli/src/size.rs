//! Sizes on the command line: `6GiB`, `0.5 GiB`, `512MB`, or bytes.

/// A text that is no size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SizeError {
    /// Not a number with a unit.
    #[error("expected a number of bytes, or one with KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (of 1000)")]
    Form,
    /// Less than a byte, or more than can be counted.
    #[error("out of range: from 1 byte to 16 EiB")]
    Range,
}

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// The bytes of a size. Parts of a byte are dropped.
pub(crate) fn parse(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(SizeError::Form)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // A fraction beyond 12 digits is less than a byte of any unit.
    let fraction = &fraction[..fraction.len().min(12)];
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(SizeError::Form);
    }
    let value = |digits: &str| if digits.is_empty() { Ok(0) } else { digits.parse::<u64>() };
    let (whole, part) = (value(whole).map_err(|_| SizeError::Range)?, value(fraction).map_err(|_| SizeError::Form)?);
    let scale = 10u128.pow(fraction.len() as u32);
    let bytes = u128::from(whole) * u128::from(unit) + u128::from(part) * u128::from(unit) / scale;
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0).ok_or(SizeError::Range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly() {
        for (text, bytes) in [
            ("6GiB", 6 << 30),
            ("0.5GiB", 1 << 29),
            (".5 gib", 1 << 29),
            ("1.5kB", 1500),
            ("12345", 12345),
            ("7 B", 7),
            ("2TiB", 2 << 40),
            ("0.0000000000009999TB", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            let expected = if bytes == 0 { Err(SizeError::Range) } else { Ok(bytes) };
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "GiB", ".", "6G", "six", "-1", "1.2.3", "1e9", "0x10", "6GiBs", "½GiB"] {
            assert_eq!(parse(text), Err(SizeError::Form), "{text}");
        }
        for text in ["0", "0.0GiB", "18446744073709551616", "99999999TiB"] {
            assert_eq!(parse(text), Err(SizeError::Range), "{text}");
        }
    }
}
