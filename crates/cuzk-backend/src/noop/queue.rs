//! Work that waits in the queues of streams until somebody waits for it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use super::lock;
use crate::{BackendError, Result};

/// One entry of a stream's queue. What it captures stays alive, and accounted for, until it has been executed.
pub(super) enum Work {
    /// Goes on only when another point has been reached.
    Wait(Point),
    /// Moves bytes.
    Run(Box<dyn FnOnce() -> Result<()> + Send>),
}

/// A stream's queue.
#[derive(Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    enqueued: u64,
    done: u64,
    /// The first failure, and the position of the work that failed. What stands behind it is dropped, not executed.
    failed: Option<(u64, BackendError)>,
}

/// A position in a queue; it is reached when the first `position` entries are done.
#[derive(Clone)]
pub(super) struct Point {
    queue: Arc<Queue>,
    position: u64,
}

impl Queue {
    pub(super) fn push(&self, work: Work) {
        let mut state = lock(&self.0);
        state.enqueued += 1;
        state.work.push_back(work);
    }

    /// The point behind all that has been enqueued so far.
    pub(super) fn end(self: &Arc<Self>) -> Point {
        Point { queue: self.clone(), position: lock(&self.0).enqueued }
    }

    /// What the next entry waits for, if it is one that waits.
    fn obstacle(&self) -> Option<Point> {
        match lock(&self.0).work.front() {
            Some(Work::Wait(point)) => Some(point.clone()),
            _ => None,
        }
    }

    fn execute_next(&self) {
        let (work, failed) = {
            let mut state = lock(&self.0);
            (state.work.pop_front(), state.failed.is_some())
        };
        let outcome = match work {
            None => return,
            Some(_) if failed => Ok(()),
            Some(Work::Wait(point)) => point.outcome(),
            Some(Work::Run(run)) => run(),
        };
        let mut state = lock(&self.0);
        state.done += 1;
        if let Err(error) = outcome {
            state.failed = Some((state.done, error));
        }
    }
}

impl Point {
    pub(super) fn is_reached(&self) -> bool {
        lock(&self.queue.0).done >= self.position
    }

    /// What went wrong before it.
    fn outcome(&self) -> Result<()> {
        match &lock(&self.queue.0).failed {
            Some((position, error)) if *position <= self.position => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// Executes work, one thread at a time. Only its holder locks more than one queue, so that queues may wait for each
/// other.
#[derive(Default)]
pub(super) struct Executor(Mutex<()>);

impl Executor {
    /// Executes everything that stands before a point, in this queue and in those that it waits for, and nothing else.
    pub(super) fn run(&self, point: &Point) -> Result<()> {
        let _turn = lock(&self.0);
        while !point.is_reached() {
            step(point);
        }
        point.outcome()
    }

    /// Whether a point has been reached; if not, one entry before it is executed *after* the answer has been made, so
    /// that a caller who polls gets on, and one who asks only once sees that nothing is done by itself.
    pub(super) fn poll(&self, point: &Point) -> Result<bool> {
        let _turn = lock(&self.0);
        if point.is_reached() {
            return point.outcome().map(|()| true);
        }
        step(point);
        Ok(false)
    }
}

/// Executes one entry on the way to a point. An event is recorded before it is waited for, so the way never runs in a
/// circle.
fn step(point: &Point) {
    let mut point = point.clone();
    while let Some(obstacle) = point.queue.obstacle().filter(|o| !o.is_reached()) {
        point = obstacle;
    }
    point.queue.execute_next();
}
