//! Compiles `src/sppark.cu` with the headers of the sppark crate, and says which version that is.
//!
//! nvcc is that of `CUDA_HOME`, else that of `PATH`, else the one that `cargo xtask build --backend cuda` fetched.
//! `CUZK_PEER_ARCH` is the architecture, `sm_90` if unset.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const ARCHITECTURE: &str = "CUZK_PEER_ARCH";

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let (sppark, blst, out) = (variable("DEP_SPPARK_ROOT"), variable("DEP_BLST_C_SRC"), variable("OUT_DIR"));
    for name in [ARCHITECTURE, "CUDA_HOME", "PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    for file in ["build.rs", "src/sppark.cu", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rustc-env=SPPARK_VERSION={}", locked_version(&manifest, "sppark"));

    let target = manifest.join("../../target");
    let nvcc = find_nvcc(&target);
    let architecture = env::var(ARCHITECTURE).unwrap_or_else(|_| "sm_90".to_owned());
    let number = architecture.strip_prefix("sm_").unwrap_or_else(|| panic!("{ARCHITECTURE}={architecture}: not sm_NN"));
    let mut command = Command::new(&nvcc);
    command
        .args(["-std=c++17", "-O3", "-lib", "-DNDEBUG", "-DFEATURE_BLS12_381"])
        .arg("-DTAKE_RESPONSIBILITY_FOR_ERROR_MESSAGE")
        .arg(format!("-gencode=arch=compute_{number},code=sm_{number}"))
        .arg("-Xcompiler=-fPIC,-Wno-unused-function,-Wno-subobject-linkage")
        .args(["-I", &sppark, "-I", &blst]);
    // The headers of cooperative groups include some of the C++ core libraries, which are a package of their own.
    let libraries = target.join("cuda-cccl/nvidia/cu13/include/cccl");
    if libraries.is_dir() {
        command.arg("-I").arg(libraries);
    }
    // The same choice as blst's own build makes, because the objects are linked with its assembly.
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("adx") {
        command.arg("-D__ADX__");
    }
    command.arg("-o").arg(Path::new(&out).join("libpeer_sppark.a")).arg(manifest.join("src/sppark.cu"));
    // With nvcc on the path sppark's own build has compiled this one already.
    if env::var("DEP_SPPARK_TARGET").is_err() {
        command.arg(Path::new(&sppark).join("util/all_gpus.cpp"));
    }
    let output = command.output().unwrap_or_else(|e| panic!("{}: {e}", nvcc.display()));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));

    println!("cargo::rustc-link-search=native={out}");
    println!("cargo::rustc-link-lib=static=peer_sppark");
    println!("cargo::rustc-link-search=native={}", runtime(&nvcc).display());
    for library in ["static=cudart_static", "dylib=stdc++", "dylib=rt", "dylib=dl", "dylib=pthread"] {
        println!("cargo::rustc-link-lib={library}");
    }
}

fn find_nvcc(target: &Path) -> PathBuf {
    let folder = |variable, below: &str| env::var_os(variable).map(|folder| PathBuf::from(folder).join(below));
    let path = env::var_os("PATH").unwrap_or_default();
    let fetched = "cuda-toolchain/nvidia/cu13/bin";
    folder("CUDA_HOME", "bin")
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(folder("CARGO_TARGET_DIR", fetched))
        .chain([target.join(fetched)])
        .map(|folder| folder.join("nvcc"))
        .find(|file| file.is_file())
        .expect("no nvcc in CUDA_HOME or PATH: `cargo xtask build --backend cuda` fetches one")
}

/// The folder of the static CUDA runtime: installations and wheels differ.
fn runtime(nvcc: &Path) -> PathBuf {
    let nvcc = fs::canonicalize(nvcc).unwrap_or_else(|e| panic!("{}: {e}", nvcc.display()));
    let root = nvcc.ancestors().nth(2).expect("nvcc stands in a folder bin");
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"]
        .into_iter()
        .map(|folder| root.join(folder))
        .find(|folder| folder.join("libcudart_static.a").is_file())
        .unwrap_or_else(|| panic!("no libcudart_static.a below {}", root.display()))
}

/// The version of a package in the lock file.
fn locked_version(manifest: &Path, package: &str) -> String {
    let file = manifest.join("Cargo.lock");
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut lines = text.lines().skip_while(|line| *line != format!("name = {package:?}"));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.unwrap_or_else(|| panic!("{}: no version of {package}", file.display())).to_owned()
}
