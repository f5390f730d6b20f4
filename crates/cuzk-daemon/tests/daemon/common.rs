//! Keys, requests from recorded sectors, a daemon as a child process, and a judge.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use bellperson::groth16;
use blstrs::Bls12;
use cuzk_backend::{Device, DeviceOptions};
use cuzk_backend_cpu::CpuBackend;
use cuzk_filecoin::{CircuitId, ProofKind as Kind, SectorSize, parse_vanilla_list};
use cuzk_groth16::setup_deterministic;
use cuzk_proto::{
    Address, Client, ClientOptions,
    v1::{ProofKind, SubmitProofRequest},
};
use cuzk_tests::{Fixture, recorded_seed};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const WINNING: CircuitId = CircuitId::new(Kind::WinningPoSt, SectorSize::KiB2);
pub(crate) const WINDOW: CircuitId = CircuitId::new(Kind::WindowPoSt, SectorSize::KiB2);
pub(crate) const POREP: CircuitId = CircuitId::new(Kind::PoRep, SectorSize::KiB2);
pub(crate) const UPDATE: CircuitId = CircuitId::new(Kind::Update, SectorSize::KiB2);

/// A directory with the keys of the two small circuits, and recorded matrices beside them: made once.
pub(crate) fn parameters() -> &'static Path {
    static DIRECTORY: OnceLock<TempDir> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| {
            let directory = tempfile::tempdir().unwrap();
            let device = Device::open(&CpuBackend, 0, &DeviceOptions::default()).unwrap();
            for circuit in [WINNING, WINDOW] {
                let r1cs = cuzk_prover::matrices(circuit, &cache(directory.path()), || ()).unwrap();
                let stream = device.stream().unwrap();
                let seed = recorded_seed(circuit).unwrap();
                let key = setup_deterministic::<cuzk_curve::Bls12>(&stream, &r1cs, seed).unwrap();
                let paths = cuzk_prover::keys::KeyPaths::of(circuit, directory.path()).unwrap();
                cuzk_keys::write_native(&key, &paths.native, &mut cuzk_keys::ignore_progress).unwrap();
            }
            directory
        })
        .path()
}

fn cache(parameters: &Path) -> PathBuf {
    parameters.join("cache")
}

/// The request that Curio sends for a recorded sector.
pub(crate) fn request(circuit: CircuitId, id: &str) -> SubmitProofRequest {
    let fixture = Fixture::of(circuit);
    let mut request = SubmitProofRequest {
        request_id: id.to_owned(),
        sector_size: circuit.sector_size.bytes(),
        ..Default::default()
    };
    let meta: Value = serde_json::from_slice(&fixture.read("meta.json")).unwrap();
    let bytes = |name: &str| hex::decode(meta[name].as_str().unwrap()).unwrap();
    let mut set = |kind: ProofKind, registered: u64| {
        request.proof_kind = kind.into();
        request.registered_proof = registered;
        request.miner_id = 1000;
    };
    match circuit.kind {
        Kind::PoRep => {
            set(ProofKind::PorepSealCommit, 5);
            request.sector_number = 1;
            request.vanilla_proof = fixture.read("c1.json");
        }
        Kind::WinningPoSt => {
            set(ProofKind::WinningPost, 0);
            request.vanilla_proofs = parse_vanilla_list(&fixture.read("vanilla.json")).unwrap();
            request.randomness = bytes("randomness");
        }
        Kind::WindowPoSt => {
            set(ProofKind::WindowPostPartition, 10);
            request.vanilla_proofs = parse_vanilla_list(&fixture.read("vanilla-p0.json")).unwrap();
            request.randomness = bytes("randomness");
        }
        Kind::Update => {
            set(ProofKind::SnapDealsUpdate, 0);
            request.vanilla_proofs = parse_vanilla_list(&fixture.read("vanilla.json")).unwrap();
            request.comm_r_old = bytes("comm_r_old");
            request.comm_r_new = bytes("comm_r_new");
            request.comm_d_new = bytes("comm_d_new");
        }
    }
    request
}

/// Whether bellperson accepts a proof of the circuit's (first) recorded statement, under the recorded verifying key.
pub(crate) fn accepts(circuit: CircuitId, proof: &[u8]) -> bool {
    let fixture = Fixture::of(circuit);
    let key = groth16::VerifyingKey::<Bls12>::read(&fixture.read("vk.bin")[..]).unwrap();
    let proof = groth16::Proof::<Bls12>::read(proof).unwrap();
    let (_, statement) = fixture.statements().unwrap().swap_remove(0);
    let inputs = statement.partition(0).unwrap().public_inputs().unwrap();
    groth16::verify_proof(&groth16::prepare_verifying_key(&key), &proof, &inputs).unwrap()
}

/// A daemon on a socket in a directory, with its journal there.
pub(crate) struct Daemon {
    child: Child,
    address: Address,
    log: PathBuf,
}

impl Daemon {
    /// Starts it; it serves once [`client`](Self::client) returns.
    pub(crate) fn start(directory: &Path, options: &[&str]) -> Self {
        let socket = directory.join("socket");
        let listen = format!("unix://{}", socket.display());
        let journal = directory.join("journal");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(directory.join("log")).unwrap();
        let cache = format!("srs.circuit_cache={}", cache(parameters()).display());
        let keys = ["--param-cache".as_ref(), parameters().as_os_str()];
        let keys = if options.contains(&"--param-cache") { &[][..] } else { &keys[..] };
        let no_status = if options.contains(&"--status-listen") { &[][..] } else { &["--status-listen="][..] };
        let child = Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"))
            .args(["--listen", &listen, "--backend", "cpu", "--set", &cache])
            .args(no_status)
            .arg("--journal-dir")
            .arg(&journal)
            .args(keys)
            .args(options)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, address: listen.parse().unwrap(), log: directory.join("log") }
    }

    /// What it has written to its log, and those before it in the same directory.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Where it serves HTTP, of one that was started with `--status-listen 127.0.0.1:0`, once it does.
    pub(crate) fn status_address(&self) -> String {
        for _ in 0..600 {
            let log = self.log();
            let line = log.lines().rfind(|line| line.contains("the status page is served"));
            if let Some((_, address)) = line.and_then(|line| line.split_once("address=")) {
                return address.split_whitespace().next().unwrap().to_owned();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("it does not serve within a minute: {}", self.log());
    }

    /// The answer to a GET request: its status and its body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.status_address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) async fn client(&self) -> Client {
        let options = ClientOptions { connect_limit: Duration::from_secs(60), ..ClientOptions::default() };
        Client::connect(&self.address, options).await.unwrap()
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.ended()
    }

    /// Its exit code, once it has ended by itself.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.ended()
    }

    /// One that does not end is a failure with its log, not a test that hangs.
    fn ended(&mut self) -> Option<i32> {
        let until = Instant::now() + Duration::from_secs(180);
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status.code(),
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                None => panic!("the daemon does not end: {}", self.log()),
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may be gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
