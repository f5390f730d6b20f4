//! Recorded matrices and generated witnesses of all four circuits against an independent constraint
//! system, stored public inputs and stored proofs.

mod common;

use std::time::Instant;

use bellperson::groth16::{Proof, VerifyingKey, prepare_verifying_key, verify_proof};
use blstrs::Bls12;
use blstrs::Scalar as Fr;
use common::Dense;
use cuzk_filecoin::{CircuitId, PROOF_BYTES_PER_PARTITION, Partition, ProofKind, Statement, circuits, record};
use cuzk_r1cs::{DensityTracker, R1cs, evaluate};
use ff::Field;
use filecoin_proofs::SectorShapeBase;

/// What a key must have been made for: measured on published parameters.
struct Counts {
    circuit: &'static str,
    constraints: usize,
    inputs: usize,
    aux: usize,
    a_aux: usize,
    b_aux: usize,
    log_domain: u32,
    params_bytes: u64,
}

const COUNTS: [Counts; 6] = [
    Counts {
        circuit: "porep-2k",
        constraints: 2_687_961,
        inputs: 40,
        aux: 2_685_673,
        a_aux: 2_674_908,
        b_aux: 685_521,
        log_domain: 22,
        params_bytes: 1_114_707_768,
    },
    Counts {
        circuit: "winning-2k",
        constraints: 90_883,
        inputs: 133,
        aux: 91_674,
        a_aux: 69_300,
        b_aux: 66_792,
        log_domain: 17,
        params_bytes: 47_299_128,
    },
    Counts {
        circuit: "wpost-2k",
        constraints: 21_889,
        inputs: 23,
        aux: 22_128,
        a_aux: 16_770,
        b_aux: 16_028,
        log_domain: 15,
        params_bytes: 11_501_496,
    },
    Counts {
        circuit: "snap-2k",
        constraints: 1_705_044,
        inputs: 5,
        aux: 1_703_569,
        a_aux: 1_697_189,
        b_aux: 444_403,
        log_domain: 21,
        params_bytes: 655_789_464,
    },
    Counts {
        circuit: "winning-8m",
        constraints: 230_803,
        inputs: 133,
        aux: 233_442,
        a_aux: 176_748,
        b_aux: 169_488,
        log_domain: 18,
        params_bytes: 113_383_224,
    },
    Counts {
        circuit: "wpost-8m",
        constraints: 64_289,
        inputs: 23,
        aux: 65_088,
        a_aux: 49_330,
        b_aux: 47_148,
        log_domain: 16,
        params_bytes: 30_859_704,
    },
];

fn check_counts(r1cs: &R1cs<Fr>, counts: &Counts) {
    let densities = r1cs.densities();
    let variables = r1cs.n_inputs()..r1cs.n_variables();
    assert_eq!(r1cs.n_constraints(), counts.constraints);
    assert_eq!(r1cs.n_inputs(), counts.inputs);
    assert_eq!(r1cs.n_aux(), counts.aux);
    assert_eq!(densities.a.count_in(variables.clone()), counts.a_aux);
    assert_eq!(densities.b.count_in(variables), counts.b_aux);
    assert_eq!(r1cs.log_domain(), counts.log_domain);

    // Every point of the key has its variable: the length of the parameter file says so again.
    let (a, b) = (densities.a.count() as u64, densities.b.count() as u64);
    let g1 = counts.inputs + (1 << counts.log_domain) - 1 + counts.aux;
    let bytes = 3 * 96 + 3 * 192 + 6 * 4 + 96 * (g1 as u64 + a + b) + 192 * b;
    assert_eq!(bytes, counts.params_bytes);
}

fn check_density(tracker: &DensityTracker, inputs: &[bool], aux: &[bool]) {
    let expected = inputs.iter().chain(aux);
    assert_eq!(tracker.len(), inputs.len() + aux.len());
    assert!(expected.enumerate().all(|(i, dense)| tracker.get(i) == *dense));
}

fn dense(partition: &Partition) -> (Dense, Vec<Fr>) {
    type Tree = SectorShapeBase;
    match partition.circuit_id().kind {
        ProofKind::PoRep => {
            let (circuit, inputs) = circuits::porep::<Tree>(partition).unwrap();
            (Dense::synthesize(circuit), inputs)
        }
        ProofKind::WinningPoSt | ProofKind::WindowPoSt => {
            let (circuit, inputs) = circuits::post::<Tree>(partition).unwrap();
            (Dense::synthesize(circuit), inputs)
        }
        ProofKind::Update => {
            let (circuit, inputs) = circuits::update::<Tree>(partition).unwrap();
            (Dense::synthesize(circuit), inputs)
        }
    }
}

