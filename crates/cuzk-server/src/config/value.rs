//! Values of a configuration. Each is read from a text in one way, wherever the text stands: in the file, in the
//! environment, or on the command line.

use std::{borrow::Cow, fmt, num::NonZeroU32, path::PathBuf, time::Duration};

use toml_edit::Value;

/// What a value must be, in words that follow "expected".
pub type Expected = Cow<'static, str>;

/// A type of value.
pub trait Setting: Sized {
    /// Whether a file may give it as a number, too.
    const NUMBER: bool = false;
    /// Whether a file may give it as a boolean, too.
    const BOOLEAN: bool = false;

    /// What a value must be.
    fn expected() -> Expected;

    /// Reads it.
    ///
    /// # Errors
    /// What was expected instead.
    fn from_text(text: &str) -> Result<Self, Expected>;

    /// Reads it from a file.
    ///
    /// # Errors
    /// What was expected instead.
    fn from_toml(value: &Value) -> Result<Self, Expected> {
        match value {
            Value::String(text) => Self::from_text(text.value()),
            Value::Integer(number) if Self::NUMBER => Self::from_text(&number.value().to_string()),
            Value::Float(number) if Self::NUMBER => Self::from_text(&number.value().to_string()),
            Value::Boolean(boolean) if Self::BOOLEAN => Self::from_text(&boolean.value().to_string()),
            _ => Err(Self::expected()),
        }
    }

    /// The value in TOML. What must not be shown gives `None`.
    fn to_toml(&self) -> Option<String>;
}

