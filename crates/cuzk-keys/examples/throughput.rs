//! How fast keys are decoded, encoded, converted, hashed, loaded and checked on this machine.
//!
//! `cargo run --release -p cuzk-keys --example throughput -- [log_n] [directory]` makes a key of 2^log_n points a section
//! (default 16) in the directory (default: a temporary one) and prints one line of JSON a measure: MB/s of the file that is
//! read or written, and the processor time that took, which other load on the machine does not blur.

use std::{error::Error, path::PathBuf, time::Instant};

use cuzk_curve::Bls12;
use cuzk_keys::{
    KeySource, NativeKeyFile, ParamsFile, Provenance, ProvingKey, VerifyingKey, check_points, convert, export_params,
    ignore_progress,
};
use group::{Curve, Group, prime::PrimeCurveAffine};

/// g, 2g, 3g, …: all different.
fn multiples<G: Group + Curve>(count: usize) -> Vec<G::AffineRepr> {
    let g = G::generator();
    let projective: Vec<G> = std::iter::successors(Some(g), |p| Some(*p + g)).take(count).collect();
    let mut affine: Vec<_> = projective.iter().map(|_| g.to_affine()).collect();
    G::batch_normalize(&projective, &mut affine);
    affine
}

/// Processor time of all threads up to now: fields 14 and 15 of `/proc/self/stat`, in hundredths of a second.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(ticks as f64 / 100.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let log_n: u32 = arguments.next().as_deref().unwrap_or("16").parse()?;
    let temporary = tempfile::tempdir()?;
    let directory = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let (params, native) = (directory.join("throughput.params"), directory.join("throughput.cuzkkey"));

    let n = 1usize << log_n;
    let (g1, g2) = (multiples::<blstrs::G1Projective>(n), multiples::<blstrs::G2Projective>(n));
    let (p, q) = (blstrs::G1Affine::generator(), blstrs::G2Affine::generator());
    let vk = VerifyingKey { alpha_g1: p, beta_g1: p, beta_g2: q, gamma_g2: q, delta_g1: p, delta_g2: q, ic: vec![p] };
    let (l, a, b_g1, provenance) = (g1.clone(), g1.clone(), g1.clone(), Provenance::LocalSetup);
    let key = ProvingKey::<Bls12> { vk, h: g1[1..].to_vec(), l, a, b_g1, b_g2: g2, provenance };

    let threads = rayon::current_num_threads();
    let timed = |what: &str, run: &mut dyn FnMut() -> Result<u64, Box<dyn Error>>| -> Result<(), Box<dyn Error>> {
        let (start, cpu_start) = (Instant::now(), cpu_seconds()?);
        let bytes = run()?;
        let (seconds, megabytes) = (start.elapsed().as_secs_f64(), bytes as f64 / 1e6);
        let cpu = cpu_seconds()? - cpu_start;
        println!(
            "{{\"what\":\"keys {what}\",\"curve\":\"bls12-381\",\"size\":{bytes},\"ours\":{:.0},\"unit\":\"MB/s\",\"threads\":{threads},\"cpu_seconds\":{cpu:.2}}}",
            megabytes / seconds
        );
        Ok(())
    };
    let size = |path: &PathBuf| std::fs::metadata(path).map(|m| m.len());
    timed("export .params (memory to durable file)", &mut || {
        export_params(&key, &params, &mut ignore_progress)?;
        Ok(size(&params)?)
    })?;
    let source = ParamsFile::<Bls12>::open(&params)?;
    timed("hash .params", &mut || {
        source.file_digest(&mut ignore_progress)?;
        Ok(size(&params)?)
    })?;
    timed("load .params (decode)", &mut || {
        ProvingKey::load(&source, &mut ignore_progress)?;
        Ok(size(&params)?)
    })?;
    timed("convert .params to native (durable file)", &mut || {
        convert(&source, &native, &mut ignore_progress)?;
        Ok(size(&params)?)
    })?;
    let fast = NativeKeyFile::<Bls12>::open(&native)?;
    timed("verify digests of native", &mut || {
        fast.verify_digests(&mut ignore_progress)?;
        Ok(size(&native)?)
    })?;
    timed("load native (with digests)", &mut || {
        ProvingKey::load(&fast, &mut ignore_progress)?;
        Ok(size(&native)?)
    })?;
    timed("check points of native", &mut || {
        check_points(&fast, &mut ignore_progress)?;
        Ok(size(&native)?)
    })
}
