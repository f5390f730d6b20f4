//! The program as a process: what it writes, what it says, and with which exit code it ends.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::Value;

const WINDOW: &str = "wpost-2k";

/// A folder for the whole run with a test key for the smallest circuit.
struct Stage {
    folder: tempfile::TempDir,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage { folder };
        let made = stage.cuzk(&["setup", WINDOW, "--json"]);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
        let json = json(&made);
        assert_eq!(json["production"], false);
        assert!(stderr(&made).contains("INSECURE"), "{}", stderr(&made));
        stage
    })
}

impl Stage {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cuzk(&self, arguments: &[&str]) -> Output {
        self.cuzk_with(&[], arguments)
    }

    /// The program with variables of the environment.
    fn cuzk_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(arguments)
            .env("FIL_PROOFS_PARAMETER_CACHE", self.path("keys"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("CUZK_PLUGIN_DIR")
            .env_remove("RAYON_NUM_THREADS")
            .env_remove("CUZK_VRAM_LIMIT")
            .env_remove("CUZK_PINNED_LIMIT")
            .env_remove("RUST_LOG")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// Proves the recorded partition 0 into a file, unless that was done; where its verifying key is.
    fn proof_of_window(&self, proof: &Path) -> String {
        if !proof.exists() {
            let made = self.prove(proof, &[]);
            assert_eq!(code(&made), 0, "{}", stderr(&made));
        }
        key_path().with_extension("vk").to_str().unwrap().to_owned()
    }

    /// Proves the recorded partition 0 into a file, with more arguments.
    fn prove(&self, out: &Path, more: &[&str]) -> Output {
        let vanilla = fixture("window/vanilla-p0.json");
        let meta = meta();
        let (miner, randomness) = (meta["miner_id"].to_string(), meta["randomness"].as_str().unwrap().to_owned());
        let mut arguments = vec!["prove", "-t", "window", "--sector-size", "2k"];
        arguments.extend(["--miner", &miner, "--randomness", &randomness]);
        let (vanilla, out) = (vanilla.to_str().unwrap(), out.to_str().unwrap());
        arguments.extend(["--vanilla", vanilla, "--out", out]);
        arguments.extend(more);
        self.cuzk(&arguments)
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/filecoin/2kib").join(name)
}

fn meta() -> Value {
    serde_json::from_slice(&fs::read(fixture("window/meta.json")).unwrap()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", stderr(output)))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", String::from_utf8_lossy(&output.stdout), stderr(output)))
}

#[test]
fn proves_and_verifies() {
    let stage = stage();
    let proof = stage.path("proof.bin");
    let made = stage.prove(&proof, &["--json"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let told = json(&made);
    assert_eq!(told["verified"], true);
    assert_eq!(told["device"]["backend"], "cpu");
    assert!(told["device"]["chosen"].as_str().unwrap().starts_with("auto: "));
    assert!(told["partitions"][0]["stages_ms"]["msm h"].as_f64().unwrap() > 0.0);
    let bytes = fs::read(&proof).unwrap();
    assert_eq!(bytes.len(), 192);
    // The plan is made for a little more than this witness.
    let (memory, partition) = (&told["memory"], &told["partitions"][0]);
    let number = |value: &Value| value.as_u64().unwrap();
    let (predicted, peak) = (number(&memory["predicted_peak_bytes"]), number(&memory["peak_bytes"]));
    assert!(peak <= predicted && predicted - peak <= predicted / 20, "{memory}");
    assert_eq!(number(&partition["uploaded_bytes"]), number(&partition["witness_bytes"]), "only the witness crosses");
    assert_eq!(memory["sections"].as_array().unwrap().len(), 5);
    assert!(memory["sections"][0]["why"].as_str().unwrap().contains("because the whole key fits"), "{memory}");

    let vk = stage.path("keys").join(vk_name());
    let inputs = stage.path("inputs.json");
    let recorded: Value = serde_json::from_slice(&fs::read(fixture("window/public_inputs.json")).unwrap()).unwrap();
    fs::write(&inputs, Value::from(vec![recorded[0].clone()]).to_string()).unwrap();
    let verify = |proof: &Path| {
        let (proof, vk, inputs) = (proof.to_str().unwrap(), vk.to_str().unwrap(), inputs.to_str().unwrap());
        stage.cuzk(&["verify", "--proof", proof, "--vk", vk, "--public-inputs", inputs, "--json"])
    };
    let verdict = verify(&proof);
    assert_eq!((code(&verdict), &json(&verdict)["valid"]), (0, &Value::from(true)), "{}", stderr(&verdict));

    // A valid proof of something else: the recorded one, made with another key.
    let other = stage.path("other.bin");
    fs::copy(fixture("window/proof-p0.bin"), &other).unwrap();
    let verdict = verify(&other);
    assert_eq!((code(&verdict), &json(&verdict)["class"]), (1, &Value::from("verification")));
    // No proof at all.
    fs::write(&other, &bytes[..191]).unwrap();
    assert_eq!(code(&verify(&other)), 3);
}

fn vk_name() -> String {
    let names = fs::read_dir(stage().path("keys")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|n| n.ends_with(".vk")).collect::<Vec<_>>().pop().unwrap()
}

fn key_path() -> PathBuf {
    stage().path("keys").join(vk_name()).with_extension("params")
}

#[test]
fn keys_are_looked_at_converted_and_checked() {
    let stage = stage();
    let params = key_path();
    let (native, back) = (stage.path("key.cuzkkey"), stage.path("back.params"));
    let run = |arguments: &[&str]| {
        let output = stage.cuzk(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
        json(&output)
    };
    let (params, native, back) = (params.to_str().unwrap(), native.to_str().unwrap(), back.to_str().unwrap());
    let looked = run(&["key", "inspect", params, "--json"]);
    assert_eq!(looked["curve"], "bls12-381");
    assert_eq!(looked["log_domain"], 15);
    assert_eq!(looked["is_production"], false);
    let there = run(&["key", "convert", params, native, "--json"]);
    let again = run(&["key", "convert", native, back, "--json"]);
    assert_eq!(there["digest"], again["digest"]);
    assert!(fs::read(params).unwrap() == fs::read(back).unwrap(), "there and back again");
    assert_eq!(code(&stage.cuzk(&["key", "convert", params, native])), 2, "nothing is overwritten unasked");

    let first = run(&["key", "verify", native, "--json"]);
    let second = run(&["key", "verify", params, "--json"]);
    assert_eq!((&first["remembered"], &second["remembered"]), (&Value::from(false), &Value::from(true)));
    assert_eq!(first["digest"], second["digest"]);

    let proof = stage.path("native.bin");
    let made = stage.prove(&proof, &["--key", native]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));

    // One flipped byte of a point.
    let mut bytes = fs::read(params).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = stage.path("damaged.params");
    fs::write(&damaged, bytes).unwrap();
    let refused = stage.cuzk(&["key", "verify", damaged.to_str().unwrap()]);
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    let proof = stage.path("damaged.bin");
    let refused = stage.prove(&proof, &["--key", damaged.to_str().unwrap()]);
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    assert!(!proof.exists(), "nothing is half written");
}

#[test]
fn each_class_of_failure_has_its_exit_code() {
    let stage = stage();
    let out = stage.path("never.bin");
    let empty = stage.path("empty");
    fs::write(&empty, "").unwrap();
    let cases: [(i32, Vec<&str>, &str); 14] = [
        (2, vec!["prove", "--out", "x"], "--c1"),
        (2, vec!["frobnicate"], "frobnicate"),
        (2, vec!["setup", "winning-2k", "--vram-limit", "6 parsecs"], "KiB, MiB, GiB, TiB"),
        (2, vec!["setup", "winning-2k", "--vram-limit", "0"], "at least 1 byte"),
        (2, vec!["prove", "-t", "wpost", "--c1", "x", "--out", "x"], "--vanilla"),
        (2, vec!["setup", "winning-2k", "--backend", "cpu", "--vram-limit", "6GiB"], "--vram-limit 6442450944"),
        (2, vec!["setup", "winning-2k", "--backend", "cpu", "--pinned-limit", "0.5GiB"], "--pinned-limit 536870912"),
        (3, vec!["prove", "--c1", "/nonexistent/c1.json", "--out", "x"], "/nonexistent/c1.json"),
        (3, vec!["prove", "--c1", empty.to_str().unwrap(), "--out", "x"], "empty"),
        (3, vec!["prove", "--c1", "/", "--out", "x"], "directory"),
        (4, vec!["key", "inspect", empty.to_str().unwrap()], "empty"),
        (4, vec!["key", "inspect", "/"], "/"),
        (5, vec!["setup", "winning-2k", "--backend", "nonesuch"], "nonesuch"),
        (5, vec!["setup", "winning-2k", "--device", "7"], "7"),
    ];
    for (expected, arguments, named) in cases {
        let output = stage.cuzk(&arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{arguments:?} names {named}: {}", stderr(&output));
    }
    let c1 = fixture("porep/c1.json");
    let missing = stage.cuzk(&["prove", "--c1", c1.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(code(&missing), 4, "a key that is not there: {}", stderr(&missing));
    assert!(stderr(&missing).contains("porep-2k"));
    let other_key = key_path();
    let arguments =
        ["prove", "--c1", c1.to_str().unwrap(), "--key", other_key.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = stage.cuzk(&arguments);
    assert_eq!(code(&output), 4, "another circuit's key: {}", stderr(&output));
    assert!(!out.exists());
}

#[test]
fn usage_errors_are_json_too() {
    let stage = stage();
    for (arguments, named) in [
        (&["prove", "--json"][..], "--c1"),
        (&["--json", "frobnicate"], "'frobnicate'"),
        (&["backends", "--json", "--threads", "many"], "--threads"),
        (&["setup", "wpost-2k", "--vram-limit", "6 parsecs", "--json"], "KiB, MiB, GiB, TiB"),
        (&["estimate", "--json", "nonsense-2k"], "nonsense-2k"),
        (&["--json"], "subcommand"),
        (&["--json", "key"], "subcommand"),
    ] {
        let output = stage.cuzk(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        let told = json(&output);
        assert_eq!((&told["class"], &told["exit_code"]), (&Value::from("usage"), &Value::from(2)), "{arguments:?}");
        let error = told["error"].as_str().unwrap();
        assert!(error.contains(named) && !error.starts_with("error"), "{arguments:?}: {error}");
        assert!(stderr(&output).contains("--help"), "the text has more: {arguments:?}: {}", stderr(&output));
    }
    // Only if it was asked for.
    for arguments in [&["frobnicate"][..], &["verify", "--", "--json"], &["key"]] {
        let output = stage.cuzk(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_a_verb_does_not_use_it_does_not_take() {
    let stage = stage();
    let file = key_path();
    let file = file.to_str().unwrap();
    let device =
        [&["--backend", "cpu"][..], &["--device", "0"], &["--vram-limit", "6GiB"], &["--pinned-limit", "1GiB"]];
    let verbs = [
        &["verify", "--proof", file, "--c1", file][..],
        &["key", "inspect", file],
        &["backends"],
        &["simulate", file],
        &["timeline", file],
        &["estimate", "wpost-2k"],
    ];
    for verb in verbs {
        for option in device {
            if verb[0] == "estimate" && option[0] == "--vram-limit" {
                continue;
            }
            let output = stage.cuzk(&[verb, option].concat());
            assert_eq!(code(&output), 2, "{verb:?} {option:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(option[0]), "{verb:?} {option:?}: {}", stderr(&output));
        }
    }
    for verb in [&["backends"][..], &["simulate", file], &["timeline", file]] {
        assert_eq!(code(&stage.cuzk(&[verb, &["--threads", "2"]].concat())), 2, "{verb:?}");
    }
}

#[test]
fn a_verifying_key_that_is_not_there_is_said_with_the_options_that_name_one() {
    let stage = stage();
    let vk = stage.proof_of_window(&stage.path("to-verify.bin"));
    let (proof, vanilla) = (stage.path("to-verify.bin"), fixture("window/vanilla-p0.json"));
    let meta = meta();
    let mut arguments = vec!["verify", "-t", "window", "--sector-size", "2k", "--partition", "0"];
    let (miner, randomness) = (meta["miner_id"].to_string(), meta["randomness"].as_str().unwrap().to_owned());
    arguments.extend(["--miner", &miner, "--randomness", &randomness, "--proof", proof.to_str().unwrap()]);
    arguments.extend(["--vanilla", vanilla.to_str().unwrap()]);
    assert_eq!(code(&stage.cuzk(&[&arguments[..], &["--vk", &vk]].concat())), 0);
    let refused = stage.cuzk(&[&arguments[..], &["--param-dir", stage.path("nothing").to_str().unwrap()]].concat());
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    for option in ["--param-dir", "--vk", "FIL_PROOFS_PARAMETER_CACHE"] {
        assert!(stderr(&refused).contains(option), "{}", stderr(&refused));
    }
}

#[test]
fn a_wrong_hash_is_named_before_anything_is_proved() {
    let stage = stage();
    let mut vanilla: Vec<String> =
        serde_json::from_slice(&std::fs::read(fixture("window/vanilla-p0.json")).unwrap()).unwrap();
    // A digit of a sibling, in base64.
    let at = vanilla[1].len() - 120;
    let digit = if vanilla[1].as_bytes()[at] == b'A' { "B" } else { "A" };
    vanilla[1].replace_range(at..=at, digit);
    let (file, proof) = (stage.path("wrong.json"), stage.path("wrong.bin"));
    std::fs::write(&file, serde_json::to_vec(&vanilla).unwrap()).unwrap();
    let meta = meta();
    let (miner, randomness) = (meta["miner_id"].to_string(), meta["randomness"].as_str().unwrap().to_owned());
    let mut arguments = vec!["prove", "-t", "window", "--sector-size", "2k", "--miner", &miner];
    arguments.extend(["--randomness", &randomness, "--vanilla", file.to_str().unwrap()]);
    arguments.extend(["--out", proof.to_str().unwrap()]);
    let refused = stage.cuzk(&arguments);
    assert_eq!(code(&refused), 3, "{}", stderr(&refused));
    let place = "vanilla proof 1 (sector ";
    assert!(stderr(&refused).contains(place) && stderr(&refused).contains("root"), "{}", stderr(&refused));
    assert!(!proof.exists());
}

#[test]
fn a_miner_is_a_number_or_an_address() {
    let stage = stage();
    let proof = stage.path("by-address.bin");
    let meta = meta();
    let (vanilla, out) = (fixture("window/vanilla-p0.json"), proof.to_str().unwrap());
    let randomness = meta["randomness"].as_str().unwrap();
    let number = meta["miner_id"].to_string();
    for (miner, expected) in [(format!("t0{number}"), 0), (format!("f0{number}"), 0), (number, 0), ("f3abc".into(), 2)]
    {
        let mut arguments = vec!["verify", "-t", "window", "--sector-size", "2k", "--miner", &miner];
        let vk = stage.proof_of_window(&proof);
        arguments.extend(["--randomness", randomness, "--vanilla", vanilla.to_str().unwrap(), "--proof", out]);
        let output = stage.cuzk(&[&arguments[..], &["--vk", &vk]].concat());
        assert_eq!(code(&output), expected, "{miner}: {}", stderr(&output));
    }
}

#[test]
fn what_is_said_of_a_c1_must_be_true() {
    let stage = stage();
    let (c1, out) = (fixture("porep/c1.json"), stage.path("said.bin"));
    let prove = |said: &[&str]| {
        let fixed = ["prove", "-t", "porep", "--c1", c1.to_str().unwrap(), "--out", out.to_str().unwrap()];
        stage.cuzk(&[&fixed[..], said].concat())
    };
    // There is no key for it, which is found out afterwards.
    for (said, expected, named) in [
        (["--miner", "t01000"], 4, "porep-2k"),
        (["--miner", "t01001"], 3, "replica_id"),
        (["--sector-size", "2KiB"], 4, "porep-2k"),
        (["--sector-size", "8m"], 3, "--sector-size 8m"),
    ] {
        let output = prove(&said);
        assert_eq!(code(&output), expected, "{said:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{said:?}: {}", stderr(&output));
    }
}

#[test]
fn a_sector_that_stands_twice_is_named() {
    let stage = stage();
    let vanilla: Vec<Value> = serde_json::from_slice(&fs::read(fixture("window/vanilla-p0.json")).unwrap()).unwrap();
    let twice = stage.path("twice.json");
    fs::write(&twice, serde_json::to_vec(&[&vanilla[..], &vanilla[..1]].concat()).unwrap()).unwrap();
    let meta = meta();
    let (miner, randomness) = (meta["miner_id"].to_string(), meta["randomness"].as_str().unwrap());
    let first = meta["sectors"][0]["number"].as_u64().unwrap();
    let out = stage.path("twice.bin");
    let (twice, out) = (twice.to_str().unwrap(), out.to_str().unwrap());
    let output = stage.cuzk(&[
        "prove",
        "-t",
        "wpost",
        "--sector-size",
        "2k",
        "--vanilla",
        twice,
        "--miner",
        &miner,
        "--randomness",
        randomness,
        "--out",
        out,
    ]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let told = stderr(&output);
    assert!(told.contains(&format!("vanilla proof 2: sector {first} ")) && told.contains("twice.json"), "{told}");
}

#[test]
fn the_bench_and_the_daemon_are_in_it() {
    let stage = stage();
    for (program, options) in [("bench", "sweep"), ("daemon", "--listen")] {
        let help = stage.cuzk(&[program, "--help"]);
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        assert_eq!(code(&help), 0);
        assert!(text.contains(options) && text.contains(&format!("cuzk {program}")), "{text}");
        assert_eq!(code(&stage.cuzk(&["-v", program])), 2, "it comes first");
    }
    let nobody = ["bench", "--json", "status", "--connect-limit", "0", "--addr", "unix:///nonexistent/s"];
    let output = stage.cuzk(&nobody);
    assert_eq!((code(&output), &json(&output)["class"]), (5, &Value::from("device")));
}

#[test]
fn limits_from_the_environment_stop_nobody_whom_they_do_not_concern() {
    let stage = stage();
    let setup = ["setup", WINDOW, "--backend", "cpu"];
    let variables = ["CUZK_VRAM_LIMIT", "CUZK_PINNED_LIMIT"];
    for (value, warned) in [("", false), ("6GiB", true)] {
        let folder = tempfile::tempdir().unwrap();
        let into = ["--param-dir", folder.path().to_str().unwrap()];
        let output = stage.cuzk_with(&variables.map(|variable| (variable, value)), &[&setup[..], &into].concat());
        assert_eq!(code(&output), 0, "{value}: {}", stderr(&output));
        for variable in variables {
            let warning = format!("{variable}=6442450944: the cpu backend has no such memory");
            assert_eq!(stderr(&output).contains(&warning), warned, "{}", stderr(&output));
        }
    }
    let nonsense = [("CUZK_VRAM_LIMIT", "6 parsecs")];
    let folder = tempfile::tempdir().unwrap();
    let into = ["--param-dir", folder.path().to_str().unwrap()];
    let refused = stage.cuzk_with(&nonsense, &[&setup[..], &into].concat());
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("CUZK_VRAM_LIMIT=6 parsecs: expected"), "{}", stderr(&refused));
    // Verbs that open no device do not look.
    for arguments in [&["backends"][..], &["key", "inspect", key_path().to_str().unwrap()]] {
        let output = stage.cuzk_with(&nonsense, arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn backends_say_what_can_compute_and_why_not() {
    let stage = stage();
    let plugins = stage.path("plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("libcuzk_backend_broken.so"), "not a library").unwrap();
    // Not even an ELF header.
    fs::write(plugins.join("libcuzk_backend_cut.so"), b"\x7fELF\x02\x01\x01 and so on, but not far").unwrap();
    let output = stage.cuzk(&["backends", "--json", "--plugin-dir", plugins.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let told = json(&output);
    let of = |name: &str| {
        told["backends"]
            .as_array()
            .unwrap()
            .iter()
            .find(|b| b["backend"] == name)
            .unwrap_or_else(|| panic!("{name}: {told}"))
    };
    assert_eq!(of("cpu")["devices"][0]["usable"], true);
    assert!(of("broken")["why_not"].as_str().unwrap().contains("not a shared library"));
    assert!(of("cut")["why_not"].as_str().unwrap().contains("the ELF header ends at byte 64"), "{told}");
    // Asked for by name, it is an error: the CPU does not step in.
    let refused =
        stage.cuzk(&["setup", "winning-2k", "--backend", "broken", "--plugin-dir", plugins.to_str().unwrap()]);
    assert_eq!(code(&refused), 5, "{}", stderr(&refused));
}

#[test]
fn outputs_never_replace_what_they_should_not() {
    let stage = stage();
    let params = key_path();
    let params = params.to_str().unwrap();
    let run = |arguments: &[&str]| code(&stage.cuzk(arguments));
    // A damaged native key is not exported, and leaves the good target as it was.
    let (native, good) = (stage.path("damaged.cuzkkey"), stage.path("good.params"));
    let (native_path, good_path) = (native.to_str().unwrap(), good.to_str().unwrap());
    assert_eq!(run(&["key", "convert", params, native_path]), 0);
    let mut bytes = fs::read(&native).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&native, bytes).unwrap();
    fs::copy(params, &good).unwrap();
    assert_eq!(run(&["key", "convert", native_path, good_path, "--overwrite"]), 4);
    assert!(fs::read(params).unwrap() == fs::read(&good).unwrap(), "the good key is still there");
    let proof = stage.path("from-damaged.bin");
    assert_eq!(code(&stage.prove(&proof, &["--key", native_path])), 4);
    assert!(!proof.exists());
    // A key is not converted onto itself, and links are not replaced, dangling or not.
    assert_eq!(run(&["key", "convert", good_path, good_path, "--overwrite"]), 2);
    let link = stage.path("link");
    std::os::unix::fs::symlink(stage.path("nowhere"), &link).unwrap();
    assert_eq!(run(&["key", "convert", good_path, link.to_str().unwrap()]), 3);
    assert_eq!(code(&stage.prove(&link, &[])), 3);
    assert!(link.is_symlink());
}

#[test]
fn help_and_version_need_nothing() {
    let stage = stage();
    for arguments in [&["--help"][..], &["prove", "--help"], &["key", "--help"], &["--version"]] {
        let output = stage.cuzk(arguments);
        assert_eq!(code(&output), 0);
        assert!(!output.stdout.is_empty());
    }
    let version = String::from_utf8(stage.cuzk(&["--version"]).stdout).unwrap();
    assert!(version.starts_with(&format!("cuzk {} (", env!("CARGO_PKG_VERSION"))), "{version}");
    let examples = String::from_utf8(stage.cuzk(&["prove", "--help"]).stdout).unwrap();
    assert!(examples.contains("cuzk prove --c1 c1.json --out proof.bin"));
}
