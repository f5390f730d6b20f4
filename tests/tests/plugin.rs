//! The CPU backend linked in and the same backend from a shared library make the same proof.

use std::path::PathBuf;

use blstrs::Scalar as Fr;
use cuzk_backend::{Backend, Device, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::{Bls12, CurveId};
use cuzk_groth16::{DeviceCircuit, DeviceKey, Randomness, prove_start, setup_deterministic};
use cuzk_plugin::Loader;
use cuzk_tests::{Fixture, plugin_folder};

fn proof_on(backend: &dyn Backend) -> Vec<u8> {
    let device = Device::open(backend, 0, &DeviceOptions::default()).unwrap();
    for curve in CurveId::ALL {
        self_test::run(&device, curve).unwrap();
    }
    let stream = device.stream().unwrap();
    let circuit = "wpost-2k".parse().unwrap();
    let r1cs = cuzk_filecoin::record(circuit).unwrap();
    let key = setup_deterministic::<Bls12>(&stream, &r1cs, [3; 32]).unwrap();
    let device_circuit = DeviceCircuit::load(&device, &r1cs).unwrap();
    let device_key = DeviceKey::load(&device, &key).unwrap();
    let (_, statement) = Fixture::of(circuit).statements().unwrap().remove(0);
    let assignment = statement.partition(0).unwrap().witness().unwrap();
    let randomness = Randomness::insecure(Fr::from(5), Fr::from(7));
    let pending = prove_start(&stream, &device_circuit, &device_key, &assignment, randomness).unwrap();
    pending.finish().unwrap().proof.to_bytes()
}

#[test]
fn linked_in_and_loaded_give_the_same_bytes() {
    let loader = Loader::new([plugin_folder()], [] as [PathBuf; 0]);
    let plugin = loader.load("cpu").unwrap_or_else(|e| panic!("run `cargo xtask build --backend cpu` first: {e}"));
    assert_eq!(plugin.name(), "cpu");
    assert_eq!(proof_on(&CpuBackend), proof_on(&plugin));
}
