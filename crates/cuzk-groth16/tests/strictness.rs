//! What a verifier must refuse: everything that is not exactly a proof of exactly these inputs.

mod common;

use blstrs::{Bls12, G1Affine, G2Affine, Scalar as Fr};
use common::{Squarings, device};
use cuzk_curve::repr;
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, PreparedVerifyingKey, Proof, Randomness, VerifyError, decode_inputs, prove_start, setup,
};
use cuzk_keys::VerifyingKey;
use cuzk_r1cs::{RecordingCs, WitnessCs};
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use proptest::prelude::*;

struct Case {
    vk: VerifyingKey<Bls12>,
    proofs: Vec<Proof<Bls12>>,
    inputs: Vec<Vec<Fr>>,
}

fn case(n: u64) -> Case {
    let device = device();
    let stream = device.stream().unwrap();
    let circuit = |i| Squarings::new(1000 + i, 30);
    let r1cs = RecordingCs::record(circuit(0)).unwrap();
    let key = setup::<Bls12>(&stream, &r1cs).unwrap();
    let (device_circuit, device_key) =
        (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap());
    let prove = |i| {
        let assignment = WitnessCs::generate(circuit(i)).unwrap();
        let randomness = Randomness::from_os().unwrap();
        let pending = prove_start(&stream, &device_circuit, &device_key, &assignment, randomness).unwrap();
        let finished = pending.finish().unwrap();
        (finished.proof, finished.inputs)
    };
    let (proofs, inputs) = (0..n).map(prove).unzip();
    Case { vk: key.vk, proofs, inputs }
}

/// On the curve, not in the subgroup of order r: x = 4 for G1.
fn outside_of_the_subgroup() -> G1Affine {
    let mut bytes = [0; 48];
    bytes[0] = 0x80;
    bytes[47] = 4;
    G1Affine::from_compressed_unchecked(&bytes).unwrap()
}

#[test]
fn inputs_are_exactly_those_of_the_key() {
    let Case { vk, proofs, inputs } = case(1);
    let vk = PreparedVerifyingKey::new(&vk).unwrap();
    let (proof, inputs) = (&proofs[0], &inputs[0]);
    vk.verify(proof, inputs).unwrap();
    assert_eq!(vk.verify(proof, &inputs[1..]), Err(VerifyError::InputCount { expected: 2, actual: 1 }));
    let more = [inputs.as_slice(), &[Fr::ZERO]].concat();
    assert_eq!(vk.verify(proof, &more), Err(VerifyError::InputCount { expected: 2, actual: 3 }));
    let swapped = [inputs[1], inputs[0]];
    assert_eq!(vk.verify(proof, &swapped), Err(VerifyError::Invalid));
    // The same residue with r added to its limbs: an alias that a lenient verifier would accept.
    let mut alias = inputs.clone();
    let limbs = repr::as_limbs_mut(&mut alias[..1]);
    let mut carry = 0u128;
    for (limb, r) in limbs.iter_mut().zip(<Fr as cuzk_curve::ScalarRepr>::MODULUS) {
        carry += u128::from(*limb) + u128::from(r);
        *limb = carry as u64;
        carry >>= 64;
    }
    assert_eq!(carry, 0, "the alias fits");
    assert_eq!(vk.verify(proof, &alias), Err(VerifyError::InputNotCanonical { index: 0 }));
}

#[test]
fn encodings_of_inputs_are_canonical() {
    let r = <Fr as cuzk_curve::ScalarRepr>::MODULUS.map(u64::to_le_bytes).concat();
    assert_eq!(decode_inputs::<Fr>(&[vec![0; 32], r]), Err(VerifyError::InputNotCanonical { index: 1 }));
    assert_eq!(decode_inputs::<Fr>(&[vec![0; 31]]), Err(VerifyError::InputNotCanonical { index: 0 }));
    let mut two = vec![0; 32];
    two[0] = 2;
    assert_eq!(decode_inputs::<Fr>(&[two]), Ok(vec![Fr::from(2)]));
}

