//! Every key: its name, type, default, what it is for, and the environment variables that give it beside
//! `CUZK_SECTION_KEY`. Parser, `--print-config`, the example file and the fields of [`Config`] are made from this
//! table.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use super::{
    Auto, Bytes, DeviceName, Fate, Key, LogFilter, LogFormat, OldKey, Secret, Section, Setting, Workers, given::Given,
    key::sections,
};
use crate::listen::Address;

sections! {
    /// What the daemon offers, and how it ends.
    daemon: DaemonConfig {
        /// Where gRPC is served: one address or a list, each "host:port" or "unix:///path". Addresses that others can
        /// reach are refused without TLS or a token.
        listen: Vec<Address> = "127.0.0.1:9820";
        /// Where the status page, /metrics, /healthz, /readyz, /status and /timeline are served by HTTP. Empty:
        /// nowhere.
        status_listen: Option<Address> = "127.0.0.1:9821";
        /// Names beside localhost under which browsers may ask for the status page on a loopback address, such as that
        /// of a proxy.
        status_hosts: Vec<String> = "";
        /// Serve on addresses that others can reach, even without TLS and token. Whoever reaches them can have proofs
        /// made, cancel others' and read their results.
        insecure_listen: bool = "false";
        /// When the daemon is told to end: how long proofs under way may take to end. What remains is continued at the
        /// next start.
        grace_period: Duration = "60s";
        /// Cancel a proof if the client that waits for it in `Prove` leaves. The client's retry then starts anew
        /// instead of joining it.
        cancel_on_disconnect: bool = "false";
    }

    /// Keys of circuits.
    srs: SrsConfig {
        /// Directory of the parameter files (.params, .vk, or native keys).
        param_cache: PathBuf = "/var/tmp/filecoin-proof-parameters" ["FIL_PROOFS_PARAMETER_CACHE"];
        /// Directory for what is made of circuits once: recorded matrices, measured sizes. "auto": what the service
        /// manager assigns (CACHE_DIRECTORY), else cuzk in XDG_CACHE_HOME or ~/.cache.
        circuit_cache: Auto<PathBuf> = "auto";
        /// How often the loading of a key is tried before the proofs that need it fail.
        load_attempts: NonZeroU32 = "2";
    }

    /// Host memory, and which keys stay there.
    memory: MemoryConfig {
        /// Host memory that may be reserved: bytes, or "auto" for all of the machine's but the margin.
        total_budget: Auto<Bytes> = "auto";
        /// Host memory that stays free in any case.
        safety_margin: Bytes = "5GiB";
        /// A key that nobody uses stays at least that long, even if memory is short.
        eviction_min_idle: Duration = "5m";
        /// Circuits whose keys are loaded at the start, such as "porep-32g", "winning-32g".
        preload: Vec<String> = "";
        /// Proved witnesses a circuit that are kept, so that their memory is used again.
        spare_witnesses: u32 = "1";
    }

    /// Devices that compute.
    gpus: GpuConfig {
        /// Devices of the backend that are used: numbers, or UUIDs or beginnings of them. Empty: all.
        devices: Vec<DeviceName> = "";
        /// Threads on the host that finish proofs. 0: an eighth of the cores, at most eight.
        gpu_threads: u32 = "0";
        /// Partitions at a device at a time: one computes, the others prepare.
        gpu_workers_per_device: NonZeroU32 = "2";
        /// Self-tests in a row that a device which failed may fail before it is given up.
        max_self_tests: NonZeroU32 = "3";
        /// Time between two of them.
        self_test_interval: Duration = "60s";
    }

    /// The order of the work.
    scheduler: SchedulerConfig {
        /// Partitions of one circuit that start on a device together, if so many are prepared. Nobody waits for others.
        max_batch_size: NonZeroU32 = "1";
        /// Inside a priority, go on with the circuit whose key is on the device.
        sort_by_type: bool = "true";
        /// How often something may be overtaken until it goes next.
        max_overtakes: u32 = "16";
        /// Partitions of CRITICAL proofs (WinningPoSt) that may be synthesized beyond pipeline.partition_workers.
        critical_permits: u32 = "1";
        /// Host memory that only CRITICAL proofs may use. Their keys count: size it for those too.
        critical_reserve_host: Bytes = "0";
        /// Pinned memory that only CRITICAL proofs may use.
        critical_reserve_pinned: Bytes = "0";
        /// Memory of each device that only CRITICAL proofs may use.
        critical_reserve_device: Bytes = "0";
    }

    /// Making witnesses.
    synthesis: SynthesisConfig {
        /// Cores for synthesis altogether. 0: all.
        threads: u32 = "0";
        /// Threads of one synthesis, for circuits that synthesize in parallel. 0: one.
        threads_per_worker: u32 = "0";
    }

    /// What is in flight between synthesis and devices.
    pipeline: PipelineConfig {
        /// Partitions that are synthesized at a time: a number, or "auto" (or 0): chosen from memory, cores and
        /// measured times.
        partition_workers: Workers = "auto";
        /// Synthesized partitions that may wait for a device, if that is more than the workers. 0 counts as 1.
        synthesis_lookahead: u32 = "1";
    }

    /// What computes.
    backend: BackendConfig {
        /// "auto", "cpu", or the name or path of a plugin such as "cuda". "auto" takes the first plugin with a usable
        /// device, else the CPU, and says why. If a backend is named, there is no falling back to another.
        name: String = "auto";
        /// Directories where plugins are looked for first; then beside the executable.
        plugin_dir: Vec<PathBuf> = "" ["CUZK_PLUGIN_DIR"];
        /// Memory of each device that may be used: bytes, or "auto" for what the driver says is free, less a margin.
        vram_limit: Auto<Bytes> = "auto" ["CUZK_VRAM_LIMIT"];
        /// Pinned host memory of each device, taken at the start: bytes, or "auto" for the backend's default, which is
        /// enough for keys that fit the device. Sections of a key that do not fit are streamed from it, so they must
        /// lie there as a whole: `cuzk estimate` says how much that is.
        pinned_limit: Auto<Bytes> = "auto" ["CUZK_PINNED_LIMIT"];
        /// Compute multiples of a key's points when it is loaded, if a device's memory allows it. Loading takes longer,
        /// proofs are faster.
        multiples: bool = "false";
        /// How long a single call to a device may take; one that does not answer by then counts as lost.
        watchdog: Duration = "5m";
    }

    /// Failed attempts that are written down to be repeated.
    replay: ReplayConfig {
        /// Directory for them. Empty: nowhere.
        directory: Option<PathBuf> = "";
        /// Whether inputs may be written there. They can contain secrets of the sealed data.
        inputs: bool = "false";
        /// How many are kept.
        max_bundles: NonZeroU32 = "32";
    }

    /// Where accepted requests and finished proofs are kept, so that nothing is lost with the process.
    journal: JournalConfig {
        /// Directory of the journal; one daemon each. "auto": what the service manager assigns (STATE_DIRECTORY), else
        /// /var/lib/cuzk for root, else cuzk in XDG_STATE_HOME or ~/.local/state.
        directory: Auto<PathBuf> = "auto";
        /// How long a proof can be fetched after its end. It is removed once it was older than that by the clock during
        /// a whole hour of the daemon's running: a clock that is wrong for a while removes nothing.
        retention: Duration = "7d";
        /// Disk space that the journal may take. When it is used up, new requests are refused. Each that waits has its
        /// input there: 50 to 200 MB for a 32 GiB sector.
        max_bytes: Bytes = "64GiB";
        /// Ended jobs that are kept; the oldest are forgotten first.
        max_ended_jobs: NonZeroU32 = "10000";
    }

    /// What clients may ask of the daemon.
    limits: LimitsConfig {
        /// The largest request. A C1 of a 32 GiB sector has 50 to 200 MB.
        max_message_size: Bytes = "256MiB";
        /// Bytes of requests that may be arriving, or be checked and written, at a time; callers beyond that are told
        /// to come again.
        max_arriving_bytes: Bytes = "4GiB";
        /// Jobs that are not yet proved, altogether.
        queue_length: NonZeroU32 = "1000";
        /// Jobs of one client that are not yet proved. A client is who its certificate, its unix user or its IP address
        /// says. 0: no limit beside queue_length.
        jobs_per_client: u32 = "0";
        /// Connections at a time; fewer, which the log tells, if the limit of open files (ulimit -n) does not carry
        /// them. The status page has others, 128 at most.
        connections: NonZeroU32 = "1024";
        /// Calls that wait for a proof, at a time.
        waiting_calls: NonZeroU32 = "2048";
        /// How long a request may take to arrive.
        request_timeout: Duration = "5m";
        /// How long a connection may take to begin, TLS included.
        handshake_timeout: Duration = "10s";
        /// A connection on which nothing arrives for so long is asked whether it is still there.
        keepalive_interval: Duration = "30s";
        /// How long it may take to answer that.
        keepalive_timeout: Duration = "20s";
    }

    /// TLS of all TCP addresses. Certificates are read again when the daemon is told to reload.
    tls: TlsConfig {
        /// Certificate chain of the server, PEM. Empty: no TLS.
        certificate: Option<PathBuf> = "";
        /// Its private key, PEM.
        key: Option<PathBuf> = "";
        /// Certificates, PEM, of the authorities that clients' certificates must come from. Empty: clients need none.
        /// Reloading does not take this protection away, a restart does.
        client_ca: Option<PathBuf> = "";
    }

    /// Who may call. Unix sockets are guarded by their mode, 0660, instead.
    auth: AuthConfig {
        /// Token that calls carry as "authorization: Bearer TOKEN". Better in a file: what is here can be seen by all
        /// who may read it.
        token: Option<Secret> = "";
        /// File with the token. It is read again when the daemon is told to reload, which can replace the token and not
        /// do without one.
        token_file: Option<PathBuf> = "";
    }

    /// What is logged, on standard error.
    logging: LoggingConfig {
        /// error, warn, info, debug, trace or off, or directives such as "info,cuzk_engine=debug". A level alone is
        /// that of the daemon's own lines; of libraries warnings are shown, or what "info,storage_proofs_core=debug"
        /// says.
        level: LogFilter = "info" ["RUST_LOG"];
        /// "human", or "json" for one object a line.
        format: LogFormat = "human";
    }
}

/// Keys of earlier versions.
pub const OLD_KEYS: &[OldKey] = &[
    OldKey { name: "srs.preload", fate: Fate::Renamed("memory.preload") },
    OldKey { name: "synthesis.partition_workers", fate: Fate::Renamed("pipeline.partition_workers") },
    idle("memory.pinned_budget", "backend.pinned_limit bounds pinned memory, memory.total_budget the rest"),
    idle("memory.working_memory_budget", "memory.total_budget bounds all host memory"),
    idle("scheduler.max_batch_wait_ms", "nobody waits for a batch to fill"),
    idle("pipeline.synthesis_concurrency", "pipeline.partition_workers says how many are synthesized at a time"),
    idle("pipeline.slot_size", "partitions are always proved one by one"),
    idle("pipeline.max_gpu_queue_depth", "pipeline.partition_workers and pipeline.synthesis_lookahead bound the queue"),
    OldKey {
        name: "pipeline.enabled",
        fate: Fate::Idle { reason: "synthesis and devices always overlap", unless: Some("true") },
    },
];

const fn idle(name: &'static str, reason: &'static str) -> OldKey {
    OldKey { name, fate: Fate::Idle { reason, unless: None } }
}
