use std::collections::BTreeSet;

use super::*;

#[derive(Clone, Default)]
struct Case {
    text: Option<String>,
    environment: Vec<(OsString, OsString)>,
    flags: Vec<(String, String, String)>,
}

impl Case {
    fn load(self) -> Result<Loaded, ConfigErrors> {
        let file = self.text.as_ref().map(|_| PathBuf::from("cuzk.toml"));
        let sources = Sources { file, environment: self.environment, flags: self.flags };
        sources.parse(&self.text.unwrap_or_default())
    }
}

fn file(text: &str) -> Case {
    Case { text: Some(text.to_owned()), ..Case::default() }
}

fn errors(case: Case) -> Vec<String> {
    case.load().map_or_else(|e| e.0.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn flag(flag: &str, key: &str, value: &str) -> (String, String, String) {
    (flag.to_owned(), key.to_owned(), value.to_owned())
}

#[test]
fn every_default_is_a_value_of_its_key() {
    let loaded = Sources::default().load().unwrap();
    assert!(loaded.warnings.is_empty());
    let keys: Vec<&Key> = SECTIONS.iter().flat_map(|section| section.keys).collect();
    assert_eq!(loaded.shown.len(), keys.len());
    assert_eq!(loaded.shown.keys().copied().collect::<BTreeSet<_>>(), keys.iter().map(|k| k.name).collect());
    for key in keys {
        assert!(!key.doc.is_empty(), "{} is explained", key.name);
        assert_eq!(loaded.origin(key.name), Origin::Default);
    }
    assert_eq!(loaded.config.daemon.listen[0].to_string(), "127.0.0.1:9820");
    assert_eq!(loaded.config.limits.max_message_size, Bytes(256 << 20));
}

#[test]
fn the_example_has_every_key_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuzk-daemon.example.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let example = example();
    let different = text.lines().zip(example.lines()).enumerate().find(|(_, (is, should))| is != should);
    let anew = "write it anew: cuzk-daemon --example-config > cuzk-daemon.example.toml";
    assert_eq!(different, None, "{anew}");
    assert!(text == example, "{anew}");
    let loaded = file(&text).load().unwrap();
    assert_eq!(loaded.config, Sources::default().load().unwrap().config);
    assert!(loaded.warnings.is_empty());
    for key in SECTIONS.iter().flat_map(|section| section.keys) {
        assert!(matches!(loaded.origin(key.name), Origin::File { .. }), "{} is in the example", key.name);
    }
    for old in OLD_KEYS {
        assert!(text.contains(old.name), "{} is explained", old.name);
    }
}

#[test]
fn a_storage_providers_file_is_read() {
    let text = r#"
        [daemon]
        listen = "unix:///run/curio/cuzk.sock"
        status_listen = ""
        [srs]
        param_cache = "/data/zk/params"
        preload = ["porep-32g", "winning-32g"]
        [memory]
        total_budget = "256GiB"
        safety_margin = "5GiB"
        eviction_min_idle = "5m"
        pinned_budget = "50GiB"
        [gpus]
        devices = [0, 1]
        gpu_threads = 32
        gpu_workers_per_device = 2
        [scheduler]
        max_batch_size = 1
        max_batch_wait_ms = 10000
        sort_by_type = true
        [synthesis]
        threads = 0
        partition_workers = 12
        [pipeline]
        enabled = true
        synthesis_lookahead = 1
        synthesis_concurrency = 1
        slot_size = 0
        [logging]
        level = "info"
        format = "json"
    "#;
    let Loaded { config, warnings, .. } = file(text).load().unwrap();
    assert_eq!(config.daemon.listen[0].to_string(), "unix:///run/curio/cuzk.sock");
    assert_eq!(config.daemon.status_listen, None);
    assert_eq!(config.memory.preload, ["porep-32g", "winning-32g"]);
    assert_eq!(config.memory.total_budget, Auto::Given(Bytes(256 << 30)));
    assert_eq!(config.gpus.devices, [DeviceName("0".to_owned()), DeviceName("1".to_owned())]);
    assert_eq!(config.pipeline.partition_workers.to_toml().as_deref(), Some("12"));
    assert_eq!(config.logging.format, LogFormat::Json);
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let about = ["pinned_budget", "max_batch_wait_ms", "synthesis_concurrency", "slot_size", "preload", "workers"];
    assert_eq!(warnings.len(), about.len(), "{warnings:?}");
    assert!(warnings.iter().zip(about).all(|(warning, key)| warning.contains(key)), "{warnings:?}");
    assert_eq!(
        warnings[1],
        "cuzk.toml:19: scheduler.max_batch_wait_ms has no effect: nobody waits for a batch to fill"
    );
    assert_eq!(warnings[4], "cuzk.toml:7: srs.preload is called memory.preload now");
    let off = file("[pipeline]\nenabled = false").load().unwrap();
    assert_eq!(off.warnings.len(), 1);
}

#[test]
fn the_newer_name_counts() {
    for text in [
        "[pipeline]\npartition_workers = 3\n[synthesis]\npartition_workers = 4",
        "[synthesis]\npartition_workers = 4\n[pipeline]\npartition_workers = 3",
    ] {
        let loaded = file(text).load().unwrap();
        assert_eq!(loaded.config.pipeline.partition_workers, Workers::from_text("3").unwrap());
        assert!(matches!(loaded.warnings[..], [Warning::Renamed { honoured: false, .. }]));
    }
    // Even if an old name stands where newer ones would be overridden.
    let mut case = file("[pipeline]\npartition_workers = 3");
    case.environment = environment(&[("CUZK_SYNTHESIS_PARTITION_WORKERS", "4")]);
    assert_eq!(case.load().unwrap().origin("pipeline.partition_workers").to_string(), "cuzk.toml:2");
}

#[test]
fn flag_before_environment_before_file_before_default() {
    let mut case = file("[logging]\nlevel = 'warn'\n[limits]\nqueue_length = 7\n[srs]\nparam_cache = '/a'");
    case.environment = environment(&[
        ("CUZK_LOGGING_LEVEL", "error"),
        ("RUST_LOG", "trace"),
        ("FIL_PROOFS_PARAMETER_CACHE", "/b"),
        ("CUZK_LIMITS_QUEUE_LENGTH", ""),
        ("PATH", "/bin"),
    ]);
    let loaded = case.clone().load().unwrap();
    assert_eq!(loaded.config.logging.level.0, "error");
    assert_eq!(loaded.origin("logging.level").to_string(), "environment CUZK_LOGGING_LEVEL");
    assert_eq!(loaded.config.srs.param_cache, Path::new("/b"));
    assert_eq!(loaded.origin("srs.param_cache").to_string(), "environment FIL_PROOFS_PARAMETER_CACHE");
    assert_eq!(loaded.origin("limits.queue_length").to_string(), "cuzk.toml:4");
    case.flags = vec![flag("--log-level", "logging.level", "debug")];
    let loaded = case.load().unwrap();
    assert_eq!((loaded.config.logging.level.0.as_str(), loaded.origin("logging.level")), {
        ("debug", Origin::Flag("--log-level".to_owned()))
    });
}

#[test]
fn what_is_printed_is_the_same_configuration() {
    let mut case = file("[gpus]\ndevices = 'GPU-1, 2'\n[memory]\nsafety_margin = 5e9\n[auth]\ntoken_file = \"/t\"");
    case.environment = environment(&[("CUZK_DAEMON_LISTEN", "unix:///a b,[::1]:1"), ("CUZK_GPUS_DEVICE", "1")]);
    case.flags = vec![flag("--log-level", "logging.level", "debug")];
    let loaded = case.load().unwrap();
    let text = loaded.print();
    for line in [
        "# warning: environment CUZK_GPUS_DEVICE is no key's; did you mean CUZK_GPUS_DEVICES?",
        "devices = [\"GPU-1\", 2] # cuzk.toml:2",
        "safety_margin = 5000000000 # cuzk.toml:4",
        "listen = [\"unix:///a b\", \"[::1]:1\"] # environment CUZK_DAEMON_LISTEN",
        "level = \"debug\" # --log-level",
        "grace_period = \"1m\" # default",
    ] {
        assert!(text.lines().any(|l| l == line), "{line:?} is not in\n{text}");
    }
    assert_eq!(file(&text).load().unwrap().config, loaded.config);
}

#[test]
fn a_token_is_never_shown() {
    let token = "0123456789abcdef0123";
    let loaded = file(&format!("[auth]\ntoken = '{token}'")).load().unwrap();
    assert!(loaded.print().contains("# token is not shown # cuzk.toml:2"));
    assert!(!loaded.print().contains(token) && !format!("{loaded:?}").contains(token));
    let wrong = errors(file("[auth]\ntoken = 'my secret'")).concat();
    assert!(wrong.starts_with("cuzk.toml:2: auth.token = what is given: expected at least 16"), "{wrong}");
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, error) in [
        ("[daemon]\nlisten = ", "cuzk.toml:2: "),
        ("[daemon]\nlisen = ''", "cuzk.toml:2: there is no key \"daemon.lisen\"; did you mean daemon.listen?"),
        ("\n[deamon]\n", "cuzk.toml:2: there is no key \"deamon\"; did you mean daemon?"),
        ("[memory]\npartition_workers = 2", "there is no key \"memory.partition_workers\"; did you mean pipeline.part"),
        ("[daemon.listen]\nx = 1", "cuzk.toml:1: there is no key \"daemon.listen\""),
        ("[daemon]\nfar_away = 1", "cuzk.toml:2: there is no key \"daemon.far_away\""),
        ("daemon = 3", "cuzk.toml:1: daemon is a section: write [daemon] and its keys below"),
        ("[[daemon]]\nlisten = 'x'", "daemon is a section"),
        (
            "[memory]\n\nsafety_margin = 'lots' # x",
            "cuzk.toml:3: memory.safety_margin = \"lots\": expected a number of b",
        ),
        ("[memory]\nsafety_margin = true", "cuzk.toml:2: memory.safety_margin = true: expected"),
        ("[memory]\nspare_witnesses = 1.5", "expected a whole number from 0 to 4294967295"),
        ("[memory]\nspare_witnesses = -1", "expected a whole number from 0 to 4294967295"),
        ("[logging]\nlevel = 3", "expected error, warn, info"),
        ("[scheduler]\nsort_by_type = 'perhaps'", "expected true or false"),
        ("[daemon]\nlisten = []", "daemon.listen is empty"),
        ("[tls]\ncertificate = '/c'", "tls.certificate is given without tls.key"),
        ("[limits]\nmax_message_size = '4GiB'", "the most that gRPC can carry"),
    ] {
        let found = errors(file(text));
        assert!(found.iter().any(|e| e.contains(error)), "{text:?}: {found:?}");
    }
    // A key that stands in the wrong place is one thing; all mistakes are told at once.
    assert_eq!(errors(file("[memory]\nx = 1\ny = 2\nsafety_margin = 'z'")).len(), 3);
    let case = Case { environment: environment(&[("CUZK_LIMITS_QUEUE_LENGTH", "0")]), ..Case::default() };
    let expected = "environment CUZK_LIMITS_QUEUE_LENGTH: limits.queue_length = \"0\": expected a whole number from 1";
    assert!(errors(case)[0].starts_with(expected));
    let case = Case { flags: vec![flag("--set", "daemon.x", "1")], ..Case::default() };
    assert!(errors(case)[0].starts_with("--set: there is no key \"daemon.x\""));
}

