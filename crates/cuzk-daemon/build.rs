//! Tells the program which commit it is built from: `CUZK_COMMIT` if that is set, else what the repository says, else
//! "unknown". In the crate nearest to the programs, because what depends on this is built anew with every commit.

use std::{env, path::Path};

#[path = "build/commit.rs"]
mod commit;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/commit.rs");
    println!("cargo::rerun-if-env-changed=CUZK_COMMIT");
    let given = env::var("CUZK_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| {
        let found = commit::of(&Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("../.."))?;
        found.read.iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
        Some(found.commit)
    });
    println!("cargo::rustc-env=CUZK_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}
