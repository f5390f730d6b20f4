//! Where the test plugins are.

use std::path::PathBuf;

use cuzk_backend::DeviceOptions;
use cuzk_plugin::{Loader, PluginBackend};

/// The folder of the examples, in which cargo builds the plugin before it runs the tests.
pub(crate) fn examples() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples")
}

/// The plugin of `examples/noop`, loaded.
pub(crate) fn noop_plugin() -> PluginBackend {
    Loader::new([examples()], [] as [&str; 0]).load("noop").unwrap_or_else(|e| {
        panic!("{e}; `cargo test` builds it as an example, unless it is told to build some tests only")
    })
}

/// Small pools.
pub(crate) fn options() -> DeviceOptions {
    DeviceOptions { device_memory_limit: 1 << 16, pinned_bytes: 1 << 14, threads: 0 }
}
