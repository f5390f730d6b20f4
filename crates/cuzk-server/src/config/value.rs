//! Values of a configuration. Each is read from a text in one way, wherever the text stands: in the file, in the
//! environment, or on the command line.

use std::{borrow::Cow, fmt, num::NonZeroU32, path::PathBuf, time::Duration};

use cuzk_units::QuantityError;
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

impl fmt::Display for Bytes {
    /// The largest binary unit that it is a multiple of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cuzk_units::print_bytes(self.0))
    }
}

/// What was expected instead of a quantity: the grammar, or the most that it can be.
fn instead<T: Setting>(error: QuantityError) -> Expected {
    match error {
        QuantityError::Form { .. } => T::expected(),
        QuantityError::Range { most, unit } => format!("at most {most} {unit}").into(),
    }
}

impl Setting for Bytes {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        cuzk_units::BYTES.into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        cuzk_units::parse_bytes(text).map(Self).map_err(instead::<Self>)
    }

    fn to_toml(&self) -> Option<String> {
        let text = self.to_string();
        Some(if text.ends_with('B') { quoted(&text) } else { text })
    }
}

/// Longer ones are mistakes, and would overflow points in time.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

impl Setting for Duration {
    const NUMBER: bool = true;

    fn expected() -> Expected {
        cuzk_units::DURATION.into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        let duration = cuzk_units::parse_duration(text).map_err(instead::<Self>)?;
        if duration <= LONGEST { Ok(duration) } else { Err("at most 3650d".into()) }
    }

    fn to_toml(&self) -> Option<String> {
        Some(quoted(&cuzk_units::print_duration(*self)))
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
    fn quantities_are_read_as_everywhere_and_printed_to_be_read_again() {
        let (given, shown) = (["256GiB", " 47 GB ", "4096", "0"], ["\"256GiB\"", "47000000000", "\"4KiB\"", "0"]);
        assert_eq!(texts::<Bytes>(&given), some(&shown));
        let given = ["5m", "0.5", "48h", "1.5 h", "0", "3650d"];
        assert_eq!(texts::<Duration>(&given), ["5m", "500ms", "2d", "90m", "0s", "3650d"].map(|t| Some(quoted(t))));
        // What a file gives as a number.
        assert_eq!(Duration::from_toml(&Value::from(0.25)), Ok(Duration::from_millis(250)));
        assert_eq!(Bytes::from_toml(&Value::from(7)), Ok(Bytes(7)));
        assert!(Bytes::from_toml(&Value::from(true)).is_err());
    }

    #[test]
    fn a_bad_quantity_is_told_what_is_expected() {
        assert_eq!(Bytes::from_text("6G"), Err(cuzk_units::BYTES.into()));
        assert_eq!(Bytes::from_text("99999999999 TiB"), Err("at most 18446744073709551615 bytes".into()));
        assert_eq!(Duration::from_text("-1s"), Err(cuzk_units::DURATION.into()));
        assert_eq!(Duration::from_text("3651d"), Err("at most 3650d".into()));
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
