//! BN254 from setup to proof, judged by an independent verifier: ark-groth16.

mod common;

use ark_ff::{BigInteger256, PrimeField as _};
use common::{Squarings, device};
use cuzk_curve::{Bn256, Curve};
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, PreparedVerifyingKey, Proof, Randomness, VerifyError, proof_bytes, prove_start, setup,
};
use cuzk_keys::VerifyingKey;
use cuzk_r1cs::{RecordingCs, WitnessCs};
use ff::PrimeField;
use halo2curves::{
    CurveAffine,
    bn256::{Fq, Fq2, Fr, G1Affine, G2Affine},
};

fn base(x: Fq) -> ark_bn254::Fq {
    ark_bn254::Fq::from_le_bytes_mod_order(x.to_repr().as_ref())
}

fn g1(p: G1Affine) -> ark_bn254::G1Affine {
    let c = p.coordinates().unwrap();
    ark_bn254::G1Affine::new(base(*c.x()), base(*c.y()))
}

fn g2(p: G2Affine) -> ark_bn254::G2Affine {
    let c = p.coordinates().unwrap();
    let extension = |x: &Fq2| {
        let bytes = x.to_bytes();
        let half = |bytes: &[u8]| ark_bn254::Fq::from_le_bytes_mod_order(bytes);
        ark_bn254::Fq2::new(half(&bytes[..32]), half(&bytes[32..]))
    };
    ark_bn254::G2Affine::new(extension(c.x()), extension(c.y()))
}

fn scalar(x: Fr) -> ark_bn254::Fr {
    let limbs: Vec<u64> =
        x.to_repr().as_ref().chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
    ark_bn254::Fr::from_bigint(BigInteger256::new(limbs.try_into().unwrap())).unwrap()
}

fn their_key(vk: &VerifyingKey<Bn256>) -> ark_groth16::VerifyingKey<ark_bn254::Bn254> {
    ark_groth16::VerifyingKey {
        alpha_g1: g1(vk.alpha_g1),
        beta_g2: g2(vk.beta_g2),
        gamma_g2: g2(vk.gamma_g2),
        delta_g2: g2(vk.delta_g2),
        gamma_abc_g1: vk.ic.iter().map(|p| g1(*p)).collect(),
    }
}

fn their_verdict(vk: &VerifyingKey<Bn256>, proof: &Proof<Bn256>, inputs: &[Fr]) -> bool {
    let proof = ark_groth16::Proof { a: g1(proof.a), b: g2(proof.b), c: g1(proof.c) };
    let inputs: Vec<_> = inputs.iter().map(|x| scalar(*x)).collect();
    let key = ark_groth16::prepare_verifying_key(&their_key(vk));
    ark_groth16::Groth16::<ark_bn254::Bn254>::verify_proof(&key, &proof, &inputs).unwrap()
}

#[test]
fn setup_prove_verify_and_a_second_opinion() {
    let device = device();
    let stream = device.stream().unwrap();
    let circuit = Squarings { n_public: 3, ..Squarings::new(0xdead_beef, 300) };
    let r1cs = RecordingCs::record(circuit).unwrap();
    let key = setup::<Bn256>(&stream, &r1cs).unwrap();
    assert_eq!(Bn256::ID.to_string(), "bn254");
    let (device_circuit, device_key) =
        (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap());
    let assignment = WitnessCs::generate(circuit).unwrap();
    let randomness = Randomness::from_os().unwrap();
    let finished =
        prove_start(&stream, &device_circuit, &device_key, &assignment, randomness).unwrap().finish().unwrap();
    assert_eq!(finished.inputs, circuit.public_inputs::<Fr>());

    let vk = PreparedVerifyingKey::new(&key.vk).unwrap();
    vk.verify(&finished.proof, &finished.inputs).unwrap();
    assert!(their_verdict(&key.vk, &finished.proof, &finished.inputs));
    let mut tampered = finished.inputs.clone();
    tampered[1] += Fr::from(1);
    assert_eq!(vk.verify(&finished.proof, &tampered), Err(VerifyError::Invalid));
    assert!(!their_verdict(&key.vk, &finished.proof, &tampered));

    let bytes = finished.proof.to_bytes();
    assert_eq!(bytes.len(), proof_bytes::<Bn256>());
    assert_eq!(Proof::<Bn256>::from_bytes(&bytes).unwrap(), finished.proof);
}

#[test]
fn two_proofs_of_one_statement_differ() {
    // r and s are fresh: a proof reveals nothing by being the same again.
    let device = device();
    let stream = device.stream().unwrap();
    let circuit = Squarings::new(99, 20);
    let r1cs = RecordingCs::record(circuit).unwrap();
    let key = setup::<Bn256>(&stream, &r1cs).unwrap();
    let (device_circuit, device_key) =
        (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap());
    let assignment = WitnessCs::generate(circuit).unwrap();
    let prove = || {
        let randomness = Randomness::from_os().unwrap();
        let pending = prove_start(&stream, &device_circuit, &device_key, &assignment, randomness).unwrap();
        pending.finish().unwrap().proof
    };
    let (first, second) = (prove(), prove());
    assert_ne!(first, second);
    assert_ne!(first.c, second.c);
}
