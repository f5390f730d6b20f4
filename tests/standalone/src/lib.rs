//! Uses single crates by path and nothing else of the project: each stands alone.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests {
    use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError, num::AllocatedNum};
    use blstrs::Scalar as Fr;
    use cuzk_backend::{Device, DeviceOptions};
    use cuzk_curve::Bls12;
    use cuzk_groth16::{DeviceCircuit, DeviceKey, Randomness, prove_start, setup};
    use cuzk_r1cs::{RecordingCs, WitnessCs};
    use ff::Field;

    struct Cube(u64);

    impl Circuit<Fr> for Cube {
        fn synthesize<CS: ConstraintSystem<Fr>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            let x = AllocatedNum::alloc(cs.namespace(|| "x"), || Ok(Fr::from(self.0)))?;
            let square = x.square(cs.namespace(|| "square"))?;
            square.mul(cs.namespace(|| "cube"), &x)?.inputize(cs.namespace(|| "public"))
        }
    }

    #[test]
    fn a_constraint_system_alone() {
        assert_eq!(WitnessCs::generate(Cube(3)).unwrap().inputs(), [Fr::ONE, Fr::from(27)]);
    }

    #[test]
    fn a_proof_with_four_crates() {
        let (r1cs, assignment) = (RecordingCs::record(Cube(0)).unwrap(), WitnessCs::generate(Cube(3)).unwrap());
        let device = Device::open(&cuzk_backend_cpu::CpuBackend, 0, &DeviceOptions::default()).unwrap();
        let stream = device.stream().unwrap();
        let key = setup::<Bls12>(&stream, &r1cs).unwrap();
        let circuit = DeviceCircuit::load(&device, &r1cs).unwrap();
        let device_key = DeviceKey::load(&device, &key).unwrap();
        let randomness = Randomness::from_os().unwrap();
        let pending = prove_start(&stream, &circuit, &device_key, &assignment, randomness).unwrap();
        assert_eq!(pending.finish().unwrap().inputs, [Fr::from(27)]);
    }
}
