//! Bytes and durations: their units, and how they are written.

use std::time::Duration;

use crate::{
    BYTES, DURATION,
    read::{Grammar, QuantityError},
};

/// The binary ones first, the largest before the others: printing takes the first that fits.
const BYTE_UNITS: [(&str, u64); 9] = [
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
const BINARY: usize = 4;

/// In nanoseconds, the largest first.
const TIME_UNITS: [(&str, u64); 7] = [
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
const SECOND: u64 = 1_000_000_000;

/// Reads `"256GiB"`, `"25.7 GiB"`, `"47 GB"`, `"4096"`. A part of a byte is dropped.
///
/// # Errors
/// [`QuantityError`]: no number with a known unit, or more than `u64::MAX` bytes.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    Grammar { units: &BYTE_UNITS, bare: 1, expected: BYTES, smallest: "bytes" }.read(text)
}

/// Reads `"500ms"`, `"1.5 h"`, `"24h"`, and `"300"` as seconds. A part of a nanosecond is dropped.
///
/// # Errors
/// [`QuantityError`]: no number with a known unit, or more than `u64::MAX` nanoseconds, which are 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let grammar = Grammar { units: &TIME_UNITS, bare: SECOND, expected: DURATION, smallest: "nanoseconds" };
    grammar.read(text).map(Duration::from_nanos)
}

/// `bytes` in the largest binary unit that they are a multiple of, else as a bare number: `"256GiB"`, `"1000"`. It is
/// read back as the same.
pub fn print_bytes(bytes: u64) -> String {
    let fits = |(_, unit): &&(&str, u64)| bytes != 0 && bytes.is_multiple_of(*unit);
    match BYTE_UNITS[..BINARY].iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// `duration` in the largest unit that it is a multiple of: `"2d"`, `"90m"`, `"1500ms"`, and `"0s"`. It is read back as
/// the same, unless it is longer than what [`parse_duration`] reads.
pub fn print_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    // One divides everything.
    let fits = |(_, unit): &&(&str, u64)| nanos.is_multiple_of(u128::from(*unit));
    TIME_UNITS.iter().find(fits).map_or_else(String::new, |(name, unit)| format!("{}{name}", nanos / u128::from(*unit)))
}

