//! The command line's grammar and help texts.

use std::{ffi::OsString, num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use cuzk_proto::Address;
use cuzk_units::parse_duration;

use crate::statement::Submission;

/// Measures a proving daemon, and asks it things.
#[derive(Debug, Parser)]
#[command(name = "cuzk-bench", version, propagate_version = true, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "\
Times are seconds, or numbers with ms, s, m, h, d: 90, 1.5s, 30m.
Exit codes: 0 done, 1 a proof was not verified, 2 usage, 3 bad input, 4 missing key, 5 daemon or device, \
6 the daemon has no room, \
129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM: what was measured by then is told. A second signal ends it at once.";

/// What every verb takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The daemon: host:port, http://host:port, https://host:port or unix:///path
    #[arg(short, long, global = true, value_name = "ADDR", default_value = "127.0.0.1:9820")]
    pub(crate) addr: Address,
    /// How long a daemon that is not there is waited for
    #[arg(long, global = true, value_name = "TIME", default_value = "10", value_parser = parse_duration)]
    pub(crate) connect_limit: Duration,
    /// Certificates (PEM) of the authority that has signed the daemon's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The client's certificates (PEM), if the daemon asks for them
    #[arg(long, global = true, value_name = "FILE", requires = "tls_ca", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The client's private key (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The name in the daemon's certificate, if it is not the host of the address
    #[arg(long, global = true, value_name = "NAME", requires = "tls_ca")]
    pub(crate) tls_name: Option<String>,
    /// A file with the token that the daemon knows the caller by
    #[arg(long, global = true, value_name = "FILE", env = "CUZK_AUTH_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print one JSON object on standard output instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Have one proof made
    Single(SingleArgs),
    /// Have the same proof made many times, some at a time, and measure
    Batch(BatchArgs),
    /// Show devices, keys, queues and memory
    Status,
    /// Bring a circuit's key to the devices
    Preload {
        /// Such as porep-32g, snap-32g, wpost-32g, winning-32g
        #[arg(value_name = "CIRCUIT")]
        circuit: String,
    },
    /// Free a circuit's key unless it is in use
    Evict {
        /// Such as porep-32g, snap-32g, wpost-32g, winning-32g
        #[arg(value_name = "CIRCUIT")]
        circuit: String,
    },
    /// Print the daemon's metrics in Prometheus' text format
    Metrics,
    /// Make vanilla proofs from the files of a sealed sector: `cuzk gen-vanilla` with its options, which `--help` lists
    #[command(disable_help_flag = true)]
    GenVanilla {
        /// The options of `cuzk gen-vanilla`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        arguments: Vec<OsString>,
    },
    /// Ask for proofs of several kinds, each at its rate, for a time
    Stress(StressArgs),
    /// Measure a batch for each number of partition workers and each concurrency, with a daemon started for it
    Sweep(SweepArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SingleArgs {
    #[command(flatten)]
    pub(crate) submission: Submission,
    #[command(flatten)]
    pub(crate) limit: Limit,
    /// Where the proof goes: 192 bytes a partition
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// How long a proof is waited for.
#[derive(Debug, Args)]
pub(crate) struct Limit {
    /// How long a proof is waited for
    #[arg(long = "limit", value_name = "TIME", default_value = "1800", value_parser = parse_duration)]
    pub(crate) time: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cuzk-bench batch -t porep --c1 c1.json -c 20 -j 20
  cuzk-bench batch -t winning --vanilla vanilla.json --sector-size 32g --miner t01000 --randomness 3f…0a -c 5")]
pub(crate) struct BatchArgs {
    #[command(flatten)]
    pub(crate) submission: Submission,
    /// Proofs
    #[arg(short, long, value_name = "N", default_value = "1")]
    pub(crate) count: NonZeroU32,
    /// Proofs that are asked for at a time
    #[arg(short = 'j', long, value_name = "N", default_value = "1")]
    pub(crate) concurrency: NonZeroU32,
    #[command(flatten)]
    pub(crate) limit: Limit,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The plan is TOML: for each load how many proofs a minute, and what is proved, with the names of `batch`'s options;
`sector` and `priority` stand beside the rate. Files are relative to the plan.

  [[load]]
  per_minute = 60
  priority = \"low\"
  [load.statement]
  type = \"wpost\"
  vanilla = \"vanilla.json\"
  sector_size = \"2k\"
  miner = \"t01000\"
  randomness = \"38…3b\"")]
pub(crate) struct StressArgs {
    /// What is asked for
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// For how long; what was asked for by then is waited for
    #[arg(short, long, value_name = "TIME", default_value = "60", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Proofs that may be under way; what is due beyond that is not asked for, and counted
    #[arg(short = 'j', long, value_name = "N", default_value = "1000")]
    pub(crate) concurrency: NonZeroU32,
    #[command(flatten)]
    pub(crate) limit: Limit,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  cuzk-bench sweep --config cuzk.toml -t porep --c1 c1.json -c 20 --partition-workers 10,12,14,16 --concurrency 5,10,20

Each point has a daemon of its own, on a private socket and with a private journal; the rest of its configuration is
that of --config. Results are written after each point. A sweep that is killed (SIGKILL) leaves its daemon.")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) submission: Submission,
    /// Numbers of partitions that are synthesized at a time
    #[arg(long, value_name = "N,…", value_delimiter = ',', required = true)]
    pub(crate) partition_workers: Vec<NonZeroU32>,
    /// Numbers of proofs that are asked for at a time
    #[arg(short = 'j', long, value_name = "N,…", value_delimiter = ',', required = true)]
    pub(crate) concurrency: Vec<NonZeroU32>,
    /// Proofs a point
    #[arg(short, long, value_name = "N", default_value = "20")]
    pub(crate) count: NonZeroU32,
    /// The daemon's configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The daemon; default: cuzk-daemon or `cuzk daemon` beside this program, else cuzk-daemon in PATH
    #[arg(long, value_name = "FILE")]
    pub(crate) daemon: Option<PathBuf>,
    /// How long a daemon may take to start, and to end
    #[arg(long, value_name = "TIME", default_value = "300", value_parser = parse_duration)]
    pub(crate) start_limit: Duration,
    /// Measure with the key not yet loaded
    #[arg(long)]
    pub(crate) cold: bool,
    /// Where the plot of throughput and memory goes
    #[arg(long, value_name = "FILE", default_value = "sweep.svg")]
    pub(crate) svg: PathBuf,
    /// Where the results go as JSON
    #[arg(long, value_name = "FILE", default_value = "sweep.json")]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) limit: Limit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
