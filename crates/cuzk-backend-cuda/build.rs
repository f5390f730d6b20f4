//! Embeds the kernels that `cargo xtask build --backend cuda` compiled. Without them the crate compiles all the same, and says
//! at run time that it has none.

use std::{env, fmt::Write, fs, path::PathBuf};

/// Name of the environment variable with the folder of fat binaries `UNIT-CURVE.fatbin`, and the file `architectures` that lists what they
/// have code for, `sm_NN` or `compute_NN` a line.
const VARIABLE: &str = "CUZK_CUDA_KERNELS";
const UNITS: [&str; 5] = ["ntt", "r1cs", "msm", "msm_g1", "msm_g2"];
const CURVES: [(&str, &str); 2] = [("bls12_381", "Bls12_381"), ("bn254", "Bn254")];

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let folder = env::var_os(VARIABLE).map(PathBuf::from);
    let mut source = String::from("pub(crate) static IMAGES: &[Image] = &[\n");
    for (file_curve, curve) in CURVES {
        for unit in UNITS {
            let Some(folder) = &folder else { continue };
            let file = folder.join(format!("{unit}-{file_curve}.fatbin"));
            println!("cargo::rerun-if-changed={}", file.display());
            assert!(file.is_file(), "{VARIABLE} is set, but {} is missing", file.display());
            writeln!(
                source,
                "    Image {{ unit: {unit:?}, curve: CurveId::{curve}, bytes: include_bytes!({:?}) }},",
                file.display().to_string()
            )
            .expect("writing to a string");
        }
    }
    source.push_str("];\npub(crate) static CODES: &[Code] = &[\n");
    if let Some(folder) = &folder {
        let file = folder.join("architectures");
        println!("cargo::rerun-if-changed={}", file.display());
        let list = fs::read_to_string(&file).unwrap_or_else(|e| panic!("cannot read {}: {e}", file.display()));
        for line in list.lines() {
            let (kind, number) = line.split_once('_').unwrap_or((line, ""));
            let ptx = match kind {
                "sm" => false,
                "compute" => true,
                _ => panic!("{}: {line:?} is neither sm_NN nor compute_NN", file.display()),
            };
            let number: u32 = number.parse().unwrap_or_else(|e| panic!("{}: {line:?}: {e}", file.display()));
            writeln!(source, "    Code {{ architecture: {number}, ptx: {ptx} }},").expect("writing to a string");
        }
    }
    source.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("images.rs");
    fs::write(&out, source).unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
}
