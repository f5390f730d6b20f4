//! Compiling the CUDA kernels, with the machine's nvcc or with the one that NVIDIA publishes as Python wheels.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    thread,
    time::Instant,
};

use crate::{
    build,
    command::{self, root, target},
};

/// The toolkit that is fetched when the machine has none.
const WHEELS: [&str; 4] =
    ["nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-cuda-runtime==13.0.96"];
/// Source files below kernels/cuda, each a module for each curve.
const UNITS: [(&str, &str); 5] = [
    ("ntt", "ntt/ntt.cu"),
    ("r1cs", "r1cs/r1cs.cu"),
    ("msm", "msm/msm.cu"),
    ("msm_g1", "msm/msm_g1.cu"),
    ("msm_g2", "msm/msm_g2.cu"),
];
const CURVES: [(&str, &[&str]); 2] = [("bls12_381", &[]), ("bn254", &["-DCUZK_CURVE_BN254"])];
/// Architectures with machine code of their own. The oldest and the newest come as PTX as well, for cards between and after.
const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// Compiles all kernels and returns the folder of the fat binaries `UNIT-CURVE.fatbin`. `architectures`: numbers like 90; none
/// means all. Beside them, `architectures` lists what they have code for: `sm_NN` machine code, `compute_NN` PTX.
///
/// # Errors
/// Neither nvcc nor the means to fetch it; what the compiler says.
pub(crate) fn kernels(architectures: &[u32]) -> Result<PathBuf, String> {
    let started = Instant::now();
    let nvcc = find_nvcc()?;
    let version = output(Command::new(&nvcc).arg("--version"))?;
    let all = if architectures.is_empty() { &ARCHITECTURES[..] } else { architectures };
    let cache = target().join("cuda-kernels");
    let folder = cache.join(if architectures.is_empty() {
        "all".to_owned()
    } else {
        all.iter().map(|a| format!("sm_{a}")).collect::<Vec<_>>().join("-")
    });
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;

    // One job for each unit, curve and architecture; the largest first.
    let mut jobs = Vec::new();
    for unit in UNITS.iter().rev() {
        for curve in &CURVES {
            jobs.extend(all.iter().map(|&architecture| Job { unit, curve, architecture }));
        }
    }
    let queue = Mutex::new(jobs.iter());
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let compiled = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut compiled = 0;
                    loop {
                        let next = queue.lock().map_err(|_| "a worker panicked".to_owned())?.next();
                        let Some(job) = next else { return Ok(compiled) };
                        compiled += u32::from(job.run(&nvcc, &version, &cache)?);
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|_| Err("a worker panicked".into())))
            .sum::<Result<u32, String>>()
    })?;

    // What the backend tells people that it has code for.
    let mut codes = String::new();
    for architecture in all {
        codes += &format!("sm_{architecture}\n");
        if is_ptx(*architecture) {
            codes += &format!("compute_{architecture}\n");
        }
    }
    let list = folder.join("architectures");
    if fs::read_to_string(&list).ok().as_deref() != Some(&codes) {
        fs::write(&list, codes).map_err(|e| format!("cannot write {}: {e}", list.display()))?;
    }

    let mut bytes = 0;
    for (unit, _) in UNITS {
        for (curve, _) in CURVES {
            bytes += link(&nvcc, all, &cache, unit, curve, &folder.join(format!("{unit}-{curve}.fatbin")))?;
        }
    }
    println!(
        "{} kernels of {} compiled, the others cached; {:.1} MiB for {} in {:.1} s",
        compiled,
        jobs.len(),
        bytes as f64 / f64::from(1 << 20),
        all.iter().map(|a| format!("sm_{a}")).collect::<Vec<_>>().join(", "),
        started.elapsed().as_secs_f64()
    );
    Ok(folder)
}

/// `build --backend cuda [--arch sm_90]...`: the plugin, with the kernels in it.
///
/// # Errors
/// As [`kernels`], or what cargo says.
pub(crate) fn build(arguments: &[String]) -> Result<(), String> {
    let folder = kernels(&architectures(arguments)?)?;
    build::plugin(build::alone("cuda").env("CUZK_CUDA_KERNELS", &folder), "cuda")
}

/// The numbers of `[--arch sm_90]...`.
///
/// # Errors
/// Anything else.
pub(crate) fn architectures(arguments: &[String]) -> Result<Vec<u32>, String> {
    let mut architectures = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let value = match argument.as_str() {
            "--arch" => rest.next().ok_or("--arch needs a value such as sm_90")?,
            other => return Err(format!("unknown argument {other:?}: only --arch sm_NN is known here")),
        };
        let number = value.strip_prefix("sm_").and_then(|n| n.parse().ok());
        architectures.push(number.ok_or_else(|| format!("--arch {value}: expected sm_ and a number, such as sm_90"))?);
    }
    Ok(architectures)
}

