// Vocabulary of CUDA kernel bodies: the activation type, sums over warps and blocks, eight elements at a time.
//
// A function that manifests name by inst is a template <class P>. P has, as constants, what a manifest's const gives (P::kRows), and what
// the launch says: kThreads of a block, kCluster blocks of a cluster, kShared bytes of dynamic shared memory, kScheme of the weights.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

typedef __nv_bfloat16 atlas_act;

#include "atlas_op.h"

// A matrix as the copy engine has it, among a kernel's arguments.
struct alignas(64) atlas_TensorMap {
    uint64_t word[16];
};

#include "lib/cuda/ptx/grid.cuh"
#include "lib/cuda/ptx/load.cuh"

namespace atlas {

// Bytes of dynamic shared memory that a manifest says and that its body takes: the compiler's message has both where they are not the same. A manifest may
// say more, so that fewer blocks find room on a multiprocessor: by a kilobyte at least, for less is a mistake.
template <int kSaid, int kTaken>
struct shared_memory {
    static_assert(kSaid == kTaken || kSaid >= kTaken + 1024, "the manifest's shared is not what the body takes");
    static constexpr bool kFits = true;
};

// Asserts that a manifest launches what its body is for: threads of a block, bytes of dynamic shared memory, blocks of a cluster.
template <class P, int kThreads, int kShared, int kCluster = 1>
struct launched : shared_memory<P::kShared, kShared> {
    static_assert(P::kThreads == kThreads, "the manifest's block is not what the body takes");
    static_assert(P::kCluster == kCluster, "the manifest's cluster is not what the body takes");
};

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr float kLog2E = 1.4426950408889634f;

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline int warp() { return threadIdx.x / 32; }

// The same in every lane and in every run.
__device__ inline float warp_sum(float x) {
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(kAllLanes, x, d);
    return x;
}
__device__ inline float warp_max(float x) {
    for (int d = 16; d; d /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, d));
    return x;
}

// Sum over the block, the same in every thread and in every run.
template <int kThreads>
__device__ float block_sum(float x) {
    static_assert(kThreads % 32 == 0 && kThreads <= 1024, "whole warps");
    __shared__ float partial[kThreads / 32];
    x = warp_sum(x);
    __syncthreads();
    if (lane() == 0) partial[warp()] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < kThreads / 32; w++) x += partial[w];
    return x;
}

// Sum over the warps before this thread and the lanes before it, and over the whole block.
struct scan {
    int before, total;
};
template <int kThreads>
__device__ scan block_scan(int x) {
    static_assert(kThreads % 32 == 0 && kThreads <= 1024, "whole warps");
    __shared__ int partial[kThreads / 32];
    int sum = x;
    for (int d = 1; d < 32; d *= 2) {
        const int y = __shfl_up_sync(kAllLanes, sum, d);
        if (lane() >= d) sum += y;
    }
    __syncthreads();
    if (lane() == 31) partial[warp()] = sum;
    __syncthreads();
    scan s = {sum - x, 0};
    for (int w = 0; w < kThreads / 32; w++) {
        if (w < warp()) s.before += partial[w];
        s.total += partial[w];
    }
    return s;
}

// The quotient of two units in the last place: an exact one branches, so that results are made one after the other.
__device__ inline float silu(float x) { return __fdividef(x, 1.0f + __expf(-x)); }

struct f32x8 {
    float v[8];
};
__device__ inline f32x8 widen(uint4 x) {
    const uint32_t u[4] = {x.x, x.y, x.z, x.w};
    f32x8 r;
#pragma unroll
    for (int i = 0; i < 4; i++) r.v[2 * i] = __uint_as_float(u[i] << 16), r.v[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
    return r;
}
__device__ inline uint32_t narrow(float low, float high) {
    const __nv_bfloat162 x = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&x);
}
__device__ inline uint4 narrow(const f32x8 &x) {
    return {narrow(x.v[0], x.v[1]), narrow(x.v[2], x.v[3]), narrow(x.v[4], x.v[5]), narrow(x.v[6], x.v[7])};
}

// Eight activations of which left are there, the rest zeros. Where whole, p is aligned and all eight are there.
__device__ inline uint4 load8_raw(const atlas_act *p, int left, bool whole) {
    if (whole) return *reinterpret_cast<const uint4 *>(p);
    const uint16_t *u = reinterpret_cast<const uint16_t *>(p);
    uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; i++) r[i] = (2 * i < left ? u[2 * i] : 0u) | (2 * i + 1 < left ? u[2 * i + 1] : 0u) << 16;
    return {r[0], r[1], r[2], r[3]};
}
__device__ inline f32x8 load8(const atlas_act *p, int left, bool whole) { return widen(load8_raw(p, left, whole)); }
__device__ inline void store8(atlas_act *p, const f32x8 &x, int left, bool whole) {
    if (whole) {
        *reinterpret_cast<uint4 *>(p) = narrow(x);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < left) p[i] = __float2bfloat16_rn(x.v[i]);
}

}  // namespace atlas
