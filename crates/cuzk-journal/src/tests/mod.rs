//! Tests that put something else in the place of the disk.

mod corrupt;
mod disk;
mod full;
mod model;
mod orphans;
mod place;
mod power;

use crate::{Journal, NewJob, Options};

/// A journal on a disk that only these tests have.
fn open(directory: &std::path::Path, options: Options, disk: &disk::Simulated) -> Result<Journal, crate::Error> {
    let disk = disk.clone();
    let opener = move || Ok(Box::new(disk.clone()) as crate::disk::Storage);
    let lock = crate::lock::Lock::take(directory)?;
    Journal::open_in(directory, options, "simulated".into(), Box::new(opener), lock)
}

fn job(request_id: &str, digest: u8) -> NewJob {
    NewJob {
        request_id: request_id.to_owned(),
        digest: [digest; 32],
        meta: vec![digest; 40],
        accepted_ms: 1000,
        result_room: 400,
    }
}