/// `text` in TOML.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Setting for bool {
    const NUMBER: bool = true;
    const BOOLEAN: bool = true;

    fn expected() -> Expected {
        "true or false".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(Self::expected()),
        }
    }

    fn to_toml(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for u32 {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        format!("a whole number from 0 to {}", u32::MAX).into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        text.trim().parse().map_err(|_| Self::expected())
    }

    fn to_toml(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for NonZeroU32 {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        format!("a whole number from 1 to {}", u32::MAX).into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        text.trim().parse().map_err(|_| Self::expected())
    }

    fn to_toml(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for String {
    fn expected() -> Expected {
        "a text".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        Ok(text.to_owned())
    }

    fn to_toml(&self) -> Option<String> {
        Some(quoted(self))
    }
}

impl Setting for PathBuf {
    fn expected() -> Expected {
        "a path".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        if text.is_empty() || text.contains('\0') { Err(Self::expected()) } else { Ok(Self::from(text)) }
    }

    fn to_toml(&self) -> Option<String> {
        Some(quoted(&self.to_string_lossy()))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// The longest suffixes first, because `B` ends them all.
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

impl fmt::Display for Bytes {
    /// The largest binary unit that it is a multiple of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, unit): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*unit);
        match BYTE_UNITS[..4].iter().find(fits) {
            Some((suffix, unit)) => write!(f, "{}{suffix}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Setting for Bytes {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        "a number of bytes, such as 4096, \"47 GB\" or \"256GiB\"".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        let text = text.trim();
        let (number, unit) =
            BYTE_UNITS.iter().find_map(|&(s, unit)| Some((text.strip_suffix(s)?, unit))).unwrap_or((text, 1));
        let number = number.trim_end();
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Self).ok_or_else(Self::expected);
        }
        let value = number.parse::<f64>().map_err(|_| Self::expected())? * unit as f64;
        let fits = value.is_finite() && (0.0..u64::MAX as f64).contains(&value);
        if fits { Ok(Self(value.round() as u64)) } else { Err(Self::expected()) }
    }

    fn to_toml(&self) -> Option<String> {
        let text = self.to_string();
        Some(if text.ends_with('B') { quoted(&text) } else { text })
    }
}

/// The longest suffixes first, because `s` ends another.
const TIME_UNITS: [(&str, f64); 5] = [("ms", 0.001), ("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];

/// Longer ones are mistakes, and would overflow points in time.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

impl Setting for Duration {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        "a duration of up to 3650d, such as \"500ms\", \"5m\", \"24h\", or a number of seconds".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        let text = text.trim();
        let (number, unit) =
            TIME_UNITS.iter().find_map(|&(s, unit)| Some((text.strip_suffix(s)?, unit))).unwrap_or((text, 1.0));
        let seconds = number.trim_end().parse::<f64>().map_err(|_| Self::expected())? * unit;
        // Rounded, so that the same duration is equal whatever the unit.
        let duration = Self::try_from_secs_f64((seconds * 1e6).round() / 1e6).map_err(|_| Self::expected())?;
        if duration <= LONGEST { Ok(duration) } else { Err(Self::expected()) }
    }

    fn to_toml(&self) -> Option<String> {
        let seconds = self.as_secs();
        let text = match self.subsec_nanos() {
            0 if seconds == 0 => "0s".to_owned(),
            0 if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
            0 if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
            0 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
            0 => format!("{seconds}s"),
            _ => format!("{}ms", self.as_secs_f64() * 1e3),
        };
        Some(quoted(&text))
    }
}

/// Chosen by the program, or given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auto<T> {
    /// `"auto"`.
    Auto,
    /// That.
    Given(T),
}

impl<T> Auto<T> {
    /// What was given.
    pub fn given(&self) -> Option<&T> {
        match self {
            Self::Auto => None,
            Self::Given(value) => Some(value),
        }
    }
}

impl<T: Setting> Setting for Auto<T> {
    const NUMBER: bool = T::NUMBER;
    const BOOLEAN: bool = T::BOOLEAN;

    fn expected() -> Expected {
        format!("\"auto\" or {}", T::expected()).into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        T::from_text(text).map(Self::Given).map_err(|_| Self::expected())
    }

    fn to_toml(&self) -> Option<String> {
        match self {
            Self::Auto => Some(quoted("auto")),
            Self::Given(value) => value.to_toml(),
        }
    }
}

/// A number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// `"auto"`, or 0 as elsewhere: chosen by the program.
    Auto,
    /// That many.
    Fixed(NonZeroU32),
}

impl Setting for Workers {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        "\"auto\" or a number of workers".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => match text.trim().parse().map(NonZeroU32::new) {
                Ok(Some(number)) => Ok(Self::Fixed(number)),
                Ok(None) => Ok(Self::Auto),
                Err(_) => Err(Self::expected()),
            },
        }
    }

    fn to_toml(&self) -> Option<String> {
        Some(match self {
            Self::Auto => quoted("auto"),
            Self::Fixed(number) => number.to_string(),
        })
    }
}

/// Nothing if the text is empty.
impl<T: Setting> Setting for Option<T> {
    const NUMBER: bool = T::NUMBER;
    const BOOLEAN: bool = T::BOOLEAN;

    fn expected() -> Expected {
        format!("{}, or \"\" for none", T::expected()).into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        if text.is_empty() { Ok(None) } else { T::from_text(text).map(Some) }
    }

    fn to_toml(&self) -> Option<String> {
        self.as_ref().map_or_else(|| Some(quoted("")), Setting::to_toml)
    }
}

/// Several; a text has commas between them. A file may give one alone.
impl<T: Setting> Setting for Vec<T> {
    fn expected() -> Expected {
        format!("a list, each of it {}", T::expected()).into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(T::from_text).collect()
    }

    fn from_toml(value: &Value) -> Result<Self, Expected> {
        match value {
            Value::Array(values) => values.iter().map(T::from_toml).collect(),
            Value::String(text) => Self::from_text(text.value()),
            _ => T::from_toml(value).map(|one| vec![one]),
        }
    }

    fn to_toml(&self) -> Option<String> {
        let parts: Option<Vec<_>> = self.iter().map(Setting::to_toml).collect();
        Some(format!("[{}]", parts?.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::named::DeviceName, *};

    fn texts<T: Setting>(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|t| T::from_text(t).ok().and_then(|v| v.to_toml())).collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|t| Some((*t).to_owned())).collect()
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let given = ["256GiB", " 47 GB ", "0.5KiB", "4096", "1000", "0", "0 B"];
        let shown = ["\"256GiB\"", "47000000000", "512", "\"4KiB\"", "1000", "0", "0"];
        assert_eq!(texts::<Bytes>(&given), some(&shown));
        for bad in ["", "GiB", "-1 GiB", "1e300 GiB", "nan", "inf", "16 Gib", "99999999999 TiB"] {
            assert!(Bytes::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let given = ["5m", "300s", "300", "0.5", "500ms", "48h", "1.5 h", "0", "3650d"];
        let shown = ["5m", "5m", "5m", "500ms", "500ms", "2d", "90m", "0s", "3650d"].map(quoted);
        assert_eq!(texts::<Duration>(&given), shown.map(Some));
        for bad in ["", "m", "-1s", "5 parsecs", "nan", "inf", "1e300d", "3651d"] {
            assert!(Duration::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn booleans_are_read_alike_everywhere() {
        for (truth, given) in [(true, ["true", "yes", "ON", "1"]), (false, ["false", "no", "off", "0"])] {
            assert!(given.iter().all(|t| bool::from_text(t) == Ok(truth)));
        }
        assert_eq!(bool::from_toml(&Value::from("yes")), Ok(true));
        assert_eq!(bool::from_toml(&Value::from(true)), Ok(true));
        assert_eq!(bool::from_toml(&Value::from(0)), Ok(false));
        assert!(bool::from_toml(&Value::from(2)).is_err());
        assert!(bool::from_text("").is_err());
    }

    #[test]
    fn lists_stand_in_arrays_or_between_commas() {
        let numbers = |text: &str| Vec::<DeviceName>::from_text(text).map(|v| v.to_toml());
        assert_eq!(numbers("0, GPU-12ab"), Ok(Some("[0, \"GPU-12ab\"]".to_owned())));
        assert_eq!(numbers(""), Ok(Some("[]".to_owned())));
        let array: Value = "[0, 'GPU-12ab']".parse().unwrap();
        assert_eq!(Vec::<DeviceName>::from_toml(&array).unwrap().len(), 2);
        assert_eq!(Vec::<DeviceName>::from_toml(&Value::from(3)).unwrap(), [DeviceName("3".to_owned())]);
        let nested: Value = "[[0]]".parse().unwrap();
        assert!(Vec::<DeviceName>::from_toml(&nested).is_err());
    }

    #[test]
    fn what_is_optional_or_chosen_says_so() {
        assert_eq!(texts::<Option<PathBuf>>(&["", "/a b"]), some(&["\"\"", "\"/a b\""]));
        assert_eq!(texts::<Auto<Bytes>>(&["auto", "1MiB"]), some(&["\"auto\"", "\"1MiB\""]));
        assert_eq!(texts::<Workers>(&["auto", "0", "7"]), some(&["\"auto\"", "\"auto\"", "7"]));
        assert!(Workers::from_text("-1").is_err());
        assert!(NonZeroU32::from_text("0").is_err());
    }
}
