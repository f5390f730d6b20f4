//! How far a long operation has come, and the means to stop it.

use std::ops::ControlFlow;

use crate::KeyError;

/// What a long operation does to the bytes that it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Hashing a file.
    Hash,
    /// Reading points into memory.
    Load,
    /// Writing points in another format.
    Write,
    /// Checking that points are on the curve and in the subgroup.
    Check,
}

/// How far one stage has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Bytes done (of points in memory, or of the file when hashing).
    pub bytes_done: u64,
    /// Bytes to do in this stage.
    pub bytes_total: u64,
}

/// Called after every block (some tens of megabytes at most); `Break` ends the operation with [`KeyError::Cancelled`].
pub type ProgressFn<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A callback for those who do not want to know: `&mut ignore_progress`.
pub fn ignore_progress(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Counts the bytes of one stage.
pub(crate) struct Reporter<'a> {
    progress: Progress,
    callback: ProgressFn<'a>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(stage: Stage, bytes_total: u64, callback: ProgressFn<'a>) -> Self {
        Self { progress: Progress { stage, bytes_done: 0, bytes_total }, callback }
    }

    pub(crate) fn advance(&mut self, bytes: u64) -> Result<(), KeyError> {
        self.progress.bytes_done += bytes;
        match (self.callback)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(KeyError::Cancelled),
        }
    }
}
