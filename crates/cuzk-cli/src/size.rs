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
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(SizeError::Form);
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| SizeError::Range)? };
    // From the last digit to the first, with what the digits behind it make in bytes: ⌊(d·unit + rest) / 10⌋. Rounding
    // down at each step is rounding down once, since d·unit is an integer; so any number of digits is read exactly.
    let part = fraction.bytes().rev().fold(0, |rest, digit| (u64::from(digit - b'0') * unit + rest) / 10);
    whole.checked_mul(unit).and_then(|bytes| bytes.checked_add(part)).filter(|bytes| *bytes > 0).ok_or(SizeError::Range)
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
    fn every_digit_of_a_fraction_counts() {
        // 2⁻⁴⁰ has 40 digits.
        let one_byte = "0.0000000000009094947017729282379150390625";
        assert_eq!(parse(&format!("{one_byte}TiB")), Ok(1));
        assert_eq!(parse(&format!("{}4999TiB", &one_byte[..one_byte.len() - 1])), Err(SizeError::Range));
        assert_eq!(parse("1.9999999999999TB"), Ok(1_999_999_999_999));
        assert_eq!(parse("0.9999999999995TiB"), Ok((1 << 40) - 1), "half of 1.0995 bytes are missing");
        assert_eq!(parse(&format!("0.{}GiB", "9".repeat(1000))), Ok((1 << 30) - 1));
        assert_eq!(parse(&format!("0.5{}TiB", "0".repeat(1000))), Ok(1 << 39));
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