/// `bytes` for a person, rounded: `"16.0 GiB"`, `"512 B"`.
pub fn show_bytes(bytes: u64) -> String {
    BYTE_UNITS[..BINARY]
        .iter()
        .find(|(_, unit)| bytes >= *unit)
        .map_or_else(|| format!("{bytes} B"), |(name, unit)| format!("{:.1} {name}", bytes as f64 / *unit as f64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NO_BYTES: QuantityError = QuantityError::Form { expected: BYTES };
    const TOO_MANY: QuantityError = QuantityError::Range { most: u64::MAX, unit: "bytes" };

    #[test]
    fn bytes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("256GiB", 256 << 30),
            (" 47 GB ", 47_000_000_000),
            ("0.5KiB", 512),
            (".5 gib", 1 << 29),
            ("1.5kb", 1500),
            ("4096", 4096),
            ("7 B", 7),
            ("2TiB", 2 << 40),
            ("0", 0),
            ("0.0000000000009999TB", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", ".", "6G", "six", "-1", "+1", "1.2.3", "1e9", "0x10", "6GiBs", "½GiB", "nan", "1 2"] {
            assert_eq!(parse_bytes(text), Err(NO_BYTES), "{text}");
        }
        for text in ["18446744073709551616", "99999999TiB", "16777216 TiB"] {
            assert_eq!(parse_bytes(text), Err(TOO_MANY), "{text}");
        }
        assert_eq!(TOO_MANY.to_string(), "expected at most 18446744073709551615 bytes");
    }

    #[test]
    fn every_digit_of_a_fraction_counts() {
        // 2⁻⁴⁰ has 40 digits.
        let one_byte = "0.0000000000009094947017729282379150390625";
        assert_eq!(parse_bytes(&format!("{one_byte}TiB")), Ok(1));
        assert_eq!(parse_bytes(&format!("{}4999TiB", &one_byte[..one_byte.len() - 1])), Ok(0));
        assert_eq!(parse_bytes("1.9999999999999TB"), Ok(1_999_999_999_999));
        assert_eq!(parse_bytes("0.9999999999995TiB"), Ok((1 << 40) - 1), "half of 1.0995 bytes are missing");
        assert_eq!(parse_bytes(&format!("0.{}GiB", "9".repeat(1000))), Ok((1 << 30) - 1));
        assert_eq!(parse_bytes(&format!("0.5{}TiB", "0".repeat(1000))), Ok(1 << 39));
        assert_eq!(parse_duration(&format!("0.{}d", "9".repeat(1000))), Ok(Duration::from_nanos(86_400 * SECOND - 1)));
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = Duration::from_secs_f64;
        for (text, duration) in [
            ("5m", seconds(300.0)),
            ("300s", seconds(300.0)),
            ("300", seconds(300.0)),
            ("0.5", seconds(0.5)),
            ("500ms", seconds(0.5)),
            ("48h", seconds(172_800.0)),
            ("1.5 h", seconds(5_400.0)),
            ("2d", seconds(172_800.0)),
            ("7us", Duration::from_micros(7)),
            ("7ns", Duration::from_nanos(7)),
            ("0", Duration::ZERO),
        ] {
            assert_eq!(parse_duration(text), Ok(duration), "{text}");
        }
        for text in ["", "m", "-1s", "5 parsecs", "nan", "inf", "1e3", "5 s s", "1h30m"] {
            assert_eq!(parse_duration(text), Err(QuantityError::Form { expected: DURATION }), "{text}");
        }
        let most = QuantityError::Range { most: u64::MAX, unit: "nanoseconds" };
        assert_eq!(parse_duration("213504d"), Err(most));
        assert!(parse_duration("213503d").is_ok());
    }

    #[test]
    fn the_error_names_all_units() {
        for (units, words) in [(&BYTE_UNITS[..], BYTES), (&TIME_UNITS[..], DURATION)] {
            let named: Vec<&str> = words.split([' ', ',']).collect();
            assert!(units.iter().all(|(name, _)| named.contains(name)), "{words}");
        }
    }

    #[test]
    fn shown_as_people_read_them() {
        assert_eq!([512, 3 << 29, 16 << 30].map(show_bytes), ["512 B", "1.5 GiB", "16.0 GiB"]);
        assert_eq!([0, 1000, 4096, 256 << 30, 3 << 29].map(print_bytes), ["0", "1000", "4KiB", "256GiB", "1536MiB"]);
        let shown = [0, 1_500, 90_000, 5_400_000, 172_800_000].map(|ms| print_duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["0s", "1500ms", "90s", "90m", "2d"]);
        assert_eq!(print_duration(Duration::MAX), format!("{}ns", Duration::MAX.as_nanos()));
    }

    proptest! {
        #[test]
        fn printed_bytes_are_read_back(small in any::<u32>(), log in 0u32..32) {
            let bytes = u64::from(small) << log;
            prop_assert_eq!(parse_bytes(&print_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn shown_bytes_are_read_back_nearly(bytes in 0..u64::MAX / 2) {
            let read = parse_bytes(&show_bytes(bytes)).unwrap();
            // Half a unit of the one decimal, of 1.0 at least.
            prop_assert!(read.abs_diff(bytes) <= bytes / 20, "{} {}", bytes, read);
        }

        #[test]
        fn printed_durations_are_read_back(small in any::<u32>(), unit in 0..TIME_UNITS.len()) {
            let duration = Duration::from_nanos(u64::from(small).saturating_mul(TIME_UNITS[unit].1));
            prop_assert_eq!(parse_duration(&print_duration(duration)), Ok(duration));
        }

        #[test]
        fn decimals_are_read_as_by_exact_arithmetic(whole in 0..1u64 << 20, thousandths in 0..1000u64, at in 0..9usize) {
            let (name, unit) = BYTE_UNITS[at];
            let exact = (u128::from(whole) * 1000 + u128::from(thousandths)) * u128::from(unit) / 1000;
            prop_assert_eq!(parse_bytes(&format!("{whole}.{thousandths:03} {name}")).map(u128::from), Ok(exact));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let (bytes, duration) = (parse_bytes(&text), parse_duration(&text));
            // What both read is a bare number, and counts bytes or seconds.
            if let (Ok(bytes), Ok(duration)) = (bytes, duration) {
                prop_assert_eq!(bytes, duration.as_secs());
            }
        }
    }
}
