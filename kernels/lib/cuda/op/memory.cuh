// Copy, Fill and Convert on a GPU: 16 bytes a thread where they are aligned, kPerThread times per thread.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_f32(__half x) { return __half2float(x); }
template <typename T>
__device__ T of_f32(float x);
template <>
__device__ inline float of_f32<float>(float x) { return x; }
template <>
__device__ inline __nv_bfloat16 of_f32<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }
template <>
__device__ inline __half of_f32<__half>(float x) { return __float2half_rn(x); }

// Copies one block's share.
template <int kThreads, int kPerThread>
__device__ void copy_share(uint8_t *out, const uint8_t *in, int64_t bytes) {
    constexpr int64_t kShare = int64_t(kThreads) * kPerThread * 16;
    const int64_t begin = blockIdx.x * kShare, end = bytes - begin < kShare ? bytes : begin + kShare;
    const bool aligned = (reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(in)) % 16 == 0;
    const int64_t tail = aligned && end > begin ? begin + (end - begin) / 16 * 16 : begin;
    if (tail - begin == kShare) {
        uint4 x[kPerThread];
#pragma unroll
        for (int i = 0; i < kPerThread; i++) x[i] = *reinterpret_cast<const uint4 *>(in + begin + (i * kThreads + threadIdx.x) * 16);
#pragma unroll
        for (int i = 0; i < kPerThread; i++) *reinterpret_cast<uint4 *>(out + begin + (i * kThreads + threadIdx.x) * 16) = x[i];
        return;
    }
    for (int64_t i = begin + threadIdx.x * 16; i < tail; i += kThreads * 16) *reinterpret_cast<uint4 *>(out + i) = *reinterpret_cast<const uint4 *>(in + i);
    for (int64_t i = tail + threadIdx.x; i < end; i += kThreads) out[i] = in[i];
}

template <int kThreads, int kPerThread, typename Out, typename In>
__device__ void convert_share(const atlas_Convert &a) {
    const int64_t begin = int64_t(blockIdx.x) * kThreads * kPerThread;
    Out *out = static_cast<Out *>(a.Out);
    const In *in = static_cast<const In *>(a.In);
#pragma unroll
    for (int i = 0; i < kPerThread; i++) {
        const int64_t at = begin + i * kThreads + threadIdx.x;
        if (at < a.Count) out[at] = of_f32<Out>(to_f32(in[at]));
    }
}

template <int kThreads, int kPerThread, typename Out>
__device__ void convert_to(const atlas_Convert &a) {
    if (a.InType == ATLAS_F32)
        convert_share<kThreads, kPerThread, Out, float>(a);
    else if (a.InType == ATLAS_BF16)
        convert_share<kThreads, kPerThread, Out, __nv_bfloat16>(a);
    else
        convert_share<kThreads, kPerThread, Out, __half>(a);
}

}  // namespace atlas

// Block: kThreads·kPerThread·16 bytes.
template <class P>
__device__ void copy_bytes(const atlas_Copy &a) {
    atlas::wait_for_previous();
    atlas::copy_share<P::kThreads, P::kPerThread>(a.Out, a.In, a.Bytes);
}

// Block: kThreads·kPerThread words.
template <class P>
__device__ void fill_words(const atlas_Fill &a) {
    const int64_t begin = int64_t(blockIdx.x) * P::kThreads * P::kPerThread;
    atlas::wait_for_previous();
#pragma unroll
    for (int i = 0; i < P::kPerThread; i++) {
        const int64_t at = begin + i * P::kThreads + threadIdx.x;
        if (at < a.Count) a.Out[at] = a.Value;
    }
}

// Block: kThreads·kPerThread elements. Equal types keep every bit.
template <class P>
__device__ void convert(const atlas_Convert &a) {
    atlas::wait_for_previous();
    if (a.OutType == a.InType) {
        const int64_t bytes = a.OutType == ATLAS_F32 ? 4 : 2, share = int64_t(P::kThreads) * P::kPerThread * bytes, begin = blockIdx.x * share;
        const uint8_t *in = static_cast<const uint8_t *>(a.In);
        for (int64_t i = begin + threadIdx.x; i < begin + share && i < a.Count * bytes; i += P::kThreads) static_cast<uint8_t *>(a.Out)[i] = in[i];
    } else if (a.OutType == ATLAS_F32) {
        atlas::convert_to<P::kThreads, P::kPerThread, float>(a);
    } else if (a.OutType == ATLAS_BF16) {
        atlas::convert_to<P::kThreads, P::kPerThread, __nv_bfloat16>(a);
    } else {
        atlas::convert_to<P::kThreads, P::kPerThread, __half>(a);
    }
}
