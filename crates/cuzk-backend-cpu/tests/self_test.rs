//! The host passes the self-test of every device.

use cuzk_backend::{Device, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::CurveId;

#[test]
fn the_host_gives_the_known_answers() {
    let device = Device::open(&CpuBackend, 0, &DeviceOptions { threads: 2, ..DeviceOptions::default() }).unwrap();
    for curve in CurveId::ALL {
        let start = std::time::Instant::now();
        self_test::run(&device, curve).unwrap();
        println!("{curve}: {:?}", start.elapsed());
        assert_eq!(device.memory().unwrap().device.in_use, 0);
    }
}
