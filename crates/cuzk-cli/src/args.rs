//! The command line's grammar and help texts.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use cuzk_bench::statement::{Hex32, Kind, Miner, SectorSize, StatementArgs, WindowVersion};
use cuzk_filecoin::{CircuitId, WindowPostVersion};
use cuzk_scheduler::Workers;
use cuzk_units::parse_bytes;

use crate::{
    gpu::Gpu,
    limits::{at_least_one_byte, some_time},
};

/// Proves Filecoin's statements with Groth16, on whatever device a backend offers.
#[derive(Debug, Parser)]
#[command(name = "cuzk", version = cuzk_daemon::VERSION, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a proof does not verify, 2 usage, 3 bad input, 4 bad or missing key, 5 device, 6 out of memory.";

/// What every verb takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object on standard output instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// More logging on standard error (-v, -vv, -vvv)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What a verb takes that computes on the host. An option that would do nothing for a verb is none of it.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Threads on the host; 0: one a core
    #[arg(long, global = true, default_value_t = 0, env = "RAYON_NUM_THREADS", value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub(crate) threads: u32,
}

/// Where plugins are.
#[derive(Debug, Args)]
pub(crate) struct PluginArgs {
    /// Where to look for plugins first (may be repeated); then CUZK_PLUGIN_DIR, then beside the executable
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,
}

/// What a verb takes that computes on a device.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct DeviceArgs {
    /// Backend to compute on: `cpu` is built in, any other name (or the path of a file) is a plugin; `auto`
    /// takes the first plugin with a usable device, else the CPU, and says why
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub(crate) backend: String,
    /// Device of the backend: its index, or its UUID or the beginning of it; default: the first that is usable
    #[arg(long, value_name = "INDEX|UUID")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// The most device memory to use: 6GiB, 0.5GiB, or bytes; default: what the driver reports as free, less a margin.
    /// For devices with memory of their own [env: CUZK_VRAM_LIMIT]
    #[arg(long, value_name = "SIZE", value_parser = at_least_one_byte)]
    pub(crate) vram_limit: Option<u64>,
    /// The most pinned host memory to use for what does not fit the device; default: half of what is available
    /// [env: CUZK_PINNED_LIMIT]
    #[arg(long, value_name = "SIZE", value_parser = at_least_one_byte)]
    pub(crate) pinned_limit: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a proof from a C1 file or from vanilla proofs
    Prove(ProveArgs),
    /// Verify a proof
    Verify(VerifyArgs),
    /// Make a proving key (insecure for production: real keys come from a ceremony)
    Setup(SetupArgs),
    /// Look at, convert or check a proving key
    Key(KeyVerbs),
    /// List backends and devices: usable, or why not
    Backends(PluginArgs),
    /// Seal a 2 KiB sector, prove it, and let Filecoin's own verifier judge the proofs
    Demo(DemoArgs),
    /// Make vanilla proofs from the files of a sealed sector
    GenVanilla(GenVanillaArgs),
    /// Serve proofs over gRPC: the program cuzk-daemon with its options, which `cuzk daemon --help` lists
    // Parsed by `main`, because the daemon has options of its own with the names of global ones.
    #[command(disable_help_flag = true)]
    Daemon {
        /// The daemon's options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<String>,
    },
    /// Measure a daemon, and ask it things: the program cuzk-bench with its verbs, which `cuzk bench --help` lists
    // Parsed by `main`, as that of the daemon.
    #[command(disable_help_flag = true)]
    Bench {
        /// The bench's verb and options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<String>,
    },
    /// Say what an engine would choose for a circuit on a machine that is described: workers, memory, what of the key
    /// stays on the device
    Estimate(EstimateArgs),
    /// Simulate a machine that is described, with what it has to do: throughput, memory, utilization
    Simulate(SimulateArgs),
    /// Show what an engine recorded: a summary, a page, a trace for Perfetto
    Timeline(TimelineArgs),
}

