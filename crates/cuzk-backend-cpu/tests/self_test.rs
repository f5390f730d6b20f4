//! The host passes the self-test of every device.

use cuzk_backend::{Device, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::CurveId;

#[test]
fn the_host_gives_the_known_answers() {
    let device = Device::open(&CpuBackend, 0, &DeviceOptions { threads: 2, ..DeviceOptions::default() }).unwrap();
    for curve in CurveId::ALL {
        self_test::run(&device, curve).unwrap();
        assert_eq!(device.memory().unwrap().device.in_use, 0);
    }
}

#[test]
fn a_device_that_computes_nothing_fails() {
    let device = Device::new(cuzk_backend::noop::Noop::new(1 << 24));
    for curve in CurveId::ALL {
        let Err(cuzk_backend::BackendError::SelfTest { device, check }) = self_test::run(&device, curve) else {
            panic!("zeros have passed the self-test of {curve}");
        };
        assert_eq!(device, "noop-0");
        assert!(check.contains(&curve.to_string()) && check.contains("transform"), "{check}");
    }
}
