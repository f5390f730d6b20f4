//! A daemon as a child, with a private socket and journal.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cuzk_proto::{Address, Client, ClientOptions};
use rustix::process::{Pid, Signal, kill_process};
use toml::{Table, Value};

use crate::{
    Class, Failure,
    stop::{CLOSING, Stop},
};

/// How often it is looked whether a child has started or ended.
const PERIOD: Duration = Duration::from_millis(50);

/// The configuration of a point of a sweep: that of the file, with what the point decides.
#[derive(Clone)]
pub(crate) struct Derived {
    table: Table,
    /// Keys that are set, as sections and names.
    set: Vec<(&'static str, &'static str)>,
}

impl Derived {
    /// From a configuration's text.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        Ok(Self { table: text.parse().map_err(|e: toml::de::Error| e.to_string())?, set: Vec::new() })
    }

    /// Sets a key.
    pub(crate) fn set(
        &mut self,
        section: &'static str,
        key: &'static str,
        value: impl Into<Value>,
    ) -> Result<(), String> {
        let entry = self.table.entry(section).or_insert_with(|| Table::new().into());
        let Value::Table(table) = entry else { return Err(format!("{section} is no section")) };
        table.insert(key.to_owned(), value.into());
        self.set.push((section, key));
        Ok(())
    }

    /// Takes a key away, such as an old name of one that is set.
    pub(crate) fn remove(&mut self, section: &'static str, key: &'static str) {
        if let Some(Value::Table(table)) = self.table.get_mut(section) {
            table.remove(key);
        }
        self.set.push((section, key));
    }

    fn text(&self) -> String {
        self.table.to_string()
    }

    /// Variables that would overrule what is set here: an environment counts for more than a file.
    fn variables(&self) -> impl Iterator<Item = String> + '_ {
        self.set.iter().map(|(section, key)| format!("CUZK_{section}_{key}").to_uppercase())
    }
}

/// A daemon that runs. It is killed when this is dropped.
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
    limit: Duration,
}

impl Daemon {
    /// Starts a daemon in a folder of its own, and returns when it answers.
    pub(crate) async fn start(
        mut command: Command,
        mut config: Derived,
        folder: &Path,
        limit: Duration,
    ) -> Result<(Self, Client), Failure> {
        let failed = |what: String| Failure::new(Class::Device, what);
        let socket = folder.join("cuzk.sock");
        let bad = |what: String| Failure::input(format!("--config: {what}"));
        config.set("daemon", "listen", format!("unix://{}", socket.display())).map_err(bad)?;
        config.set("daemon", "status_listen", "").map_err(bad)?;
        config.set("journal", "directory", folder.join("journal").display().to_string()).map_err(bad)?;
        let file = folder.join("cuzk.toml");
        let log = folder.join("log");
        let io = |e: io::Error| Failure::input(format!("{}: {e}", folder.display()));
        fs::write(&file, config.text()).map_err(io)?;
        let output = fs::File::create(&log).map_err(io)?;
        command.arg("--config").arg(&file).stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(io)?).stderr(output);
        for variable in config.variables() {
            command.env_remove(variable);
        }
        let child = command
            .spawn()
            .map_err(|e| failed(format!("cannot start {}: {e}", command.get_program().to_string_lossy())))?;
        let mut daemon = Self { child, folder: folder.to_owned(), limit };
        let started = Instant::now();
        let options = ClientOptions { connect_limit: Duration::ZERO, ..ClientOptions::default() };
        loop {
            if let Some(status) = daemon.child.try_wait().map_err(io)? {
                return Err(failed(format!("the daemon ended with {status}: {}", daemon.last_words())));
            }
            if let Ok(client) = Client::connect(&Address::Unix(socket.clone()), options.clone()).await
                && client.status().await.is_ok()
            {
                return Ok((daemon, client));
            }
            if started.elapsed() > limit {
                return Err(failed(format!("the daemon does not answer within {limit:.0?}: {}", daemon.last_words())));
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Tells it to end, and waits until it has: not for long if the run shall stop.
    pub(crate) async fn stop(mut self, stop: &Stop) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::new(Class::Device, format!("the daemon: {e}"));
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).map_err(|e| failed(e.into()))?;
        }
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                let failure = || failed(io::Error::other(format!("it ended with {status}: {}", self.last_words())));
                return if status.success() { Ok(()) } else { Err(failure()) };
            }
            let limit = if stop.now().is_some() { CLOSING.min(self.limit) } else { self.limit };
            if started.elapsed() > limit {
                return Err(Failure::new(Class::Device, format!("the daemon does not end within {limit:.0?}")));
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// The end of what it has written.
    fn last_words(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&log[log.len().saturating_sub(4096)..]).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" | ")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_overrules_the_file_and_the_environment() {
        let file = "[daemon]\nlisten = '0.0.0.0:1'\ninsecure_listen = true\n[synthesis]\npartition_workers = 3\n\
                    threads = 8\n";
        let mut config = Derived::new(file).unwrap();
        config.set("daemon", "listen", "unix:///s").unwrap();
        config.set("pipeline", "partition_workers", 12).unwrap();
        config.remove("synthesis", "partition_workers");
        let read: Table = config.text().parse().unwrap();
        assert_eq!(read["daemon"]["listen"].as_str(), Some("unix:///s"));
        assert_eq!(read["daemon"]["insecure_listen"].as_bool(), Some(true));
        assert_eq!(read["pipeline"]["partition_workers"].as_integer(), Some(12));
        assert_eq!(read["synthesis"].as_table().map(Table::len), Some(1));
        let variables: Vec<String> = config.variables().collect();
        assert_eq!(variables[..2], ["CUZK_DAEMON_LISTEN", "CUZK_PIPELINE_PARTITION_WORKERS"]);
        assert!(Derived::new("[daemon").is_err());
        assert!(Derived::new("daemon = 1").unwrap().set("daemon", "listen", "x").is_err());
    }
}
