//! Every way in which a plugin is not loaded, with a real file each.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuzk_backend::{Backend, BackendError};
use cuzk_plugin::{AbiVersion, LoadError, Loader, PluginBackend, abi, vtable::Vtable};

use crate::{
    c::{compile, plugin},
    common::examples,
};

const NONE: [&str; 0] = [];

/// The refusal of the plugin in C, broken by these macros. It names the file, whatever the reason.
fn refusal(arguments: &[&str]) -> LoadError {
    let (_folder, file) = plugin("broken", arguments);
    refusal_of(&file)
}

fn refusal_of(file: &Path) -> LoadError {
    let error = PluginBackend::open(file).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    error
}

#[test]
fn a_name_is_not_a_path() {
    for name in ["", "../evil", "CUDA", "a.b", "cpu\0", "größe"] {
        assert!(matches!(Loader::new(NONE, NONE).load(name), Err(LoadError::Name { .. })), "{name:?}");
    }
}

#[test]
fn what_is_not_found_lists_where_it_was_searched() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let loader = Loader::new([a.path()], [b.path()]);
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert_eq!(loader.directories(), [a.path(), b.path(), &beside]);
    // A directory of that name is not the file.
    fs::create_dir(a.path().join(Loader::file_name("fpga").unwrap())).unwrap();
    let error = loader.load("fpga").unwrap_err();
    let places = [a.path(), b.path(), &beside].map(|p| p.display().to_string()).join(", ");
    assert_eq!(error.to_string(), format!("no {} in {places}", Loader::file_name("fpga").unwrap()));
    assert!(available_elsewhere(&loader, &beside).is_empty());
}

/// What a loader finds in other directories than the executable's own, where a build may have put plugins.
fn available_elsewhere(loader: &Loader, beside: &Path) -> Vec<(String, PathBuf)> {
    loader.available().into_iter().filter(|(_, path)| !path.starts_with(beside)).collect()
}

#[test]
fn the_first_directory_wins_even_if_its_file_is_broken() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = Loader::file_name("c").unwrap();
    let (_folder, good) = plugin("c", &[]);
    fs::copy(&good, second.path().join(&file)).unwrap();
    let loader = Loader::new([first.path()], [second.path()]);
    assert_eq!(loader.load("c").unwrap().file(), second.path().join(&file));
    fs::write(first.path().join(&file), "not a library").unwrap();
    assert!(matches!(loader.load("c"), Err(LoadError::NotALibrary { file: f, .. }) if f.starts_with(first.path())));
    fs::write(second.path().join(Loader::file_name("z9").unwrap()), "").unwrap();
    fs::write(second.path().join("libother.so"), "").unwrap();
    let this = std::env::current_exe().unwrap();
    assert_eq!(
        available_elsewhere(&loader, this.parent().unwrap()),
        [
            ("c".to_owned(), first.path().join(&file)),
            ("z9".to_owned(), second.path().join(Loader::file_name("z9").unwrap()))
        ]
    );
}

#[test]
fn a_missing_file_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let error = refusal_of(&folder.path().join("nothing.so"));
    assert!(matches!(error, LoadError::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}

#[test]
fn a_text_is_not_a_library() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("text.so", "#!/bin/sh\necho no library\n"), ("empty.so", "")] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        assert!(matches!(refusal_of(&file), LoadError::NotALibrary { reason, .. } if !reason.is_empty()));
    }
}

#[test]
fn a_truncated_library_is_refused_wherever_it_was_cut() {
    let whole = fs::read(examples().join(Loader::file_name("noop").unwrap())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.so");
    // A loaded file must not change, so that whole is tried last.
    let powers = (0..).map(|log| 1 << log).take_while(|len| *len < whole.len());
    for len in powers.chain([0, 3, 5, 63, 100, 12_345, 200_000, whole.len() / 2, whole.len() - 1]) {
        fs::write(&file, &whole[..len]).unwrap();
        match refusal_of(&file) {
            LoadError::NotALibrary { .. } => assert!(len < 4, "{len} bytes show what it is"),
            LoadError::Truncated { place, end, size, .. } => {
                assert_eq!(size, len as u64);
                assert!(size < end && end <= whole.len() as u64, "{place} of {len} bytes ends at {end}");
            }
            other => panic!("{len} bytes: {other}"),
        }
    }
    fs::write(&file, whole).unwrap();
    PluginBackend::open(&file).unwrap();
}

#[test]
fn only_an_ordinary_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(refusal_of(folder.path()), LoadError::NotAFile { .. }));
    // Nobody writes to the pipe: to open it would wait for ever.
    #[cfg(unix)]
    {
        let pipe = folder.path().join("pipe.so");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(matches!(refusal_of(&pipe), LoadError::NotAFile { .. }));
    }
}

