//! A proof in two parts: the same bytes as in one, on a device that is asked between the operations whether to go on.

mod common;

use std::cell::Cell;

use blstrs::{Bls12, Scalar as Fr};
use common::{Squarings, device};
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, ProveError, Randomness, Stage, prove_prepare, prove_prepared, prove_start, setup,
};
use cuzk_r1cs::{RecordingCs, WitnessCs};

#[test]
fn a_proof_in_two_parts_is_the_same_and_stops_where_it_is_cancelled() {
    let device = device();
    let stream = device.stream().unwrap();
    let circuit = |seed| Squarings::new(seed, 30);
    let r1cs = RecordingCs::record(circuit(0)).unwrap();
    let key = setup::<Bls12>(&stream, &r1cs).unwrap();
    let (on_device, key) = (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap());
    let assignment = WitnessCs::generate(circuit(7)).unwrap();
    let randomness = || Randomness::insecure(Fr::from(3), Fr::from(5));
    let whole = prove_start(&stream, &on_device, &key, &assignment, randomness()).unwrap().finish().unwrap();
    drop(stream);
    let before = device.memory().unwrap().device.in_use;

    // Asked never to stop, then to stop at each question.
    let mut questions = 0;
    for stop_at in (0..).map(|n: usize| n.checked_sub(1)) {
        let stream = device.stream().unwrap();
        let prepared = prove_prepare::<Bls12>(&stream, &on_device, &assignment).unwrap();
        prepared.wait().unwrap();
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            stop_at.is_some_and(|at| asked.get() > at)
        };
        let pending = prove_prepared(&stream, &on_device, &key, prepared, randomness(), Some(&stop));
        match stop_at {
            None => {
                questions = asked.get();
                let parts = pending.unwrap().finish().unwrap();
                assert_eq!((parts.proof, parts.inputs), (whole.proof.clone(), whole.inputs.clone()));
                let stages = |times: &[(Stage, _)]| times.iter().map(|(stage, _)| *stage).collect::<Vec<_>>();
                assert_eq!(stages(&parts.times), stages(&whole.times));
            }
            Some(at) if at < questions => {
                assert!(matches!(pending, Err(ProveError::Cancelled)), "at question {at} of {questions}");
            }
            Some(_) => {
                pending.unwrap();
                break;
            }
        }
        drop(stream);
        assert_eq!(device.memory().unwrap().device.in_use, before, "all is freed");
    }
    assert!(questions >= 7, "asked before each operation, {questions} times");

    let other = WitnessCs::generate(Squarings::new(7, 40)).unwrap();
    let stream = device.stream().unwrap();
    assert!(matches!(prove_prepare::<Bls12>(&stream, &on_device, &other), Err(ProveError::AssignmentMismatch { .. })));
}
