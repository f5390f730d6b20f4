//! Lesson 6: large buffers are reused, and an engine that stays up does not grow. Counted by the allocator of this
//! test binary.

#[path = "engine/common.rs"]
mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use blstrs::Scalar;
use common::*;
use cuzk_curve::Bls12;
use cuzk_engine::{JobOptions, SourceError, WitnessContext, Workload};
use cuzk_r1cs::{Assignment, WitnessCs};

/// The system's allocator, with counts.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LARGE: AtomicUsize = AtomicUsize::new(0);

/// Far above everything but the arrays of a witness.
const LARGE_BYTES: usize = 64 << 10;

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller's promise is the one that the system's allocator wants.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), SeqCst);
        LARGE.fetch_add(usize::from(layout.size() >= LARGE_BYTES), SeqCst);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: as above.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const STEPS: usize = 4000;

/// Takes what was proved before, where there is something.
struct Reusing {
    reused: Arc<AtomicUsize>,
}

impl Workload<Bls12> for Reusing {
    fn partitions(&self) -> u32 {
        1
    }

    fn witness(&self, _: u32, context: &mut WitnessContext<Scalar>) -> Result<Assignment<Scalar>, SourceError> {
        match context.take_used() {
            Some(used) => {
                self.reused.fetch_add(1, SeqCst);
                Ok(used)
            }
            None => Ok(WitnessCs::generate(Squares::new(3, STEPS))?),
        }
    }
}

#[test]
fn lesson_6_no_growth_over_fifty_proofs() {
    let toy = Toy::with_bytes(64 << 20);
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let reused = Arc::<AtomicUsize>::default();
    let prove = || {
        let job = engine.submit(circuit, Reusing { reused: Arc::clone(&reused) }, JobOptions::default());
        assert_eq!(wait(&job).unwrap()[0].inputs, [Squares::new(3, STEPS).public()]);
        drop(job);
        expect_clean(&engine);
    };
    (0..10).for_each(|_| prove());
    let (live, large, before) = (LIVE.load(SeqCst), LARGE.load(SeqCst), reused.load(SeqCst));
    // What the device takes for a proof (it is emulated in memory) is not the engine's: the same for each.
    (0..10).for_each(|_| prove());
    let large_per_ten = LARGE.load(SeqCst) - large;
    (0..40).for_each(|_| prove());
    assert_eq!(reused.load(SeqCst) - before, 50, "every witness got the memory of the one before");
    assert_eq!(LARGE.load(SeqCst) - large, 5 * large_per_ten, "large allocations a proof stay the same");
    // Small things (queues, maps) may have grown to their size; a witness that leaked would be far larger.
    let grown = LIVE.load(SeqCst).saturating_sub(live);
    assert!(grown < 16 << 10, "{grown} bytes more after 50 proofs");
}
