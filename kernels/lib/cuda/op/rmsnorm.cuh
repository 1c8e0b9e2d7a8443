// RMSNorm on a GPU, one row per block of kThreads. A thread keeps its first kTurns times eight elements; what rows wider than
// 8·kThreads·kTurns have beyond, it reads again. Squares meet as if there were a thread for every eight elements, so that
// rows that fit have the same bits for every kThreads. Grid: Rows.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

__device__ inline f32x8 scales(const float *p, int left, bool whole) {
    f32x8 x;
    if (whole) {
        const float4 low = *reinterpret_cast<const float4 *>(p), high = *reinterpret_cast<const float4 *>(p + 4);
        return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    }
#pragma unroll
    for (int i = 0; i < 8; i++) x.v[i] = i < left ? p[i] : 0.0f;
    return x;
}

// What the kernel before wrote, which comes sooner past the first cache.
__device__ inline uint4 load8_fresh(const atlas_act *p, int left, bool whole) { return whole ? __ldcg(reinterpret_cast<const uint4 *>(p)) : load8_raw(p, left, false); }

}  // namespace atlas

template <class P>
__device__ void rmsnorm(const atlas_RMSNorm &a) {
    constexpr int kWarps = P::kThreads / 32, kStep = P::kThreads * 8;
    __shared__ float partial[kWarps * P::kTurns];
    const int n = a.Cols, begin = threadIdx.x * 8;
    const bool whole = n % 8 == 0;
    const size_t row = size_t(blockIdx.x) * n;
    uint4 x[P::kTurns] = {}, before[P::kTurns] = {};
    atlas::f32x8 scale[P::kTurns] = {};
    atlas::release_next();
#pragma unroll
    for (int t = 0; t < P::kTurns; t++)
        if (begin + t * kStep < n) scale[t] = atlas::scales(a.Scale + begin + t * kStep, n - begin - t * kStep, whole);  // weights: no kernel writes them
    atlas::wait_for_previous();
#pragma unroll
    for (int t = 0; t < P::kTurns; t++) {
        const int c = begin + t * kStep;
        if (c >= n) continue;
        x[t] = atlas::load8_fresh(a.In + row + c, n - c, whole);
        if (a.Residual) before[t] = atlas::load8_fresh(a.Residual + row + c, n - c, whole);
    }
    const auto add = [&](uint4 now, uint4 then, int c) {
        atlas::f32x8 sum = atlas::widen(now);
        const atlas::f32x8 y = atlas::widen(then);
#pragma unroll
        for (int i = 0; i < 8; i++) sum.v[i] += y.v[i];
        now = atlas::narrow(sum);
        atlas::store8(a.Residual + row + c, atlas::widen(now), n - c, whole);
        return now;
    };
    const auto square = [&](uint4 raw, float squares) {
        const atlas::f32x8 y = atlas::widen(raw);
#pragma unroll
        for (int i = 0; i < 8; i++) squares = fmaf(y.v[i], y.v[i], squares);
        return squares;
    };
#pragma unroll
    for (int t = 0; t < P::kTurns; t++) {
        const int c = begin + t * kStep;
        if (a.Residual && c < n) x[t] = add(x[t], before[t], c);
        float squares = square(x[t], 0);
        if (t == P::kTurns - 1)
            for (int d = c + kStep; d < n; d += kStep) {
                uint4 y = atlas::load8_raw(a.In + row + d, n - d, whole);
                if (a.Residual) y = add(y, atlas::load8_raw(a.Residual + row + d, n - d, whole), d);
                squares = square(y, squares);
            }
        squares = atlas::warp_sum(squares);
        if (atlas::lane() == 0) partial[t * kWarps + atlas::warp()] = squares;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps * P::kTurns; w++) sum += partial[w];
    const float inverse = rsqrtf(sum / n + a.Eps);
    const atlas_act *in = a.Residual ? a.Residual : a.In;
    const auto finish = [&](uint4 raw, const atlas::f32x8 &scale, int c) {
        atlas::f32x8 y = atlas::widen(raw);
#pragma unroll
        for (int i = 0; i < 8; i++) y.v[i] *= inverse * scale.v[i];
        atlas::store8(a.Out + row + c, y, n - c, whole);
    };
#pragma unroll
    for (int t = 0; t < P::kTurns; t++)
        if (begin + t * kStep < n) finish(x[t], scale[t], begin + t * kStep);
    for (int c = begin + P::kTurns * kStep; c < n; c += kStep) finish(atlas::load8_raw(in + row + c, n - c, whole), atlas::scales(a.Scale + c, n - c, whole), c);
}
