//! Progress on a terminal, and nothing elsewhere.

use std::{ops::ControlFlow, time::Duration};

use cuzk_keys::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A line with a spinner until the work is done. indicatif draws nothing if standard error is no terminal.
pub(crate) fn spinner(message: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {msg} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A bar over a known number of units.
pub(crate) fn bar(message: &str, bytes: bool) -> ProgressBar {
    let template = if bytes {
        "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}"
    } else {
        "{msg} {wide_bar} {percent} % {eta}"
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_message(message.to_owned())
}

/// What `cuzk-keys` calls while it works on a file.
pub(crate) fn key_callback(bar: &ProgressBar) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
    |progress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes_done);
        ControlFlow::Continue(())
    }
}
