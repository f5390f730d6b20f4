#!/bin/sh
# Builds the comparison into target/peers: one stripped program, which needs nothing but the NVIDIA driver to run.
#
#   benches/peers/build.sh [KERNELS]
#
# KERNELS: a folder of fat binaries of our kernels, compiled from the same sources as the rest; without it they are
# compiled. CUZK_PEER_ARCH (sm_90 if unset) is the architecture.
set -eu
cd "$(dirname "$0")/../.."
architecture=${CUZK_PEER_ARCH:-sm_90}

if [ $# -eq 0 ]; then
    cargo xtask build --backend cuda --arch "$architecture"
    set -- "${CARGO_TARGET_DIR:-target}/cuda-kernels/$architecture"
fi
CUZK_CUDA_KERNELS=$(cd "$1" && pwd)
# With an nvcc on the path sppark's build would compile a part of it for architectures of its own choice.
NVCC=off
export CUZK_CUDA_KERNELS NVCC

# The compiler that is fetched where there is none comes without the C++ core libraries that cooperative groups include.
cccl=target/cuda-cccl
if [ ! -x "${CUDA_HOME:-}/bin/nvcc" ] && ! command -v nvcc >/dev/null && [ ! -d $cccl/nvidia ]; then
    python3 -m pip install --quiet --no-deps --target $cccl nvidia-cuda-cccl==13.0.85
fi

build=${CARGO_TARGET_DIR:-target}/peers-build
cargo build --release --locked --manifest-path benches/peers/Cargo.toml --target-dir "$build"
mkdir -p target/peers
strip -o target/peers/peers "$build/release/peers"
ls -l target/peers
