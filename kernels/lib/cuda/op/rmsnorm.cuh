// RMSNorm on a GPU, one row per block of kThreads. A thread keeps its first eight elements; what rows wider than 8·kThreads
// have beyond, it reads again.
#pragma once
#include "lib/cuda/atlas.cuh"

template <int kThreads>
__device__ void rmsnorm(const atlas_RMSNorm &a) {
    const int n = a.Cols;
    const bool whole = n % 8 == 0;
    const size_t row = size_t(blockIdx.x) * n;
    const int begin = threadIdx.x * 8;
    atlas::f32x8 first = {};
    float squares = 0;
    atlas::wait_for_previous();
    for (int c = begin; c < n; c += kThreads * 8) {
        atlas::f32x8 x = atlas::load8(a.In + row + c, n - c, whole);
        if (a.Residual) {
            const atlas::f32x8 before = atlas::load8(a.Residual + row + c, n - c, whole);
#pragma unroll
            for (int i = 0; i < 8; i++) x.v[i] = __bfloat162float(__float2bfloat16_rn(x.v[i] + before.v[i]));
            atlas::store8(a.Residual + row + c, x, n - c, whole);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) squares = fmaf(x.v[i], x.v[i], squares);
        if (c == begin) first = x;
    }
    atlas::release_next();
    const float inverse = rsqrtf(atlas::block_sum<kThreads>(squares) / n + a.Eps);
    const atlas_act *in = a.Residual ? a.Residual : a.In;
    for (int c = begin; c < n; c += kThreads * 8) {
        atlas::f32x8 x = c == begin ? first : atlas::load8(in + row + c, n - c, whole);
#pragma unroll
        for (int i = 0; i < 8; i++) x.v[i] *= inverse * (c + i < n ? a.Scale[c + i] : 0.0f);
        atlas::store8(a.Out + row + c, x, n - c, whole);
    }
}
