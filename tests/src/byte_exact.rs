//! Keys and proofs of a backend, byte for byte, against recorded ones.

use std::{fs::File, io::Read, path::Path};

use blstrs::Scalar as Fr;
use cuzk_backend::{Backend, Device, DeviceOptions};
use cuzk_curve::Bls12;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, PreparedVerifyingKey, Proof, Randomness, prove_start, setup_deterministic,
};
use cuzk_keys::{ParamsFile, export_params, ignore_progress};
use sha2::{Digest, Sha256};

use crate::{Fixture, recorded_digest, recorded_seed};

fn sha256(path: &Path) -> String {
    let mut file = File::open(path).unwrap();
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let n = file.read(&mut buffer).unwrap();
        if n == 0 {
            return hex::encode(hasher.finalize());
        }
        hasher.update(&buffer[..n]);
    }
}

/// Device 0 of a backend makes the recorded key of a circuit from its seed, as its SHA-256 says, and with r = 11 + k and s = 13 + k the
/// recorded proof of every partition k; both were recorded from bellperson and filecoin-proofs. Leaves nothing on the device.
///
/// # Panics
/// If not.
pub fn assert_byte_exact(backend: &dyn Backend, circuit: &str) {
    let circuit: CircuitId = circuit.parse().unwrap();
    let fixture = Fixture::of(circuit);
    let device = Device::open(backend, 0, &DeviceOptions::default()).unwrap();
    let stream = device.stream().unwrap();

    let r1cs = cuzk_filecoin::record(circuit).unwrap();
    let key = setup_deterministic::<Bls12>(&stream, &r1cs, recorded_seed(circuit).unwrap()).unwrap();
    assert!(!key.provenance.is_production());
    let folder = tempfile::tempdir().unwrap();
    let name = circuit.params_file_name().unwrap();
    let path = folder.path().join(&name);
    export_params(&key, &path, &mut ignore_progress).unwrap();
    assert_eq!(Some(sha256(&path)), recorded_digest(&name), "{circuit}: the key");
    assert_eq!(key.vk.to_bytes().unwrap(), fixture.read("vk.bin"), "{circuit}: the verifying key");
    drop(key);

    // From here on the key is the file's, as a user has it.
    let device_circuit = DeviceCircuit::load(&device, &r1cs).unwrap();
    let key = DeviceKey::load(&device, &ParamsFile::<Bls12>::open(&path).unwrap()).unwrap();
    let vk: &PreparedVerifyingKey<Bls12> = key.prepared_vk();
    let recorded = fixture.read("proof.bin");
    let mut proofs = 0;
    for (first, statement) in fixture.statements().unwrap() {
        for k in 0..statement.partitions() {
            let partition = statement.partition(k).unwrap();
            let k = (first + k) as u64;
            let inputs = partition.public_inputs().unwrap();
            let randomness = Randomness::insecure(Fr::from(11 + k), Fr::from(13 + k));
            let assignment = partition.witness().unwrap();
            let finished =
                prove_start(&stream, &device_circuit, &key, &assignment, randomness).unwrap().finish().unwrap();
            assert_eq!(finished.inputs, inputs, "{circuit}: public inputs of partition {k}");
            let expected = fixture.read(&format!("proof-fixed-rs-p{k}.bin"));
            assert_eq!(hex::encode(finished.proof.to_bytes()), hex::encode(expected), "{circuit}: partition {k}");

            // The proof that was made with random r and s verifies too, and not for other inputs.
            let place = k as usize * 192;
            let other = Proof::from_bytes(&recorded[place..place + 192]).unwrap();
            vk.verify(&other, &inputs).unwrap();
            let mut tampered = inputs.clone();
            tampered[0] += Fr::from(1);
            assert!(vk.verify(&other, &tampered).is_err());
            proofs += 1;
        }
    }
    assert_eq!(recorded.len(), 192 * proofs, "{circuit}: every recorded partition was proved");
    drop(key);
    drop(device_circuit);
    assert_eq!(device.memory().unwrap().device.in_use, 0, "{circuit}: everything was freed");
}