#[test]
fn a_missing_system_library_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (source, vendor) = (folder.path().join("vendor.c"), folder.path().join("libvendor_driver.so"));
    fs::write(&source, "int vendor_init(void) { return 0; }").unwrap();
    compile(&source, &vendor, &["-Wl,-soname,libvendor_driver.so.7"]);
    let needs = ["-DNEEDS=vendor_init", vendor.to_str().unwrap()];
    let LoadError::Refused { reason, .. } = refusal(&needs) else { panic!("not refused") };
    assert!(reason.contains("libvendor_driver.so.7"), "{reason}");
    // A symbol that no library has is told at once, too, and not at the first call.
    let LoadError::Refused { reason, .. } = refusal(&["-DNEEDS=vendor_init"]) else { panic!("not refused") };
    assert!(reason.contains("vendor_init"), "{reason}");
}

#[test]
fn a_library_without_the_symbol_is_not_a_plugin() {
    let LoadError::NotAPlugin { symbol, .. } = refusal(&["-DNO_ENTRY", "-Wno-unused"]) else { panic!("not refused") };
    assert_eq!(symbol, "cuzk_backend_plugin");
}

#[test]
fn another_major_version_is_refused_with_both() {
    for major in [abi::VERSION.major - 1, abi::VERSION.major + 1] {
        match refusal(&[&format!("-DMAJOR={major}")]) {
            LoadError::Version { expected, actual, .. } => {
                assert_eq!((expected, actual), (abi::VERSION, AbiVersion { major, minor: abi::VERSION.minor }));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_newer_minor_version_with_a_longer_table_is_welcome() {
    let (_folder, file) = plugin("c", &["-DMINOR=9", "-DSIZE=sizeof(table)"]);
    let backend = PluginBackend::open(&file).unwrap();
    assert_eq!(backend.abi(), AbiVersion { minor: 9, ..abi::VERSION });
    assert_eq!(backend.devices().unwrap().len(), 1);
}

#[test]
fn a_table_that_is_too_small_is_refused_with_both_sizes() {
    let size = size_of::<Vtable>() as u64;
    for small in [0, 24, size - 1] {
        match refusal(&[&format!("-DSIZE={small}")]) {
            LoadError::TooSmall { needed, actual, .. } => assert_eq!((needed, actual), (size, small)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn what_is_not_a_table_is_refused() {
    let LoadError::Magic { expected, actual, .. } = refusal(&["-DMAGIC=1234"]) else { panic!("not refused") };
    assert_eq!((expected, actual), (abi::MAGIC, 1234));
    assert!(matches!(refusal(&["-DNO_TABLE"]), LoadError::NoTable { address: 0, .. }));
}

#[test]
fn a_null_function_is_named() {
    for name in ["devices", "ntt", "fixed_base_mul"] {
        match refusal(&[&format!("-DNULL_FUNCTION={name}")]) {
            LoadError::NullFunction { function, .. } => assert_eq!(function, name),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_plugin_that_does_not_start_says_why() {
    let LoadError::Entry { source, .. } = refusal(&["-DENTRY_FAILS"]) else { panic!("not refused") };
    assert_eq!(source, BackendError::Driver { operation: "load".into(), message: "no such driver".into() });
    let loader = Loader::new([examples()], NONE);
    // Twice: a panic while it is made does not leave half a backend behind.
    for _ in 0..2 {
        let Err(LoadError::Entry { source, .. }) = loader.load("panics") else { panic!("not refused") };
        let message = "no driver, and nobody checked".to_owned();
        assert_eq!(source, BackendError::Panicked { operation: "load".into(), message });
    }
}
