// sppark's templates for BLS12-381 on data that is on the device already, behind a C boundary (src/peer.rs).
//
// Nothing of sppark is copied: its headers come from the published crate. Host arithmetic in them is blst's, whose C
// sources come from the crate of that name. Scalars and points are Montgomery limbs, little-endian, x then y, infinity
// all zero.

#include <ff/bls12-381-fp2.hpp>
#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

// The names under which pippenger.cuh instantiates its kernels.
using point_t = jacobian_t<fp_t>;
using bucket_t = xyzz_t<fp_t>;
using affine_t = bucket_t::affine_t;
using scalar_t = fr_t;

#include <msm/pippenger.cuh>
#include <ntt/ntt.cuh>

using point_g2_t = jacobian_t<fp2_t>;
using bucket_g2_t = xyzz_t<fp2_t>;
using affine_g2_t = bucket_g2_t::affine_t;

// The host's code below is invisible where the device's is compiled, so the kernels of G2 are named here.
template __global__ void accumulate<bucket_g2_t, affine_g2_t::mem_t>(bucket_g2_t::mem_t[], uint32_t, uint32_t,
                                                                     affine_g2_t::mem_t[], const vec2d_t<uint32_t>,
                                                                     const vec2d_t<uint32_t>, uint32_t);
template __global__ void batch_addition<bucket_g2_t>(bucket_g2_t::mem_t[], const affine_g2_t::mem_t[], size_t,
                                                     const uint32_t[], const uint32_t&);
template __global__ void integrate<bucket_g2_t>(bucket_g2_t::mem_t[], uint32_t, uint32_t, uint32_t);

// a = (a·b − c)·z, the step between the transforms of a quotient.
__global__ void __launch_bounds__(256) quotient_pointwise(fr_t* a, const fr_t* b, const fr_t* c, const fr_t z, size_t n)
{
#ifdef __CUDA_ARCH__
    for (size_t i = threadIdx.x + size_t(blockIdx.x) * blockDim.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        fr_t x = a[i], y = b[i], w = c[i], factor = z;
        a[i] = (x * y - w) * factor;
    }
#endif
}

#ifndef __CUDA_ARCH__

namespace {

template<class Body> RustError::by_value guarded(Body body)
{
    try {
        return body();
    } catch (const cuda_error& e) {
        return RustError{e.code(), e.what()};
    } catch (const std::exception& e) {
        return RustError{cudaErrorUnknown, e.what()};
    }
}

template<class Bucket, class Point, class Affine> struct Group {
    using Msm = msm_t<Bucket, Point, Affine, fr_t>;

    static RustError create(size_t n, void** out)
    {
        *out = new Msm(nullptr, n);
        return RustError{cudaSuccess};
    }

    static RustError run(void* msm, const void* points, const void* scalars, size_t n, void* out)
    {
        // The type of the pointers makes sppark take them for device memory.
        dev_ptr_t<Affine> d_points{static_cast<Affine*>(const_cast<void*>(points))};
        dev_ptr_t<fr_t> d_scalars{static_cast<fr_t*>(const_cast<void*>(scalars))};
        Point sum;
        auto error = static_cast<Msm*>(msm)->invoke(sum, d_points, n, d_scalars, true);
        if (error.code == cudaSuccess)
            *static_cast<Affine*>(out) = static_cast<Affine>(sum);
        return error;
    }
};

using G1 = Group<bucket_t, point_t, affine_t>;
using G2 = Group<bucket_g2_t, point_g2_t, affine_g2_t>;

static_assert(sizeof(fr_t) == 32 && sizeof(affine_t) == 96 && sizeof(affine_g2_t) == 192, "as in cuzk-curve");

} // namespace

