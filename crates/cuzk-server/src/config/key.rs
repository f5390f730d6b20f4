//! The table of keys, and the structures that it makes.

use super::Expected;

/// A section of the configuration.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// What it is about, a line each.
    pub doc: &'static [&'static str],
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of the configuration.
pub struct Key {
    /// Its name with the section's: `daemon.listen`.
    pub name: &'static str,
    /// What it is for, a line each.
    pub doc: &'static [&'static str],
    /// Its default, as a text.
    pub default: &'static str,
    /// Environment variables that give it, beside [`Key::variable`].
    pub variables: &'static [&'static str],
    /// What a value must be.
    pub expected: fn() -> Expected,
    /// Its default in TOML; `None` if it must not be shown.
    pub default_toml: fn() -> Option<String>,
}

impl Key {
    /// The name inside the section.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, key)| key)
    }

    /// The environment variable that gives it: `CUZK_DAEMON_LISTEN`.
    pub fn variable(&self) -> String {
        variable(self.name)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({} = {:?})", self.name, self.default)
    }
}

/// The environment variable of a key.
pub(super) fn variable(key: &str) -> String {
    format!("CUZK_{}", key.replace('.', "_").to_ascii_uppercase())
}

/// A key of earlier versions.
#[derive(Debug)]
pub struct OldKey {
    /// Its name with the section's.
    pub name: &'static str,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a key of earlier versions.
#[derive(Debug)]
pub enum Fate {
    /// It has another name, which counts first.
    Renamed(&'static str),
    /// It has no effect, for this reason; if it says what is done anyway, there is nothing to say about it.
    Idle {
        /// Why.
        reason: &'static str,
        /// The value that says what is done anyway.
        unless: Option<&'static str>,
    },
}

/// Declares sections and keys once: the structures with typed fields, how to read them, and the table of all keys.
macro_rules! sections {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $structure:ident {
            $(
                $(#[doc = $key_doc:literal])*
                $key:ident: $kind:ty = $default:literal $([$($variable:literal),*])?;
            )*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $structure {
                $(
                    $(#[doc = $key_doc])*
                    pub $key: $kind,
                )*
            }
        )*

        /// A configuration: each field a section, each of its fields a key.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config {
            $(
                $(#[doc = $section_doc])*
                pub $section: $structure,
            )*
        }

        impl Config {
            /// Takes every key's value out of `given`.
            pub(super) fn read(given: &mut Given) -> Option<Self> {
                // All of them first, so that every mistake is found.
                $( let $section = ($( given.take::<$kind>(concat!(stringify!($section), ".", stringify!($key))), )*); )*
                $(
                    let ($($key,)*) = $section;
                    let $section = (|| Some($structure { $( $key: $key?, )* }))();
                )*
                Some(Self { $( $section: $section?, )* })
            }
        }

        /// All sections.
        pub const SECTIONS: &[Section] = &[$(
            Section {
                name: stringify!($section),
                doc: &[$($section_doc),*],
                keys: &[$(
                    Key {
                        name: concat!(stringify!($section), ".", stringify!($key)),
                        doc: &[$($key_doc),*],
                        default: $default,
                        variables: &[$($($variable),*)?],
                        expected: <$kind as Setting>::expected,
                        default_toml: || <$kind as Setting>::from_text($default).ok().and_then(|v| v.to_toml()),
                    },
                )*],
            },
        )*];
    };
}

pub(super) use sections;
