#!/bin/sh
# Compiles the multi-scalar multiplication for one architecture, checks it and times it, on a machine with a CUDA device:
#   kernels/cuda/bench/msm.sh [sm_90 [sanitize]]
# With `sanitize`, compute-sanitizer watches short checks instead of anything being timed. NVCC names the compiler, CUDA_HOME the folder with include/ and lib64/ or lib/.
set -eu
cd "$(dirname "$0")/../../.."
arch=${1:-sm_90}
nvcc=${NVCC:-nvcc}
out=target/cuda-bench/$arch
mkdir -p "$out/bls12_381" "$out/bn254"
# Headers and libraries lie beside the compiler, unless CUDA_HOME says otherwise.
cuda=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v "$nvcc")")")")}
for curve in bls12_381 bn254; do
    define=
    [ $curve = bn254 ] && define=-DCUZK_CURVE_BN254
    for unit in msm/msm msm/msm_g1 msm/msm_g2 bench/msm_inputs bench/products; do
        "$nvcc" -std=c++17 -O3 -arch="$arch" -cubin $define "kernels/cuda/$unit.cu" -o "$out/$curve/$(basename $unit).cubin" &
    done
    g++ -O2 -std=c++17 $define -I"$cuda/include" kernels/cuda/bench/msm_bench.cpp -o "$out/$curve/msm_bench" \
        -L"$cuda/lib64" -L"$cuda/lib" -lcudart_static -ldl -lpthread -lrt &
done
wait
bls() { "$out/bls12_381/msm_bench" "$out/bls12_381" "$@"; }
bn() { "$out/bn254/msm_bench" "$out/bn254" "$@"; }
if [ "${2:-}" = sanitize ]; then
    for tool in memcheck racecheck initcheck; do
        for mode in "blocks 1" "batch 6 blocks 1"; do
            echo "== $tool, $mode"
            timeout 100 compute-sanitizer --tool $tool "$out/bls12_381/msm_bench" "$out/bls12_381" small $mode check | grep -v "^ok" || true
        done
    done
    exit
fi
echo "== correctness"
bls check
bls batch 6 check
bn check
bn batch 6 check
echo "== products, $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
bls products
echo "== BLS12-381"
bls size1 26 g1 16 g1 18 g1 20 g1 22 g1 24 g1 26 packed 26 packed 22 fixed1 20
bls size2 24 g2 16 g2 18 g2 20 g2 22 g2 24 fixed2 18
echo "== batched additions"
bls batch 6 size1 26 g1 18 g1 20 g1 22 g1 24 g1 26 packed 26 packed 22
bls batch 6 size2 24 g2 18 g2 20 g2 22 g2 24
echo "== with multiples of the bases"
bls size1 24 g1 16 16 16 g1 18 17 15 g1 20 20 13 g1 22 20 13 g1 24 22 12
bls batch 6 size1 24 g1 20 20 13 g1 22 20 13 g1 24 22 12
echo "== BN254"
bn size1 22 g1 20 g1 22 g2 20
bn batch 6 size1 22 g1 20 g1 22 g2 20
