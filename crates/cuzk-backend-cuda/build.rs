//! Embeds the kernels that `cargo xtask build --backend cuda` compiled. Without them the crate compiles all the same, and says
//! at run time that it has none.

use std::{env, fmt::Write, fs, path::PathBuf};

/// Names of the environment variable with the folder of fat binaries `UNIT-CURVE.fatbin`.
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
    source.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("images.rs");
    fs::write(&out, source).unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
}
