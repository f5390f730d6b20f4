//! What the backend says where there is nothing to compute on, and that it does not panic.

use cuzk_backend::{Backend, BackendError, DeviceOptions};
use cuzk_backend_cuda::CudaBackend;

/// The reason of a refusal.
fn refusal<T>(result: Result<T, BackendError>) -> Option<String> {
    match result {
        Ok(_) => None,
        Err(BackendError::Unsupported { operation, reason }) => {
            assert_eq!(operation, "cuda");
            Some(reason)
        }
        Err(other) => panic!("not a refusal: {other}"),
    }
}

#[test]
fn without_kernels_it_says_how_to_build_them() {
    if option_env!("CUZK_CUDA_KERNELS").is_some() {
        // Built with kernels: the driver is looked for, and its absence is a refusal, too.
        if let Some(reason) = refusal(CudaBackend.devices()) {
            assert!(reason.contains("driver"), "{reason}");
        }
        return;
    }
    let expected = Some("built without kernels: cargo xtask build --backend cuda".to_owned());
    assert_eq!(refusal(CudaBackend.devices()), expected);
    assert_eq!(refusal(CudaBackend.open(0, &DeviceOptions::default())), expected);
    assert_eq!(refusal(CudaBackend.find("0")), expected);
}
