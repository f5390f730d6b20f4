//! The command line of a daemon, for every program that starts one.

use std::{ffi::OsString, path::PathBuf};

use crate::config::{self, ConfigErrors, Loaded, Sources};

/// Options of a daemon. Each is a key of the configuration; `--set` gives those without an option of their own.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DaemonArgs {
    /// Configuration, TOML
    #[arg(short, long, value_name = "FILE", env = "CUZK_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Where gRPC is served: host:port or unix:///path (may be repeated)
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Where the status page and metrics are served: host:port, or "" for nowhere
    #[arg(long, value_name = "ADDR")]
    pub status_listen: Option<String>,
    /// Serve on addresses that others can reach, even without TLS and token
    #[arg(long)]
    pub insecure_listen: bool,
    /// Directory of the parameter files
    #[arg(long, value_name = "DIR")]
    pub param_cache: Option<String>,
    /// Directory of the journal
    #[arg(long, value_name = "DIR")]
    pub journal_dir: Option<String>,
    /// Backend: auto, cpu, or the name or path of a plugin
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Device of the backend: its number or UUID (may be repeated)
    #[arg(long, value_name = "INDEX|UUID")]
    pub device: Vec<String>,
    /// Where to look for plugins first (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Vec<String>,
    /// error, warn, info, debug, trace or off, or directives such as info,cuzk_engine=debug
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// human or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Any key of the configuration (may be repeated)
    #[arg(long, value_name = "SECTION.KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Print the configuration that counts, with the source of each value, and end
    #[arg(long)]
    pub print_config: bool,
    /// Print the example of a configuration, with every key explained, and end
    #[arg(long, conflicts_with = "print_config")]
    pub example_config: bool,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected SECTION.KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// What a command line asks for.
#[derive(Clone, Debug)]
pub enum Request {
    /// Print this, and end.
    Print(String),
    /// Serve.
    Serve {
        /// What the configuration is now.
        loaded: Box<Loaded>,
        /// Where it is from, to read it again.
        sources: Sources,
    },
}

impl DaemonArgs {
    /// What is asked for, in an environment.
    ///
    /// # Errors
    /// Every mistake in the configuration.
    pub fn request(
        &self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Request, ConfigErrors> {
        if self.example_config {
            return Ok(Request::Print(config::example()));
        }
        let sources = self.sources(environment);
        let loaded = sources.load()?;
        if self.print_config {
            return Ok(Request::Print(loaded.print()));
        }
        Ok(Request::Serve { loaded: Box::new(loaded), sources })
    }

    /// Where the configuration is from.
    fn sources(&self, environment: impl IntoIterator<Item = (OsString, OsString)>) -> Sources {
        let insecure = self.insecure_listen.then(|| "true".to_owned());
        // A comma stands between the parts of a list.
        let list = |parts: &[String]| (!parts.is_empty()).then(|| parts.join(","));
        let named = [
            ("--listen", "daemon.listen", list(&self.listen)),
            ("--status-listen", "daemon.status_listen", self.status_listen.clone()),
            ("--insecure-listen", "daemon.insecure_listen", insecure),
            ("--param-cache", "srs.param_cache", self.param_cache.clone()),
            ("--journal-dir", "journal.directory", self.journal_dir.clone()),
            ("--backend", "backend.name", self.backend.clone()),
            ("--device", "gpus.devices", list(&self.device)),
            ("--plugin-dir", "backend.plugin_dir", list(&self.plugin_dir)),
            ("--log-level", "logging.level", self.log_level.clone()),
            ("--log-format", "logging.format", self.log_format.clone()),
        ];
        let named = named.into_iter().filter_map(|(flag, key, value)| Some((flag.to_owned(), key.to_owned(), value?)));
        let set = self.set.iter().map(|(key, value)| ("--set".to_owned(), key.clone(), value.clone()));
        Sources {
            file: self.config.clone(),
            environment: environment.into_iter().collect(),
            // What has an option of its own counts before --set.
            flags: set.chain(named).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: DaemonArgs,
    }

    fn request(line: &str) -> Result<Request, ConfigErrors> {
        Program::try_parse_from(line.split(' ')).unwrap().args.request([])
    }

    #[test]
    fn options_are_keys() {
        let line = "x --listen unix:///a --listen [::1]:5 --device 0 --device GPU-7 --log-level warn --insecure-listen \
                    --status-listen= --set limits.queue_length=5 --set logging.level=trace --param-cache /p \
                    --journal-dir /j --backend cpu --plugin-dir /q --log-format json";
        let Ok(Request::Serve { loaded, .. }) = request(line) else { panic!("it is to be served") };
        let config = loaded.config;
        assert_eq!(config.daemon.listen.len(), 2);
        assert!(config.daemon.insecure_listen && config.daemon.status_listen.is_none());
        assert_eq!(config.gpus.devices.len(), 2);
        assert_eq!((config.limits.queue_length.get(), config.logging.level.0.as_str()), (5, "warn"));
        assert_eq!(loaded.journal_directory, PathBuf::from("/j"));
    }

    #[test]
    fn configurations_are_printed() {
        let Ok(Request::Print(text)) = request("x --print-config --log-level debug") else { panic!("it is printed") };
        assert!(text.contains("level = \"debug\" # --log-level\n"));
        let Ok(Request::Print(text)) = request("x --example-config") else { panic!("it is printed") };
        assert_eq!(text, config::example());
    }

    #[test]
    fn mistakes_are_told_with_the_option() {
        let told = |line: &str| request(line).map_or_else(|e| e.to_string(), |_| String::new());
        assert!(told("x --listen nowhere").starts_with("--listen: daemon.listen = \"nowhere\": expected"));
        assert!(told("x --set a.b=1").starts_with("--set: there is no key \"a.b\""));
        assert!(Program::try_parse_from(["x", "--set", "a.b"]).is_err());
    }
}
