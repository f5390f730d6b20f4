//! Lesson 6: large buffers are reused, and an engine that stays up does not grow. Counted by the allocator of this
//! test binary.

#[path = "engine/common.rs"]
mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use common::*;
use cuzk_curve::Bls12;
use cuzk_engine::{JobOptions, ReusingWitnesses};
use cuzk_groth16::{DeviceCircuit, DeviceKey, Randomness, prove_start};
use cuzk_r1cs::{Assignment, WitnessCs};

/// The system's allocator, with counts.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LARGE: AtomicUsize = AtomicUsize::new(0);
static OF_WITNESSES: AtomicUsize = AtomicUsize::new(0);

/// Far above everything but the arrays of a witness.
const LARGE_BYTES: usize = 64 << 10;
/// Below every array of a witness, its bitmaps included.
const SMALL_BYTES: usize = 256;

thread_local! {
    /// Whether this thread makes a witness now.
    static IN_WITNESS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting touches no memory of it,
// and the thread's flag is a constant-initialized cell without a destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller's promise is the one that the system's allocator wants.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), SeqCst);
        LARGE.fetch_add(usize::from(layout.size() >= LARGE_BYTES), SeqCst);
        OF_WITNESSES.fetch_add(usize::from(layout.size() >= SMALL_BYTES && IN_WITNESS.get()), SeqCst);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: as above. An array that is made longer counts as a new one: the trait's own way goes through `alloc`.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const STEPS: usize = 4000;

/// Large arrays that one proof takes without an engine: those of the device, which is emulated in memory.
fn large_of_a_proof() -> usize {
    let toy = Toy::with_bytes(64 << 20);
    let (r1cs, witness) = (record(STEPS), WitnessCs::generate(Squares::new(3, STEPS)).unwrap());
    let key = DeviceKey::<Bls12>::load(&toy.device, &hollow_key(&r1cs)).unwrap();
    let circuit = DeviceCircuit::load(&toy.device, &r1cs).unwrap();
    let prove = || {
        let (before, stream) = (LARGE.load(SeqCst), toy.device.stream().unwrap());
        let randomness = Randomness::from_os().unwrap();
        prove_start(&stream, &circuit, &key, &witness, randomness).unwrap().finish().unwrap();
        LARGE.load(SeqCst) - before
    };
    prove();
    prove()
}

#[test]
fn lesson_6_witness_buffers_are_reused_and_nothing_grows_over_fifty_proofs() {
    let large_of_a_proof = large_of_a_proof();
    let toy = Toy::with_bytes(64 << 20);
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let reused = Arc::<AtomicUsize>::default();
    let prove = |n: u64| {
        let count = Arc::clone(&reused);
        let witness = move |_, used: Option<Assignment<_>>| {
            count.fetch_add(usize::from(used.is_some()), SeqCst);
            IN_WITNESS.set(true);
            let witness = WitnessCs::generate_reusing(Squares::new(n, STEPS), used);
            IN_WITNESS.set(false);
            witness
        };
        let job = engine.submit(circuit, ReusingWitnesses::new(1, witness), JobOptions::default());
        assert_eq!(wait(&job).unwrap()[0].inputs, [Squares::new(n, STEPS).public()]);
        drop(job);
        expect_clean(&engine);
    };
    (2..12).for_each(prove);
    let (live, large) = (LIVE.load(SeqCst), LARGE.load(SeqCst));
    let (before, of_witnesses) = (reused.load(SeqCst), OF_WITNESSES.load(SeqCst));
    assert!(of_witnesses > 0, "the first one was allocated");
    (12..62).for_each(prove);
    assert_eq!(reused.load(SeqCst) - before, 50, "every witness got the memory of the one before");
    assert_eq!(OF_WITNESSES.load(SeqCst), of_witnesses, "and needed no other");
    assert_eq!(LARGE.load(SeqCst) - large, 50 * large_of_a_proof, "beside the device nobody takes large arrays");
    // Small things (queues, maps) may have grown to their size; a witness that leaked would be far larger.
    let grown = LIVE.load(SeqCst).saturating_sub(live);
    assert!(grown < 16 << 10, "{grown} bytes more after 50 proofs");
}