struct Job {
    unit: &'static (&'static str, &'static str),
    curve: &'static (&'static str, &'static [&'static str]),
    architecture: u32,
}

impl Job {
    /// Compiles to a cubin unless the same was compiled before; whether it had to.
    fn run(&self, nvcc: &Path, version: &str, cache: &Path) -> Result<bool, String> {
        let ((unit, source), (curve, flags), architecture) = (self.unit, self.curve, self.architecture);
        let sources = digest_of_sources(source)?;
        let cubin = cubin(cache, unit, curve, architecture);
        let stamp = cubin.with_extension("stamp");
        let wanted = format!("{sources:016x}\n{version}");
        if cubin.is_file() && fs::read_to_string(&stamp).is_ok_and(|s| s == wanted) {
            return Ok(false);
        }
        let mut command = Command::new(nvcc);
        command.args(["-std=c++17", "-O3", "-cubin", &format!("-arch=sm_{architecture}")]).args(*flags);
        command.arg("-o").arg(&cubin).arg(root().join("kernels/cuda").join(source));
        output(&mut command)?;
        if is_ptx(architecture) {
            let mut command = Command::new(nvcc);
            command.args(["-std=c++17", "-O3", "-ptx", &format!("-arch=compute_{architecture}")]).args(*flags);
            command.arg("-o").arg(cubin.with_extension("ptx")).arg(root().join("kernels/cuda").join(source));
            output(&mut command)?;
        }
        fs::write(&stamp, wanted).map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
        Ok(true)
    }
}

fn is_ptx(architecture: u32) -> bool {
    [ARCHITECTURES.first(), ARCHITECTURES.last()].contains(&Some(&architecture))
}

fn cubin(cache: &Path, unit: &str, curve: &str, architecture: u32) -> PathBuf {
    cache.join(format!("{unit}-{curve}-sm_{architecture}.cubin"))
}

/// Joins the code for several architectures into one file.
fn link(nvcc: &Path, architectures: &[u32], cache: &Path, unit: &str, curve: &str, out: &Path) -> Result<u64, String> {
    let mut command = Command::new(nvcc.with_file_name("fatbinary"));
    command.arg("--64").arg(format!("--create={}", out.display()));
    for &architecture in architectures {
        let file = cubin(cache, unit, curve, architecture);
        command.arg(format!("--image3=kind=elf,sm={architecture},file={}", file.display()));
        if is_ptx(architecture) {
            command.arg(format!("--image3=kind=ptx,sm={architecture},file={}", file.with_extension("ptx").display()));
        }
    }
    output(&mut command)?;
    fs::metadata(out).map(|m| m.len()).map_err(|e| format!("{}: {e}", out.display()))
}

/// nvcc of the machine, or else the one in `target/cuda-toolchain`, which is fetched if need be.
fn find_nvcc() -> Result<PathBuf, String> {
    let from_home = std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin/nvcc"));
    let on_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("nvcc")).find(|file| file.is_file()));
    if let Some(nvcc) = from_home.filter(|file| file.is_file()).or(on_path) {
        return Ok(nvcc);
    }
    let folder = target().join("cuda-toolchain");
    let nvcc = folder.join("nvidia/cu13/bin/nvcc");
    if !nvcc.is_file() {
        println!("no nvcc in CUDA_HOME or PATH: fetching {}", WHEELS.join(", "));
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&folder).args(WHEELS);
        command::run(&mut pip)?;
    }
    if nvcc.is_file() { Ok(nvcc) } else { Err(format!("{} did not come with the wheels", nvcc.display())) }
}

/// A number that changes with any file that a source may include: those of its own folder, and the common ones.
fn digest_of_sources(source: &str) -> Result<u64, String> {
    let own = root().join("kernels/cuda").join(Path::new(source).parent().unwrap_or(Path::new("")));
    let mut files = Vec::new();
    for folder in [root().join("kernels/common"), own] {
        list(&folder, &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.strip_prefix(root()).unwrap_or(&file).hash(&mut hasher);
        fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let describe = |e| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(describe)? {
        let path = entry.map_err(describe)?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|e| ["h", "cuh", "cu"].iter().any(|k| e == *k)) {
            files.push(path);
        }
    }
    Ok(())
}

/// Runs a program and returns what it prints, or fails with what it complains.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("cannot run {name}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    Err(format!("{name} {}: {}\n{}", arguments.join(" "), output.status, String::from_utf8_lossy(&output.stderr)))
}
