//! Keys and proofs byte for byte against bellperson's, over circuits of many shapes.

mod common;

use bellperson::groth16::{create_proof, generate_random_parameters};
use blstrs::{Bls12, Scalar as Fr};
use common::{Squarings, device};
use cuzk_groth16::{DeviceCircuit, DeviceKey, ProveError, Randomness, SetupError, prove_start, setup_deterministic};
use cuzk_keys::{KeySource, ParamsFile, export_params, ignore_progress};
use cuzk_r1cs::{RecordingCs, WitnessCs};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// Constraints around powers of two, so that the domain is full, just full, and almost empty.
fn shapes() -> impl Iterator<Item = Squarings> {
    let sizes = [2, 3, 50, 57, 58, 59, 60, 61, 62, 63, 64, 200, 1000];
    sizes.into_iter().enumerate().map(|(i, steps)| Squarings {
        seed: 0x9e37_79b9_7f4a_7c15u64.rotate_left(i as u32),
        bits: 64,
        steps,
        n_public: [2, 1, 0, 5][i % 4].min(steps),
        error: 0,
    })
}

#[test]
fn keys_and_proofs_have_bellpersons_bytes() {
    let device = device();
    let stream = device.stream().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (i, circuit) in shapes().enumerate() {
        let seed = [i as u8; 32];
        let theirs = generate_random_parameters::<Bls12, _, _>(circuit, &mut ChaCha20Rng::from_seed(seed)).unwrap();
        let r1cs = RecordingCs::record(circuit).unwrap();
        let ours = setup_deterministic::<Bls12>(&stream, &r1cs, seed).unwrap();
        let (mut their_bytes, path) = (Vec::new(), folder.path().join(format!("{i}.params")));
        theirs.write(&mut their_bytes).unwrap();
        export_params(&ours, &path, &mut ignore_progress).unwrap();
        assert!(std::fs::read(&path).unwrap() == their_bytes, "the key of {circuit:?}");

        // The same key, from memory and from the file.
        let device_circuit = DeviceCircuit::load(&device, &r1cs).unwrap();
        let file = ParamsFile::<Bls12>::open(&path).unwrap();
        let (r, s) = (Fr::from(1000 + i as u64), Fr::from(77));
        let mut expected = Vec::new();
        create_proof(circuit, &theirs, r, s).unwrap().write(&mut expected).unwrap();
        let assignment = WitnessCs::generate(circuit).unwrap();
        for source in [&ours as &dyn KeySource<Bls12>, &file] {
            let key = DeviceKey::load(&device, source).unwrap();
            let randomness = Randomness::insecure(r, s);
            let pending = prove_start(&stream, &device_circuit, &key, &assignment, randomness).unwrap();
            let finished = pending.finish().unwrap();
            assert_eq!(finished.proof.to_bytes(), expected, "the proof of {circuit:?}");
            assert_eq!(finished.inputs, circuit.public_inputs::<Fr>());
        }
    }
    assert_eq!(device.memory().unwrap().device.in_use, 0);
}

#[test]
fn an_unsatisfied_witness_gives_no_proof() {
    let device = device();
    let stream = device.stream().unwrap();
    let circuit = Squarings::new(12345, 40);
    let r1cs = RecordingCs::record(circuit).unwrap();
    let key = setup_deterministic::<Bls12>(&stream, &r1cs, [1; 32]).unwrap();
    let (device_circuit, key) = (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap());
    let wrong = WitnessCs::generate(Squarings { error: 1, ..circuit }).unwrap();
    assert!(cuzk_r1cs::check(&r1cs, &wrong).is_err(), "the witness is wrong");
    let pending = prove_start(&stream, &device_circuit, &key, &wrong, Randomness::from_os().unwrap()).unwrap();
    assert!(matches!(pending.finish(), Err(ProveError::SelfCheck(_))));
    // The device is as usable as before.
    let right = WitnessCs::generate(circuit).unwrap();
    let pending = prove_start(&stream, &device_circuit, &key, &right, Randomness::from_os().unwrap()).unwrap();
    pending.finish().unwrap();
}

#[test]
fn what_does_not_belong_together_is_refused_with_numbers() {
    let device = device();
    let stream = device.stream().unwrap();
    let (small, large) = (Squarings::new(5, 40), Squarings::new(5, 44));
    let load = |circuit: Squarings| {
        let r1cs = RecordingCs::record(circuit).unwrap();
        let key = setup_deterministic::<Bls12>(&stream, &r1cs, [1; 32]).unwrap();
        (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap())
    };
    let ((small_circuit, small_key), (_, large_key)) = (load(small), load(large));
    let (right, wrong) = (WitnessCs::generate(small).unwrap(), WitnessCs::generate(large).unwrap());
    let randomness = Randomness::from_os().unwrap();
    match prove_start(&stream, &small_circuit, &large_key, &right, randomness).unwrap_err() {
        ProveError::KeyMismatch { expected, actual, .. } => assert_ne!(expected, actual),
        other => panic!("{other}"),
    }
    match prove_start(&stream, &small_circuit, &small_key, &wrong, randomness).unwrap_err() {
        ProveError::AssignmentMismatch { expected, actual } => assert_eq!(actual, expected + 4),
        other => panic!("{other}"),
    }
}

#[test]
fn an_unconstrained_variable_is_refused() {
    use bellpepper_core::ConstraintSystem;
    let mut cs = RecordingCs::<Fr>::new();
    cs.alloc_input(|| "ONE", || Ok(Fr::from(1))).unwrap();
    let x = cs.alloc(|| "x", || Ok(Fr::from(2))).unwrap();
    cs.alloc(|| "in no constraint", || Ok(Fr::from(2))).unwrap();
    cs.enforce(|| "x", |lc| lc + x, |lc| lc + x, |lc| lc + x);
    let device = device();
    let refused = setup_deterministic::<Bls12>(&device.stream().unwrap(), &cs.into_r1cs().unwrap(), [0; 32]);
    assert!(matches!(refused, Err(SetupError::Unconstrained { first: 1, count: 1 })));
}