/// Arguments of `gen-vanilla`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cuzk gen-vanilla -t winning --sector-size 32g --sector 7 --sealed s-t01000-7 --cache cache/s-t01000-7 \\
    --comm-r … --miner t01000 --randomness … --out vanilla.json
  cuzk gen-vanilla -t snap … --updated-sealed update/s-t01000-7 --updated-cache update-cache/s-t01000-7 \\
    --comm-r-new … --comm-d-new … --out vanilla.json")]
pub(crate) struct GenVanillaArgs {
    /// Kind of the proofs: winning, wpost or snap (a PoRep starts from the C1 that sealing writes)
    #[arg(long = "type", short = 't', visible_alias = "kind", value_enum, value_name = "KIND")]
    pub(crate) kind: Kind,
    /// Sector size in bytes, or 2k, 8m, 512m, 32g, 64g
    #[arg(long, value_name = "SIZE")]
    pub(crate) sector_size: SectorSize,
    /// Number of the sector
    #[arg(long, value_name = "N")]
    pub(crate) sector: u64,
    /// The sealed replica
    #[arg(long, value_name = "FILE")]
    pub(crate) sealed: PathBuf,
    /// The directory with the sector's trees
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: PathBuf,
    /// Commitment to the replica, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) comm_r: Hex32,
    /// Proofs of spacetime: the storage provider: t01000, f01000 or 1000
    #[arg(long, value_name = "ID")]
    pub(crate) miner: Option<Miner>,
    /// Proofs of spacetime: randomness, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) randomness: Option<Hex32>,
    /// WindowPoSt: how challenges are derived
    #[arg(long, value_enum, default_value_t)]
    pub(crate) window_version: WindowVersion,
    /// Update: the updated replica
    #[arg(long, value_name = "FILE")]
    pub(crate) updated_sealed: Option<PathBuf>,
    /// Update: the directory with its trees
    #[arg(long, value_name = "DIR")]
    pub(crate) updated_cache: Option<PathBuf>,
    /// Update: commitment to the updated replica, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) comm_r_new: Option<Hex32>,
    /// Update: commitment to the new data, 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) comm_d_new: Option<Hex32>,
    /// Where the proofs go: a JSON array of base64 strings, as `prove --vanilla` and `cuzk-bench` take it
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `estimate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cuzk estimate porep-32g --cores 16 --memory 128GiB --gpu h200
  cuzk estimate wpost-32g --cores 96 --memory 755GiB --gpu 70x15.5GiB --gpu 70x15.5GiB --synthesis 35.5s --device-time 1.82s
  cuzk estimate porep-2k                  # this machine, without a GPU")]
pub(crate) struct EstimateArgs {
    /// The circuit: porep-32g, winning-8m, wpost-2k, …
    #[arg(value_name = "CIRCUIT")]
    pub(crate) circuit: CircuitId,
    /// Cores of the machine; default: this one's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cores: Option<u16>,
    /// Memory of the machine; default: this one's
    #[arg(long, value_name = "SIZE", value_parser = at_least_one_byte)]
    pub(crate) memory: Option<u64>,
    /// An NVIDIA device of the machine (may be repeated): its name (h200, h100, a100, l40s, rtx5090, rtx4090, rtx3090,
    /// rtx5070ti), or multiprocessors and free memory, such as 132x139GiB; default: none, the CPU computes
    #[arg(long, value_name = "NAME|NxSIZE")]
    pub(crate) gpu: Vec<Gpu>,
    /// The most memory to use of each of these devices: 6GiB, 0.5GiB, or bytes; default: all that is free
    #[arg(long, value_name = "SIZE", value_parser = at_least_one_byte, requires = "gpu")]
    pub(crate) vram_limit: Option<u64>,
    /// Pinned memory of each device, from which sections of the key are streamed that do not fit it
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes, requires = "gpu")]
    pub(crate) pinned: u64,
    /// Partitions synthesized at a time: a number or `auto`
    #[arg(long, value_name = "N", default_value = "auto", value_parser = workers)]
    pub(crate) partition_workers: Workers,
    /// Host memory for proofs; default: what the machine has, less the margin
    #[arg(long, value_name = "SIZE", value_parser = at_least_one_byte)]
    pub(crate) budget: Option<u64>,
    /// Host memory that stays free
    #[arg(long, value_name = "SIZE", default_value = "5GiB", value_parser = parse_bytes)]
    pub(crate) safety_margin: u64,
    /// How long a witness takes with so many under way, if that is known: 35.5s, 2m
    #[arg(long, value_name = "TIME", requires = "device_time", value_parser = some_time)]
    pub(crate) synthesis: Option<Duration>,
    /// How long the device takes for a partition, if that is known: 1.82s, 250ms
    #[arg(long, value_name = "TIME", requires = "synthesis", value_parser = some_time)]
    pub(crate) device_time: Option<Duration>,
    /// Where the recorded matrices of circuits are kept; default: $XDG_CACHE_HOME/cuzk or ~/.cache/cuzk
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Machine, policy, circuits and jobs in TOML: see docs/simulator.md
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Partitions synthesized at a time, instead of the plan's: numbers or `auto`, each simulated
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = workers)]
    pub(crate) partition_workers: Vec<Workers>,
}

fn workers(text: &str) -> Result<Workers, String> {
    match text {
        "auto" => Ok(Workers::Auto),
        _ => match text.parse() {
            Ok(0) => Err("expected at least 1, or auto".to_owned()),
            Ok(workers) => Ok(Workers::Fixed(workers)),
            Err(error) => Err(format!("a number or auto: {error}")),
        },
    }
}

/// Arguments of `timeline`.
#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    /// A timeline in its native form, JSON lines: see docs/timeline.md
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the waterfall as one self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
}

/// The version of the published crates that says how challenges are derived.
pub(crate) fn window_version(version: WindowVersion) -> WindowPostVersion {
    match version {
        WindowVersion::V1 => WindowPostVersion::V1,
        WindowVersion::V1_1 => WindowPostVersion::V1_2,
    }
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true).args(["c1", "vanilla"]), after_help = "\
Examples:
  cuzk prove --c1 c1.json --out proof.bin
  cuzk prove --c1 c1.json --partition 3 --out proof-3.bin
  cuzk prove -t winning --vanilla vanilla.json --sector-size 32g --miner t01000 --randomness 3f…0a --out proof.bin
  cuzk prove -t snap --vanilla vanilla.json --sector-size 2k --comm-r-old … --comm-r-new … --comm-d-new … --out proof.bin")]
pub(crate) struct ProveArgs {
    #[command(flatten)]
    pub(crate) statement: StatementArgs,
    /// Prove this partition alone (the default is all of them)
    #[arg(long, value_name = "K", conflicts_with = "all")]
    pub(crate) partition: Option<usize>,
    /// Prove all partitions: the default
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// Compute multiples of the key's points when it is loaded, if the device's memory allows: pays from about a
    /// hundred proofs on
    #[arg(long)]
    pub(crate) multiples: bool,
    /// Where the recorded matrices of circuits are kept; default: $XDG_CACHE_HOME/cuzk or ~/.cache/cuzk
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Where the proof goes: 192 bytes a partition, in order
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// Which proving key.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The proving key (bellperson .params, or native); default: by its published name in the parameter directory
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The parameter directory
    #[arg(
        long,
        value_name = "DIR",
        env = "FIL_PROOFS_PARAMETER_CACHE",
        default_value = "/var/tmp/filecoin-proof-parameters"
    )]
    pub(crate) param_dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").required(true).args(["c1", "vanilla", "public_inputs"]),
    after_help = "\
Examples:
  cuzk verify --proof proof.bin --c1 c1.json
  cuzk verify --proof proof.bin --vk key.vk --public-inputs inputs.json

Public inputs: a JSON array with one array for each partition, of 64 hexadecimal digits an input (little-endian, without ONE)."
)]
pub(crate) struct VerifyArgs {
    /// The proof: 192 bytes a partition
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: PathBuf,
    /// The verifying key (bellperson .vk); default: by its published name in the parameter directory
    #[arg(long, value_name = "FILE")]
    pub(crate) vk: Option<PathBuf>,
    /// The parameter directory
    #[arg(
        long,
        value_name = "DIR",
        env = "FIL_PROOFS_PARAMETER_CACHE",
        default_value = "/var/tmp/filecoin-proof-parameters"
    )]
    pub(crate) param_dir: PathBuf,
    /// Public inputs instead of a statement
    #[arg(long, value_name = "FILE", requires = "vk")]
    pub(crate) public_inputs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) statement: StatementArgs,
    /// The proof is of this partition alone
    #[arg(long, value_name = "K", conflicts_with = "public_inputs")]
    pub(crate) partition: Option<usize>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cuzk setup porep-2k                              # both keys into the parameter directory
  cuzk setup winning-2k --param-dir keys --format native")]
pub(crate) struct SetupArgs {
    /// The circuit: porep-2k, winning-8m, wpost-32g, snap-2k, …
    #[arg(value_name = "CIRCUIT")]
    pub(crate) circuit: CircuitId,
    /// Where the keys go, under their published names
    #[arg(
        long,
        value_name = "DIR",
        env = "FIL_PROOFS_PARAMETER_CACHE",
        default_value = "/var/tmp/filecoin-proof-parameters"
    )]
    pub(crate) param_dir: PathBuf,
    /// File format of the proving key
    #[arg(long, value_enum, default_value = "params")]
    pub(crate) format: KeyFormat,
    /// INSECURE: derive the key from this seed (64 hexadecimal digits), so that anybody can forge proofs; for tests
    #[arg(long, value_name = "HEX")]
    pub(crate) insecure_seed: Option<Hex32>,
    /// Replace keys that are already there
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// A file format of proving keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyFormat {
    /// bellperson's .params
    Params,
    /// The native format, loaded without decoding
    Native,
}

/// The verbs of `key`.
#[derive(Debug, Args)]
pub(crate) struct KeyVerbs {
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// What a key is: format, curve, counts, digest, how it was made
    Inspect {
        /// The key
        #[arg(value_name = "FILE")]
        key: PathBuf,
    },
    /// Convert between bellperson's .params and the native format; the target's format is the other one
    Convert {
        /// The key
        #[arg(value_name = "FILE")]
        from: PathBuf,
        /// Where the converted key goes
        #[arg(value_name = "TARGET")]
        to: PathBuf,
        /// Replace a file that is already there
        #[arg(long)]
        overwrite: bool,
    },
    /// Check that every point is on its curve and in its subgroup; the result is remembered by digest
    Verify {
        /// The key
        #[arg(value_name = "FILE")]
        key: PathBuf,
        /// Where results are remembered; default: $XDG_CACHE_HOME/cuzk or ~/.cache/cuzk
        #[arg(long, value_name = "DIR")]
        cache_dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the sector, the keys and the proofs go; made if missing
    #[arg(long, value_name = "DIR", default_value = "cuzk-demo")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

impl Command {
    /// How many threads of the host it may use; 0: one a core.
    pub(crate) fn threads(&self) -> u32 {
        let host = match self {
            Self::Prove(args) => &args.device.host,
            Self::Setup(args) => &args.device.host,
            Self::Demo(args) => &args.device.host,
            Self::Verify(args) => &args.host,
            Self::Key(verbs) => &verbs.host,
            Self::GenVanilla(args) => &args.host,
            Self::Estimate(args) => &args.host,
            Self::Backends(_) | Self::Daemon { .. } | Self::Bench { .. } | Self::Simulate(_) | Self::Timeline(_) => {
                return 0;
            }
        };
        host.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
