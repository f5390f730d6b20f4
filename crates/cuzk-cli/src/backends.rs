//! `cuzk backends`: every backend and device, usable or why not.

use cuzk_backend::{Backend, DeviceInfo, Result};
use cuzk_backend_cpu::CpuBackend;
use cuzk_plugin::PluginBackend;

use crate::{
    args::{Global, PluginArgs},
    device,
    failure::Failure,
    report,
};

/// A backend as found.
struct Row {
    name: String,
    origin: String,
    devices: std::result::Result<Vec<DeviceInfo>, String>,
}

pub(crate) fn run(global: &Global, args: &PluginArgs) -> std::result::Result<(), Failure> {
    let cpu = CpuBackend;
    let mut rows = vec![row("cpu", format!("built in, version {}", cpu.version()), cpu.devices())];
    for (name, path) in device::loader(args).available() {
        let origin = path.display().to_string();
        rows.push(match PluginBackend::open(&path) {
            Ok(backend) => row(&name, format!("{origin}, version {}", backend.version()), backend.devices()),
            Err(error) => Row { name, origin, devices: Err(error.to_string()) },
        });
    }
    report::print(
        global,
        || serde_json::json!({ "backends": rows.iter().map(json).collect::<Vec<_>>() }),
        || rows.iter().map(text).collect::<Vec<_>>().join("\n"),
    )
}

fn row(name: &str, origin: String, devices: Result<Vec<DeviceInfo>>) -> Row {
    Row { name: name.to_owned(), origin, devices: devices.map_err(|e| e.to_string()) }
}

fn json(row: &Row) -> serde_json::Value {
    let device = |d: &DeviceInfo| {
        serde_json::json!({
            "index": d.index, "uuid": d.uuid, "name": d.name, "driver": d.driver, "compute_units": d.compute_units,
            "memory_bytes": d.memory_bytes, "features": d.features,
            "usable": d.unusable.is_empty(), "why_not": d.unusable,
        })
    };
    match &row.devices {
        Ok(devices) => serde_json::json!({
            "backend": row.name, "origin": row.origin, "devices": devices.iter().map(device).collect::<Vec<_>>(),
        }),
        Err(why) => serde_json::json!({ "backend": row.name, "origin": row.origin, "devices": [], "why_not": why }),
    }
}

fn text(row: &Row) -> String {
    let mut lines = vec![format!("{} ({})", row.name, row.origin)];
    match &row.devices {
        Err(why) => lines.push(format!("  unusable: {why}")),
        Ok(devices) if devices.is_empty() => lines.push("  no device".to_owned()),
        Ok(devices) => lines.extend(devices.iter().map(|d| {
            let usable = if d.unusable.is_empty() { "usable".to_owned() } else { format!("unusable: {}", d.unusable) };
            let memory = report::bytes(d.memory_bytes);
            format!(
                "  {}: {}, {} units, {memory}, {} [{}] {usable}",
                d.index, d.name, d.compute_units, d.driver, d.features
            )
        })),
    }
    lines.join("\n")
}
