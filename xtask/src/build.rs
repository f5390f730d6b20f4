//! Backends as plugins.

use std::fs;

use crate::command::{self, cargo, target};

/// `--backend NAME`: builds the shared library and puts it where the loader looks.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let name = match arguments {
        [flag, name] if flag == "--backend" => name.as_str(),
        _ => return Err("build takes --backend NAME, with NAME one of: cpu".into()),
    };
    if name != "cpu" {
        return Err(format!("unknown backend {name:?}: there is cpu"));
    }
    command::run(&mut cargo(&["build", "--release", "-p", "cuzk-backend-cpu-plugin"]))?;
    let file = format!("{}cuzk_backend_{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let (built, folder) = (target().join("release").join(&file), target().join("plugins"));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let bytes = fs::copy(&built, folder.join(&file)).map_err(|e| format!("cannot copy {}: {e}", built.display()))?;
    println!("{} ({:.1} MiB)", folder.join(&file).display(), bytes as f64 / f64::from(1 << 20));
    Ok(())
}
