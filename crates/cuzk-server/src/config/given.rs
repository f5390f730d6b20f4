//! What file, environment and command line give, and which of them counts.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use toml_edit::{ImDocument, Item, Value};

use super::{ConfigError, Fate, OLD_KEYS, SECTIONS, Setting, Warning, key, nearest::nearest};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave one.
    Default,
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// An option of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A file's value, or the text of something else.
#[derive(Clone, Debug)]
enum Raw {
    Toml(Value),
    Text(String),
}

impl Raw {
    fn read<T: Setting>(&self) -> Result<T, super::Expected> {
        match self {
            Self::Toml(value) => T::from_toml(value),
            Self::Text(text) => T::from_text(text),
        }
    }

    /// As its author wrote it.
    fn written(&self) -> String {
        match self {
            Self::Toml(value) => value.to_string().trim().to_owned(),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

/// What counts for each key so far.
#[derive(Debug, Default)]
pub(crate) struct Given {
    values: BTreeMap<&'static str, (Origin, Raw)>,
    /// Keys by their old names, until it is known whether anybody gave the newer one.
    renamed: BTreeMap<&'static str, (Origin, Raw)>,
    /// What was read, in TOML.
    pub(super) shown: BTreeMap<&'static str, Option<String>>,
    pub(super) errors: Vec<ConfigError>,
    pub(super) warnings: Vec<Warning>,
}

impl Given {
    /// What a file gives.
    pub(super) fn file(&mut self, path: &Path, text: &str) {
        let document = match ImDocument::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let line = error.span().map_or(1, |span| line(text, span.start));
                let origin = Origin::File { path: path.to_owned(), line };
                return self.errors.push(ConfigError::Syntax { origin, message: error.message().to_owned() });
            }
        };
        let at = |start: Option<usize>| Origin::File { path: path.to_owned(), line: line(text, start.unwrap_or(0)) };
        for (section, item) in document.iter() {
            let start = document.get_key_value(section).and_then(|(key, _)| key.span()).or_else(|| item.span());
            let origin = at(start.map(|span| span.start));
            if !SECTIONS.iter().any(|s| s.name == section) {
                self.unknown(origin, section);
                continue;
            }
            let (Item::Table(_) | Item::Value(Value::InlineTable(_))) = item else {
                self.errors.push(ConfigError::NoSection { origin, name: section.to_owned() });
                continue;
            };
            let Some(table) = item.as_table_like() else { continue };
            for (key, value) in table.iter() {
                let start = table.get_key_value(key).and_then(|(key, _)| key.span()).or_else(|| value.span());
                let origin = at(start.map(|span| span.start));
                let name = format!("{section}.{key}");
                match value.as_value() {
                    Some(value) => self.give(&name, origin, Raw::Toml(value.clone())),
                    None => self.unknown(origin, &name),
                }
            }
        }
    }

    /// What the environment gives. An empty variable is as good as none.
    pub(super) fn environment(&mut self, variables: &[(OsString, OsString)]) {
        let variables: BTreeMap<&str, String> = variables
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .filter_map(|(name, value)| Some((name.to_str()?, value.to_string_lossy().into_owned())))
            .collect();
        let old = OLD_KEYS.iter().map(|old| (old.name, &[][..]));
        let keys = SECTIONS.iter().flat_map(|section| section.keys).map(|key| (key.name, key.variables));
        let mut known = Vec::new();
        for (name, others) in old.chain(keys) {
            // The key's own variable counts before those that others set too.
            let names: Vec<String> =
                others.iter().rev().map(|v| (*v).to_owned()).chain([key::variable(name)]).collect();
            for variable in names {
                if let Some(value) = variables.get(variable.as_str()) {
                    self.give(name, Origin::Variable(variable.clone()), Raw::Text(value.clone()));
                }
                known.push(variable);
            }
        }
        for &name in variables.keys().filter(|name| !known.iter().any(|k| k == *name)) {
            let ours = |section: &str| name.starts_with(&format!("CUZK_{}_", section.to_ascii_uppercase()));
            if SECTIONS.iter().any(|section| ours(section.name)) {
                let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
                self.warnings.push(Warning::UnknownVariable { name: name.to_owned(), nearest });
            }
        }
    }

    /// What an option of the command line gives.
    pub(super) fn flag(&mut self, flag: &str, key: &str, text: &str) {
        self.give(key, Origin::Flag(flag.to_owned()), Raw::Text(text.to_owned()));
    }

    fn give(&mut self, name: &str, origin: Origin, raw: Raw) {
        if let Some(old) = OLD_KEYS.iter().find(|old| old.name == name) {
            match old.fate {
                Fate::Renamed(_) => drop(self.renamed.insert(old.name, (origin, raw))),
                Fate::Idle { reason, unless } => {
                    let says_it_anyway = unless.is_some_and(|value| raw.written().trim_matches('"') == value);
                    if !says_it_anyway {
                        self.warnings.push(Warning::Idle { origin, key: old.name, reason });
                    }
                }
            }
            return;
        }
        match SECTIONS.iter().flat_map(|section| section.keys).find(|key| key.name == name) {
            Some(key) => drop(self.values.insert(key.name, (origin, raw))),
            None => self.unknown(origin, name),
        }
    }

    fn unknown(&mut self, origin: Origin, name: &str) {
        let sections = SECTIONS.iter().map(|section| section.name);
        let keys = SECTIONS.iter().flat_map(|section| section.keys).map(|key| key.name);
        let nearest = if name.contains('.') { nearest(name, keys) } else { nearest(name, sections.chain(keys)) };
        self.errors.push(ConfigError::UnknownKey { origin, key: name.to_owned(), nearest });
    }

    /// Old names stand in for newer ones that nobody gave.
    pub(super) fn rename(&mut self) {
        for old in OLD_KEYS {
            let Fate::Renamed(key) = old.fate else { continue };
            let Some((origin, raw)) = self.renamed.remove(old.name) else { continue };
            let honoured = !self.values.contains_key(key);
            self.warnings.push(Warning::Renamed { origin: origin.clone(), old: old.name, key, honoured });
            if honoured {
                self.values.insert(key, (origin, raw));
            }
        }
    }

    /// The value that counts, else the default; a mistake is noted.
    pub(super) fn take<T: Setting>(&mut self, name: &'static str) -> Option<T> {
        let default = SECTIONS.iter().flat_map(|section| section.keys).find(|key| key.name == name)?.default;
        let (origin, raw) =
            self.values.get(name).cloned().unwrap_or_else(|| (Origin::Default, Raw::Text(default.to_owned())));
        match raw.read::<T>() {
            Ok(value) => {
                self.shown.insert(name, value.to_toml());
                Some(value)
            }
            Err(expected) => {
                // A token is not for the log, not even a wrong one.
                let given = if name == "auth.token" { "what is given".to_owned() } else { raw.written() };
                self.errors.push(ConfigError::Value { origin, key: name, given, expected });
                None
            }
        }
    }

    pub(super) fn origin(&self, name: &str) -> Origin {
        self.values.get(name).map_or(Origin::Default, |(origin, _)| origin.clone())
    }
}

/// The number of the line at an offset.
fn line(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1
}