/// Everything about one fixture folder.
fn check(folder: &str, circuit: &str) {
    let statement: Statement = common::statement(folder);
    let circuit: CircuitId = circuit.parse().unwrap();
    assert_eq!(statement.circuit_id(), circuit);
    let stored_inputs = common::public_inputs(folder);
    assert_eq!(statement.partitions(), stored_inputs.len());

    let start = Instant::now();
    let r1cs = record(circuit).unwrap();
    println!("{circuit}: recorded in {:.2?}, {} bytes, {} non-zeros", start.elapsed(), r1cs.bytes(), r1cs.nnz());
    let counts = COUNTS.iter().find(|c| c.circuit == circuit.to_string());
    check_counts(&r1cs, counts.unwrap());

    let vk = VerifyingKey::<Bls12>::read(&common::read(&format!("{folder}/vk.bin"))[..]).unwrap();
    assert_eq!(vk.ic.len(), r1cs.n_inputs());
    let vk = prepare_verifying_key(&vk);
    let proof = common::read(&format!("{folder}/proof.bin"));
    assert_eq!(proof.len(), statement.proof_bytes());
    let proofs = proof.chunks(PROOF_BYTES_PER_PARTITION);

    for (k, proof) in proofs.enumerate() {
        let partition = statement.partition(k).unwrap();
        assert_eq!(partition.index(), k);
        let start = Instant::now();
        let witness = partition.witness().unwrap();
        println!("{circuit}[{k}]: witness in {:.2?}", start.elapsed());

        let inputs = partition.public_inputs().unwrap();
        assert_eq!(inputs, stored_inputs[k]);
        let (dense, built_inputs) = dense(&partition);
        assert_eq!(built_inputs, inputs);
        assert_eq!(dense.inputs[0], Fr::ONE);
        assert_eq!(dense.inputs[1..], inputs);
        assert!(witness.iter().eq(dense.inputs.iter().chain(&dense.aux).copied()));

        let products = [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| evaluate(matrix, &witness).unwrap());
        assert!(products == dense.products);
        let [a, b, c] = &products;
        assert!(a.iter().zip(b).zip(c).all(|((a, b), c)| *a * b == *c));
        let densities = r1cs.densities();
        check_density(&densities.a, &dense.input_density[0], &dense.aux_density[0]);
        check_density(&densities.b, &dense.input_density[1], &dense.aux_density[1]);

        let proof = Proof::read(proof).unwrap();
        assert!(verify_proof(&vk, &proof, &inputs).unwrap());
        let mut wrong = inputs;
        wrong[0] += Fr::ONE;
        assert!(!verify_proof(&vk, &proof, &wrong).unwrap());
    }
    assert!(statement.partition(stored_inputs.len()).is_err());
}

#[test]
fn porep_of_2_kib() {
    check("2kib/porep", "porep-2k");
}

#[test]
fn winning_post_of_2_kib() {
    check("2kib/winning", "winning-2k");
}

#[test]
fn window_post_of_2_kib() {
    check("2kib/window", "wpost-2k");
}

#[test]
fn update_of_2_kib() {
    check("2kib/update", "snap-2k");
}

#[test]
fn winning_post_of_8_mib() {
    check("8mib/winning", "winning-8m");
}

#[test]
fn window_post_of_8_mib() {
    check("8mib/window", "wpost-8m");
}

/// A partition alone, without the sectors before it, is the same partition.
#[test]
fn window_partition_alone() {
    let whole = common::statement("2kib/window");
    let vanilla = common::vanilla("2kib/window/vanilla-p1.json");
    let alone = common::window("2kib/window", Default::default(), 1, &vanilla).unwrap();
    assert_eq!(alone.partitions(), 1);
    let (alone, of_whole) = (alone.partition(0).unwrap(), whole.partition(1).unwrap());
    assert_eq!(alone.index(), 1);
    assert_eq!(alone.public_inputs().unwrap(), of_whole.public_inputs().unwrap());
    assert_eq!(alone.witness().unwrap(), of_whole.witness().unwrap());
}

/// A C1 of 8 MiB has no stored proof: its witness must satisfy the circuit, constraint by
/// constraint, and the public inputs must be those of the circuit.
#[test]
fn porep_of_8_mib_is_satisfied() {
    let statement = common::statement("8mib/porep");
    let partition = statement.partition(0).unwrap();
    partition.check_named().unwrap();
    let witness = partition.witness().unwrap();
    assert_eq!(witness.inputs()[1..], partition.public_inputs().unwrap());
    assert_eq!(witness.n_aux(), 3_842_449);
}

/// The circuits refuse a partition of another kind and another tree shape.
#[test]
fn circuits_check_their_partition() {
    use cuzk_filecoin::FilecoinError::{WrongKind, WrongShape};
    let partition = common::statement("2kib/window").partition(0).unwrap();
    let wrong_kind = circuits::porep::<SectorShapeBase>(&partition);
    assert!(matches!(wrong_kind, Err(WrongKind { .. })));
    let wrong_shape = circuits::post::<filecoin_proofs::SectorShapeSub8>(&partition);
    assert!(matches!(wrong_shape, Err(WrongShape { .. })));
}
