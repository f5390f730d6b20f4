//! The CUDA backend as a plugin. These tests need the plugin (`cargo xtask build --backend cuda`), so they are run by name:
//! `cargo xtask ci` builds it and runs what needs no device; the folder that `cargo xtask device` makes runs the rest where there is
//! one.

use std::{path::PathBuf, process::Command};

use cuzk_backend::{Backend, BackendError, DeviceOptions};
use cuzk_plugin::{Loader, PluginBackend};
use cuzk_tests::{assert_byte_exact, plugin_folder};

fn plugin() -> PluginBackend {
    let loader = Loader::new([plugin_folder()], [] as [PathBuf; 0]);
    loader.load("cuda").unwrap_or_else(|e| panic!("run `cargo xtask build --backend cuda` first: {e}"))
}

#[test]
#[ignore = "needs the plugin and a machine without an NVIDIA driver: `cargo xtask ci` runs it"]
fn without_a_driver_the_plugin_loads_and_says_so() {
    let plugin = plugin();
    assert_eq!(plugin.name(), "cuda");
    let refusals = [
        plugin.devices().map(|_| ()),
        plugin.open(0, &DeviceOptions::default()).map(|_| ()),
        plugin.find("GPU-0123").map(|_| ()),
    ];
    for refusal in refusals {
        match refusal {
            Err(BackendError::Unsupported { operation, reason }) => {
                assert_eq!((operation.as_str(), reason.contains("no NVIDIA driver")), ("cuda", true), "{reason}");
            }
            other => panic!("not a refusal: {other:?}"),
        }
    }
}

/// Not a check: what [`device_list_follows_the_environment`] runs with other environments. Prints a line for each device, or the refusal.
#[test]
#[ignore = "run by another test"]
fn child_lists_devices() {
    match plugin().devices() {
        Ok(devices) => devices.iter().for_each(|d| println!("device {} {}", d.index, d.uuid)),
        Err(error) => println!("refusal {error}"),
    }
}

/// What another process sees when CUDA_VISIBLE_DEVICES is this: UUIDs in the order of their indices, or the refusal.
fn with_visible(value: &str) -> Result<Vec<String>, String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "child_lists_devices"])
        .env("CUDA_VISIBLE_DEVICES", value)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    // The harness may have begun the line.
    if let Some((_, refusal)) = text.split_once("refusal ") {
        return Err(refusal.lines().next().unwrap_or_default().to_owned());
    }
    let lines = text.lines().filter_map(|line| Some(line.split_once("device ")?.1));
    let devices: Vec<(usize, String)> = lines
        .filter_map(|line| {
            let (index, uuid) = line.split_once(' ')?;
            Some((index.parse().ok()?, uuid.to_owned()))
        })
        .collect();
    assert!(devices.iter().enumerate().all(|(i, (index, _))| i == *index), "{text}");
    Ok(devices.into_iter().map(|(_, uuid)| uuid).collect())
}

#[test]
#[ignore = "needs an NVIDIA device and the plugin: the folder of `cargo xtask device` runs it"]
fn device_list_follows_the_environment() {
    let all: Vec<String> = plugin().devices().unwrap().into_iter().map(|d| d.uuid).collect();
    let first = &all[0];
    assert!(first.starts_with("GPU-"), "{first}");
    for hidden in ["", "-1", "GPU-00000000-0000-0000-0000-000000000000"] {
        let refusal = with_visible(hidden).unwrap_err();
        assert!(refusal.contains("CUDA_VISIBLE_DEVICES hides all"), "{hidden:?}: {refusal}");
    }
    assert_eq!(with_visible("0"), Ok(vec![first.clone()]));
    assert_eq!(with_visible(first), Ok(vec![first.clone()]));
    let reversed: Vec<String> = all.iter().rev().cloned().collect();
    let indices: Vec<String> = (0..all.len()).rev().map(|i| i.to_string()).collect();
    assert_eq!(with_visible(&indices.join(",")), Ok(reversed));
}

macro_rules! byte_exact {
    ($($name:ident = $circuit:literal;)*) => {
        $(
            #[test]
            #[ignore = "needs an NVIDIA device and the plugin: the folder of `cargo xtask device` runs it"]
            fn $name() {
                assert_byte_exact(&plugin(), $circuit);
            }
        )*
    };
}

byte_exact! {
    device_makes_the_recorded_window_2k = "wpost-2k";
    device_makes_the_recorded_window_8m = "wpost-8m";
    device_makes_the_recorded_winning_2k = "winning-2k";
    device_makes_the_recorded_winning_8m = "winning-8m";
    device_makes_the_recorded_update_2k = "snap-2k";
    device_makes_the_recorded_porep_2k = "porep-2k";
}
