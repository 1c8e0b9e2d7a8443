// NormPair on a GPU, a block for each half of a row. Each thread takes eight columns at a time, and reads them twice: the second time they are
// in the first cache. Grid: Rows, 2.
#pragma once
#include "lib/cuda/op/rmsnorm.cuh"

template <class P>
__device__ void norm_pair(const atlas_NormPair &a) {
    constexpr int kStep = P::kThreads * 8;
    const int n = a.Cols, begin = threadIdx.x * 8, other = blockIdx.y;
    const bool whole = n % 8 == 0;
    const float *scale = other ? a.OtherScale : a.Scale;
    atlas_act *out = a.Out + (size_t(blockIdx.x) * 2 + other) * n;
    atlas::release_next();
    atlas::wait_for_previous();
    const int from = other && a.Index ? a.Index[blockIdx.x] : int(blockIdx.x);
    const bool none = other && (from < 0 || from >= a.OtherRows);
    const atlas_act *in = (other ? a.Other : a.In) + (none ? 0 : size_t(from) * n);
    float squares = 0;
    for (int c = begin; c < n && !none; c += kStep) {
        const atlas::f32x8 x = atlas::load8(in + c, n - c, whole);
#pragma unroll
        for (int i = 0; i < 8; i++) squares = fmaf(x.v[i], x.v[i], squares);
    }
    const float inverse = none ? 0.0f : rsqrtf(atlas::block_sum<P::kThreads>(squares) / n + a.Eps);
    for (int c = begin; c < n; c += kStep) {
        atlas::f32x8 x = none ? atlas::f32x8{} : atlas::load8(in + c, n - c, whole);
        const atlas::f32x8 s = atlas::scales(scale + c, n - c, whole);
#pragma unroll
        for (int i = 0; i < 8; i++) x.v[i] *= inverse * s.v[i];
        atlas::store8(out + c, x, n - c, whole);
    }
}
