//! Serde: a duration as seconds, fractions allowed, or as a text for [`parse_duration`].

use std::{fmt, time::Duration};

use serde::{
    Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};

use crate::{DURATION, parse_duration};

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DURATION)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Duration, E> {
        Ok(Duration::from_secs(seconds))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Duration, E> {
        let whole = u64::try_from(seconds).map_err(|_| E::invalid_value(Unexpected::Signed(seconds), &self))?;
        Ok(Duration::from_secs(whole))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Duration, E> {
        Duration::try_from_secs_f64(seconds).map_err(|_| E::invalid_value(Unexpected::Float(seconds), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse_duration(text).map_err(|error| E::custom(format_args!("{text:?}: {error}")))
    }
}

/// Reads it.
///
/// # Errors
/// The deserializer's, with what was expected; a negative or infinite number is one.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(Reader)
}

/// Writes the seconds.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    struct Wait {
        #[serde(with = "crate::seconds")]
        time: Duration,
    }

    #[test]
    fn numbers_and_texts_are_read() {
        let read = |text: &str| toml::from_str::<Wait>(text).map(|w| w.time).map_err(|e| e.message().to_owned());
        assert_eq!(read("time = 5"), Ok(Duration::from_secs(5)));
        assert_eq!(read("time = 0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(read("time = '250 ms'"), Ok(Duration::from_millis(250)));
        assert_eq!(read("time = '5 parsecs'"), Err(format!("\"5 parsecs\": expected {DURATION}")));
        assert_eq!(read("time = -5"), Err(format!("invalid value: integer `-5`, expected {DURATION}")));
        assert_eq!(read("time = -0.5"), Err(format!("invalid value: floating point `-0.5`, expected {DURATION}")));
        assert!(read("time = inf").is_err() && read("time = nan").is_err() && read("time = []").is_err());
        let wait = Wait { time: Duration::from_millis(1500) };
        assert_eq!(serde_json::to_string(&wait).unwrap(), r#"{"time":1.5}"#);
    }
}
