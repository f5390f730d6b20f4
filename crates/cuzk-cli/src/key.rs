//! `cuzk key inspect | convert | verify`.

use std::path::Path;

use cuzk_curve::{Curve, CurveId, with_curve};
use cuzk_keys::{
    Digests, Format, KeyInfo, NativeKeyFile, ParamsFile, Trust, TrustStore, convert, export_params, inspect,
};

use crate::{
    args::{Global, KeyCommand, KeyVerbs},
    failure::{Class, Failure},
    files, keys, progress, report,
};

pub(crate) fn run(global: &Global, verbs: &KeyVerbs) -> Result<(), Failure> {
    match &verbs.command {
        KeyCommand::Inspect { key } => inspect_key(global, key),
        KeyCommand::Convert { from, to, overwrite } => {
            files::refuse_existing(to, *overwrite)?;
            files::refuse_same(from, to)?;
            with_curve!(curve_of(from)?, C => convert_key::<C>(global, from, to))
        }
        KeyCommand::Verify { key, cache_dir } => {
            let cache = files::cache_directory(cache_dir.as_deref())?;
            with_curve!(curve_of(key)?, C => verify_key::<C>(global, key, &cache))
        }
    }
}

fn curve_of(path: &Path) -> Result<CurveId, Failure> {
    keys::look_at(path)?.curve.parse().map_err(|e| Failure::new(Class::Key, format!("{}: {e}", path.display())))
}

/// Reads the whole file: the digests told are of what is there, not of what a header says.
fn inspect_key(global: &Global, path: &Path) -> Result<(), Failure> {
    let bar = progress::bar("reading", true);
    let found = inspect(path, Digests::Computed, &mut progress::key_callback(&bar))?;
    bar.finish_and_clear();
    let json = serde_json::to_value(&found).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    report::print(global, || json, || describe(&found))
}

fn describe(key: &KeyInfo) -> String {
    let mut lines = vec![
        format!("{}: {:?} format, {}, {}", key.path.display(), key.format, key.curve, report::bytes(key.file_bytes)),
        format!("inputs      {} (ONE included)", key.inputs),
    ];
    if let Some(log_n) = key.log_domain {
        lines.push(format!("domain      2^{log_n}"));
    }
    for s in &key.sections {
        lines.push(format!(
            "{:<11} {} points of {}, {}",
            s.section.to_string(),
            s.points,
            s.group,
            report::bytes(s.bytes)
        ));
    }
    if let Some(digest) = &key.file_digest {
        lines.push(format!("file        blake3 {digest}"));
    }
    if let Some(digest) = &key.content_digest {
        lines.push(format!("content     {digest} (the same in every format)"));
    }
    if let Some(provenance) = &key.provenance {
        lines.push(format!("provenance  {provenance}"));
    }
    lines.join("\n")
}

fn convert_key<C: Curve>(global: &Global, from: &Path, to: &Path) -> Result<(), Failure> {
    let bar = progress::bar("converting", true);
    let format = match keys::look_at(from)?.format {
        Format::Native => {
            export_params(&NativeKeyFile::<C>::open(from)?, to, &mut progress::key_callback(&bar))?;
            "params"
        }
        _ => {
            convert(&ParamsFile::<C>::open(from)?, to, &mut progress::key_callback(&bar))?;
            "native"
        }
    };
    bar.finish_and_clear();
    let digest = keys::open::<C>(to)?.digest()?;
    report::print(
        global,
        || serde_json::json!({ "from": report::path(from), "to": report::path(to), "format": format, "digest": digest.to_string() }),
        || format!("{}: {format} format, digest {digest}", to.display()),
    )
}

fn verify_key<C: Curve>(global: &Global, path: &Path, cache: &Path) -> Result<(), Failure> {
    let source = keys::open::<C>(path)?;
    let bar = progress::bar("checking points", true);
    let trust = TrustStore::open(cache)?.ensure_checked(&*source, &mut progress::key_callback(&bar))?;
    bar.finish_and_clear();
    let digest = source.digest()?;
    let (how, remembered) = match trust {
        Trust::SameFile => ("this very file was checked earlier", true),
        Trust::SameContent => ("its content was checked earlier", true),
        Trust::Checked => ("checked now", false),
    };
    report::print(
        global,
        || serde_json::json!({ "key": report::path(path), "digest": digest.to_string(), "valid": true, "remembered": remembered }),
        || format!("{}: every point is valid ({how}), digest {digest}", path.display()),
    )
}
