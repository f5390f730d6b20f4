//! Configurations as text: the one that counts, and the example.

use std::fmt::Write;

use super::{Fate, Loaded, OLD_KEYS, SECTIONS};

impl Loaded {
    /// All keys in TOML, each with a comment that says where its value is from.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for warning in &self.warnings {
            line(&mut out, format_args!("# warning: {warning}"));
        }
        for section in SECTIONS {
            let blank = if out.is_empty() { "" } else { "\n" };
            line(&mut out, format_args!("{blank}[{}]", section.name));
            for key in section.keys {
                let Some((origin, value)) = self.shown.get(key.name) else { continue };
                match value {
                    Some(value) if key.name == "journal.directory" && value == "\"auto\"" => {
                        let meaning = self.journal_directory.display();
                        line(&mut out, format_args!("{} = {value} # {origin}: {meaning}", key.short_name()));
                    }
                    Some(value) => line(&mut out, format_args!("{} = {value} # {origin}", key.short_name())),
                    None => line(&mut out, format_args!("# {} is not shown # {origin}", key.short_name())),
                }
            }
        }
        out
    }
}

/// The example: every key with its default and what it is for. `cuzk-daemon.example.toml` has this text.
pub fn example() -> String {
    let mut out = String::from(
        "# Configuration of cuzk-daemon: every key, with its default.\n\
         #\n\
         # Precedence: option of the command line, environment variable, this file, default. The variable of a key\n\
         # is CUZK_SECTION_KEY, such as CUZK_DAEMON_LISTEN; others that give it too are named. An empty variable\n\
         # counts as none. `cuzk-daemon --print-config` shows what counts, and where it is from.\n\
         #\n\
         # Sizes are bytes, or have a unit: 4096, \"47 GB\", \"256GiB\". Durations are seconds, or have a unit: 300,\n\
         # \"5m\", \"500ms\", \"24h\". Lists may be one text with commas. An unknown key is an error.\n",
    );
    for section in SECTIONS {
        out.push('\n');
        for text in section.doc {
            line(&mut out, format_args!("#{text}"));
        }
        line(&mut out, format_args!("[{}]", section.name));
        for key in section.keys {
            for text in key.doc {
                line(&mut out, format_args!("#{text}"));
            }
            if !key.variables.is_empty() {
                line(&mut out, format_args!("# Environment: {}, {}.", key.variable(), key.variables.join(", ")));
            }
            if let Some(value) = (key.default_toml)() {
                line(&mut out, format_args!("{} = {value}", key.short_name()));
            }
        }
    }
    out.push_str("\n# Keys of earlier versions, which are accepted:\n");
    for old in OLD_KEYS {
        match old.fate {
            Fate::Renamed(key) => line(&mut out, format_args!("# {}: called {key} now.", old.name)),
            Fate::Idle { reason, .. } => line(&mut out, format_args!("# {}: no effect; {reason}.", old.name)),
        }
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}