#[test]
fn points_are_in_their_groups_and_not_infinity() {
    let Case { vk, proofs, inputs } = case(1);
    let prepared = PreparedVerifyingKey::new(&vk).unwrap();
    let (proof, inputs) = (&proofs[0], &inputs[0]);
    let refused = |proof: Proof<Bls12>| match prepared.verify(&proof, inputs) {
        Err(VerifyError::BadPoint { element, .. }) => element,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Proof { a: G1Affine::identity(), ..proof.clone() }), "A");
    assert_eq!(refused(Proof { b: G2Affine::identity(), ..proof.clone() }), "B");
    assert_eq!(refused(Proof { c: G1Affine::identity(), ..proof.clone() }), "C");
    assert_eq!(refused(Proof { a: outside_of_the_subgroup(), ..proof.clone() }), "A");
    assert_eq!(refused(Proof { c: outside_of_the_subgroup(), ..proof.clone() }), "C");
    let mut off_curve = proof.clone();
    repr::as_limbs_mut(std::slice::from_mut(&mut off_curve.b))[0] ^= 1;
    assert_eq!(refused(off_curve), "B");
    // The trivial proof of a key whose gamma or delta is infinity must not even get that far.
    let broken = |change: &dyn Fn(&mut VerifyingKey<Bls12>)| {
        let mut vk = vk.clone();
        change(&mut vk);
        match PreparedVerifyingKey::new(&vk) {
            Err(VerifyError::BadKey { element, .. }) => element,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(broken(&|vk| vk.gamma_g2 = G2Affine::identity()), "gamma_g2");
    assert_eq!(broken(&|vk| vk.delta_g2 = G2Affine::identity()), "delta_g2");
    assert_eq!(broken(&|vk| vk.alpha_g1 = outside_of_the_subgroup()), "alpha_g1");
    assert_eq!(broken(&|vk| vk.ic[1] = outside_of_the_subgroup()), "ic");
    assert_eq!(broken(&|vk| vk.ic.clear()), "ic");
}

#[test]
fn bytes_are_exactly_a_proof() {
    let Case { proofs, .. } = case(1);
    let bytes = proofs[0].to_bytes();
    assert_eq!(bytes.len(), 192);
    assert_eq!(Proof::<Bls12>::from_bytes(&bytes).unwrap(), proofs[0]);
    let wrong = |bytes: &[u8]| Proof::<Bls12>::from_bytes(bytes).unwrap_err();
    assert_eq!(wrong(&bytes[..191]), VerifyError::ProofLength { expected: 192, actual: 191 });
    assert_eq!(wrong(&[bytes.clone(), vec![0]].concat()), VerifyError::ProofLength { expected: 192, actual: 193 });
    let mut infinity = bytes.clone();
    infinity[..48].fill(0);
    infinity[0] = 0xc0;
    assert!(matches!(wrong(&infinity), VerifyError::BadPoint { element: "A", .. }));
    let mut subgroup = bytes.clone();
    subgroup[144..].copy_from_slice(&outside_of_the_subgroup().to_compressed());
    assert!(matches!(wrong(&subgroup), VerifyError::BadPoint { element: "C", .. }));
}

#[test]
fn a_batch_is_as_strict_as_its_proofs() {
    let Case { vk, proofs, inputs } = case(3);
    let vk = PreparedVerifyingKey::new(&vk).unwrap();
    vk.verify_batch(&proofs, &inputs).unwrap();
    vk.verify_batch(&[], &[]).unwrap();
    assert_eq!(vk.verify_batch(&proofs, &inputs[..2]), Err(VerifyError::BatchLength { proofs: 3, inputs: 2 }));
    // Errors that cancel in an unweighted sum: two proofs with their inputs exchanged, and C shifted by P and by -P.
    let exchanged = vec![inputs[1].clone(), inputs[0].clone(), inputs[2].clone()];
    assert_eq!(vk.verify_batch(&proofs, &exchanged), Err(VerifyError::Invalid));
    let mut shifted = proofs.clone();
    let p = blstrs::G1Projective::generator();
    shifted[0].c = (p + shifted[0].c).to_affine();
    shifted[1].c = (-p + shifted[1].c).to_affine();
    assert_eq!(vk.verify_batch(&shifted, &inputs), Err(VerifyError::Invalid));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 180..200)) {
        let _ = Proof::<Bls12>::from_bytes(&bytes);
    }
}

#[test]
fn no_flipped_bit_is_accepted() {
    let Case { vk, proofs, inputs } = case(1);
    let vk = PreparedVerifyingKey::new(&vk).unwrap();
    let bytes = proofs[0].to_bytes();
    for bit in (0..192 * 8).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verdict = Proof::from_bytes(&flipped).and_then(|p| vk.verify(&p, &inputs[0]));
        assert!(verdict.is_err(), "bit {bit}");
    }
}
