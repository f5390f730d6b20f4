//! How long a caller waits: the header `grpc-timeout`.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

/// When the caller of a call gives up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) Instant);

/// Before the caller gives up, the answer must be on its way.
const MOST_MARGIN: Duration = Duration::from_millis(100);

/// Longer than anybody waits, and short enough to be added to now.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

impl Deadline {
    /// The deadline of a call that arrives now, if it has one that can be understood.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let timeout = parse(headers.get("grpc-timeout")?.as_bytes())?;
        Some(Self(Instant::now() + timeout - (timeout / 10).min(MOST_MARGIN)))
    }

    /// What is left.
    pub(super) fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// At most eight digits and a unit (gRPC over HTTP/2, "Timeout").
fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let timeout = match unit {
        b'H' => Duration::from_secs(value * 3_600),
        b'M' => Duration::from_secs(value * 60),
        b'S' => Duration::from_secs(value),
        b'm' => Duration::from_millis(value),
        b'u' => Duration::from_micros(value),
        b'n' => Duration::from_nanos(value),
        _ => return None,
    };
    Some(timeout.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_protocol_says() {
        for (text, timeout) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("30M", Some(Duration::from_secs(1800))),
            ("5S", Some(Duration::from_secs(5))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("99999999H", Some(LONGEST)),
            ("", None),
            ("S", None),
            ("5", None),
            ("5s", None),
            ("-5S", None),
            ("+5S", None),
            ("100000000S", None),
        ] {
            assert_eq!(parse(text.as_bytes()), timeout, "{text}");
        }
    }

    #[test]
    fn an_answer_comes_before_the_caller_gives_up() {
        let deadline = |text| {
            let value = http::HeaderValue::from_static(text);
            Deadline::of(&[(http::HeaderName::from_static("grpc-timeout"), value)].into_iter().collect())
        };
        assert!(deadline("10S").unwrap().remaining() <= Duration::from_millis(9_900));
        assert!(deadline("10m").unwrap().remaining() <= Duration::from_millis(9));
        assert!(deadline("soon").is_none());
    }
}