#[test]
fn inline_tables_and_dotted_keys_are_sections_too() {
    let loaded = file("daemon = { grace_period = 5 }\nlogging.level = 'warn'").load().unwrap();
    assert_eq!((loaded.config.daemon.grace_period.as_secs(), loaded.config.logging.level.0.as_str()), (5, "warn"));
}

#[test]
fn a_file_is_read_or_the_reason_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cuzk.toml");
    let sources = Sources { file: Some(path.clone()), ..Sources::default() };
    let error = sources.load().unwrap_err().to_string();
    assert!(error.starts_with(path.to_str().unwrap()) && error.contains("cannot be read: No such file"), "{error}");
    std::fs::write(&path, "[daemon]\ngrace_period = '2s'").unwrap();
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.origin("daemon.grace_period"), Origin::File { path: path.clone(), line: 2 });
    std::fs::write(&path, "#".repeat(2 << 20)).unwrap();
    assert!(sources.load().unwrap_err().to_string().contains("more than 1048576 bytes"));
    std::fs::write(&path, [0x5b, 0xff]).unwrap();
    assert!(sources.load().unwrap_err().to_string().contains("UTF-8"));
}

#[test]
fn the_journal_is_where_the_service_manager_says() {
    let mut case = Case { environment: environment(&[("STATE_DIRECTORY", "/var/lib/x")]), ..Case::default() };
    assert_eq!(case.clone().load().unwrap().journal_directory, Path::new("/var/lib/x/journal"));
    assert!(case.clone().load().unwrap().print().contains("directory = \"auto\" # default: /var/lib/x/journal\n"));
    case.flags = vec![flag("--set", "journal.directory", "/j")];
    assert_eq!(case.load().unwrap().journal_directory, Path::new("/j"));
}