extern "C" {

// Starts sppark on device 0. Its temporary memory comes from the driver's pool, which is told to keep what it has, so
// that no repetition pays for memory to be mapped; ours does the same.
RustError::by_value peer_open()
{
    return guarded([] {
        const gpu_t& gpu = select_gpu(0);
        cudaMemPool_t pool;
        uint64_t keep = UINT64_MAX;
        CUDA_OK(cudaDeviceGetDefaultMemPool(&pool, gpu.cid()));
        CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
        return RustError{cudaSuccess};
    });
}

RustError::by_value peer_upload(const void* host, size_t bytes, void** out)
{
    return guarded([=] {
        void* memory = nullptr;
        CUDA_OK(cudaMalloc(&memory, bytes));
        *out = memory;
        CUDA_OK(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
        return RustError{cudaSuccess};
    });
}

RustError::by_value peer_download(void* host, const void* memory, size_t bytes)
{
    return guarded([=] {
        CUDA_OK(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost));
        return RustError{cudaSuccess};
    });
}

void peer_free(void* memory) { (void)cudaFree(memory); }

RustError::by_value peer_msm_create_g1(size_t n, void** out) { return guarded([=] { return G1::create(n, out); }); }
RustError::by_value peer_msm_create_g2(size_t n, void** out) { return guarded([=] { return G2::create(n, out); }); }
void peer_msm_free_g1(void* msm) { delete static_cast<G1::Msm*>(msm); }
void peer_msm_free_g2(void* msm) { delete static_cast<G2::Msm*>(msm); }

RustError::by_value peer_msm_g1(void* msm, const void* points, const void* scalars, size_t n, void* out)
{
    return guarded([=] { return G1::run(msm, points, scalars, n, out); });
}

RustError::by_value peer_msm_g2(void* msm, const void* points, const void* scalars, size_t n, void* out)
{
    return guarded([=] { return G2::run(msm, points, scalars, n, out); });
}

// Enqueues a forward transform, natural order in and out, on the stream that peer_synchronize waits for.
RustError::by_value peer_ntt(void* data, uint32_t log_n)
{
    return guarded([=] {
        NTT::Base_dev_ptr(select_gpu(0), static_cast<fr_t*>(data), log_n, NTT::InputOutputOrder::NN,
                          NTT::Direction::forward, NTT::Type::standard);
        return RustError{cudaSuccess};
    });
}

// Enqueues seven transforms and the pointwise step between them: evaluations a, b and c to the coefficients of (a·b −
// c)/(Xⁿ − 1) in a. z = 1/(gⁿ − 1), where g is the generator of sppark's coset. Six transforms run without bit
// reversal.
RustError::by_value peer_quotient(void* a, void* b, void* c, const void* z, uint32_t log_n)
{
    return guarded([=] {
        const gpu_t& gpu = select_gpu(0);
        stream_t& stream = gpu;
        fr_t* polynomials[] = {static_cast<fr_t*>(a), static_cast<fr_t*>(b), static_cast<fr_t*>(c)};
        for (fr_t* p : polynomials) {
            NTT::Base_dev_ptr(stream, p, log_n, NTT::InputOutputOrder::NR, NTT::Direction::inverse,
                              NTT::Type::standard);
            NTT::Base_dev_ptr(stream, p, log_n, NTT::InputOutputOrder::RN, NTT::Direction::forward, NTT::Type::coset);
        }
        quotient_pointwise<<<gpu.sm_count() * 8, 256, 0, stream>>>(polynomials[0], polynomials[1], polynomials[2],
                                                                   *static_cast<const fr_t*>(z), size_t(1) << log_n);
        CUDA_OK(cudaGetLastError());
        NTT::Base_dev_ptr(stream, polynomials[0], log_n, NTT::InputOutputOrder::NN, NTT::Direction::inverse,
                          NTT::Type::coset);
        return RustError{cudaSuccess};
    });
}

RustError::by_value peer_synchronize()
{
    return guarded([] {
        const stream_t& stream = select_gpu(0);
        stream.sync();
        return RustError{cudaSuccess};
    });
}

} // extern "C"

#endif
